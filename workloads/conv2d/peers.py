"""The same convolution by libraries: cuDNN reached through PyTorch, CuPy, and NPP of the CUDA toolkit."""

import ctypes
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Buffers, Case, NotInstalled, Params, Repacked
from warpladder.workloads.conv2d.host import RADIUS, SIZE, reference
from warpladder.workloads.conv2d.problem import image_shape


def cudnn_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The convolution of NVIDIA's deep-learning library in float32, one image of one channel.

    Idea: What most people would call. cuDNN times its own algorithms at the first call (benchmark mode) and keeps the fastest.
    Bottleneck: Its kernels are made for many channels, whose products fill tiles of a matrix product. With one channel in
        and one out there is no reuse for them to find, and most of each tile is padding.
    Next: A kernel of one's own: one channel and a fixed 5x5 filter are a stencil, not a matrix product.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=False)


def cudnn_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same call with TensorFloat-32 allowed, as PyTorch has it by default.

    Idea: Tensor cores, on operands rounded to 10 bits of mantissa. Benchmark mode still picks whatever is fastest, and on
        an H200 that was a float32 kernel, as the time and the error show, both equal to those of `cudnn`.
    Bottleneck: As for `cudnn`: tensor cores need channels.
    Next: Nothing: with one channel, less accuracy buys no speed.
    Source: NVIDIA cuDNN by torch.ops.aten.cudnn_convolution.
    """
    return _convolution(inputs, outputs, allow_tf32=True)


def _convolution(inputs: Buffers, outputs: Buffers, allow_tf32: bool) -> Callable[[], None]:
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    torch.backends.cudnn.benchmark_limit = 0  # try every algorithm; PyTorch stops at ten
    image, weights, result = (torch_bridge.as_tensor(array)[None, None] for array in (inputs["b"], inputs["a"], outputs["c"]))
    convolve = torch.ops.aten.cudnn_convolution.out  # writes into `result`; conv2d would allocate its own

    def operation() -> None:
        convolve(
            image,
            weights,
            padding=[RADIUS, RADIUS],
            stride=[1, 1],
            dilation=[1, 1],
            groups=1,
            benchmark=True,
            deterministic=False,
            allow_tf32=allow_tf32,
            out=result,
        )

    return operation


def cupy_ndimage(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """CuPy's correlation of images, one call.

    Idea: `correlate` of CuPy's counterpart of SciPy; CuPy generates a kernel for this filter size and border.
    Bottleneck: Each thread computes one pixel; it loads 25 pixels and 25 weights from global memory or the caches.
    Next: A library made for images: NPP.
    Source: cupyx.scipy.ndimage.correlate, mode="constant".
    """
    from cupyx.scipy.ndimage import correlate

    a, b, c = inputs["a"], inputs["b"], outputs["c"]

    def operation() -> None:
        correlate(b, a, output=c, mode="constant")

    return operation


def npp_filter(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's library for images, one call, with a replicated border.

    Idea: The library made for this operation. It offers no border of zeros, so the call repeats the pixels at the edge and is verified
        against that definition. Inside the image both definitions agree, and the work is the same.
    Bottleneck: Unknown; from 2048 x 2048 on it takes 1.9 to 2 times as long as a copy on an H200.
    Next: More pixels a thread, and all loads before the arithmetic: `v09_loads_first`.
    Source: NVIDIA NPP, nppiFilterBorder_32f_C1R_Ctx with NPP_BORDER_REPLICATE.
    """
    import cupy

    library = _npp()
    context = _context(cupy)
    image, result = inputs["b"], outputs["c"]
    # NPP defines the convolution with the filter reversed.
    weights = cupy.ascontiguousarray(inputs["a"][::-1, ::-1])
    height, width = image.shape
    size, origin = _Pair(width, height), _Pair(0, 0)
    step = ctypes.c_int(width * image.itemsize)
    call = library.nppiFilterBorder_32f_C1R_Ctx
    arguments = (
        *(ctypes.c_void_p(image.data.ptr), step, size, origin, ctypes.c_void_p(result.data.ptr), step, size),
        *(ctypes.c_void_p(weights.data.ptr), _Pair(SIZE, SIZE), _Pair(RADIUS, RADIUS), ctypes.c_int(_REPLICATE), context),
    )

    def operation(kept: object = weights) -> None:
        status = call(*arguments)
        if status:
            raise RuntimeError(f"NPP: status {status}")

    return operation


@wraps(npp_filter)
def npp(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """`npp_filter`, with a filter that follows the inputs. It lies reversed in memory, so that NPP's order is a view of it and no copy."""
    import cupy

    filter_ = cupy.empty_like(inputs["a"])[::-1, ::-1]

    def repack() -> None:
        filter_[...] = inputs["a"]

    repack()
    return Repacked(npp_filter(case, {**inputs, "a": filter_}, outputs), repack)


def npp_pitched(case: Case, inputs: Buffers, outputs: Buffers) -> Repacked:
    """The same on an image and a result whose rows begin at multiples of 512 bytes, as in images that NPP allocates.

    Idea: NPP reads and writes aligned rows several pixels at a time. The image is copied into such rows when the inputs change.
    Bottleneck: As for `npp` on rows that are aligned by themselves.
    Next: More pixels a thread, and all loads before the arithmetic: `v09_loads_first`.
    Source: NVIDIA NPP, nppiFilterBorder_32f_C1R_Ctx with NPP_BORDER_REPLICATE.
    """
    import cupy

    call, context = _npp().nppiFilterBorder_32f_C1R_Ctx, _context(cupy)
    height, width = inputs["b"].shape
    image, result = (cupy.empty((height, _aligned(width)), np.float32)[:, :width] for _ in range(2))
    filter_ = cupy.empty_like(inputs["a"])
    size, step = _Pair(width, height), ctypes.c_int(image.strides[0])
    arguments = (
        *(ctypes.c_void_p(image.data.ptr), step, size, _Pair(0, 0), ctypes.c_void_p(result.data.ptr), step, size),
        *(ctypes.c_void_p(filter_.data.ptr), _Pair(SIZE, SIZE), _Pair(RADIUS, RADIUS), ctypes.c_int(_REPLICATE), context),
    )

    def repack() -> None:
        filter_[...] = inputs["a"][::-1, ::-1]  # NPP defines the convolution with the filter reversed
        image[...] = inputs["b"]

    def operation() -> Buffers:
        if status := call(*arguments):
            raise RuntimeError(f"NPP: status {status}")
        return {"c": result}

    repack()
    return Repacked(operation, repack)


def aligned_already(case: Case, config: Params) -> str | None:
    """Why `npp_pitched` is not measured: it would be `npp`."""
    _, width = image_shape(case)
    return "its rows are aligned as they are: see npp" if _aligned(width) == width else None


def _aligned(width: int) -> int:
    """The least number of pixels in rows that each begin at a multiple of 512 bytes."""
    return -(-width // _ALIGNED_PIXELS) * _ALIGNED_PIXELS


_ALIGNED_PIXELS: Final = 128


def replicated(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The convolution with the pixels at the edge repeated outside, in float64."""
    padded = {"a": inputs["a"], "b": np.pad(inputs["b"], RADIUS, mode="edge")}
    return {"c": np.ascontiguousarray(reference(case, padded)["c"][RADIUS:-RADIUS, RADIUS:-RADIUS])}


_REPLICATE: Final = 2  # NPP_BORDER_REPLICATE


def _npp() -> ctypes.CDLL:
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return ctypes.CDLL(load_nvidia_dynamic_lib("nppif").abs_path)
    except DynamicLibNotFoundError as error:
        raise NotInstalled("needs NPP, of the CUDA toolkit or by: pip install 'warpladder[peers]'") from error


class _Pair(ctypes.Structure):
    """NppiSize (width, height) and NppiPoint (x, y)."""

    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


class _Context(ctypes.Structure):
    """NppStreamContext, which NPP takes by value."""

    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_a_multiprocessor", ctypes.c_int),
        ("threads_a_block", ctypes.c_int),
        ("shared_bytes_a_block", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("stream_flags", ctypes.c_uint),
        ("reserved", ctypes.c_int),
    )


def _context(cupy: Any) -> _Context:
    device = cupy.cuda.Device().id
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    return _Context(
        cupy.cuda.get_current_stream().ptr,
        device,
        properties["multiProcessorCount"],
        properties["maxThreadsPerMultiProcessor"],
        properties["maxThreadsPerBlock"],
        properties["sharedMemPerBlock"],
        properties["major"],
        properties["minor"],
        _NON_BLOCKING,
        0,
    )


_NON_BLOCKING: Final = 1  # cudaStreamNonBlocking
