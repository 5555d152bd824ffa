"""Arrays of the libraries that functions are written with, and the arrays of a bench: NumPy's on the host, CuPy's on a GPU.

An input is stored without gaps, in the order of its axes in memory. So a tensor in PyTorch's format channels-last reaches a
function as channels-last again. Nothing here synchronises a stream, which would hide work on another one.
"""

import sys
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from warpladder.workloads.declare.cases import STORAGE, widened
from warpladder.workloads.declare.workloads import Array, NotInstalled, WrongOutput

#: Integers of PyTorch and NumPy alike that have the bits of a type that NumPy lacks.
_SIGNED: Final = {"uint8": "int8", "uint16": "int16"}
#: Type of a number -> kinds of NumPy's types that hold it.
_NUMBERS: Final[Mapping[type, str]] = {bool: "b", int: "iu", float: "f", complex: "c"}
#: Libraries of which no array computes when it is looked at.
_ARRAYS_OF: Final = ("numpy", "torch", "jax", "jaxlib", "cupy")
#: Kind of a type that cannot be measured -> how to pass such arrays.
_CURES: Final = {
    "M": "give their whole numbers, x.view('int64')",
    "m": "give their whole numbers, x.view('int64')",
    "S": "give their bytes, x.view('uint8')",
    "U": "give their characters, x.view('uint32')",
    "V": "give each field as an array",
    "O": "give arrays of numbers",
}
#: Libraries whose name a message puts after the name of a class.
_NAMED_LIBRARIES: Final = (
    "torch",
    "cupy",
    "jax",
    "jaxlib",
    "numba",
    "numpy",
    "pandas",
    "triton",
    "tensorflow",
    "scipy",
    "concurrent",
    "asyncio",
)


@dataclass(frozen=True)
class Form:
    """How a function gave an array.

    Attributes:
        library: the array's library, as `library_of` names it.
        dtype: name of its type, such as `float32` or `bfloat16`.
        shape: its shape.
        order: its axes in the order of memory, the slowest first.
        varies: its shape depends on the numbers in the inputs; this one is of the first input set.
    """

    library: str
    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    varies: bool = False

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.order)

    @property
    def is_real(self) -> bool:
        """Whether it holds real floating-point numbers."""
        return self.dtype in STORAGE or np.dtype(self.dtype).kind == "f"

    def from_storage(self, stored: Array) -> Array:
        """A view of a stored array with the axes of the function's array."""
        return stored.transpose(np.argsort(self.order)) if self.order else stored


def library_of(value: Any) -> str:
    """The library of an array: `numpy`, `torch`, `cupy`, `jax`, or `numba` for another array on the device; empty for no array."""
    if issubclass(type(value), np.ndarray | np.generic):
        return "numpy"
    root = str(type(value).__module__).partition(".")[0]
    if root == "torch" and hasattr(value, "data_ptr"):
        return "torch"
    if root in ("jax", "jaxlib") and hasattr(value, "dtype"):
        return "jax"
    if root == "cupy" and hasattr(value, "dtype"):
        return "cupy"
    if root == "torch" or issubclass(type(value), type):
        return ""
    try:
        is_array = hasattr(value, "dtype") and hasattr(value, "shape")
        interface = value.__cuda_array_interface__
        return "numba" if is_array and issubclass(type(interface), Mapping) and "data" in interface else ""
    except Exception:  # the value may be an object of any class
        return ""


def is_number(value: Any) -> bool:
    """Whether a value is one of Python's own numbers, and not an object of a class that is made of them."""
    return type(value) in _NUMBERS


def is_finished(value: Any) -> bool:
    """Whether nothing can be left to compute when a value is looked at: an array or number of a library's own class, nothing, or a tuple,
    list or dict of Python's own of these. A class counts if its library's module has it under its name."""
    kind = type(value)
    if kind in (tuple, list) or _is_named_tuple(kind):
        return all(map(is_finished, value))
    if kind is dict:
        return all(type(name) is str and is_finished(each) for name, each in value.items())
    if value is None or kind is np.ndarray or kind in _NUMBERS:
        return True
    root = str(kind.__module__).partition(".")[0]
    return root in _ARRAYS_OF and getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind


def _is_named_tuple(kind: type) -> bool:
    """Whether a class adds names to tuples, and gives its elements as they do."""
    return (
        type(kind) is type
        and kind.__bases__ == (tuple,)
        and not {"__iter__", "__getitem__", "__len__", "__getattribute__"} & set(vars(kind))
    )


def copied(value: Any) -> np.ndarray:
    """An array in host memory of its own, of NumPy's own class."""
    return np.array(value, copy=True, subok=False, order="K")


def dtype_of(value: Any) -> str:
    """The name of an array's type, alike in all libraries."""
    dtype = value.dtype
    return str(dtype).removeprefix("torch.") if library_of(value) == "torch" else str(getattr(dtype, "name", dtype))


def is_inexact(value: Any) -> bool:
    """Whether an array holds real or complex numbers that a library can multiply: types of 8 bits cannot."""
    dtype = dtype_of(value)
    return dtype == "bfloat16" or (dtype not in STORAGE and np.dtype(dtype).kind in "fc")


def described(value: Any) -> str:
    """A value that is no array, in words for a message."""
    kind = type(value)
    if value is None:
        return "None"
    root = str(kind.__module__).partition(".")[0]
    name = f"{kind.__name__} of {root}" if root in _NAMED_LIBRARIES else kind.__name__
    name = "text" if kind is str else "class" if issubclass(kind, type) else name
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def is_unfinished(value: Any) -> bool:
    """Whether a function returned a generator or a coroutine. A coroutine is closed: Python would warn that nobody awaited it."""
    kind = type(value)
    if issubclass(kind, Coroutine):
        value.close()
        return True
    return issubclass(kind, Iterator)


# -- what the functions `inputs` and `reference` give ----------------------------------------------------------------------------


def is_measurable(dtype: Any) -> bool:
    """Whether arrays of a type, or of the type of this name, can be inputs and outputs."""
    if isinstance(dtype, str):
        if dtype in STORAGE:
            return True
        try:
            dtype = np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError):
            return False
    return dtype.kind in "fciub" and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def on_host(value: Any) -> np.ndarray:
    """The array as NumPy's, with the bits of types that NumPy lacks as unsigned integers. Raises ValueError: its type
    has no such integers."""
    dtype = dtype_of(value)
    match library_of(value):
        case "torch":
            if str(value.layout) != "torch.strided":
                raise ValueError("it is a sparse tensor; make it dense")
            torch = sys.modules["torch"]
            # The class's own method: an object can have others of the same names, which compute outside of the time.
            tensor = torch.Tensor.detach(value).resolve_conj().resolve_neg().cpu()
            if dtype in STORAGE:
                return tensor.view(getattr(torch, _SIGNED[STORAGE[dtype]])).numpy().view(STORAGE[dtype])  # type: ignore[no-any-return]
            try:
                return tensor.numpy()  # type: ignore[no-any-return]
            except TypeError as error:
                raise ValueError(f"arrays of {dtype} cannot be measured; convert them to float32, for example") from error
        case "cupy":
            array = value.get()
        case "numba":
            array = value.copy_to_host() if hasattr(value, "copy_to_host") else _cupy().asarray(value).get()
        case _:
            array = np.asarray(value)
    if dtype in STORAGE:
        return array.view(STORAGE[dtype])  # type: ignore[no-any-return]
    if not is_measurable(array.dtype):
        cure = _CURES.get(array.dtype.kind, "convert them to numbers that GPUs have, such as float32")
        raise ValueError(f"arrays of {dtype} cannot be measured; {cure}")
    return array  # type: ignore[no-any-return]


def stored(value: Any) -> tuple[Form, np.ndarray]:
    """The form of an array that a function gave, and its elements as a bench stores them. Raises ValueError: its
    elements do not lie without gaps in memory, or its type is not known here."""
    array = on_host(value)
    order = _order(array)
    form = Form(library_of(value), dtype_of(value), tuple(array.shape), order)
    native = array.dtype.newbyteorder("=")
    return form, np.array(array.transpose(order) if order else array, native, order="C", copy=True)


def _order(array: np.ndarray) -> tuple[int, ...]:
    """The axes in the order of memory. Raises ValueError for an array with gaps or repeated elements."""
    order = tuple(sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], array.shape[axis] == 1, axis)))
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    if not array.transpose(order).flags.c_contiguous:
        raise ValueError("its elements do not lie side by side in memory; make it contiguous")
    return order


def in_double(form: Form, array: np.ndarray) -> Any:
    """An input for the reference: an array of the form's library, with real numbers in float64 and complex ones in complex128."""
    return _converted(form, array, np.float64, np.complex128)


def on_host_in_double(form: Form, array: np.ndarray) -> Any:
    """The same as an array of NumPy's."""
    return in_double(replace(form, library="python" if form.library == "python" else "numpy"), array)


def in_single(form: Form, array: np.ndarray) -> Any:
    """The same, with real numbers in float32 and complex ones in complex64."""
    return _converted(form, array, np.float32, np.complex64)


def _converted(form: Form, array: np.ndarray, real: type[np.generic], imaginary: type[np.generic]) -> Any:
    values = form.from_storage(widened(array, form.dtype))
    values = values.astype({"f": real, "c": imaginary}.get(values.dtype.kind, values.dtype))
    match form.library:
        case "python":
            return values.item()
        case "torch":
            return sys.modules["torch"].from_numpy(values)
        case "cupy" | "numba":
            return _cupy().asarray(values)
        case "jax":
            return sys.modules["jax"].numpy.asarray(values)
    return values


# -- what a variant takes and gives -----------------------------------------------------------------------------------------------


def as_argument(form: Form, array: Array, library: str) -> Any:
    """A stored array for a variant: the same memory, as an array of a library, with the function's type and axes; a number of Python as
    itself.

    Args:
        form: of the input or output.
        array: NumPy's or CuPy's, without gaps.
        library: of the variant.

    Raises:
        NotInstalled: the library is not there, or does not run where the array is.
        WrongOutput: the library lacks the type.
    """
    hosted = isinstance(array, np.ndarray)
    if form.library == "python":
        return array.item()
    if library == "torch":
        return _as_tensor(form, array, hosted)
    if library == "jax":
        return _as_jax(form, array, hosted)
    if form.dtype in STORAGE:
        array = array.view(_numpy_type(form.dtype, library))
    values = form.from_storage(array)
    if library == "numba":
        return _imported("numba.cuda").as_cuda_array(values)
    return values


def _as_tensor(form: Form, array: Array, hosted: bool) -> Any:
    torch = _imported("torch")
    bits = array.view(_SIGNED[STORAGE[form.dtype]]) if form.dtype in STORAGE else array
    if hosted:
        with warnings.catch_warnings():  # PyTorch has no read-only tensors, and says so
            warnings.simplefilter("ignore")
            tensor = torch.from_numpy(bits)
    else:
        if not torch.cuda.is_available():
            raise NotInstalled("needs PyTorch with CUDA; the PyTorch that is installed here does not find the GPU")
        tensor = torch.from_dlpack(bits)
    if form.dtype in STORAGE:
        tensor = tensor.view(getattr(torch, form.dtype))
    return tensor.permute(*map(int, np.argsort(form.order))) if form.order else tensor


def _as_jax(form: Form, array: Array, hosted: bool) -> Any:
    jax = _imported("jax")
    if hosted:
        bits = array.view(_numpy_type(form.dtype, "jax")) if form.dtype in STORAGE else array
        return jax.block_until_ready(jax.numpy.asarray(form.from_storage(bits)))
    values = jax.dlpack.from_dlpack(array)
    if form.dtype in STORAGE:
        values = values.view(getattr(jax.numpy, form.dtype))
    return jax.block_until_ready(values.transpose(np.argsort(form.order)) if form.order else values)


def _numpy_type(dtype: str, library: str) -> Any:
    """The type that the package ml_dtypes adds to NumPy. CuPy has it for some types only."""
    if library in ("numpy", "jax"):
        return np.dtype(getattr(_imported("ml_dtypes"), dtype))
    raise WrongOutput(f"{library} has no arrays of {dtype}; give the variant arrays='torch'")


def _imported(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise NotInstalled(f"needs the Python package {module.partition('.')[0]}, which is not installed") from error


def _cupy() -> Any:
    return _imported("cupy")


def returned_array(name: str, value: Any, form: Form, on_gpu: bool) -> Array:
    """The array that a variant gave, as NumPy's or CuPy's; its memory is shared. A number is an array without axes.
    Raises WrongOutput: it is no array, or has another type or shape, or lies elsewhere.

    In host memory its shape is left to the comparison: it may depend on the inputs.

    Args:
        name: of the output, for messages.
        value: what the variant gave.
        form: of the output.
        on_gpu: the variant runs on the GPU.
    """
    if not on_gpu and not form.shape and form.dtype not in STORAGE:
        value = _scalar(value, np.dtype(form.dtype))
    library = library_of(value)
    if not library:
        raise WrongOutput(f"output {name} is {described(value)}; {array_of(value, 'return')}")
    dtype = dtype_of(value)
    if dtype != form.dtype:
        declare = f"; a Benchmark can declare the type: @bench.reference(outputs={dtype!r})" if is_measurable(dtype) else ""
        raise WrongOutput(f"output {name} has type {dtype}, not {form.dtype}; convert it{declare}")
    if library == "numpy" and not value.dtype.isnative:
        raise WrongOutput(f"output {name} has the type {value.dtype} of other processors; convert it to {form.dtype}")
    if on_gpu and tuple(value.shape) != form.shape:
        cure = "transpose it" if sorted(value.shape) == sorted(form.shape) else "make them the same"
        raise WrongOutput(f"output {name} has shape {tuple(value.shape)}, and the reference's has {form.shape}; {cure}")
    if library == "torch" and value.device.type not in ("cpu", "cuda"):
        raise WrongOutput(f"output {name} is on the device {value.device.type}; return it where the variant runs")
    if is_on_gpu(value, library) != on_gpu:
        actual_place, right_place = ("the host", "the GPU") if on_gpu else ("the GPU", "the host")
        raise WrongOutput(
            f"output {name} is on {actual_place}, and the variant runs on {right_place}; return an array that is there"
        )
    if library == "torch" and str(value.layout) != "torch.strided":
        raise WrongOutput(f"output {name} is a sparse tensor; return a dense one")
    return _on_device(value, library, dtype) if on_gpu else on_host(value)


def _scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number in the type of an output, if that is of its kind; anything else as it is."""
    kinds = _NUMBERS.get(type(value)) or (value.dtype.kind if type(value) is getattr(np, type(value).__name__, None) else "")
    if dtype.kind not in kinds:
        return value
    try:
        return np.array(value, dtype)
    except OverflowError:  # a whole number that the type does not hold
        return value


def array_of(value: Any, verb: str, usual: str = "an array") -> str:
    """Tell what to give in place of a value that is no array."""
    if str(type(value).__module__).partition(".")[0] == "pandas":
        return f"{verb} its columns as arrays, such as x['a'].to_numpy()"
    return f"{verb} {usual}"


def is_on_gpu(value: Any, library: str) -> bool:
    """Whether an array of a library is on the GPU."""
    match library:
        case "torch":
            return bool(value.is_cuda)
        case "jax":
            return all(device.platform == "gpu" for device in value.devices())
    return library in ("cupy", "numba")


def _on_device(value: Any, library: str, dtype: str) -> Array:
    """A CuPy array of the memory of an array on the GPU, made from its address."""
    if library == "cupy":
        return value
    cupy = _cupy()
    if library == "torch":
        value = sys.modules["torch"].Tensor.detach(value).resolve_conj().resolve_neg()
        itemsize = value.element_size()
        address, strides = value.data_ptr(), [step * itemsize for step in value.stride()]
        storage = np.dtype(STORAGE.get(dtype, dtype))
    else:
        interface = value.__cuda_array_interface__
        storage = np.dtype(STORAGE.get(dtype, dtype))
        address = interface["data"][0]
        strides = interface.get("strides") or _dense_strides(value.shape, storage.itemsize)
    reach = sum((extent - 1) * step for extent, step in zip(value.shape, strides, strict=True)) + storage.itemsize
    memory = cupy.cuda.UnownedMemory(address, max(reach, 1), value)
    return cupy.ndarray(tuple(value.shape), storage, cupy.cuda.MemoryPointer(memory, 0), strides=tuple(strides))


def _dense_strides(shape: Sequence[int], itemsize: int) -> list[int]:
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return strides[len(strides) - len(shape) :] if shape else []
