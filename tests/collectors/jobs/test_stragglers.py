"""Stragglers are named where their lateness exceeds its uncertainty, with the cause that explains most of it."""

import numpy as np
import pyarrow as pa
import pytest

from tests.collectors.jobs.made_jobs import OF_ITERATIONS, MadeJob, make_job, profiles, with_further_group, with_whole_us
from warpladder.collectors.jobs.placing import place
from warpladder.collectors.jobs.stragglers import Stragglers, find

#: The late rank computes for 200 us more in each of 60 collectives of an iteration: 12 ms.
LATE, FACTOR, RANKS = 5, 2.0, 8


def found(job: MadeJob, tables: tuple[pa.Table, pa.Table] | None = None) -> Stragglers:
    table, clocks = place(job.collectives)[:2]
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
    assert result.wait_ns.sum() == pytest.approx(job.wait_ns.sum(), rel=1e-3)


def test_two_ranks_that_are_equally_late_are_both_named():
    job = make_job(16, slower={3: 1.25, 9: 1.25}, jitter=1e-4, end_noise_ns=500)
    assert set(found(job).late) == {3, 9}


def test_a_rank_whose_lateness_is_below_the_uncertainty_is_not_named():
    """Rank 5 is late by 100 ns a collective, and the ends spread by 2 us."""
    job = make_job(RANKS, slower={LATE: 1.0005}, jitter=0, end_noise_ns=2000)
    result = found(job)
    assert result.late == ()
    assert (
        result.reason.startswith("the median of the other ranks waits ")
        and "longer than rank 5, with an error of " in result.reason
    )
    assert result.cause == [""] * RANKS


def test_the_same_lateness_is_named_where_the_ends_are_close():
    job = make_job(RANKS, slower={LATE: 1.0005}, jitter=0, end_noise_ns=5)
    assert found(job).late == (LATE,)


def test_nobody_is_named_on_clocks_that_were_refused():
    job = make_job(2, collectives=40, jitter=1.0, end_at_random=True)
    result = found(job)
    assert result.late == ()
    assert result.reason.startswith("clocks cannot be aligned")
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
    own = _iteration_of(LATE, 9)
    copies = pa.table(
        {"rank": [LATE], "iteration": [9], "name": ["h2d"], "kind": ["memory"], "count": [1], "total_ns": [9_000_000_000]}
    )
    result = found(late_job, (pa.concat_tables((iterations, own)), pa.concat_tables((kernels, copies))))
    assert result.cause[LATE] == "compute"


def _iteration_of(rank, number):
    """A further iteration of a rank."""
    return pa.table(dict(zip(OF_ITERATIONS, ([rank], [number], [10**9], [2 * 10**9], [0], [0]), strict=True)))


def test_waits_for_the_host_between_iterations_count_where_ranks_have_different_iterations(late_job):
    iterations, kernels = profiles(RANKS, 4, late=LATE, between_ns=30_000_000)
    assert found(late_job, (pa.concat_tables((iterations, _iteration_of(0, 9))), kernels)).cause[LATE] == "host"


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


#: Without jitter, the late rank computes for 40 us more in each of 40 collectives, and 3 others wait: 4.8 ms.
SHORT = {"ranks": 4, "collectives": 40, "slower": {3: 1.2}, "jitter": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("members", [(0, 3), (1, 2), (0, 1), (0, 1, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_a_further_group_of_some_ranks_changes_neither_the_late_rank_nor_its_lateness(members, seed):
    """As the embedding group of a pipeline's first and last stage. Its ranks wait for one another, now the one and now the other."""
    job = make_job(**SHORT, seed=seed)
    without, further = found(job), found(with_further_group(job, members, scatter_ns=200e3, seed=seed))
    assert further.late == without.late == (3,)
    assert without.lateness_ns[3] == pytest.approx(3 * 40 * 40e3, rel=0.01)
    assert further.lateness_ns[3] == pytest.approx(without.lateness_ns[3], abs=3 * without.uncertainty_ns.max())
    assert further.wait_ns[list(members)].min() > without.wait_ns[list(members)].min()


def test_a_rank_that_waits_the_most_in_all_is_late_where_it_comes_last_in_its_group():
    """Rank 3 waits for rank 0 in their own group, 8 ms in all. In the group of all, ranks 0 to 2 wait 1.6 ms each for rank 3."""
    job = make_job(**SHORT)
    result = found(with_further_group(job, (0, 3), scatter_ns=400e3, seed=1))
    assert np.argmin(result.wait_ns) in (1, 2) and result.wait_ns[3] > 2 * result.wait_ns[1]
    assert result.late == (3,)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("ranks", "tensor_ranks", "collectives"), [(2, 0, 8), (4, 0, 24), (16, 0, 24), (16, 4, 240)])
def test_no_rank_is_late_where_arrivals_differ_by_chance(ranks, tensor_ranks, collectives):
    named = [
        found(make_job(ranks, tensor_ranks=tensor_ranks, collectives=collectives, jitter=0.2, seed=seed)).late
        for seed in range(20)
    ]
    assert sum(map(bool, named)) <= 1


def test_the_late_rank_of_a_tensor_group_is_named_and_not_those_that_waited_for_it():
    """Each rank of the tensor group of rank 13 comes late to its strided group, since it waited for rank 13."""
    job = make_job(16, tensor_ranks=4, slower={13: 1.25})
    result = found(job)
    assert result.late == (13,)
    assert (result.lateness_ns[[12, 14, 15]] > 0).all()


def test_ranks_that_are_equal_are_not_late():
    job = make_job(2, collectives=12, jitter=0, end_noise_ns=0, same_clock=True)
    result = found(job)
    assert (result.late, result.reason) == ((), "the ranks of each group wait equally long")


@pytest.mark.parametrize(("later_ns", "late"), [(900, ()), (3000, (1,))])
def test_a_difference_below_the_resolution_of_the_times_makes_no_rank_late(later_ns, late):
    """The times are whole microseconds, as those of old profilers; rank 1 is later by 0.9 us, or by 3 us, each time."""
    job = make_job(2, collectives=40, jitter=0, end_noise_ns=0, slower={1: 1 + later_ns / 200e3}, same_clock=True)
    assert found(with_whole_us(job)).late == late


def test_a_single_collective_names_nobody():
    """Two ranks of one report, which have one clock; rank 1 comes 1 ms later to the only collective."""
    job = make_job(2, collectives=1, iterations=1, slower={1: 6.0}, same_clock=True)
    table, clocks = place(job.collectives, {0: 0, 1: 0})[:2]
    result = find(table, clocks, *profiles(2, 1, late=-1))
    assert result.late == ()
    assert result.reason == "no two ranks share more than one matched collective"


def test_a_rank_that_is_late_once_by_far_is_named():
    """In one of 40 collectives, rank 2 comes 5 ms later; otherwise arrivals differ by some microseconds."""
    job = make_job(8, collectives=40, late_once={2: 5e6})
    result = found(job)
    assert result.late == (2,)
    assert result.lateness_ns[2] == pytest.approx(7 * 5e6, rel=0.05)
