"""The problem: y = permute(x, perm) of a three-dimensional tensor, as `numpy.transpose` defines it.

`y[j0, j1, j2]` has `y.shape[k] == x.shape[perm[k]]`, and axis k of y is axis perm[k] of x. In the student report's notation with
x[z][y][x], permutation 210 is Output[x][y][z] = Input[z][y][x].
"""

import itertools
from collections.abc import Mapping
from typing import Final

import numpy as np

from warpladder.workloads.api import Axis, Buffer, Case, CaseSet, Params
from warpladder.workloads.ladder import counted, extents_of
from warpladder.workloads.threads import in_threads, slices

Triple = tuple[int, int, int]

PERMUTATIONS: Final = tuple("".join(axes) for axes in itertools.permutations("012"))
SIZES: Final = (64, 128, 256, 512)  # of cubes; the student report has 64
ODD_SHAPE: Final = "65x127x33"  # no multiple of any tile
_ELEMENTS_AT_ONCE: Final = 1 << 18  # of the reference: 1 MB, which stays in a core's L2
#: Shapes larger than any L2, without an extent that is a multiple of 32. They are the first eight of their kind, with at least 2^24
#: elements, that `numpy.random.default_rng(37).integers(129, 512, 3)` gives.
DRAWN_SHAPES: Final = (
    "190x398x371",
    "477x398x236",
    "251x437x301",
    "491x504x212",
    "343x170x455",
    "454x397x396",
    "460x222x308",
    "178x396x400",
)


def cases() -> tuple[Case, ...]:
    """Cubes by size and permutation, and further shapes that are not charted: a small odd one, and the drawn ones, which are in no set
    and measured where they are named.

    `quick` has the two most important permutations: (2,1,0), the hardest, at three sizes, and (0,2,1), a stack of matrices, at
    the smaller two.
    """
    cubes = [
        case({"n": n, "perm": perm}, _cube_sets(n, perm), size_rank)
        for size_rank, n in enumerate(SIZES)
        for perm in PERMUTATIONS
    ]
    odd = [case({"shape": ODD_SHAPE, "perm": perm}, ("report", "full"), None) for perm in PERMUTATIONS]
    drawn = [case({"shape": shape, "perm": perm}, (), None) for shape in DRAWN_SHAPES for perm in PERMUTATIONS]
    return (*cubes, *odd, *drawn)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU: no multiple of any tile, multiples of 4 only, less than one tile, and planes of many tiles."""
    shapes = ("33x31x37", "36x8x68", "5x8x4", "2x130x66")
    return tuple(case({"shape": shape, "perm": perm}, ("full",), None) for shape in shapes for perm in PERMUTATIONS)


#: The largest extent of a cube with fewer than 2^31 elements.
_LONGEST: Final = 1290
AXES: Final = (
    Axis("n", 1, _LONGEST),
    Axis("shape", 1, 1 << 20, extents=3, instead_of="n"),
    Axis("perm", words=PERMUTATIONS),
)


def case(params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
    """A case of a cube, `{"n": 64, "perm": "210"}`, or of any shape, `{"shape": "65x127x33", "perm": "210"}`."""
    plain = Case(params, 0, 0, sets, size_rank)
    return counted(plain, 0, buffers(plain))


def _cube_sets(n: int, perm: str) -> tuple[CaseSet, ...]:
    sets: list[CaseSet] = ["full"]
    if n == 64:
        sets.append("report")
    if n <= {"210": 256, "021": 128}.get(perm, 0):
        sets.append("quick")
    return tuple(sets)


def shape_of(case: Case) -> Triple:
    """Extents of the input."""
    dim0, dim1, dim2 = extents_of(case, 3)
    return dim0, dim1, dim2


def perm_of(case: Case) -> Triple:
    """For each axis of the output, the axis of the input that it was."""
    perm0, perm1, perm2 = (int(axis) for axis in case.params["perm"])
    return perm0, perm1, perm2


def out_shape_of(case: Case) -> Triple:
    """Extents of the output."""
    dim, perm = shape_of(case), perm_of(case)
    return dim[perm[0]], dim[perm[1]], dim[perm[2]]


def out_strides_of(case: Case) -> Triple:
    """For each axis of the *input*, the distance of neighbours in the output, in elements."""
    dim, perm = shape_of(case), perm_of(case)
    of_output = (dim[perm[1]] * dim[perm[2]], dim[perm[2]], 1)
    stride0, stride1, stride2 = (of_output[perm.index(axis)] for axis in range(3))
    return stride0, stride1, stride2


def buffers(case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
    return {"x": Buffer(shape_of(case))}, {"y": Buffer(out_shape_of(case))}


def make_inputs(case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    return {"x": rng.random(shape_of(case), dtype=np.float32)}


def reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The definition. Exact in float32, so that the tolerance is zero."""
    x = np.transpose(inputs["x"], perm_of(case))
    y = np.empty(x.shape, x.dtype)

    def copy(rows: slice) -> None:
        y[rows] = x[rows]

    in_threads(copy, slices(len(y), _ELEMENTS_AT_ONCE // (y.shape[1] * y.shape[2])))
    return {"y": y}


def copy_reference(case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The reference of the copies that serve as ceilings: the input in its own order, in a buffer of the output's shape."""
    return {"y": inputs["x"].reshape(out_shape_of(case))}
