"""Twelve pairs of kernels: `v01_slow` has one flaw, named for its case, and `v02_fast` does the same work without it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

_SOURCE: Final = Path(__file__).with_name("planted.cu")
_SMS: Final = 132  # of the SXM models of H100 and H200
_STRIDE: Final = 12352  # elements from a read of a chain to the next: whole lines of the cache
_ONE_BLOCK: Final = 200 << 10  # bytes of shared memory, with which a multiprocessor holds one block

Values = np.ndarray


@dataclass(frozen=True)
class Pair:
    """A flaw.

    Attributes:
        n: threads, or elements where a thread has several.
        reference: of the values.
        fast_reference: of the fast kernel, where it differs.
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
    fast_reference: Callable[[Values], Values] | None = None


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
    return np.minimum(7, (8.0 * x).astype(int)).astype(float)


def _chased(x: Values) -> list[Values]:
    at, found = np.arange(len(x)), []
    for _ in range(64):
        at = (at + _STRIDE) & (len(x) - 1)
        found.append(x[at])
    return found


def _four(x: Values) -> Values:
    return np.stack([np.roll(x, by) for by in range(4)], axis=1)


def _eight_ways(x: Values) -> Values:
    ways: list[Callable[[Values], Values]] = [
        lambda v: v * 0.5 + 0.1,
        lambda v: v * v * 0.5 + 0.2,
        lambda v: v * v - v + 0.3,
        lambda v: 0.5 - (v * 0.25 + v * v * 0.125),
        lambda v: abs(v - 0.5),
        lambda v: np.maximum(v * 0.9, 0.05),
        lambda v: np.minimum(v * 1.1, 0.95),
        lambda v: 1.0 - v * 0.75,
    ]
    values = x.reshape(-1, 8).copy()
    for kind, way in enumerate(ways):
        for _ in range(300):
            values[:, kind] = way(values[:, kind])
    return values.ravel()


def _steps(x: Values, factor: float, summand: float, count: int) -> Values:
    for _ in range(count):
        x = x * factor + summand
    return x


_N: Final = 1 << 20
PAIRS: Final = {
    "spills": Pair(1 << 23, _smoothed, of_block=256 * 64),
    "bank_conflicts": Pair(1 << 21, _sums_of_rows, 1024, 1024),
    "local_arrays": Pair(_N, _of_local),
    "pointer_chasing": Pair(
        1 << 16, lambda x: _chased(x)[-1], arguments=("x", "y", "next"), fast_reference=lambda x: sum(_chased(x))
    ),
    "tail": Pair(*(_SMS * (_SMS + 1) * 256, _twice), of_block=1, blocks=(_SMS + 1, _SMS), is_template=False, shared=_ONE_BLOCK),
    "misaligned_vectors": Pair(1 << 22, lambda x: _four(x).sum(axis=1), arguments=("bytes", "y")),
    "same_address_stores": Pair(_N, lambda x: np.append(_twice(x), np.arange(1.0, 17.0))),
    "divergence": Pair(_N, _eight_ways),
    "atomics": Pair(_N, _bins, arguments=("x", "y", "bins")),
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
        inputs["next"] = ((np.arange(pair.n) + _STRIDE) & (pair.n - 1)).astype(np.int32)
    if "bytes" in pair.arguments:
        inputs["bytes"] = _four(inputs["x"]).ravel().view(np.uint8)
    return inputs


def _scratch(case: Case, config: Params) -> dict[str, Buffer]:
    return {"bins": Buffer((8,), zeroed=True)} if "bins" in pair_of(case).arguments else {}


def _right(reference: Callable[[Values], Values], inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"y": reference(inputs["x"].astype(np.float64))}


WORKLOAD = Workload(
    name="planted_inside",
    title="Planted flaws",
    cases=tuple(
        Case({"flaw": flaw}, flops=0, min_bytes=8 * pair.n, sets=("quick", "full"), size_rank=rank)
        for rank, (flaw, pair) in enumerate(PAIRS.items())
    ),
    variants=(
        CudaVariant("v01_slow", "Slow", "rung", source=_SOURCE, launches=_launches(True), scratch=_scratch),
        CudaVariant(
            *("v02_fast", "Fast", "rung"),
            source=_SOURCE,
            launches=_launches(False),
            scratch=_scratch,
            reference=lambda case, inputs: _right(pair_of(case).fast_reference or pair_of(case).reference, inputs),
        ),
    ),
    buffers=_buffers,
    make_inputs=_inputs,
    reference=lambda case, inputs: _right(pair_of(case).reference, inputs),
    baseline="v01_slow",
)
