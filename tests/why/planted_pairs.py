"""Pairs of kernels for the GPU: the first of each pair does the work of the second in a slower way that is known.

Every pair is a case, named for the cause that the sentence about the step of its two variants has to give.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Params, Workload

_SOURCE: Final = Path(__file__).with_name("planted_pairs.cu")
_SMS: Final = 132  # of the SXM models of H100 and H200
_ONE_BLOCK: Final = 200 << 10  # bytes of shared memory, with which a multiprocessor holds one block
_HALF: Final = 48 << 10  # with which it holds four blocks of the eight that its threads allow

Values = np.ndarray
Launches = Callable[[Case, Params], Sequence[Launch]]


def _once(kernel: str, elements: int, threads: int = 256, shared: int = 0, blocks: int = 0) -> Launches:
    """One launch, with a block for each so many elements, or a fixed number of blocks."""

    def launches(case: Case, config: Params) -> Sequence[Launch]:
        n = _pair(case).n
        return (Launch(kernel, (blocks or n // elements, 1, 1), (threads, 1, 1), ("x", "y", np.int32(n)), shared),)

    return launches


def _two_passes(case: Case, config: Params) -> Sequence[Launch]:
    n = _pair(case).n
    return tuple(
        Launch(f"scale_add<{number}>", (n // 1024, 1, 1), (256, 1, 1), (*names, np.int32(n)))
        for number, names in enumerate((("x", "t"), ("t", "y")))
    )


def _smoothed(x: Values) -> Values:
    values = x.reshape(-1, 64, 256)
    for _ in range(32):
        values = 0.5 * (values + np.roll(values, -1, axis=1))
    return values.ravel()


def _chased(x: Values) -> Values:
    at = np.arange(len(x) // 32, dtype=np.uint32)
    total = np.zeros(len(at))
    for _ in range(64):
        value = x[at]
        total += value
        at = (at * np.uint32(5) + (value.astype(np.float32).view(np.uint32) >> np.uint32(8))) % np.uint32(len(x))
    return np.repeat(total, 32)


def _affine(x: Values) -> Values:
    return 2.0 * x + 1.0


def _twice(x: Values) -> Values:
    return 2.0 * x


def _sums_of_rows(x: Values) -> Values:
    return np.repeat(8.0 * x.reshape(-1, 1, 32, 32).sum(axis=3), 32, axis=1).ravel()


def _polynomial(x: Values) -> Values:
    return 0.5 * (1.0 - x**513) / (1.0 - x)


@dataclass(frozen=True)
class Pair:
    """Two ways to compute `reference` of n values: `v01_slow` has the flaw, `v02_fast` has not."""

    n: int
    reference: Callable[[Values], Values]
    slow: Launches
    fast: Launches


#: The cause, one of `warpladder.dashboard.core.why.Cause`, of each pair.
PAIRS: Final = {
    "bytes": Pair(1 << 25, _affine, _two_passes, _once("scale_add<2>", 1024)),
    "coalescing": Pair(1 << 25, _affine, _once("scale_add_32<false>", 8192), _once("scale_add_32<true>", 8192)),
    "conflicts": Pair(1 << 22, _sums_of_rows, _once("row_sums<32>", 1024, 1024), _once("row_sums<33>", 1024, 1024)),
    "spills": Pair(1 << 24, _smoothed, _once("smooth<8>", 256 * 64), _once("smooth<2>", 256 * 64)),
    "occupancy": Pair(1 << 22, _chased, _once("chase", 256, shared=_HALF), _once("chase", 256)),
    "instructions": Pair(1 << 24, _polynomial, _once("polynomial<false>", 1024), _once("polynomial<true>", 1024)),
    "tail": Pair(
        _SMS * (_SMS + 1) * 256,
        _twice,
        _once("converge", 1, shared=_ONE_BLOCK, blocks=_SMS + 1),
        _once("converge", 1, shared=_ONE_BLOCK, blocks=_SMS),
    ),
    "latency": Pair(
        _SMS * 128 * 8 * 16,
        _twice,
        _once("converge_8<false>", 1, 128, _ONE_BLOCK, _SMS),
        _once("converge_8<true>", 1, 128, _ONE_BLOCK, _SMS),
    ),
    "nothing": Pair(1 << 25, _affine, _once("scale_add<2>", 1024), _once("scale_add<2>", 1024)),
}


def _pair(case: Case) -> Pair:
    return PAIRS[str(case.params["cause"])]


def _buffers(case: Case) -> tuple[dict[str, Buffer], dict[str, Buffer]]:
    return {"x": Buffer((_pair(case).n,))}, {"y": Buffer((_pair(case).n,))}


def _scratch(case: Case, config: Params) -> dict[str, Buffer]:
    return {"t": Buffer((_pair(case).n,))} if case.params["cause"] == "bytes" else {}


def _variant(name: str, title: str, launches: Launches) -> CudaVariant:
    return CudaVariant(name, title, "rung", source=_SOURCE, launches=launches, scratch=_scratch)


WORKLOAD = Workload(
    name="planted_pairs",
    title="Planted causes",
    cases=tuple(
        Case({"cause": cause}, flops=0, min_bytes=8 * pair.n, sets=("quick", "full"), size_rank=rank)
        for rank, (cause, pair) in enumerate(PAIRS.items())
    ),
    variants=(
        _variant("v01_slow", "Slow", lambda case, config: _pair(case).slow(case, config)),
        _variant("v02_fast", "Fast", lambda case, config: _pair(case).fast(case, config)),
    ),
    buffers=_buffers,
    make_inputs=lambda case, rng: {"x": rng.random(_pair(case).n, dtype=np.float32) * np.float32(0.75)},
    reference=lambda case, inputs: {"y": _pair(case).reference(inputs["x"].astype(np.float64))},
    baseline="v01_slow",
)
