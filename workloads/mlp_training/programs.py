"""The report's first version: a program of the host that has the matrix products done on the GPU."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffers, Case, ceil_div, read_source
from warpladder.workloads.mlp_training.host import sigmoid, softmax
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, REGULARIZATION, rate_of, size_of
from warpladder.workloads.mlp_training.whole_matrices import Matrix, matrices, product_arguments

SOURCE: Final = Path(__file__).resolve().parent / "kernels" / "two_dimensional.cuh"

#: NVTX domain of the ranges `forward`, `backward`, `update` and `copies`.
DOMAIN: Final = "mlp_training"
_BLOCK: Final = 16

Arrays = dict[str, np.ndarray]
Phase = Callable[[str], AbstractContextManager[object]]


#: Called with the phase, A, B, C's name and column stride, beta, and D, to compute D = A B + beta C among the host's arrays.
Product = Callable[[str, Matrix, Matrix, str, int, float, Matrix], None]


def products_only(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """Only the matrix products on the GPU, by algorithm 1; everything else on the host.

    Idea: Take what costs most to the GPU and leave the program as it is. For each of the five products the operands are copied to the
        device and the result back, from and to ordinary memory of the host.
    Bottleneck: The copies: w1, x and the activations cross the bus again for every product that needs them, through the driver's staging
        buffers, while GPU and host wait for each other. Then NumPy's passes over the activations, on one core.
    Next: Leave everything on the GPU: `v02_on_the_gpu`.
    Source: M. L. Wong, "CME213 Final Project Report", version 1, written from its description.
    """
    import cupy
    import nvtx

    arrays = {**inputs, **outputs}
    module = cupy.RawModule(code=read_source(SOURCE), options=("--std=c++17",))
    kernels = {phase: module.get_function(f"{phase}_gemm") for phase in ("forward", "backward")}

    def phase(name: str) -> AbstractContextManager[object]:
        opened: AbstractContextManager[object] = nvtx.annotate(name, domain=DOMAIN)
        return opened

    def product(phase_name: str, a: Matrix, b: Matrix, c: str, c_column: int, beta: float, d: Matrix) -> None:
        with phase("copies"):
            on_device = {name: cupy.asarray(host[name]) for name in dict.fromkeys((a.name, b.name, c))}
            on_device[d.name] = cupy.empty(host[d.name].shape, cupy.float32)
        arguments = product_arguments(a, b, c, c_column, beta, d)
        grid = (ceil_div(d.rows, _BLOCK), ceil_div(d.columns, _BLOCK))
        kernels[phase_name](grid, (_BLOCK, _BLOCK), tuple(on_device.get(x, x) if isinstance(x, str) else x for x in arguments))
        with phase("copies"):
            on_device[d.name].get(out=host[d.name])

    host, step = program(case, arrays, product, phase)
    return step


def program(case: Case, arrays: Buffers, product: Product, phase: Phase) -> tuple[Arrays, Callable[[], None]]:
    """The step, with the products given away.

    Args:
        case: its size.
        arrays: inputs and outputs in host memory.
        product: computes a product; its operands and its result are among the arrays that this function gives.
        phase: opens a range of that name.

    Returns:
        Every array of the step by name, and the step: it reads the inputs, writes the outputs and gives nothing.
    """
    size, of = size_of(case), matrices(size_of(case))
    x, w1, w2, a1, dz1, dz2 = (of[name] for name in ("x", "w1", "w2", "a1", "dz1", "dz2"))
    own = {name: np.empty((of[name].columns, of[name].rows), np.float32) for name in ("a1", "dz1", "dz2", "dw1", "dw2")}
    host: Arrays = {**arrays, **own}

    def step() -> None:
        with phase("forward"):
            product("forward", w1, x, "b1", 0, 1.0, a1)
            sigmoid(host["a1"])
            product("forward", w2, a1, "b2", 0, 1.0, dz2)
            softmax(host["dz2"])
        with phase("backward"):
            host["dz2"] -= host["y"]
            host["dz2"] /= np.float32(size.batch)
            product("backward", dz2, a1.t, "w2", size.classes, REGULARIZATION, of["dw2"])
            db2 = host["dz2"].sum(axis=0)
            product("backward", w2.t, dz2, "w2", 0, 0.0, dz1)
            host["dz1"] *= host["a1"]
            host["dz1"] -= host["dz1"] * host["a1"]
            product("backward", dz1, x.t, "w1", size.hidden, REGULARIZATION, of["dw1"])
            db1 = host["dz1"].sum(axis=0)
        with phase("update"):
            gradients = {"w1": host["dw1"], "b1": db1, "w2": host["dw2"], "b2": db2}
            for name, new in zip(INPUTS, OUTPUTS, strict=True):
                np.multiply(gradients[name], np.float32(-rate_of(case)), out=host[new])
                host[new] += host[name]

    return host, step
