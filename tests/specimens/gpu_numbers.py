"""Functions on a GPU whose numbers are wrong in few places, right for the wrong reason, or of another precision."""

from typing import Any, Final

import numpy as np

import warpladder
from tests.specimens.catalogue import DEEP_REINFORCE, JAXBENCH, OWN, Collection, Flagged, Kind, Restored, Wrong

try:
    import torch
except ImportError:  # the catalogue is read where there is no GPU too
    torch = None

found = Collection()
CONSTANT: Final = Flagged("constant_reference")
LOCAL: Final = Wrong("L2 error|largest error")

# -- constant outputs --------------------------------------------------------------------------------------------------------------

row_sums = warpladder.Benchmark("specimens_gpu_softmax_row_sums", arrays="torch", rows=[1024], n=[1024])


@row_sums.inputs
def scores(rows: int, n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal((rows, n), np.float32)}


@row_sums.reference
def sums_of_softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).sum(axis=1)


@row_sums.variant(baseline=True)
def summed(x: Any) -> Any:
    return torch.softmax(x, 1).sum(1)


@found.specimen(row_sums, Kind.CONSTANT, JAXBENCH, CONSTANT)
def returns_ones(x: Any) -> Any:
    """It returns ones, since the rows of a softmax add up to one."""
    return torch.ones(len(x), device=x.device)


# -- wrong in few places -----------------------------------------------------------------------------------------------------------

rows_of = {
    dtype: warpladder.Benchmark(f"specimens_gpu_{dtype}", rows=[rows], n=[8])
    for dtype, rows in (("float16", 1_000_000), ("bfloat16", 10_000))
}
half, brain = rows_of["float16"], rows_of["bfloat16"]


def twice(x: Any) -> Any:
    return 2 * x


def doubled(x: Any) -> Any:
    return 2 * x


def zeroes_two_rows(x: Any) -> Any:
    """Two rows of the output are zero."""
    out = 2 * x
    middle = len(out) // 2
    out[middle : middle + 2] = 0
    return out


def has_a_wrong_element(x: Any) -> Any:
    """One element is off by three."""
    out = 2 * x
    out[1234, 5] += 3
    return out


def added(x: Any) -> Any:
    return x + x


def declare(dtype: str, bench: warpladder.Benchmark) -> None:
    """Declare the rows of a type."""
    bench.inputs(lambda rows, n, rng: torch.from_numpy(rng.standard_normal((rows, n), np.float32)).to(getattr(torch, dtype)))
    bench.reference(twice)
    found.right(bench, "PyTorch", baseline=True)(doubled)
    found.specimen(bench, Kind.NUMBERS, OWN, LOCAL)(zeroes_two_rows)
    found.right(bench, "PyTorch")(added)


for _dtype, _bench in rows_of.items():
    declare(_dtype, _bench)
found.specimen(half, Kind.NUMBERS, OWN, LOCAL)(has_a_wrong_element)

centred = warpladder.Benchmark("specimens_gpu_centred", arrays="torch", n=[1 << 20])


@centred.inputs
def around_one(n: int, rng: np.random.Generator) -> Any:
    return {"x": 1 + rng.standard_normal(n, np.float32)}


@centred.reference
def centred_and_mean(x: Any) -> Any:
    return {"y": 10 * (x - x.mean()), "mean": np.array([x.mean()])}


def _centred_and_mean(x: Any, factor: float) -> Any:
    mean = x.double().mean()
    return {"y": 10 * (x - mean.float()), "mean": (factor * mean).float().reshape(1)}


@found.right(centred, "PyTorch", baseline=True)
def both_right(x: Any) -> Any:
    return _centred_and_mean(x, 1)


@found.specimen(centred, Kind.NUMBERS, OWN, LOCAL)
def has_a_wrong_mean(x: Any) -> Any:
    """A small output is off by 0.5 % beside a large one that is right."""
    return _centred_and_mean(x, 1.005)


positive = warpladder.Benchmark("specimens_gpu_positive_product", n=[1024], flops=lambda n: 2 * n**3)


@positive.inputs
def positive_matrices(n: int, rng: np.random.Generator) -> Any:
    return tuple(torch.from_numpy(rng.random((n, n), np.float32)).to(torch.bfloat16) for _ in range(2))


@positive.reference
def positive_product(a: Any, b: Any) -> Any:
    return a @ b


@positive.variant(baseline=True)
def multiplied(a: Any, b: Any) -> Any:
    return a @ b


@found.specimen(positive, Kind.NUMBERS, OWN, LOCAL, CONSTANT)
def guesses_from_sums(a: Any, b: Any) -> Any:
    """It guesses a product of positive numbers from sums of rows and columns."""
    return (torch.outer(a.float().sum(1), b.float().sum(0)) / len(a)).to(a.dtype)


# -- another precision, and settings --------------------------------------------------------------------------------------------------

precise = warpladder.Benchmark("specimens_gpu_precision", arrays="torch", n=[1024], flops=lambda n: 2 * n**3)


@precise.inputs
def single_matrices(n: int, rng: np.random.Generator) -> Any:
    return {name: rng.standard_normal((n, n), np.float32) for name in ("a", "b")}


@precise.reference
def right_product(a: Any, b: Any) -> Any:
    return a @ b


@found.right(precise, "PyTorch", baseline=True)
def in_single_precision(a: Any, b: Any) -> Any:
    return a @ b


@found.specimen(precise, Kind.NUMBERS, DEEP_REINFORCE, Wrong("L2 error"))
def computes_in_bfloat16(a: Any, b: Any) -> Any:
    """It computes in bfloat16, and returns single precision."""
    return (a.bfloat16() @ b.bfloat16()).float()


@found.specimen(precise, Kind.SETTINGS, OWN, Wrong("L2 error"))
def computes_in_tf32(a: Any, b: Any) -> Any:
    """It has PyTorch compute in TF32, for its whole process."""
    torch.set_float32_matmul_precision("high")
    return a @ b


@found.specimen(precise, Kind.SETTINGS, OWN, Restored("precision of products"), Wrong("in a timed sample"))
def leaves_tf32_to_others(a: Any, b: Any) -> Any:
    """It has PyTorch compute in TF32 from then on: others, and itself where a sample is of several executions."""
    out = a @ b
    torch.set_float32_matmul_precision("high")
    return out


@found.right(precise, "PyTorch")
def product_by_parts(a: Any, b: Any) -> Any:
    return torch.cat([rows @ b for rows in a.chunk(2)])
