"""Clocks of ranks: offsets and drifts are found from the ends of collectives, and refused where ends have nothing in common."""

import numpy as np
import pyarrow as pa
import pytest

from tests.collectors.jobs.made_jobs import MadeJob, make_job
from warpladder.collectors.jobs.clocks import Clocks, fit, waits
from warpladder.collectors.jobs.placing import place

#: Five standard errors of a line through the ends of 240 collectives in 65 ms with a noise of 200 ns.
OFFSET_ERROR_NS, DRIFT_ERROR = 80, 4e-6


def fitted(job: MadeJob) -> Clocks:
    return place(job.collectives).clocks


def total_waits(job: MadeJob) -> np.ndarray:
    table = place(job.collectives).collectives
    return np.bincount(table["rank"].to_numpy(), table["wait_ns"].fill_null(0).to_numpy(), len(job.wait_ns))


@pytest.mark.parametrize("tensor_ranks", [0, 4])
def test_offsets_and_drifts_are_found(tensor_ranks):
    job = make_job(16, tensor_ranks=tensor_ranks, slower={13: 1.25})
    clocks = fitted(job)
    middle = clocks.t0_ns - 1_700_000_000_000_000_000
    offset = job.offset_ns + job.drift * middle
    assert np.abs(clocks.offset_ns - (offset - np.median(offset))).max() < OFFSET_ERROR_NS
    assert np.abs(clocks.drift - (job.drift - np.median(job.drift))).max() < DRIFT_ERROR
    assert clocks.spread_ns == pytest.approx(200, rel=0.1)
    assert clocks.uncertainty_ns == pytest.approx(200, rel=0.35)
    assert not clocks.notes


@pytest.mark.parametrize("tensor_ranks", [0, 4])
def test_total_waits_are_within_a_thousandth_of_the_truth(tensor_ranks):
    job = make_job(16, tensor_ranks=tensor_ranks, slower={13: 1.25})
    waited = total_waits(job)
    assert waited.sum() == pytest.approx(job.wait_ns.sum(), rel=1e-3)
    others = np.arange(16) != 13
    assert waited[others] == pytest.approx(job.wait_ns[others], rel=2e-3)
    assert np.argmin(waited) == 13


def test_waits_are_among_the_ranks_that_are_there():
    job = make_job(8, tensor_ranks=4, slower={3: 1.2}, missing=(3,))
    waited = total_waits(job)
    assert waited[3] == 0
    assert waited.sum() == pytest.approx(np.nansum(job.wait_ns), rel=1e-3)


def test_aligned_starts_are_the_true_arrivals_but_for_the_choice_of_the_jobs_clock():
    job = make_job(8, tensor_ranks=2)
    arrival = place(job.collectives).collectives["arrival_ns"].to_numpy() - 1_700_000_000_000_000_000
    # The job's clock may differ from the true time by a line.
    line = np.polyfit(job.arrival_ns, arrival - job.arrival_ns, 1)
    assert np.abs(arrival - job.arrival_ns - np.polyval(line, job.arrival_ns)).max() < 100


def test_days_between_the_clocks_of_two_hosts_lose_no_nanoseconds():
    job = make_job(8, end_noise_ns=20)
    rank, start, end = (job.collectives[name].to_numpy().astype(np.int64) for name in ("rank", "start_ns", "end_ns"))
    far = np.where(rank >= 4, 250_000_000_000_000, 0)
    near, shifted = fit(rank, job.event, start, end), fit(rank, job.event, start + far, end + far)
    assert shifted.spread_ns == pytest.approx(near.spread_ns, rel=0.05)
    first, second = waits(near, rank, job.event, start, end), waits(shifted, rank, job.event, start + far, end + far)
    assert np.abs(first.wait_ns - second.wait_ns).max() <= 20


def test_clocks_minutes_apart_are_told_as_profiles_of_another_run():
    job = make_job(4)
    far = np.where(job.collectives["rank"].to_numpy() == 2, -1_200_000_000_000, 7_000_000_000)
    moved = job.collectives
    for name in ("start_ns", "end_ns"):
        times = moved[name].to_numpy() + far
        moved = moved.set_column(moved.schema.get_field_index(name), name, pa.array(times))
    (told,) = place(moved).notes
    assert told == (
        "warning",
        "Clocks differ: rank 2 is off by 1,207 s. If the clocks of the hosts are right, that is the profile of another run; give those of one run.",
    )
    assert not place(job.collectives).notes


def test_wrong_matches_move_the_clocks_by_less_than_the_noise():
    """Every tenth end of rank 5 is off by 20 ms, which would move a mean by 2 ms."""
    job = make_job(8)
    rank, start, end = (job.collectives[name].to_numpy().astype(np.int64) for name in ("rank", "start_ns", "end_ns"))
    wrong = (rank == 5) & (job.event % 10 == 0)
    moved = np.where(wrong, end + 20_000_000, end)
    right, found = fit(rank, job.event, start, end), fit(rank, job.event, start, moved)
    assert np.abs(found.offset_ns - right.offset_ns).max() < 200


def test_a_short_trace_has_no_wild_drifts():
    """Eight collectives in 2 ms whose ends spread by 1 us tell drifts to a thousandth only."""
    job = make_job(8, collectives=8, iterations=1, end_noise_ns=1000)
    assert np.abs(fitted(job).drift).max() < 3e-4


def test_ends_that_spread_like_starts_are_refused():
    job = make_job(2, collectives=40, jitter=1.0, end_at_random=True)
    table, clocks = place(job.collectives)[:2]
    assert clocks.refused.startswith(
        "clocks cannot be aligned: ranks should leave a collective together, and here they leave it "
    )
    assert " µs apart (and enter it " in clocks.refused
    assert np.isnan(clocks.offset_ns).all()
    assert table["match"].null_count == table.num_rows
    with pytest.raises(ValueError, match="cannot be aligned"):
        clocks.aligned(np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_a_job_in_balance_is_not_refused():
    job = make_job(8, jitter=1e-4)
    assert not fitted(job).refused


@pytest.mark.parametrize(("ranks", "collectives"), [(2, 2), (8, 1)])
def test_too_few_collectives_are_refused(ranks, collectives):
    assert "too few" in fitted(make_job(ranks, collectives=collectives, iterations=1)).refused


def test_no_matches_are_refused():
    job = make_job(2)
    nothing = np.full(len(job.event), -1)
    rank, start, end = (job.collectives[name].to_numpy() for name in ("rank", "start_ns", "end_ns"))
    assert "no collective was matched" in fit(rank, nothing, start, end).refused


def test_ranks_that_no_collective_connects_are_components_of_their_own():
    job = make_job(8, tensor_ranks=4, slower={1: 1.2})
    rank, start, end = (job.collectives[name].to_numpy().astype(np.int64) for name in ("rank", "start_ns", "end_ns"))
    is_tensor = np.array(job.collectives["group"].to_pylist()) == "mesh_tp"
    event = np.where(is_tensor & (rank != 7), job.event, -1)
    clocks = fit(rank, event, start, end)
    assert clocks.component.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    assert clocks.offset_ns[7] == clocks.drift[7] == 0
    assert np.isnan(clocks.uncertainty_ns[7])
    assert clocks.notes[0][1].startswith("No matched collective connects ranks 4, 5, 6 and 7 (4 of 8) to the others")
    offset = job.offset_ns + job.drift * (clocks.t0_ns - 1_700_000_000_000_000_000)
    for members in (slice(0, 4), slice(4, 7)):
        assert np.abs(clocks.offset_ns[members] - (offset[members] - np.median(offset[members]))).max() < OFFSET_ERROR_NS


def test_a_rank_without_collectives_has_no_clock():
    with pytest.raises(ValueError, match="rank 9: no clock"):
        fitted(make_job(4)).aligned(np.array([0, 9]), np.zeros(2, np.int64))


def test_waits_by_hand():
    """Rank 1 is 100 ns ahead. It arrives 50 ns before rank 0 in the first event and 30 ns after it in the second."""
    clocks = Clocks(np.array([0, 1]), np.array([0.0, 100.0]), np.zeros(2), 1000, np.ones(2), 1.0, np.zeros(2, np.int64), [])
    rank, match = np.array([0, 0, 0, 1, 1]), np.array([0, -1, 1, 0, 1])
    start, end = np.array([1000, 1500, 2000, 1050, 2130]), np.array([1200, 1600, 2200, 1299, 2301])
    found = waits(clocks, rank, match, start, end)
    assert found.arrival_ns.tolist() == [1000, 0, 2000, 950, 2030]
    assert found.finish_ns.tolist() == [1200, 0, 2200, 1199, 2201]
    assert found.wait_ns.tolist() == [0, 0, 30, 50, 0]
    assert found.transfer_ns.tolist() == [200, 0, 170, 199, 171]
    assert found.is_last.tolist() == [True, False, False, False, True]
