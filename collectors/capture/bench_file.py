"""Writes a kernel with its arguments as a folder: `bench.py`, the kernel's source, and the arrays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.collectors.capture.watch import Array, Kernel, Operator

#: Types of which NumPy has the same.
_OF_NUMPY: Final = frozenset(
    f"{kind}{bits}" for kind, sizes in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64))) for bits in sizes
) | {"bool", "complex64", "complex128"}  # fmt: skip


def write(kernel: Kernel | Operator, folder: Path, program: str) -> None:
    """Write the folder, which is made."""
    folder.mkdir(parents=True)
    for file, text in kernel.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        about = f'"""Kernel `{kernel.name}` of {program}, to be edited."""\n\n' if file == "kernel.py" else ""
        (folder / file).write_text(about + text)
    kept = {array.name: _typed(array, array.before) for array in kernel.arrays if array.before.size or array.after is None}
    kept |= {f"{array.name}_after": _typed(array, array.after) for array in kernel.arrays if array.after is not None}
    np.savez(folder / "arguments.npz", **kept)  # type: ignore[arg-type]
    (folder / "bench.py").write_text("\n".join(_lines(kernel, program)) + "\n")


def _typed(array: Array, data: np.ndarray) -> np.ndarray:
    """The array, of its type where NumPy has it; else of whole numbers with its bits."""
    if array.kind in _OF_NUMPY:
        return data.view(array.kind).reshape(array.shape)
    size = data.nbytes // max(int(np.prod(array.shape)), 1)
    return data.view(f"uint{8 * size}").reshape(array.shape)


def _lines(kernel: Kernel | Operator, program: str) -> Iterator[str]:
    inputs = [array for array in kernel.arrays if array.after is None or array.is_read]
    outputs = [array for array in kernel.arrays if array.after is not None]
    is_in_torch = isinstance(kernel, Operator) or kernel.tool == "Triton"
    uses_torch = is_in_torch or any(array.kind not in _OF_NUMPY for array in kernel.arrays)
    what = "Operator" if isinstance(kernel, Operator) else "Kernel"
    imports = ["import numpy as np", *["import torch"] * uses_torch]
    imports += ["from torch.utils import cpp_extension"] * isinstance(kernel, Operator)
    yield from f'''"""{what} `{kernel.name}` of {program}: launch {kernel.number}, with its arguments, kept by `warpladder capture`.

Its outputs are right if they are those that it had in the program. The inputs are always the same.
"""

from pathlib import Path

{chr(10).join(imports)}

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
    if isinstance(kernel, Operator):
        yield from _built(kernel, outputs, parameters)
        return
    if any(array.is_read for array in outputs):
        yield from _in_place(kernel, outputs, parameters)
    else:
        names = {array.name: f"{array.name}_new" for array in outputs}
        words = ", ".join(_word(argument, names) for argument in kernel.arguments)
        yield "bench.cuda("
        yield f'    "kernel.{kernel.suffix}", name="as_captured", kernel="{kernel.symbol}", baseline=True,'
        yield f"    grid={kernel.grid}, block={kernel.block}, shared={kernel.shared}, options={kernel.options!r},"
        yield f"    args=({words},),"
        yield ")"
    if kernel.python:
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
    """A function that launches the kernel's source in Python."""
    in_place = "writes_inputs=True, " if any(array.is_read for array in outputs) else ""
    is_triton, tool = kernel.tool == "Triton", kernel.tool.lower()
    arrays, stream = ("", "") if is_triton else (', arrays="numba"', ", stream")
    yield ""
    yield ""
    yield f'@bench.variant({in_place}requires=["{tool}"]{arrays})'
    yield f"def in_{tool}({parameters}{stream}):"
    yield '    """Idea: The source in kernel.py, which you can edit."""'
    yield f"    from kernel import {kernel.name}"
    if not is_triton:
        yield "    from numba import cuda"
    yield ""
    for array in outputs:
        if not array.is_read and is_triton:
            yield _empty_in_torch(array)
        elif not array.is_read:
            yield f'    {array.name} = cuda.device_array({array.shape}, "{array.kind}", stream=stream)'
    yield f"    {kernel.call}"
    yield f"    return {_returned(outputs)}"


def _empty_in_torch(array: Array) -> str:
    return f'    {array.name} = torch.empty({array.shape}, dtype=torch.{array.kind}, device="cuda")'


def _built(operator: Operator, outputs: list[Array], parameters: str) -> Iterator[str]:
    """A function that calls an operator, which is built from its sources when the file is loaded."""
    options = ", writes_inputs=True" if any(array.is_read for array in outputs) else ""
    yield "FOLDER = Path(__file__).parent"
    yield '(FOLDER / "build").mkdir(exist_ok=True)'
    yield f'BUILT = {operator.build.removesuffix(")")}, build_directory=str(FOLDER / "build"))'
    yield ""
    yield ""
    yield f"@bench.variant(baseline=True{options})"
    yield f"def as_captured({parameters}):"
    yield '    """Idea: As the program calls it. Its sources lie beside this file, and are built again when you change them."""'
    for array in outputs:
        if not array.is_read and array.name not in operator.returned:
            yield _empty_in_torch(array)
    yield f"    {'result = ' if operator.returned else ''}{operator.call}"
    found = [f'"{array.name}_new": {operator.returned.get(array.name, array.name)}' for array in outputs]
    yield f"    return {{{', '.join(found)}}}"


def _returned(outputs: list[Array]) -> str:
    pairs = ", ".join(f'"{array.name}_new": {array.name}' for array in outputs)
    return f"{{{pairs}}}"


def folder_name(name: str) -> str:
    """A name of letters, digits and underscores."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "kernel"
