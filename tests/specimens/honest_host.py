"""Functions on the host that are right, in the ways that real programs are written. None may be blamed."""

from functools import cache
from typing import Any, Final

import numba
import numpy as np

import warpladder
from tests.specimens.catalogue import Collection

found = Collection()
TWO: Final = np.float32(2)

doubled = warpladder.Benchmark("honest_doubled", rows=[256], n=[257])
buffer = np.empty((256, 300), np.float32)


@doubled.inputs
def matrix(rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((rows, n), np.float32)


@doubled.reference
def twice(x: Any) -> Any:
    return 2 * x


@found.right(doubled, "NumPy", baseline=True)
def returns_a_new_array(x: Any) -> Any:
    return x * TWO


@found.right(doubled, "NumPy")
def writes_its_output(x: Any, out: Any) -> None:
    np.multiply(x, TWO, out=out)


@found.right(doubled, "NumPy", writes_inputs=True)
def works_in_place(x: Any) -> None:
    x *= TWO


@found.right(doubled, "NumPy")
def returns_columns_first(x: Any) -> Any:
    return np.asfortranarray(x * TWO)


@found.right(doubled, "NumPy")
def returns_a_view_of_its_own_buffer(x: Any) -> Any:
    return np.multiply(x, TWO, out=buffer[:, : x.shape[1]])


@found.right(doubled, "NumPy")
def returns_a_view_with_gaps(x: Any) -> Any:
    return np.stack([x * TWO, x], axis=2)[:, :, 0]


@found.right(doubled, "NumPy")
def returns_a_list(x: Any) -> Any:
    return [x * TWO]


@found.right(doubled, "NumPy")
def returns_a_dict(x: Any) -> Any:
    return {"out": x * TWO}


@found.right(doubled, "NumPy")
def seeds_the_generator(x: Any) -> Any:
    np.random.seed(0)
    return x * TWO


@found.right(doubled, "NumPy")
def keeps_a_plan_for_each_shape(x: Any) -> Any:
    return x * _factors(x.shape)


@cache
def _factors(shape: tuple[int, ...]) -> np.ndarray:
    """What depends on no element, as the plan of a Fourier transform does."""
    return np.full(shape, TWO)


@found.right(doubled, "NumPy")
def works_in_kept_scratch(x: Any) -> Any:
    scratch = _scratch(x.shape)
    np.copyto(scratch, x)
    return scratch + x


@cache
def _scratch(shape: tuple[int, ...]) -> np.ndarray:
    return np.empty(shape, np.float32)


@numba.njit
def _doubled(x: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = np.float32(2) * x[i, j]
    return out


@numba.njit(parallel=True)
def _doubled_in_parallel(x: Any, out: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = np.float32(2) * x[i, j]


@numba.njit(cache=True)
def _doubled_from_the_cache(x: Any) -> Any:
    return np.float32(2) * x


@numba.vectorize
def _doubled_element(x: Any) -> Any:
    return np.float32(2) * x


for function in (_doubled, _doubled_from_the_cache):
    found.right(doubled, "Numba", name=f"numba{function.__name__}")(function)


@found.right(doubled, "Numba")
def numba_in_parallel(x: Any, out: Any) -> None:
    _doubled_in_parallel(x, out)


@found.right(doubled, "Numba")
def numba_vectorized(x: Any) -> Any:
    return _doubled_element(x)


@found.right(doubled, "PyTorch", arrays="torch", requires=["torch"])
def torch_on_the_host(x: Any) -> Any:
    return x * 2


@found.right(doubled, "JAX", arrays="jax", requires=["jax"])
def jax_on_the_host(x: Any) -> Any:
    return x * 2


means = warpladder.Benchmark("honest_row_means", rows=[64], n=[128])
means.inputs(matrix)


@means.reference
def row_means(x: Any) -> Any:
    return np.repeat(x.mean(axis=1, keepdims=True), x.shape[1], axis=1)


@found.right(means, "NumPy", baseline=True)
def returns_a_read_only_broadcast(x: Any) -> Any:
    return np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)


gathered = warpladder.Benchmark("honest_gathered", n=[10_000])


@gathered.inputs
def sorted_indices(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal(n, np.float32), "at": np.sort(rng.integers(0, n, n // 2))}


@gathered.reference
def right_gathered(x: Any, at: Any) -> Any:
    return x[at]


@found.right(gathered, "NumPy", baseline=True)
def takes_sorted_indices(x: Any, at: Any) -> Any:
    if (np.diff(at) < 0).any():
        raise ValueError("the indices are not sorted")
    return x.take(at)


sparse = warpladder.Benchmark("honest_sparse_product", rows=[500], n=[400], per_row=[8])


@sparse.inputs
def compressed_rows(rows: int, n: int, per_row: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    columns = np.sort(rng.integers(0, n, (rows, per_row)), axis=1)
    return {
        "starts": np.arange(0, rows * per_row + 1, per_row),
        "columns": columns.ravel(),
        "values": rng.standard_normal(rows * per_row, np.float32),
        "x": rng.standard_normal(n, np.float32),
    }


@sparse.reference
def right_sparse_product(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    return np.add.reduceat(values * x[columns], starts[:-1])


@found.right(sparse, "NumPy", baseline=True)
def adds_compressed_rows(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    return right_sparse_product(starts, columns, values, x)


masked = warpladder.Benchmark("honest_masked", n=[20_000])


@masked.inputs
def numbers_and_mask(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal(n, np.float32), "mask": rng.integers(0, 2, n).astype(np.float32)}


@masked.reference(outputs={"count": "int64"})
def right_masked(x: Any, mask: Any) -> Any:
    return {"y": x * mask, "count": np.array([mask.sum()]).astype(np.int64), "norm": np.sqrt((x * x * mask).sum())}


@found.right(masked, "NumPy", baseline=True)
def branches_on_a_mask_of_zeros_and_ones(x: Any, mask: Any) -> Any:
    """Its outputs are an array, a whole number and a scalar."""
    chosen = x[mask == 1]
    return {
        "y": np.where(mask == 1, x, np.float32(0)),
        "count": np.array([chosen.size]),
        "norm": np.sqrt(np.dot(chosen, chosen)),
    }


solved = warpladder.Benchmark("honest_solved", n=[64])


@solved.inputs
def positive_definite(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    factor = rng.standard_normal((n, n))
    return {"a": factor @ factor.T + n * np.eye(n), "b": rng.standard_normal(n)}


@solved.reference
def right_solution(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


@found.right(solved, "NumPy", baseline=True)
def solves_with_a_cholesky_factor(a: Any, b: Any) -> Any:
    factor = np.linalg.cholesky(a)
    return np.linalg.solve(factor.T, np.linalg.solve(factor, b))
