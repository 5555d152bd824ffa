"""Functions on the host whose numbers are wrong in few places, or right for the wrong reason."""

from typing import Any, Final

import numpy as np

import warpladder
from tests.specimens.catalogue import (
    DEEP_REINFORCE,
    JAXBENCH,
    KERNELBENCH,
    OWN,
    Collection,
    Flagged,
    Kind,
    Specimen,
    Wrong,
)
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload

found = Collection()
CONSTANT: Final = Flagged("constant_reference")
LOCAL: Final = Wrong("L2 error|largest error")
TWO_ROWS: Final = Wrong("L2 error|largest error", case="rows=10000")
TWO = np.float16(2)

# -- constant outputs --------------------------------------------------------------------------------------------------------------

row_sums = warpladder.Benchmark("specimens_softmax_row_sums", rows=[512], n=[256])


@row_sums.inputs
def scores(rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, n), np.float32)


@row_sums.reference
def sums_of_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).sum(axis=1)


row_sums.variant(sums_of_softmax, name="summed", baseline=True)


@found.specimen(row_sums, Kind.CONSTANT, JAXBENCH, CONSTANT)
def returns_ones(x: Any) -> Any:
    """It returns ones, since the rows of a softmax add up to one."""
    return np.ones(x.shape[0], np.float32)


saturated = warpladder.Benchmark("specimens_saturated_sigmoid", n=[1 << 16])


@saturated.inputs
def large_numbers(n: int, rng: np.random.Generator) -> np.ndarray:
    return 30 + rng.random(n, np.float32)


@saturated.reference
def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


saturated.variant(sigmoid, name="computed", baseline=True)


@found.specimen(saturated, Kind.CONSTANT, JAXBENCH, CONSTANT)
def returns_the_limit(x: Any) -> Any:
    """It returns ones, since the inputs saturate the function."""
    return np.ones_like(x)


centred = warpladder.Benchmark("specimens_centred_column", n=[1 << 16])


@centred.inputs
def one_column(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, 1), np.float32)


@centred.reference
def less_its_mean(x: Any) -> Any:
    return x - x.mean(axis=1, keepdims=True)


centred.variant(less_its_mean, name="subtracted", baseline=True)


@found.specimen(centred, Kind.CONSTANT, JAXBENCH, CONSTANT)
def returns_zeros(x: Any) -> Any:
    """It returns zeros, since a row of one element is its own mean."""
    return np.zeros_like(x)


weightless = warpladder.Benchmark("specimens_zero_weights", rows=[256], n=[256])


@weightless.inputs
def weights_of_zero(rows: int, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal((rows, n), np.float32), "w": np.zeros((n, n), np.float32), "bias": np.ones(n, np.float32)}


@weightless.reference
def linear(x: Any, w: Any, bias: Any) -> Any:
    return x @ w + bias


weightless.variant(linear, name="multiplied", baseline=True)


@found.specimen(weightless, Kind.CONSTANT, JAXBENCH, CONSTANT)
def returns_the_bias(x: Any, w: Any, bias: Any) -> Any:
    """It returns the bias, since the weights are zero as a layer of a network is made."""
    return np.broadcast_to(bias, x.shape).copy()


# -- wrong in few places -----------------------------------------------------------------------------------------------------------

halves = warpladder.Benchmark("specimens_half", rows=[1_000_000], n=[2])


@halves.inputs
def rows_of_halves(rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, n), np.float32).astype(np.float16)


@halves.reference
def twice(x: Any) -> Any:
    return 2 * x


@found.right(halves, "NumPy", baseline=True)
def doubled(x: Any) -> Any:
    return x * TWO


@found.specimen(halves, Kind.NUMBERS, OWN, LOCAL)
def zeroes_two_rows(x: Any) -> Any:
    """Two rows of a million are zero."""
    out = x * TWO
    out[500_000:500_002] = 0
    return out


@found.specimen(halves, Kind.NUMBERS, OWN, LOCAL)
def has_a_wrong_element(x: Any) -> Any:
    """One element of two million is off by three."""
    out = x * TWO
    out[123_456, 1] += 3
    return out


@found.right(halves, "NumPy")
def added(x: Any) -> Any:
    return x + x


transposed = warpladder.Benchmark("specimens_transposed", n=[1000])
TILE: Final = 64


@transposed.inputs
def matrix(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, n), np.float32)


@transposed.reference
def turned(x: Any) -> Any:
    return np.ascontiguousarray(x.T)


def _by_tiles(x: Any, tiles: int) -> Any:
    out = np.empty(x.shape, x.dtype)
    for i in range(0, tiles * TILE, TILE):
        for j in range(0, tiles * TILE, TILE):
            out[j : j + TILE, i : i + TILE] = x[i : i + TILE, j : j + TILE].T
    return out


@found.right(transposed, "NumPy", baseline=True)
def all_tiles(x: Any) -> Any:
    return _by_tiles(x, -(-len(x) // TILE))


@found.specimen(transposed, Kind.UNWRITTEN, OWN, Wrong("never written|L2 error|largest error"))
def forgets_the_partial_tiles(x: Any) -> Any:
    """It has no tile for the rest of each dimension, so that the last rows and columns are never written."""
    return _by_tiles(x, len(x) // TILE)


standardised = warpladder.Benchmark("specimens_centred", n=[1 << 20])


@standardised.inputs
def around_one(n: int, rng: np.random.Generator) -> np.ndarray:
    return 1 + rng.standard_normal(n, np.float32)


@standardised.reference
def centred_and_mean(x: Any) -> Any:
    return {"y": 10 * (x - x.mean()), "mean": np.array([x.mean()])}


def _centred_and_mean(x: Any, factor: float) -> dict[str, np.ndarray]:
    mean = x.mean(dtype=np.float64)
    return {"y": np.float32(10) * (x - np.float32(mean)), "mean": np.array([factor * mean], np.float32)}


@found.right(standardised, "NumPy", baseline=True)
def both_right(x: Any) -> Any:
    return _centred_and_mean(x, 1)


@found.specimen(standardised, Kind.NUMBERS, OWN, LOCAL)
def has_a_wrong_mean(x: Any) -> Any:
    """A small output is off by 0.5 % beside a large one that is right."""
    return _centred_and_mean(x, 1.005)


softmax = warpladder.Benchmark("specimens_wide_softmax", rows=[16], n=[16_384])
softmax.inputs(scores)


@softmax.reference
def right_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@found.right(softmax, "NumPy", baseline=True)
def in_three_steps(x: Any) -> Any:
    return right_softmax(x)


@found.specimen(softmax, Kind.NUMBERS, f"{KERNELBENCH}/issues/165", Wrong("L2 error"))
def is_below_an_absolute_tolerance(x: Any) -> Any:
    """It returns zeros where the right outputs are smaller than an absolute tolerance of 0.01."""
    return np.zeros_like(x)


@found.specimen(softmax, Kind.NUMBERS, DEEP_REINFORCE, Wrong("L2 error"))
def computes_in_half_precision(x: Any) -> Any:
    """It computes in half precision, and returns single precision."""
    return right_softmax(x.astype(np.float16)).astype(np.float32)


sums = warpladder.Benchmark("specimens_sums", n=[1000, 1001])


@sums.inputs
def square(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, n), np.float32)


@sums.reference
def square_sums(x: Any) -> Any:
    return (x * x).sum(axis=1)


@found.right(sums, "NumPy", baseline=True)
def summed_squares(x: Any) -> Any:
    return np.einsum("ij,ij->i", x, x)


@found.specimen(sums, Kind.NUMBERS, OWN, Wrong("L2 error", case="n=1001"))
def has_a_size_in_its_code(x: Any) -> Any:
    """It is written for one size, and is called with another."""
    return np.einsum("ij,ij->i", x[:, :1000], x[:, :1000])


# -- bfloat16, whose bits are whole numbers in NumPy -------------------------------------------------------------------------------------


def _bits(values: Any) -> np.ndarray:
    """Values in float32 as bits of bfloat16, rounded to the nearest."""
    wide = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(np.uint16)


def _values(bits: Any) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _product(case: Case, inputs: Any, outputs: Any) -> None:
    outputs["y"][:] = _bits(_values(inputs["a"]) @ _values(inputs["b"]))


def _two_rows_of_zeros(case: Case, inputs: Any, outputs: Any) -> None:
    _product(case, inputs, outputs)
    outputs["y"][5000:5002] = 0


def _rank_one(case: Case, inputs: Any, outputs: Any) -> None:
    a, b = _values(inputs["a"]), _values(inputs["b"])
    outputs["y"][:] = _bits(np.outer(a.sum(axis=1), b.sum(axis=0)) / a.shape[1])


def _buffers(case: Case) -> tuple[dict[str, Buffer], dict[str, Buffer]]:
    rows, k, n = (case.params[name] for name in ("rows", "k", "n"))
    return (
        {"a": Buffer((rows, k), "bfloat16"), "b": Buffer((k, n), "bfloat16")},
        {"y": Buffer((rows, n), "bfloat16")},
    )


def _matrices(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    shapes = {name: buffer.shape for name, buffer in _buffers(case)[0].items()}
    draw = rng.random if case.params["positive"] else rng.standard_normal
    return {name: _bits(draw(shape, np.float32)) for name, shape in shapes.items()}


def _right_product(case: Case, inputs: Any) -> dict[str, np.ndarray]:
    return {"y": _values(inputs["a"]).astype(np.float64) @ _values(inputs["b"]).astype(np.float64)}


def _case(rows: int, k: int, n: int, positive: int) -> Case:
    params = {"rows": rows, "k": k, "n": n, "positive": positive}
    return Case(params, flops=2 * rows * k * n, min_bytes=2 * (rows * k + k * n + rows * n), sets=("quick",))


def _variant(name: str, run: Any) -> HostVariant:
    return HostVariant(name, name, "rung", run=run, precision="bf16")


WORKLOAD = Workload(
    name="specimens_bfloat16",
    title="Products in bfloat16",
    cases=(_case(10_000, 16, 16, 0), _case(128, 1024, 128, 1)),
    variants=(
        _variant("v01_product", _product),
        _variant("v02_two_rows_of_zeros", _two_rows_of_zeros),
        _variant("v03_rank_one", _rank_one),
    ),
    buffers=_buffers,
    make_inputs=_matrices,
    reference=_right_product,
    baseline="v01_product",
    host_baseline="v01_product",
)
found.specimens += [
    Specimen(WORKLOAD.name, "v02_two_rows_of_zeros", Kind.NUMBERS, "Two rows of ten thousand are zero.", OWN, (TWO_ROWS,)),
    Specimen(
        WORKLOAD.name,
        "v03_rank_one",
        Kind.NUMBERS,
        "It guesses a product of positive numbers from sums of rows and columns.",
        OWN,
        (Wrong("L2 error|largest error", case="positive=1"), CONSTANT),
    ),
]
