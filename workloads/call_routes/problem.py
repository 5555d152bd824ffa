"""The problem: y = x.T of a matrix, `calls` times in a row with the same arrays."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from warpladder.workloads.api import Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import extents_of

Pair = tuple[int, int]

SIZES: Final = (64, 1024, 4096)  # of square matrices; the student report has 1024 and 16384
CALLS: Final = ("1", "10", "100")  # words, and so no size: the work of one call stays the same
ODD_SHAPE: Final = "1001x517"  # no multiple of a tile
#: The case at which the steps of a first use are timed: the student report's matrix.
FIRST_USE: Final[Params] = {"n": 1024, "calls": "1"}

_BYTES_PER_ELEMENT: Final = 8  # a float read, a float written
#: The largest extent of a matrix whose elements a 32-bit integer counts.
_LONGEST: Final = 46_340

AXES: Final = (
    Axis("n", 1, _LONGEST),
    Axis("shape", 1, 1 << 20, extents=2, instead_of="n"),
    Axis("calls", words=CALLS, default="1"),
)


def cases() -> tuple[Case, ...]:
    """Square matrices by size and calls in a row, and an odd shape that is verified but not charted.

    A call on 64x64 takes the device less time than Python needs to launch it, so that many in a row show the launch. Many calls on
    4096x4096 would only repeat its device time.
    """
    squares = [
        case({"n": n, "calls": calls}, _sets(n, calls), size_rank)
        for size_rank, n in enumerate(SIZES)
        for calls in (CALLS if n < SIZES[-1] else CALLS[:1])
    ]
    return (*squares, case({"shape": ODD_SHAPE, "calls": "1"}, ("report", "full"), None))


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU: no multiple of a tile, less than one tile, and two calls' worth of launches."""
    shapes = (("33x70", "1"), ("5x8", "1"), ("64x31", "10"))
    return tuple(case({"shape": shape, "calls": calls}, ("full",), None) for shape, calls in shapes)


def case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case of a square matrix, `{"n": 64, "calls": "10"}`, or of any, `{"shape": "1001x517", "calls": "1"}`."""
    plain = Case(params, 0, 0, sets, size_rank, passes=int(params["calls"]))
    height, width = shape_of(plain)
    return replace(plain, min_bytes=_BYTES_PER_ELEMENT * height * width * plain.passes)


def _sets(n: int, calls: str) -> tuple[CaseSet, ...]:
    sets: list[CaseSet] = ["full"]
    if {"n": n, "calls": calls} == FIRST_USE:
        sets.append("report")
    elif n < SIZES[-1] and calls != "10":  # a first use takes too long for a quick recording
        sets.append("quick")
    return tuple(sets)


def shape_of(case: Case) -> Pair:
    """Height and width of the input."""
    height, width = extents_of(case, 2)
    return height, width


def calls_of(case: Case) -> int:
    """How many calls of the kernel an operation makes, one after another."""
    return int(case.params["calls"])


def is_first_use(case: Case) -> bool:
    """Whether the steps of a first use are timed at this case."""
    return case.params == FIRST_USE


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    height, width = shape_of(case)
    return {"x": Buffer((height, width))}, {"y": Buffer((width, height))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    return {"x": rng.random(shape_of(case), dtype=np.float32)}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The definition. Exact in float32, so that the tolerance is zero."""
    return {"y": np.ascontiguousarray(inputs["x"].T)}
