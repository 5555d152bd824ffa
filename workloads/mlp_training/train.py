"""Trains the network on the handwritten digits with any variant's step: `python -m warpladder.workloads.mlp_training.train --variant numpy`.

Prints, epoch by epoch, what part of the digits that were held back it recognises. Variants of the host run anywhere; those of the
GPU need CuPy, and PyTorch where they are PyTorch's; those with tensor maps are for the recording alone. Nothing is timed here: for
that, record the workload.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from warpladder.installation import how_to_install
from warpladder.workloads.api import Case, CudaVariant, HostVariant, LibraryVariant, Variant, kernels_of
from warpladder.workloads.mlp_training import problem
from warpladder.workloads.mlp_training.digits import Digits, one_hot, training_and_dev
from warpladder.workloads.mlp_training.host import forward
from warpladder.workloads.mlp_training.problem import INPUTS

#: Smaller batches and a larger rate than the student report's: it had 60,000 digits; 1,497 in batches of 800 are two steps an
#: epoch.
BATCH: Final = 50
RATE: Final = 0.2
EPOCHS: Final = 20
SEED: Final = 0

Arrays = Mapping[str, np.ndarray]
#: Samples `x`, labels `y` and weights by name -> the new weights, `w1` to `b2`.
Step = Callable[[Arrays], Arrays]


def trains(variant: Variant) -> bool:
    """Whether its step runs here. Variants for one architecture do not: only the recording makes their tensor maps."""
    return not (isinstance(variant, CudaVariant) and variant.only_architecture)


def train(step: Step, batch: int = BATCH, epochs: int = EPOCHS, seed: int = SEED) -> Iterator[float]:
    """Precision on the digits held back, after each epoch.

    Each epoch takes every training digit once, in a new order. The last batch is filled up with digits from the start of that
    order.

    Args:
        step: computes the new weights.
        batch: samples a step, as many as `step` was made for.
        epochs: times through the training digits.
        seed: of the first weights and of the orders.
    """
    training, dev = training_and_dev()
    rng = np.random.default_rng(seed)
    weights: Arrays = problem.initial_weights(training_case(batch), rng)
    labels = one_hot(training.labels)
    steps = -(-len(labels) // batch)
    for _ in range(epochs):
        order = np.resize(rng.permutation(len(labels)), steps * batch)
        for rows in np.split(order, steps):
            weights = step({"x": training.images[rows], "y": labels[rows], **weights})
        yield precision(weights, dev)


def precision(weights: Arrays, digits: Digits) -> float:
    """The share of digits whose most probable class is their label."""
    _, probabilities = forward(digits.images, *(weights[name] for name in INPUTS))
    return float(np.mean(probabilities.argmax(axis=1) == digits.labels))


def training_case(batch: int, rate: float = RATE) -> Case:
    """The student report's network with this batch and learning rate."""
    return problem.make_case({"batch": batch, "rate": rate})


def make_step(variant: Variant, case: Case) -> Step:
    """The step of a variant, with its first config.

    Raises:
        ImportError: it needs CuPy or PyTorch, and that is not installed.
    """
    on_host = isinstance(variant, HostVariant) or (isinstance(variant, LibraryVariant) and not variant.device_only)
    xp: Any = np if on_host else import_module("cupy")
    inputs, outputs = ({name: xp.empty(b.shape, b.dtype) for name, b in side.items()} for side in problem.buffers(case))
    run = _runner(variant, case, inputs, outputs)

    def step(batch: Arrays) -> Arrays:
        for name, array in inputs.items():
            array[...] = xp.asarray(batch[name])
        run()
        return {name: np.array(outputs[f"new_{name}"] if on_host else outputs[f"new_{name}"].get()) for name in INPUTS}

    return step


def _runner(variant: Variant, case: Case, inputs: dict[str, Any], outputs: dict[str, Any]) -> Callable[[], object]:
    if isinstance(variant, HostVariant):
        return lambda: variant.run(case, inputs, outputs)
    if isinstance(variant, LibraryVariant):
        return variant.prepare(case, inputs, outputs, **variant.configs[0])
    import cupy

    assert isinstance(variant, CudaVariant)
    config = variant.configs[0]
    launches = kernels_of(variant.launches(case, config))
    names = sorted({launch.kernel for launch in launches})
    module = cupy.RawModule(code=variant.source_text, options=("--std=c++17", *variant.options), name_expressions=names)
    kernels = {name: module.get_function(name) for name in names}
    for launch in launches:  # beyond 48 KiB a kernel has to be told
        kernels[launch.kernel].max_dynamic_shared_size_bytes = launch.dynamic_shared_bytes
    scratch = {
        name: (cupy.zeros if b.zeroed else cupy.empty)(b.shape, b.dtype) for name, b in variant.scratch(case, config).items()
    }
    buffers = {**inputs, **outputs, **scratch}

    def run() -> None:
        for launch in launches:
            arguments = tuple(buffers[a] if isinstance(a, str) else a for a in launch.args)
            kernels[launch.kernel](launch.grid, launch.block, arguments, shared_mem=launch.dynamic_shared_bytes)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Gives 2 for a variant that is not there or cannot run here."""
    from warpladder.workloads.mlp_training.workload import WORKLOAD

    names = [variant.name for variant in WORKLOAD.variants if trains(variant)]
    parser = argparse.ArgumentParser(
        prog="python -m warpladder.workloads.mlp_training.train", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("--variant", choices=names, default="numpy", help="whose step; numpy by default")
    parser.add_argument(
        "--epochs", type=_positive, default=EPOCHS, help=f"times through the training digits; {EPOCHS} by default"
    )
    parser.add_argument("--batch", type=_positive, default=BATCH, help=f"samples a step; {BATCH} by default")
    parser.add_argument("--rate", type=float, default=RATE, help=f"learning rate; {RATE} by default")
    options = parser.parse_args(arguments)
    variant = WORKLOAD.variant(options.variant)
    for module in ("cupy",) if isinstance(variant, CudaVariant) else getattr(variant, "requires", ()):
        if find_spec(module) is None:
            print(
                f"{variant.name}: needs the Python package {module}; {how_to_install('gpu')}, or take --variant numpy",
                file=sys.stderr,
            )
            return 2
    case = training_case(options.batch, options.rate)
    if reason := variant.skip(case, variant.configs[0]):
        print(f"{variant.name}: {reason}; take a smaller --batch", file=sys.stderr)
        return 2
    training, dev = training_and_dev()
    print(f"{variant.name} on {len(training.labels)} digits, precision on {len(dev.labels)} others")
    for epoch, reached in enumerate(train(make_step(variant, case), options.batch, options.epochs), start=1):
        print(f"epoch {epoch:3}  {reached:.4f}")
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
