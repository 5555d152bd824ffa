"""A launch gives its kernel the arguments that it takes; the compiled kernel tells which."""

from typing import Any

import numpy as np
import pytest

from warpladder.collectors.cuda.compiler import CompiledKernel, CompiledModule, compile_variant
from warpladder.collectors.cuda.parameters import check
from warpladder.workloads.api import CudaVariant, Launch, TensorMap, WorkloadError
from warpladder.workloads.declare.launches import PeerMemory, RowsOf

SOURCE = """
struct Pair { int a; double b; };
struct alignas(64) Map { char bytes[128]; };
struct Peers { void* of[8]; int rank, ranks; };
extern "C" __global__ void plain(const float* x, float* y, int n, float scale) { if (n) y[0] = x[0] * scale; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void peers(const __grid_constant__ Peers peers) { *(int*)peers.of[0] = peers.rank; }
template <int N> __global__ void every(
    float* y, Pair pair, const __grid_constant__ Map map, bool flag, unsigned char c, short s, long long q, double d) {
  y[0] = pair.b + map.bytes[3] + flag + c + s + q + d + N;
}
"""
FITS: tuple[Any, ...] = ("x", "out", np.int32(3), np.float32(2))
PAIR = np.zeros((), [("a", np.int32), ("b", np.float64)])
EVERY = (
    *(
        RowsOf("y", 0, 1),
        np.zeros((), np.dtype({"names": ["a", "b"], "formats": ["i4", "f8"], "offsets": [0, 8], "itemsize": 16})),
    ),
    *(TensorMap("y", (1,)), np.bool_(True), np.uint8(1), np.int16(1), np.int64(1), np.float64(1)),
)


@pytest.fixture(scope="module")
def module() -> CompiledModule:
    return compile_variant(CudaVariant("k", "k", "rung", source=SOURCE), ("plain", "nothing", "peers", "every<3>"), "sm_90")


def launch(kernel: str, *arguments: Any) -> Launch:
    return Launch(kernel, (1, 1, 1), (32, 1, 1), arguments)


@pytest.mark.parametrize(
    ("kernel", "arguments"), [("plain", FITS), ("nothing", ()), ("peers", (PeerMemory("x"),)), ("every<3>", EVERY)]
)
def test_arguments_of_every_type_fit(kernel: str, arguments: tuple[Any, ...], module: CompiledModule) -> None:
    check([launch(kernel, *arguments)], module)


@pytest.mark.parametrize(
    ("kernel", "arguments", "problem"),
    [
        ("plain", FITS[:2], "plain has 4 parameters, and the launch gives it 2 arguments (x, out); name one for each parameter in args"),
        ("plain", (*FITS, np.int32(1)), "has 4 parameters, and the launch gives it 5 arguments (x, out, np.int32(3), np.float32(2.0), np"),
        ("plain", (), "has 4 parameters, and the launch gives it 0 arguments (none)"),
        ("nothing", ("x",), "nothing has 0 parameters, and the launch gives it 1 argument (x)"),
        ("plain", ("x", "out", np.int64(3), np.float32(2)), "parameter 3 is an integer or a pointer of 4 bytes, and args gives it np.int64(3),"),
        ("plain", ("x", "out", np.float32(2), np.int32(3)), "parameter 3 is an integer or a pointer of 4 bytes, and args gives it np.float32"),
        ("plain", ("x", "out", np.int32(3), np.int32(2)), "parameter 4 is a floating-point number of 4 bytes, and args gives it np.int32(2)"),
        ("plain", ("x", np.int32(3), "out", np.float32(2)), "parameter 2 is an integer or a pointer of 8 bytes, and args gives it np.int32(3)"),
        ("every<3>", (EVERY[0], PAIR, *EVERY[2:]), "parameter 2 is a value of 16 bytes, and args gives it"),
        ("every<3>", (*EVERY[:2], "y", *EVERY[3:]), "parameter 3 is a value of 128 bytes, and args gives it y, an integer or a pointer"),
    ],
)  # fmt: skip
def test_other_arguments_are_refused_in_a_line(
    kernel: str, arguments: tuple[Any, ...], problem: str, module: CompiledModule
) -> None:
    with pytest.raises(WorkloadError) as refused:
        check([launch(kernel, *arguments)], module)
    assert problem in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "parameters", [".param .u64 .ptr .global .align 1 k_0, .param .u32 k_1", ".param .b64 k_0,\n\t.param .b32 k_1 \n"]
)
def test_ptx_of_triton_and_numba_is_read(parameters: str) -> None:
    module = CompiledModule(b"", {"k": CompiledKernel("k", 1, 0, 0, 0)}, {}, f".visible .entry k(\n\t{parameters})\n{{ ret; }}")
    check([launch("k", "x", np.int32(1))], module)
    with pytest.raises(WorkloadError, match="has 2 parameters"):
        check([launch("k", "x")], module)


def test_a_module_without_its_ptx_is_not_checked() -> None:
    check([launch("k", "x")], CompiledModule(b"", {"k": CompiledKernel("k", 1, 0, 0, 0)}, {}))
