"""The product D = A B^T of operands of few bits, as a linear layer computes it: its types, cases, buffers, inputs and reference.

Rows lie one behind the other, and both operands along k: A is m x k, like the inputs of `torch.nn.Linear`, B is n x k, like its weights. Hopper's
tensor cores take FP8 in no other layout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from warpladder.workloads.api import TOLERANCE, Axis, Buffer, Case, CaseSet, Params, Precision
from warpladder.workloads.declare.cases import narrowed, widened

AXES: Final = (Axis("n", 1, 16384), Axis("shape", 1, 131072, extents=3, instead_of="n"))
#: Unit roundoff of results.
_ROUNDOFF: Final = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
#: The longest sums of the declared cases.
_LONGEST: Final = 8192
_REFERENCE_ROWS: Final = 1024


@dataclass(frozen=True)
class Types:
    """What a product multiplies and gives.

    Attributes:
        precision: of the products.
        element: the type in the kernels' sources.
        operand, result: types of the buffers.
        step: products that one instruction of the tensor cores adds.
        sum_roundoff: most that such an instruction loses of a sum, as a part of the sum.
    """

    precision: Precision
    element: str
    operand: str
    result: str
    step: int
    sum_roundoff: float

    @property
    def operand_bytes(self) -> int:
        return Buffer((1,), self.operand).nbytes


#: Sums are float32, cut off and not rounded.
BF16: Final = Types("bf16", "Bf16", "bfloat16", "bfloat16", 16, 2.0**-23)
FP16: Final = Types("fp16", "Fp16", "float16", "float16", 16, 2.0**-23)
#: Of FP8 products Hopper keeps 13 bits of fraction of a sum. Source: DeepSeek-V3 Technical Report, 2024, section 3.3.2: "around 14 bits".
FP8: Final = Types("fp8", "Fp8", "float8_e4m3fn", "bfloat16", 32, 2.0**-13)


@dataclass(frozen=True)
class Size:
    """A is m x k, B is n x k, D is m x n."""

    m: int
    n: int
    k: int


def size_of(case: Case) -> Size:
    """The size of a case `n=512`, or of one such as `shape=80x70x90`, which is (80 x 70) times (70 x 90)."""
    return _size(case.params)


def _size(params: Params) -> Size:
    if "n" in params:
        return Size(params["n"], params["n"], params["n"])
    m, k, n = (int(extent) for extent in params["shape"].split("x"))
    return Size(m, n, k)


@dataclass(frozen=True)
class Problem:
    """The product in some types."""

    types: Types

    @property
    def tolerances(self) -> Mapping[str, float]:
        """Relative L2 errors that pass, at every size: a result is rounded once, and off by no more than the unit roundoff of its type; and each
        instruction along k cuts off the last bits of the sum. Host variants add in float32, and round once too."""
        roundoff = _ROUNDOFF[self.types.result]
        sums = _LONGEST // self.types.step * self.types.sum_roundoff
        return {**TOLERANCE, self.types.precision: roundoff + sums, "fp32": roundoff + TOLERANCE["fp32"]}

    def make_case(self, params: Params, sets: tuple[CaseSet, ...] = (), size_rank: int | None = None) -> Case:
        """A case with its operations and bytes: A and B read, D written."""
        size = _size(params)
        inputs, outputs = self._buffers(size)
        return Case(
            params,
            flops=2 * size.m * size.n * size.k,
            min_bytes=sum(buffer.nbytes for buffer in (*inputs.values(), *outputs.values())),
            sets=sets,
            size_rank=size_rank,
        )

    def cases(self) -> tuple[Case, ...]:
        """Squares of 256 to 8192 by powers of two, a layer of a language model, and products of odd sizes."""
        sets: tuple[tuple[CaseSet, ...], ...] = (
            ("quick", "report", "full"),  # 256
            ("report", "full"),
            ("quick", "report", "full"),  # 1024
            ("report", "full"),
            ("report", "full"),  # 4096
            ("full",),
        )
        squares = [self.make_case({"n": 256 << rank}, of, rank) for rank, of in enumerate(sets)]
        shapes: Sequence[tuple[str, tuple[CaseSet, ...]]] = (
            ("4096x4096x14336", ("full",)),  # the feed-forward layer of Llama 3 8B on 4,096 tokens
            ("3000x3000x3000", ("full",)),
            ("250x401x150", ("report", "full")),
        )
        return (*squares, *(self.make_case({"shape": shape}, of) for shape, of in shapes))

    def emulation_cases(self) -> tuple[Case, ...]:
        """Products small enough for the CPU emulator.

        They cover a few elements, less than a tile, edges anywhere, rows of D with and without a pitch for the TMA, whole tiles, more steps
        along k than a block has stages, tiles of several clusters, and rows of A by eights that begin within a line of 128 bytes.
        """
        shapes = ("1x5x2", "131x37x67", "70x136x328", "128x128x256", "3x1027x17", "300x96x72", "1600x72x40")
        return tuple(self.make_case({"shape": shape}) for shape in shapes)

    def buffers(self, case: Case) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
        """A and B in, D out."""
        return self._buffers(size_of(case))

    def _buffers(self, size: Size) -> tuple[Mapping[str, Buffer], Mapping[str, Buffer]]:
        operand, result = self.types.operand, self.types.result
        inputs = {"a": Buffer((size.m, size.k), operand), "b": Buffer((size.n, size.k), operand)}
        return inputs, {"d": Buffer((size.m, size.n), result)}

    def make_inputs(self, case: Case, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Uniform in [-1, 1), rounded to the type of the operands; for one of 8 bits 256 evenly spaced numbers, rounded."""
        inputs, _ = self.buffers(case)
        return {name: self._random(buffer.shape, rng) for name, buffer in inputs.items()}

    def _random(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        if self.types.operand_bytes == 1:
            spaced = narrowed((np.arange(256, dtype=np.float32) - 127.5) / 128, self.types.operand)
            return np.asarray(spaced[rng.integers(0, 256, shape, np.uint8)])
        return np.asarray(narrowed(rng.random(shape, np.float32) * np.float32(2) - np.float32(1), self.types.operand))

    def reference(self, case: Case, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """D in float64, some rows at a time.

        Args:
            case: not used; the sizes are those of the inputs.
            inputs: `a` and `b`.

        Returns:
            `d`, float64.
        """
        a, b = inputs["a"], values_of(inputs["b"], self.types.operand).astype(np.float64)
        d = np.empty((len(a), len(b)))
        for first in range(0, len(d), _REFERENCE_ROWS):
            rows = slice(first, first + _REFERENCE_ROWS)
            np.matmul(values_of(a[rows], self.types.operand).astype(np.float64), b.T, out=d[rows])
        return {"d": d}


def types_of(array: Any) -> Types:
    """The types of a product whose operands are held by an array like this one, of NumPy or CuPy."""
    return {"uint16": BF16, "float16": FP16, "uint8": FP8}[array.dtype.name]


def values_of(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The values of operands in float32, or in their type where NumPy has it."""
    if bits.itemsize > 1:
        return np.asarray(widened(bits, dtype))
    values = np.asarray(widened(np.arange(256, dtype=np.uint8), dtype))
    return np.asarray(values[bits])
