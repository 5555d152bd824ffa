"""Stragglers are named where their lateness exceeds its uncertainty, with the cause that explains most of it."""

import numpy as np
import pyarrow as pa
import pytest

from tests.collectors.jobs.made_jobs import MadeJob, make_job, profiles
from warpladder.collectors.jobs.clocks import place
from warpladder.collectors.jobs.matching import match
from warpladder.collectors.jobs.stragglers import Stragglers, find

#: The late rank computes for 200 us more in each of 60 collectives of an iteration: 12 ms.
LATE, FACTOR, RANKS = 5, 2.0, 8


def found(job: MadeJob, tables: tuple[pa.Table, pa.Table] | None = None) -> Stragglers:
    table, clocks, _ = place(job.collectives, match(job.collectives).match)
    return find(table, clocks, *(tables or profiles(len(job.wait_ns), 4, late=-1)))


@pytest.fixture(scope="module")
def late_job() -> MadeJob:
    return make_job(RANKS, slower={LATE: FACTOR})


@pytest.mark.parametrize("tensor_ranks", [0, 4])
def test_the_rank_for_which_the_others_wait_is_named(tensor_ranks):
    job = make_job(16, tensor_ranks=tensor_ranks, slower={13: 1.25})
    result = found(job)
    assert result.late == (13,)
    assert result.reason == ""
    assert result.collectives.tolist() == [240] * 16
    assert result.last.sum() == (240 if not tensor_ranks else 120 * 4 + 120 * 4)
    assert np.argmax(result.last) == 13
    assert result.wait_ns.sum() == pytest.approx(job.wait_ns.sum(), rel=1e-3)


def test_two_ranks_that_are_equally_late_are_both_named():
    job = make_job(16, slower={3: 1.25, 9: 1.25}, jitter=1e-4, end_noise_ns=500)
    assert set(found(job).late) == {3, 9}


def test_a_rank_whose_lateness_is_below_the_uncertainty_is_not_named():
    """Rank 5 is late by 100 ns a collective, and the ends spread by 2 us."""
    job = make_job(RANKS, slower={LATE: 1.0005}, jitter=0, end_noise_ns=2000)
    result = found(job)
    assert result.late == ()
    assert result.reason.startswith("Cannot be told: the total wait of rank ")
    assert result.cause == [""] * RANKS


def test_the_same_lateness_is_named_where_the_ends_are_close():
    job = make_job(RANKS, slower={LATE: 1.0005}, jitter=0, end_noise_ns=5)
    assert found(job).late == (LATE,)


def test_nobody_is_named_on_clocks_that_were_refused():
    job = make_job(2, collectives=40, jitter=1.0, end_at_random=True)
    result = found(job)
    assert result.late == ()
    assert "Cannot be told: clocks cannot be aligned" in result.reason
    assert np.isnan(result.uncertainty_ns).all()


@pytest.mark.parametrize(
    ("cause", "change"),
    [
        ("compute", {"kernels": {"gemm": 1.6}}),
        ("work", {"counts": {"gemm": 24}}),
        ("work", {"counts": {"checkpoint": 120}}),
        ("host", {"host": 5.0}),
        ("copies", {"kernels": {"h2d": 16.0}}),
        ("clock", {"kernels": {"gemm": 1.4, "softmax": 1.4, "norm": 1.4, "adam": 1.4}}),
        ("compute", {"kernels": {"gemm": 1.4, "softmax": 1.4, "norm": 1.0, "adam": 1.0}}),
        ("", {}),
        ("", {"kernels": {"gemm": 1.05}}),
        ("compute", {"kernels": {"gemm": 1.6}, "host": 2.0}),
    ],
)
def test_the_largest_excess_is_the_cause(late_job, cause, change):
    result = found(late_job, profiles(RANKS, 4, late=LATE, **change))
    assert result.late == (LATE,)
    assert result.cause == [cause if rank == LATE else "" for rank in range(RANKS)]


def test_lateness_that_several_collectives_count_has_a_cause(late_job):
    """The others wait 12 ms in an iteration, because the collectives overlap; 1.2 ms of it is exposed, and the kernels take 1 ms longer."""
    slower = {"kernels": {"gemm": 1.05}}
    assert found(late_job, profiles(RANKS, 4, late=LATE, **slower)).cause[LATE] == ""
    assert found(late_job, profiles(RANKS, 4, late=LATE, **slower, exposed_ns=1_200_000)).cause[LATE] == "compute"


def test_iterations_that_not_all_ranks_have_are_not_compared(late_job):
    """In iteration 9, which the late rank alone has, it copies for seconds."""
    iterations, kernels = profiles(RANKS, 4, late=LATE, kernels={"gemm": 1.6})
    own = pa.table({"rank": [LATE], "iteration": [9], "host_wait_ns": [0], "exposed_ns": [0]})
    copies = pa.table(
        {"rank": [LATE], "iteration": [9], "name": ["h2d"], "kind": ["memory"], "count": [1], "total_ns": [9_000_000_000]}
    )
    result = found(late_job, (pa.concat_tables((iterations, own)), pa.concat_tables((kernels, copies))))
    assert result.cause[LATE] == "compute"


def test_two_ranks_are_compared_with_each_other():
    job = make_job(2, slower={1: FACTOR})
    result = found(job, profiles(2, 4, late=1, host=5.0))
    assert result.late == (1,)
    assert result.cause == ["", "host"]


def test_kernels_of_a_rank_without_collectives_are_left_out(late_job):
    iterations, kernels = profiles(RANKS + 1, 4, late=LATE, kernels={"gemm": 1.6})
    assert found(late_job, (iterations, kernels)).cause[LATE] == "compute"


def test_profiles_without_iterations_are_compared_as_a_whole(late_job):
    iterations, kernels = profiles(RANKS, 4, late=LATE, counts={"gemm": 24})
    nulls = pa.array([None] * len(kernels), pa.int64())
    assert found(late_job, (iterations.slice(0, 0), kernels.set_column(1, "iteration", nulls))).cause[LATE] == "work"
