"""Frames of a job in Python."""

import pytest

import warpladder
from tests.collectors.jobs.made_traces import Job
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> warpladder.Job:
    folder = tmp_path_factory.mktemp("job")
    Job(ranks=3, slow={1: 1.3}).write(folder / "job")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))
        run_id = import_job(Request(profiles(str(folder / "job")), "mine"), folder / "runs", Notes())
    found = warpladder.open_run(run_id, data_dir=folder / "runs")
    assert isinstance(found, warpladder.Job)
    return found


@pytest.mark.slow
def test_the_straggler_comes_first(job: warpladder.Job) -> None:
    frame = job.stragglers()
    assert frame["rank"][0] == 1 and bool(frame["late"][0]) and frame["cause"][0] == "compute"
    assert frame["wait_ns"].is_monotonic_increasing


def test_the_breakdown_adds_up(job: warpladder.Job) -> None:
    for frame in (job.breakdown(), job.breakdown("iteration")):
        idle = frame[["host_wait_ns", "kernel_wait_ns", "other_idle_ns"]].sum(axis=1)
        assert (frame["busy_ns"] + idle == frame["span_ns"]).all()
    assert len(job.breakdown()) == 3 and len(job.breakdown("iteration")) == 9


@pytest.mark.slow
def test_frames_of_events_are_of_the_ranks_that_are_asked_for(job: warpladder.Job) -> None:
    assert job.ranks == (0, 1, 2)
    assert set(job.kernels([2])["rank"]) == {2} and len(job.kernels()) == 3 * 24
    assert len(job.operations([0, 1])) == 48 and len(job.rank(1).operations()) == 24
    assert [len(job.rank(rank).kernels()) for rank in job.ranks] == [24, 24, 24]
    assert len(job.collectives()) == 36


@pytest.mark.slow
def test_the_critical_path_covers_the_typical_iteration(job: warpladder.Job) -> None:
    frame = job.critical_path()
    assert (frame["start_ns"].to_numpy()[1:] == frame["end_ns"].to_numpy()[:-1]).all()
    kernels = job.critical_path(1, by="kernel")
    assert {"name", "time_ns", "gain_ns"} <= set(kernels) and (kernels["percent"] <= 100).all()
    with pytest.raises(warpladder.Error, match="iteration 7 has no device work; there are 0 to 2"):
        job.critical_path(7)


def test_a_rank_that_is_not_there_is_named(job: warpladder.Job) -> None:
    with pytest.raises(warpladder.Error, match="has no profile of rank 9"):
        job.rank(9)
