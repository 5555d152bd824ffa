"""Twelve pairs of kernels: `v01_slow` has one flaw, named for its case, and `v02_fast` does the same work without it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

_SOURCE: Final = Path(__file__).with_name("planted.cu")
_SMS: Final = 132  # of the SXM models of H100 and H200
_ONE_BLOCK: Final = 200 << 10  # bytes of shared memory, with which a multiprocessor holds one block

Values = np.ndarray


@dataclass(frozen=True)
class Pair:
    """A flaw.

    Attributes:
        n: threads, or elements where a thread has several.
        reference: of the values.
        threads: of a block.
        of_block: elements of a block.
        blocks: of the slow and of the fast kernel; 0 for as many as the elements take.
        arguments: of the kernel, without the number of elements.
        is_template: the kernel has a parameter for the flaw.
    """

    n: int
    reference: Callable[[Values], Values]
    threads: int = 256
    of_block: int = 256
    blocks: tuple[int, int] = (0, 0)
    arguments: tuple[str, ...] = ("x", "y")
    is_template: bool = True
    shared: int = 0


def _smoothed(x: Values) -> Values:
    values = x.reshape(-1, 64, 256)
    for _ in range(32):
        values = 0.5 * (values + np.roll(values, -1, axis=1))
    return values.ravel()


def _sums_of_rows(x: Values) -> Values:
    return np.repeat(8.0 * x.reshape(-1, 1, 32, 32).sum(axis=3), 32, axis=1).ravel()


def _of_local(x: Values) -> Values:
    i = np.arange(len(x))
    return x * sum((((i * 7 + j * 5) & 31) + 1) for j in range(256))


def _twice(x: Values) -> Values:
    return 2.0 * x


def _bins(x: Values) -> Values:
    return np.bincount(np.minimum(7, (x.astype(np.float32) * np.float32(8)).astype(int)), minlength=8).astype(float)


def _steps(x: Values, factor: float, summand: float, count: int) -> Values:
    for _ in range(count):
        x = x * factor + summand
    return x


def _nothing(x: Values) -> Values:
    return np.zeros(len(x))


_N: Final = 1 << 20
PAIRS: Final = {
    "spills": Pair(1 << 23, _smoothed, of_block=256 * 64),
    "bank_conflicts": Pair(1 << 21, _sums_of_rows, 1024, 1024),
    "local_arrays": Pair(_N, _of_local),
    "pointer_chasing": Pair(_N, _nothing, arguments=("x", "y", "next")),
    "tail": Pair(*(_SMS * (_SMS + 1) * 256, _twice), of_block=1, blocks=(_SMS + 1, _SMS), is_template=False, shared=_ONE_BLOCK),
    "misaligned_vectors": Pair(1 << 22, _nothing, arguments=("bytes", "y")),
    "same_address_stores": Pair(_N, _twice),
    "divergence": Pair(_N, _nothing),
    "atomics": Pair(_N, _bins),
    "barriers": Pair(_N, lambda x: _steps(x, 0.5, 0.25, 512), 1024, 1024),
    "conversions": Pair(_N, lambda x: _steps(x, 0.7, 0.3, 128)),
    "too_few_blocks": Pair(_N, _twice, blocks=(32, 8 * _SMS), is_template=False),
}


def pair_of(case: Case) -> Pair:
    """The pair of a case."""
    return PAIRS[str(case.params["flaw"])]


def _launches(is_slow: bool) -> Callable[[Case, Params], Sequence[Launch]]:
    def launches(case: Case, config: Params) -> Sequence[Launch]:
        flaw, pair = str(case.params["flaw"]), pair_of(case)
        kernel = f"{flaw}<{'true' if is_slow else 'false'}>" if pair.is_template else flaw
        blocks = pair.blocks[0 if is_slow else 1] or pair.n // pair.of_block
        return (Launch(kernel, (blocks, 1, 1), (pair.threads, 1, 1), (*pair.arguments, np.int32(pair.n)), pair.shared),)

    return launches


def _buffers(case: Case) -> tuple[dict[str, Buffer], dict[str, Buffer]]:
    pair, flaw = pair_of(case), case.params["flaw"]
    inputs = {"x": Buffer((pair.n,))}
    if "next" in pair.arguments:
        inputs["next"] = Buffer((pair.n,), "int32")
    if "bytes" in pair.arguments:
        inputs["bytes"] = Buffer((16 * pair.n,), "uint8")
    return inputs, {"y": Buffer((pair.n + 16 if flaw == "same_address_stores" else pair.n,))}


def _inputs(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    pair = pair_of(case)
    inputs: dict[str, np.ndarray] = {"x": rng.random(pair.n, dtype=np.float32) * np.float32(0.75)}
    if "next" in pair.arguments:
        inputs["next"] = ((np.arange(pair.n, dtype=np.uint32) * 5 + 12345) & (pair.n - 1)).astype(np.int32)
    if "bytes" in pair.arguments:
        inputs["bytes"] = rng.random(4 * pair.n, dtype=np.float32).view(np.uint8)
    return inputs


WORKLOAD = Workload(
    name="planted_inside",
    title="Planted flaws",
    cases=tuple(
        Case({"flaw": flaw}, flops=0, min_bytes=8 * pair.n, sets=("quick", "full"), size_rank=rank)
        for rank, (flaw, pair) in enumerate(PAIRS.items())
    ),
    variants=(
        CudaVariant("v01_slow", "Slow", "rung", source=_SOURCE, launches=_launches(True)),
        CudaVariant("v02_fast", "Fast", "rung", source=_SOURCE, launches=_launches(False)),
    ),
    buffers=_buffers,
    make_inputs=_inputs,
    reference=lambda case, inputs: {"y": pair_of(case).reference(inputs["x"].astype(np.float64))},
    baseline="v01_slow",
)
