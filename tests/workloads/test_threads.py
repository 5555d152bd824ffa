"""Parts of a reference on all cores."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from warpladder.workloads import registry
from warpladder.workloads.threads import in_threads, slices


def threads_of_blas() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_parts_are_done_once_each_in_other_threads_whose_products_take_one_thread() -> None:
    before = threads_of_blas()
    done: list[tuple[slice, set[int], int]] = []
    with threadpool_limits(2, "blas"):
        in_threads(lambda part: done.append((part, threads_of_blas(), threading.get_ident())), slices(7, 3))
        assert threads_of_blas() == {2}
    assert sorted((part.start, part.stop) for part, _, _ in done) == [(0, 3), (3, 6), (6, 7)]
    assert all(threads == {1} for _, threads, _ in done)
    assert threading.get_ident() not in {thread for _, _, thread in done}
    assert threads_of_blas() == before


def test_the_failure_of_a_part_is_raised() -> None:
    with threadpool_limits(2, "blas"), pytest.raises(ZeroDivisionError):
        in_threads(lambda part: 1 // (part - 1), [0, 1, 2])


@pytest.mark.parametrize(
    ("name", "params"),
    [("gan_tconv", {"images": 19, "channels": 64}), ("cnn_conv", {"layer": 2, "batch": 19}), ("conv2d", {"n": 700})],
)
def test_a_reference_is_the_same_on_any_number_of_threads(name: str, params: dict[str, int]) -> None:
    workload = registry.load(name)
    assert workload.make_case
    case = workload.make_case(params)
    inputs = workload.make_inputs(case, np.random.default_rng(0))
    with threadpool_limits(1, "blas"):
        alone = workload.reference(case, inputs)
    with threadpool_limits(2, "blas"):
        both = workload.reference(case, inputs)
    assert alone and all(np.array_equal(alone[output], both[output]) for output in alone)
