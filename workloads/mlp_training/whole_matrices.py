"""The student report's step as operations on whole matrices, one launch each, for the rungs that differ only in the product."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, Constants, Launch, Params, ceil_div
from warpladder.workloads.ladder import launch
from warpladder.workloads.mlp_training.problem import REGULARIZATION, Size, rate_of, size_of

_OF: Final = Constants(Path(__file__).resolve().parent / "kernels" / "whole_matrices.cuh")

#: Blocks and threads of a product, from its rows and columns.
Shape = Callable[[int, int], tuple[tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True)
class Matrix:
    """A column-major matrix in a buffer, or one transposed, which has its strides exchanged."""

    name: str
    rows: int
    columns: int
    transposed: bool = False

    @property
    def t(self) -> "Matrix":
        """The same memory as the transposed matrix."""
        return Matrix(self.name, self.columns, self.rows, not self.transposed)

    @property
    def strides(self) -> tuple[int, int]:
        """The distance of neighbours in a column, and in a row, in elements."""
        return (self.columns, 1) if self.transposed else (1, self.rows)


def scratch(case: Case, config: Params) -> Mapping[str, Buffer]:
    """Activations, gradients of the activations, gradients of the weights."""
    size = size_of(case)
    samples = {"a1": size.hidden, "dz1": size.hidden, "dz2": size.classes}
    weights = {"dw1": size.inputs * size.hidden, "db1": size.hidden, "dw2": size.hidden * size.classes, "db2": size.classes}
    return {name: Buffer((rows * size.batch,)) for name, rows in samples.items()} | {
        name: Buffer((count,)) for name, count in weights.items()
    }


def matrices(size: Size) -> dict[str, Matrix]:
    """Every matrix of the step, as the student report has them: features by samples, weights of a layer by its outputs and
    inputs."""
    columns = {
        "x": (size.inputs, size.batch), "y": (size.classes, size.batch), "w1": (size.hidden, size.inputs),
        "w2": (size.classes, size.hidden), "a1": (size.hidden, size.batch), "dz1": (size.hidden, size.batch),
        "dz2": (size.classes, size.batch), "dw1": (size.hidden, size.inputs), "dw2": (size.classes, size.hidden),
    }  # fmt: skip
    return {name: Matrix(name, *extents) for name, extents in columns.items()}


def product_arguments(a: Matrix, b: Matrix, c: str, c_column: int, beta: float, d: Matrix) -> tuple[Any, ...]:
    """Of D = A B + beta C, for the kernels `forward_gemm` and `backward_gemm`; the buffers by name."""
    assert a.columns == b.rows
    assert (d.rows, d.columns) == (a.rows, b.columns)
    sizes = (a.rows, b.columns, a.columns, *a.strides, *b.strides, c_column)
    return (a.name, b.name, c, d.name, *(np.int32(size) for size in sizes), np.float32(beta))


def launches(case: Case, shape: Shape) -> Sequence[Launch]:
    """The step, in order.

    Args:
        case: its size and learning rate.
        shape: of a product's blocks.
    """
    size = size_of(case)
    of = matrices(size)
    x, w1, w2, a1, dz1, dz2 = (of[name] for name in ("x", "w1", "w2", "a1", "dz1", "dz2"))
    hidden, outputs = size.hidden * size.batch, size.classes * size.batch

    def product(phase: str, a: Matrix, b: Matrix, c: str, c_column: int, beta: float, d: Matrix) -> Launch:
        return launch(f"{phase}_gemm", *shape(d.rows, d.columns), *product_arguments(a, b, c, c_column, beta, d))

    def over(kernel: str, elements: int, *arguments: Any) -> Launch:
        return launch(kernel, ceil_div(elements, _OF["kThreads"]), _OF["kThreads"], *arguments)

    def update(name: str, elements: int) -> Launch:
        return over("update", elements, f"new_{name}", name, f"d{name}", rate_of(case), elements)

    return (
        product("forward", w1, x, "b1", 0, 1.0, a1),
        over("forward_sigmoid", hidden, "a1", hidden),
        product("forward", w2, a1, "b2", 0, 1.0, dz2),
        over("forward_softmax", size.batch, "dz2", size.classes, size.batch),
        over("backward_difference", outputs, "dz2", "y", 1 / size.batch, outputs),
        product("backward", dz2, a1.t, "w2", size.classes, REGULARIZATION, of["dw2"]),
        over("backward_bias", size.classes, "dz2", "db2", size.classes, size.batch),
        product("backward", w2.t, dz2, "w2", 0, 0.0, dz1),
        over("backward_sigmoid", hidden, "dz1", "a1", hidden),
        product("backward", dz1, x.t, "w1", size.hidden, REGULARIZATION, of["dw1"]),
        over("backward_bias", size.hidden, "dz1", "db1", size.hidden, size.batch),
        update("w1", size.inputs * size.hidden),
        update("b1", size.hidden),
        update("w2", size.hidden * size.classes),
        update("b2", size.classes),
    )
