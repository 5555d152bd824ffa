"""Writes a kernel with its arguments as a folder: `bench.py`, the kernel's source, and the arrays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.collectors.capture.watch import Array, Kernel

#: Types of which NumPy has the same.
_OF_NUMPY: Final = frozenset(
    f"{kind}{bits}" for kind, sizes in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64))) for bits in sizes
) | {"bool", "complex64", "complex128"}  # fmt: skip


def write(kernel: Kernel, folder: Path, program: str) -> None:
    """Write the folder, which is made."""
    folder.mkdir(parents=True)
    (folder / f"kernel.{kernel.suffix}").write_text(kernel.source)
    if kernel.python:
        (folder / "kernel.py").write_text(f'"""Kernel `{kernel.name}` of {program}, to be edited."""\n\n{kernel.python}')
    kept = {array.name: _typed(array, array.before) for array in kernel.arrays}
    kept |= {f"{array.name}_after": _typed(array, array.after) for array in kernel.arrays if array.after is not None}
    np.savez(folder / "arguments.npz", **kept)  # type: ignore[arg-type]
    (folder / "bench.py").write_text("\n".join(_lines(kernel, program)) + "\n")


def _typed(array: Array, data: np.ndarray) -> np.ndarray:
    """The array, of its type where NumPy has it; else of whole numbers with its bits."""
    if array.kind in _OF_NUMPY:
        return data.view(array.kind).reshape(array.shape)
    size = data.nbytes // max(int(np.prod(array.shape)), 1)
    return data.view(f"uint{8 * size}").reshape(array.shape)


def _lines(kernel: Kernel, program: str) -> Iterator[str]:
    inputs = [array for array in kernel.arrays if array.after is None or array.is_read]
    outputs = [array for array in kernel.arrays if array.after is not None]
    in_place = any(array.is_read for array in outputs)
    uses_torch = any(array.kind not in _OF_NUMPY for array in kernel.arrays) or bool(kernel.python)
    names = {array.name: f"{array.name}_new" for array in outputs}
    yield from f'''"""Kernel `{kernel.name}` of {program}: launch {kernel.number}, with its arguments, kept by `warpladder capture`.

Its outputs are right if they are those that it had in the program. The inputs are always the same.
"""

from pathlib import Path

import numpy as np{chr(10) + "import torch" if uses_torch else ""}

import warpladder

KEPT = np.load(Path(__file__).with_name("arguments.npz"))
bench = warpladder.Benchmark("{folder_name(kernel.name)}", launch=[{kernel.number}], arrays="{"torch" if uses_torch else "cupy"}")


@bench.inputs
def inputs(launch):'''.split("\n")
    given = ", ".join(f'"{array.name}": {_value(array, array.name, torch=uses_torch)}' for array in inputs)
    yield f"    return {{{given or _NOTHING}}}"
    yield ""
    yield ""
    types = ", ".join(f'"{array.name}_new": "{array.kind}"' for array in outputs)
    yield f"@bench.reference(outputs={{{types}}})"
    parameters = ", ".join(array.name for array in inputs) or "nothing"
    yield f"def as_in_the_program({parameters}):"
    after = ", ".join(
        f'"{array.name}_new": {_value(array, f"{array.name}_after", torch=uses_torch)}{_wide(array, torch=uses_torch)}'
        for array in outputs
    )
    yield f"    return {{{after}}}"
    yield ""
    yield ""
    if in_place:
        yield from _in_place(kernel, outputs, parameters)
    else:
        words = ", ".join(_word(argument, names) for argument in kernel.arguments)
        yield "bench.cuda("
        yield f'    "kernel.{kernel.suffix}", name="as_captured", kernel="{kernel.symbol}", baseline=True,'
        yield f"    grid={kernel.grid}, block={kernel.block}, shared={kernel.shared}, options={kernel.options!r},"
        yield f"    args=({words},),"
        yield ")"
    if kernel.python and not in_place:
        yield from _in_python(kernel, outputs, parameters)


_NOTHING: Final = '"nothing": np.zeros(1, np.float32)'


def _value(array: Array, key: str, *, torch: bool) -> str:
    text = f'KEPT["{key}"]'
    if not torch:
        return text
    return f"torch.from_numpy({text})" + ("" if array.kind in _OF_NUMPY else f".view(torch.{array.kind})")


def _wide(array: Array, *, torch: bool) -> str:
    """Makes real numbers float64, as a reference gives them."""
    is_real = "float" in array.kind
    return (".double()" if torch else ".astype(np.float64)") if is_real else ""


def _word(argument: str | np.generic, outputs: dict[str, str]) -> str:
    """An argument as `bench.cuda` takes it."""
    if isinstance(argument, str):
        return f'"{outputs.get(argument, argument)}"'
    return f"np.{argument.dtype.name}({argument.item()!r})" if argument.dtype != bool else f"np.bool_({argument.item()!r})"


def _in_place(kernel: Kernel, outputs: list[Array], parameters: str) -> Iterator[str]:
    """A function that launches a kernel which reads what it changes: it gets copies, which are made anew before each call."""
    only_written = [array for array in outputs if not array.is_read]
    words = ", ".join(argument if isinstance(argument, str) else _word(argument, {}) for argument in kernel.arguments)
    yield "def _loaded():"
    yield "    import cupy"
    yield ""
    yield f'    source = Path(__file__).with_name("kernel.{kernel.suffix}")'
    if kernel.suffix == "ptx":
        yield f'    return cupy.RawModule(path=str(source)).get_function("{kernel.symbol}")'
    else:
        yield f'    return cupy.RawModule(code=source.read_text(), options={kernel.options!r}).get_function("{kernel.symbol}")'
    yield ""
    yield ""
    yield '@bench.variant(baseline=True, writes_inputs=True, arrays="cupy")'
    yield f"def as_captured({parameters}):"
    yield '    """Idea: As the program launches it. It reads what it changes."""'
    yield "    import cupy"
    yield ""
    for array in only_written:
        yield f'    {array.name} = cupy.empty({array.shape}, "{array.kind}")'
    yield "    kernel = LOADED[0] if LOADED else LOADED.append(_loaded()) or LOADED[0]"
    if kernel.shared > 48 << 10:
        yield f"    kernel.max_dynamic_shared_size_bytes = {kernel.shared}"
    yield f"    kernel({kernel.grid}, {kernel.block}, ({words},), shared_mem={kernel.shared})"
    yield f"    return {_returned(outputs)}"
    yield ""
    yield ""
    yield "LOADED = []"


def _in_python(kernel: Kernel, outputs: list[Array], parameters: str) -> Iterator[str]:
    yield ""
    yield ""
    yield '@bench.variant(requires=["triton"])'
    yield f"def in_{kernel.tool.lower()}({parameters}):"
    yield '    """Idea: The source in kernel.py, which you can edit."""'
    yield f"    from kernel import {kernel.name}"
    yield ""
    for array in outputs:
        yield f'    {array.name} = torch.empty({array.shape}, dtype=torch.{array.kind}, device="cuda")'
    yield f"    {kernel.call}"
    yield f"    return {_returned(outputs)}"


def _returned(outputs: list[Array]) -> str:
    pairs = ", ".join(f'"{array.name}_new": {array.name}' for array in outputs)
    return f"{{{pairs}}}"


def folder_name(name: str) -> str:
    """A name of letters, digits and underscores."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "kernel"
