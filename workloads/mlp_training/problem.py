"""One step of training: forward pass of a batch, backward pass of its gradient, update of the weights.

The network is the student report's, 784-1000-10: a hidden layer with sigmoid, an output layer with softmax, cross-entropy
averaged over the batch, L2 regularisation of the weights (not of the biases), plain gradient descent. With N samples, one a row:

    a1 = sigmoid(x w1 + b1)                    dz2 = (p - y) / N
    p  = softmax(a1 w2 + b2)                   dz1 = (dz2 w2^T) * a1 * (1 - a1)
    w2 -= rate (a1^T dz2 + regularization w2)  b2 -= rate (sum of the rows of dz2)
    w1 -= rate (x^T dz1 + regularization w1)   b1 -= rate (sum of the rows of dz1)

Row-major arrays of samples by features are the student report's column-major matrices of features by samples. The new weights go
into buffers of their own, so that a step can be repeated and compared with the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import counted
from warpladder.workloads.mlp_training.digits import CLASSES, PIXELS, one_hot, training_and_dev

HIDDEN: Final = 1000
REGULARIZATION: Final = 1e-4

#: The learning rate of the step that is measured and verified. It costs what the student report's 0.05 costs, but moves the
#: weights by about their own size, so that an error of the gradient shows in the weights. Training has a rate of its own
#: (train.py).
RATE: Final = 32.0

#: Standard deviation of the weights and biases before the step. Training starts with weights of this size.
SPREAD: Final = 0.05

BATCHES: Final = (100, 400, 800, 8192)  # the student report has 400 and 800
ODD_BATCH: Final = 37

#: Relative L2 error of each output that passes; the update is as large as the weights. A gradient is a sum over the batch: added up one
#: after another in float32 it is off by about 0.42 * 2^-24 * sqrt(8192 / 2) = 1.6e-6 at the largest batch, and by 5e-7 at the
#: student report's 800; other orders of adding have less. Tensor cores cut their sums off instead of rounding them, which 3xTF32
#: feels. Operands of TF32 are off by 2^-11 at most: 1.2e-4 to 2.2e-4 in `new_w1`, as they fall, and up to 4.6e-4 in the smaller
#: outputs, at a batch of 37. One sample of 8192 left out is 1e-4 and more.
TOLERANCES: Final = {**TOLERANCE, "fp32": 2e-6, "3xtf32": 3e-6, "tf32": 7e-4}

INPUTS: Final = ("w1", "b1", "w2", "b2")
OUTPUTS: Final = ("new_w1", "new_b1", "new_w2", "new_b2")


@dataclass(frozen=True)
class Size:
    """Extents: `batch` samples of `inputs` features, `hidden` units, 10 classes."""

    batch: int
    inputs: int
    hidden: int

    @property
    def classes(self) -> int:
        return CLASSES


def size_of(case: Case) -> Size:
    """The size of a case: `batch=800` of the student report's network, or with `inputs` and `hidden` of a smaller one."""
    params = case.params
    return Size(params["batch"], params.get("inputs", PIXELS), params.get("hidden", HIDDEN))


def rate_of(case: Case) -> float:
    """The learning rate: `RATE`, unless the case has its own, as in `batch=100,rate=0.5`."""
    return float(case.params.get("rate", RATE))


def make_case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case with its operations and bytes.

    Operations are those of the five matrix products: two of inputs by hidden, and three of hidden by classes. The others
    are below 1 % at the student report's size.
    """
    case = Case(params, 0, 0, sets, size_rank)
    size = size_of(case)
    return counted(case, 2 * size.batch * size.hidden * (2 * size.inputs + 3 * size.classes), buffers(case))


def cases() -> tuple[Case, ...]:
    """The student report's batches, one below and one above, and an odd one that is verified but not charted."""
    sets: Mapping[int, tuple[CaseSet, ...]] = {100: ("quick", "report", "full"), 8192: ("full",)}
    charted = [make_case({"batch": batch}, sets.get(batch, ("report", "full")), rank) for rank, batch in enumerate(BATCHES)]
    return (*charted, make_case({"batch": ODD_BATCH}, ("report", "full")))


def emulation_cases() -> tuple[Case, ...]:
    """Networks small enough for the CPU emulator: one sample, extents odd in all directions, and several tiles of each product."""
    sizes = ((1, 5, 3), (6, 20, 32), (19, 67, 131), (66, 68, 36))
    return tuple(make_case({"batch": batch, "inputs": inputs, "hidden": hidden}) for batch, inputs, hidden in sizes)


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    """Samples `x`, labels `y` (one-hot), weights and biases in; new weights and biases out."""
    size = size_of(case)
    weights = {
        "w1": Buffer((size.inputs, size.hidden)),
        "b1": Buffer((size.hidden,)),
        "w2": Buffer((size.hidden, size.classes)),
        "b2": Buffer((size.classes,)),
    }
    samples = {"x": Buffer((size.batch, size.inputs)), "y": Buffer((size.batch, size.classes))}
    return {**samples, **weights}, {f"new_{name}": buffer for name, buffer in weights.items()}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """Training digits in random order, repeated if the batch is larger than their number, and normal random weights.

    A network with fewer inputs takes that many pixels, evenly spread over the image.
    """
    size, (digits, _) = size_of(case), training_and_dev()
    rounds = -(-size.batch // len(digits.labels))
    chosen = np.concatenate([rng.permutation(len(digits.labels)) for _ in range(rounds)])[: size.batch]
    pixels = np.arange(size.inputs) * PIXELS // size.inputs
    samples = {"x": digits.images[np.ix_(chosen, pixels)], "y": one_hot(digits.labels[chosen])}
    return {**samples, **initial_weights(case, rng)}


def initial_weights(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights and biases before the first step, float32, by name."""
    inputs, _ = buffers(case)
    return {name: (SPREAD * rng.standard_normal(inputs[name].shape)).astype(np.float32) for name in INPUTS}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The step in float64; five products by BLAS.

    Args:
        case: its learning rate; the sizes are those of the inputs.
        inputs: `x`, `y`, `w1`, `b1`, `w2`, `b2`.

    Returns:
        `new_w1`, `new_b1`, `new_w2`, `new_b2` in float64.
    """
    x, y, w1, b1, w2, b2 = (inputs[name].astype(np.float64) for name in ("x", "y", *INPUTS))
    a1 = 1.0 / (1.0 + np.exp(-(x @ w1 + b1)))
    z2 = a1 @ w2 + b2
    p = np.exp(z2 - z2.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    dz2 = (p - y) / len(x)
    dz1 = (dz2 @ w2.T) * a1 * (1.0 - a1)
    rate = rate_of(case)
    return {
        "new_w1": w1 - rate * (x.T @ dz1 + REGULARIZATION * w1),
        "new_b1": b1 - rate * dz1.sum(axis=0),
        "new_w2": w2 - rate * (a1.T @ dz2 + REGULARIZATION * w2),
        "new_b2": b2 - rate * dz2.sum(axis=0),
    }
