"""Watches operators of extensions that `torch.utils.cpp_extension` builds while the program runs."""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from warpladder.collectors.capture.tensors import OfTorch
from warpladder.collectors.capture.watch import Array, Memory, Operator, Refused, Watch, place

#: Arguments of the functions that build: the texts, how the sources are named, and what a benchmark leaves out.
_TEXTS: Final = {"cpp_sources": "cpp", "cuda_sources": "cu"}
_LEFT_OUT: Final = frozenset({"build_directory", "verbose", "keep_intermediates"})
_INCLUDED: Final = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def watch_extensions(watch: Watch, torch: ModuleType, cpp_extension: ModuleType) -> None:
    """Put functions that watch in place of those that build an extension.

    Args:
        cpp_extension: `torch.utils.cpp_extension`.
    """
    for build in (cpp_extension.load, cpp_extension.load_inline):
        setattr(cpp_extension, build.__name__, _watched_build(watch, torch, build))


def _watched_build(watch: Watch, torch: ModuleType, build: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(build)
    def watched(*args: Any, **options: Any) -> Any:
        given = dict(inspect.signature(build).bind(*args, **options).arguments)
        files, words = _kept(given)  # before the call, which changes lists of sources
        module = build(*args, **options)
        if isinstance(module, ModuleType):
            text = f"cpp_extension.{build.__name__}({', '.join(f'{name}={word}' for name, word in words.items())})"
            for name, value in vars(module).items():
                if inspect.isbuiltin(value) and not name.startswith("_"):
                    setattr(module, name, _watched_operator(watch, torch, name, value, files, text))
        return module

    return watched


def _kept(given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The sources of an extension by the paths that they get, and the arguments of its build as source."""
    files, words = dict[str, str](), dict[str, str]()
    for name, value in given.items():
        if name == "sources":
            paths = [path for each in _each(value) if (path := Path(each).resolve()).is_file()]  # the build tells of others
            found = list(_with_headers(paths))
            top = Path(os.path.commonpath([each.parent for each in found] or [Path()]))
            files |= {str(each.relative_to(top)): each.read_text(errors="replace") for each in found}
            words[name] = f"[{', '.join(f'str(FOLDER / {str(each.relative_to(top))!r})' for each in paths)}]"
        elif name in _TEXTS:
            texts = {f"{name}_{number}.{_TEXTS[name]}": text for number, text in enumerate(_each(value))}
            files |= texts
            words[name] = f"[{', '.join(f'(FOLDER / {file!r}).read_text()' for file in texts)}]"
        elif name not in _LEFT_OUT:
            words[name] = repr([str(Path(each).resolve()) for each in _each(value)] if name == "extra_include_paths" else value)
    return files, words


def _each(value: Any) -> Iterable[Any]:
    return [value] if isinstance(value, str | Path) else list(value or ())


def _with_headers(paths: Sequence[Path]) -> Iterator[Path]:
    """Sources, and the headers beside them that they include."""
    waiting, seen = list(paths), set[Path]()
    while waiting:
        if (path := waiting.pop()) not in seen:
            seen.add(path)
            yield path
            headers = (path.parent / name for name in _INCLUDED.findall(path.read_text(errors="replace")))
            waiting += [header.resolve() for header in headers if header.is_file()]


def _watched_operator(
    watch: Watch, torch: ModuleType, name: str, operator: Callable[..., Any], files: Mapping[str, str], build: str
) -> Callable[..., Any]:
    @functools.wraps(operator)
    def watched(*args: Any, **options: Any) -> Any:
        def launch() -> Any:
            return operator(*args, **options)

        if not watch.wants(name):
            return launch()
        memory = dict[str, Memory]()
        try:
            words = [_word(f"a{number}", value, memory) for number, value in enumerate(args)]
            words += [f"{each}={_word(f'{each}_', value, memory)}" for each, value in options.items()]
        except Refused as why:
            watch.refused[name] = str(why)
            return launch()

        def kept(answer: Any, arrays: tuple[Array, ...]) -> Operator:
            returned = dict(_returned("result", answer, memory))
            results = [_result(each, tensor) for each, (_, tensor) in returned.items()]
            where = {each: word for each, (word, _) in returned.items()}
            call = f"BUILT.{name}({', '.join(words)})"
            return Operator(name, watch.counts[name], (*arrays, *results), files, build, call, where)

        return watch.take(memory, launch, torch.cuda.synchronize, kept, name)

    return watched


def _word(name: str, value: Any, memory: dict[str, Memory]) -> str:
    """An argument as source. Tensors are added to the memory.

    Raises:
        Refused: it cannot be written as source.
    """
    if hasattr(value, "data_ptr"):
        if not value.is_cuda:
            raise Refused(f"its argument {name} is a tensor on the host")
        known = place(memory, name, OfTorch(value))
        return known if value.is_contiguous() else f"{known}.as_strided({tuple(value.shape)}, {tuple(value.stride())})"
    if isinstance(value, list | tuple):
        words = [_word(f"{name}_{number}", each, memory) for number, each in enumerate(value)]
        return f"[{', '.join(words)}]"
    if value is None or isinstance(value, bool | int | float | complex | str):
        return repr(value)
    if str(value).startswith("torch."):  # a type or a layout
        return str(value)
    raise Refused(f"its argument {name} is {type(value).__name__}: neither a tensor nor a number, a text or a list of them")


def _returned(word: str, answer: Any, memory: Mapping[str, Memory]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """The tensors of an answer that lie in memory of their own: a name, and how each is found and the tensor."""
    if hasattr(answer, "data_ptr"):
        start = answer.data_ptr()
        if not any(there.start <= start < there.start + there.nbytes for there in memory.values()):
            yield "".join(letter if letter.isalnum() else "_" for letter in word).strip("_"), (word, answer)
    elif isinstance(answer, list | tuple):
        for number, each in enumerate(answer):
            yield from _returned(f"{word}[{number}]", each, memory)
    elif answer is not None:
        raise Refused(f"it returns {type(answer).__name__}, which is no tensor")


def _result(name: str, tensor: Any) -> Array:
    there = OfTorch(tensor.detach().contiguous())
    data = there.read()
    return Array(name, there.kind, tuple(tensor.shape), np.empty(0, np.uint8), data, is_read=False)
