"""The training step on the host: BLAS through NumPy."""

import numpy as np

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.declare.cases import narrowed, widened
from warpladder.workloads.mlp_training.host import forward
from warpladder.workloads.mlp_training.problem import REGULARIZATION, rate_of
from warpladder.workloads.mlp_training_bf16.problem import COPIES


def numpy_blas(case: Case, inputs: Buffers, outputs: Buffers) -> None:
    """The five products by the host's BLAS, on samples and copies of the weights that are widened to float32.

    Idea: NumPy has no product of BF16 numbers. What they stand for is exact in float32, so only the new copies are rounded.
    Bottleneck: The multiply-add units of the cores, which do no more products of BF16 than of float32; widening and rounding are more passes.
    Next: A GPU, whose tensor cores have units for BF16.
    Source: NumPy, numpy.matmul.
    """
    x, w1, w2 = (widened(inputs[name], "bfloat16") for name in ("x", *COPIES.values()))
    y, b1, b2 = (inputs[name] for name in ("y", "b1", "b2"))
    a1, p = forward(x, w1, b1, w2, b2)
    outputs["losses"][...] = -(y * np.log(np.maximum(p, np.finfo(np.float32).tiny))).sum(axis=1)
    dz2 = (p - y) / np.float32(len(x))
    dz1 = dz2 @ w2.T
    dz1 *= a1 - a1 * a1
    rate = np.float32(rate_of(case))
    keep = np.float32(1.0 - rate_of(case) * REGULARIZATION)
    for name, gradient in (("w1", x.T @ dz1), ("w2", a1.T @ dz2)):
        new = outputs[f"new_{name}"]
        new[...] = keep * inputs[name] - rate * gradient
        outputs[f"new_{COPIES[name]}"][...] = narrowed(new, "bfloat16")
    outputs["new_b1"][...] = b1 - rate * dz1.sum(axis=0)
    outputs["new_b2"][...] = b2 - rate * dz2.sum(axis=0)
