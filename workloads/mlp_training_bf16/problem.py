"""One step of training in mixed precision: the network and the formulas of `mlp_training`, its products in BF16.

The weights are kept in float32, the master weights. Products take copies of them in BF16, which the step before has written, and samples in BF16;
sums are float32. A step updates the master weights, writes the copies for the next step, and gives the loss of each sample, its cross-entropy.
Source: P. Micikevicius et al., "Mixed Precision Training", 2018, section 3.1, with BF16, which needs no scale of the loss.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Buffer, Case, CaseSet, Params
from warpladder.workloads.declare.cases import narrowed, widened
from warpladder.workloads.ladder import counted
from warpladder.workloads.mlp_training import problem as in_float32
from warpladder.workloads.mlp_training.problem import BATCHES, ODD_BATCH, REGULARIZATION, rate_of

#: Weights that products take a copy of, and the names of the copies.
COPIES: Final = {"w1": "w1_bf16", "w2": "w2_bf16"}
#: Unit roundoff of BF16.
ROUNDOFF: Final = 2.0**-8
#: Values that PyTorch rounds to BF16 between a sample and an update: sums of both layers, the activation, the difference of the output and what
#: it gives for the hidden unit, the gradient of the hidden unit; and the copy.
ROUNDINGS: Final = 7

#: Relative L2 error of each output that passes; the update is as large as the weights. A rounding is off by `ROUNDOFF` of a value at most, and
#: independent ones add up by their squares. The root mean square of a rounding, u / sqrt(3), would not do: the smallest output has ten elements,
#: too few for their mean. NumPy rounds nothing but the copies.
TOLERANCES: Final = {**TOLERANCE, "bf16": ROUNDOFF * sqrt(ROUNDINGS), "fp32": ROUNDOFF}


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with the operations of `mlp_training` and its own bytes."""
    case = in_float32.make_case(params, sets, size_rank)
    return counted(case, case.flops, buffers(case))


def cases() -> tuple[Case, ...]:
    """The batches of `mlp_training`."""
    sets: Mapping[int, tuple[CaseSet, ...]] = {100: ("quick", "report", "full"), 8192: ("full",)}
    charted = [make_case({"batch": batch}, sets.get(batch, ("report", "full")), rank) for rank, batch in enumerate(BATCHES)]
    return (*charted, make_case({"batch": ODD_BATCH}, ("report", "full")))


def emulation_cases() -> tuple[Case, ...]:
    """Networks small enough for the CPU emulator: one sample, more steps than a block has stages on either way, and several tiles, blocks and parts
    in all directions."""
    sizes = ((1, 8, 8), (19, 520, 136), (200, 136, 264), (520, 24, 40))
    return tuple(make_case({"batch": batch, "inputs": inputs, "hidden": hidden}) for batch, inputs, hidden in sizes)


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Samples `x` in BF16, labels `y` (one-hot), master weights and biases, copies in; new ones of all weights, and the losses, out."""
    inputs, outputs = in_float32.buffers(case)
    copies = {copy: Buffer(inputs[name].shape, "bfloat16") for name, copy in COPIES.items()}
    return (
        {**inputs, "x": Buffer(inputs["x"].shape, "bfloat16"), **copies},
        {**outputs, **{f"new_{name}": buffer for name, buffer in copies.items()}, "losses": Buffer(inputs["y"].shape[:1])},
    )


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Those of `mlp_training`, samples rounded, and rounded copies of the weights."""
    inputs = in_float32.make_inputs(case, rng)
    rounded = {name: narrowed(np.ascontiguousarray(inputs[name]), "bfloat16") for name in ("x", *COPIES)}
    return {**inputs, "x": rounded["x"], **{copy: rounded[name] for name, copy in COPIES.items()}}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The step in float64 from the rounded samples and weights.

    Args:
        case: its learning rate; the sizes are those of the inputs.
        inputs: `x`, `y`, `w1`, `b1`, `w2`, `b2`, and the copies `w1_bf16`, `w2_bf16`.

    Returns:
        The outputs in float64.
    """
    x, w1, w2 = (widened(inputs[name], "bfloat16").astype(np.float64) for name in ("x", *COPIES.values()))
    y, b1, b2 = (inputs[name].astype(np.float64) for name in ("y", "b1", "b2"))
    a1 = 1.0 / (1.0 + np.exp(-(x @ w1 + b1)))
    z2 = a1 @ w2 + b2
    z2 -= z2.max(axis=1, keepdims=True)
    sums = np.exp(z2).sum(axis=1, keepdims=True)
    dz2 = (np.exp(z2) / sums - y) / len(x)
    dz1 = (dz2 @ w2.T) * a1 * (1.0 - a1)
    rate = rate_of(case)
    new = {
        f"new_{name}": weights - rate * (gradient + REGULARIZATION * weights)
        for name, weights, gradient in (
            ("w1", inputs["w1"].astype(np.float64), x.T @ dz1),
            ("w2", inputs["w2"].astype(np.float64), a1.T @ dz2),
        )
    }
    return {
        **new,
        "new_b1": b1 - rate * dz1.sum(axis=0),
        "new_b2": b2 - rate * dz2.sum(axis=0),
        **{f"new_{copy}": new[f"new_{name}"] for name, copy in COPIES.items()},
        "losses": (y * (np.log(sums) - z2)).sum(axis=1),
    }
