"""The critical path and the gains of faster kernels, on jobs whose times are simulated."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.synthetic.made_paths import REDUCE, Host, Kernel, Operation, PathJob, Synchronize
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.core.critical_path import CriticalPath, critical_path, iterations, typical
from warpladder.dashboard.core.critical_path.gains import gains_ns
from warpladder.dashboard.core.critical_path.spans import Ranks, spans
from warpladder.dashboard.core.traces import Job
from warpladder.data import store

#: How far a gain may be off, in us: a queued kernel, a launch and an event have other latencies, and the path may change between them.
LATENCY_US = 3.0


def found(made: PathJob, folder: Path, iteration: int | None = 2) -> CriticalPath:
    """The critical path of an iteration of a made job."""
    return critical_path(Job(store.open_run(made.write(folder))), iteration)


def times(path: CriticalPath, column: str) -> dict[object, float]:
    """Time on the path in us by rank, kind or name."""
    segments = path.segments
    sums = (segments["end_ns"] - segments["start_ns"]).groupby(segments[column]).sum() / 1e3
    return dict(sums.to_dict())


def gains(path: CriticalPath) -> dict[str, float]:
    """Gain in us by kernel."""
    return dict((path.kernels.set_index("name")["gain_ns"] / 1e3).to_dict())


def repeated(operations: list[Operation], times: int = 4) -> list[Operation]:
    return operations * times


STRAGGLER = repeated(
    [
        Kernel("gemm", lambda rank, _: 300 if rank == 2 else 200 + 3 * rank),
        Kernel(REDUCE, 40, 20, after=(7,)),
        Kernel("norm", 20, after=(20,)),
    ]
)
HOST_BOUND = repeated(
    [Host(lambda rank, _: 300 if rank == 1 else 10, "aten::mm"), Kernel("gemm", 100), Kernel(REDUCE, 20, 20, after=(7,))]
)
TWO_STREAMS = [
    Kernel("gemm", 100),
    Kernel("side", 108, 13, after=(7,)),
    Kernel("main", 130),
    Kernel("join", 50, after=(13,)),
    Kernel(REDUCE, 20, 20, after=(7,)),
]
OVERLAP = repeated([Kernel(REDUCE, 95, 20), Kernel("gemm", lambda rank, _: 100 if rank == 1 else 98, after=(20,))], 6)
SYNCHRONIZED = [
    Kernel("gemm", 500),
    Kernel(REDUCE, 20, 20, after=(7,)),
    Synchronize(),
    Host(60),
    Kernel("small", 10),
    Host(30),
    Kernel("tail", 200),
]
PROGRAMS = {
    "a straggler": STRAGGLER,
    "a host that is late": HOST_BOUND,
    "two streams": TWO_STREAMS,
    "overlap": OVERLAP,
    "a synchronisation": SYNCHRONIZED,
}


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_segments_cover_the_iteration_without_gap_or_overlap(program: list[Operation], tmp_path: Path) -> None:
    made = PathJob(program, offset_us={1: 5_000.0, 3: -700.0})
    path = found(made, tmp_path)
    start, end = path.segments["start_ns"].to_numpy(), path.segments["end_ns"].to_numpy()
    assert (start[1:] == end[:-1]).all() and (start < end).all()
    assert (start[0], end[-1]) == (path.span.start_ns, path.span.end_ns)
    assert path.span.duration_ns / 1e3 == pytest.approx(made.duration_us(2), abs=0.002)


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_replay_of_the_same_durations_gives_the_measured_iteration(program: list[Operation], tmp_path: Path) -> None:
    ranks = Ranks(Job(store.open_run(PathJob(program).write(tmp_path))))
    every = spans(ranks)
    assert (gains_ns(ranks, ranks.ranks, every, ["gemm", REDUCE], 0.0) == 0).all()


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_gain_of_a_faster_kernel_is_that_of_the_job_with_the_faster_kernel(
    program: list[Operation], tmp_path: Path
) -> None:
    made = PathJob(program)
    path = found(made, tmp_path)
    assert path.replayed and set(path.replayed) == set(path.ranks)
    for name, gain in gains(path).items():
        truth = made.duration_us(2) - made.with_faster(name).duration_us(2)
        latencies = LATENCY_US * sum(operation.name == name for operation in program if isinstance(operation, Kernel))
        assert gain == pytest.approx(truth, abs=latencies), name


@pytest.mark.slow
def test_the_path_runs_through_the_compute_of_the_straggler_before_each_collective(tmp_path: Path) -> None:
    path = found(PathJob(STRAGGLER, offset_us={0: 5_000.0, 2: -700.0}), tmp_path)
    assert times(path, "name")["gemm"] == 4 * 300
    assert set(path.segments.loc[path.segments["name"] == "gemm", "rank"]) == {2}
    assert times(path, "kind")["communication"] == 4 * 40, "the transfer alone, without the wait of the others"
    assert times(path, "kind").keys() == {"compute", "communication", "idle"}
    assert gains(path)["gemm"] == pytest.approx(4 * 30)


@pytest.mark.slow
def test_a_second_rank_limits_the_gain_of_a_faster_kernel(tmp_path: Path) -> None:
    """Rank 1 computes for 10 us less than rank 2, in another kernel."""
    program = repeated([Kernel("gemm", lambda rank, _: 300 if rank == 2 else 100), Kernel("norm", lambda rank, _: 10 if rank == 2 else 200), Kernel(REDUCE, 40, 20, after=(7,)), Kernel("adam", 20, after=(20,))])  # fmt: skip
    made = PathJob(program)
    path = found(made, tmp_path)
    row = path.kernels.set_index("name").loc["gemm"]
    assert row["tenth_ns"] == 4 * 30_000
    assert (
        row["gain_ns"] / 1e3
        == pytest.approx(made.duration_us(2) - made.with_faster("gemm").duration_us(2))
        == pytest.approx(4 * 20)
    )


@pytest.mark.slow
def test_the_path_of_a_late_host_is_its_host(tmp_path: Path) -> None:
    path = found(PathJob(HOST_BOUND), tmp_path)
    assert times(path, "name")["aten::mm"] > 0.8 * path.span.duration_ns / 1e3
    assert set(path.segments.loc[path.segments["kind"] == "host", "rank"]) == {1}
    assert gains(path)["gemm"] == 0, "the next iteration begins as late as before"


@pytest.mark.slow
def test_a_synchronisation_leads_to_the_work_that_it_waited_for(tmp_path: Path) -> None:
    path = found(PathJob(SYNCHRONIZED), tmp_path)
    assert times(path, "name")["gemm"] == 500 and times(path, "name")["cudaDeviceSynchronize"] == 8
    assert "small" not in times(path, "name"), "it was over before the next launch"
    order = path.segments["name"].drop_duplicates().tolist()
    assert order.index("gemm") < order.index(REDUCE) < order.index("cudaDeviceSynchronize") < order.index("tail")


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("events", [True, False], ids=["calls of events", "times alone"])
def test_the_path_follows_the_stream_that_another_one_waits_for(events: bool, tmp_path: Path) -> None:
    program = [Kernel("gemm", 100), Kernel("side", 300, 13, after=(7,)), Kernel("main", 130), Kernel("join", 50, after=(13,))]
    on_path = times(found(PathJob(program, events=events), tmp_path), "name")
    assert on_path["side"] == 300 and "main" not in on_path and on_path["join"] == 50


CHAIN = [Host(50), *repeated([Kernel("norm", 60), Kernel("gemm", 60)], 10), Kernel(REDUCE, 100, 7), Synchronize()]


@pytest.mark.slow
def test_a_kernel_that_starts_before_the_end_of_the_one_before_it_follows_that_one(tmp_path: Path) -> None:
    """Programmatic dependent launch: neighbours of a stream overlap by 2 us. The overlap is one kernel's time on the path, not two's."""
    made = PathJob(CHAIN, ranks=2, early_us=2.0)
    path = found(made, tmp_path)
    assert times(path, "kind")["compute"] == 20 * 60 - 19 * 2
    on_path = path.kernels.set_index("name")["time_ns"] / 1e3
    assert on_path["norm"] == 10 * 60 - 9 * 2 and on_path["gemm"] == 10 * 60 - 10 * 2
    assert path.segments["overlap_ns"].sum() == 19 * 2_000
    for name, gain in gains(path).items():
        truth = made.duration_us(2) - made.with_faster(name).duration_us(2)
        assert gain == pytest.approx(truth) == pytest.approx(10 if name == REDUCE else 60), name


@pytest.mark.thorough
@pytest.mark.parametrize("program", [CHAIN, STRAGGLER, TWO_STREAMS], ids=["a chain", "a straggler", "two streams"])
def test_a_path_through_overlapping_neighbours_is_that_of_neighbours_without_overlap(
    program: list[Operation], tmp_path: Path
) -> None:
    apart, together = (found(PathJob(program, early_us=early), tmp_path / f"{early}") for early in (0.0, 2.0))
    for path in (apart, together):
        start, end = path.segments["start_ns"].to_numpy(), path.segments["end_ns"].to_numpy()
        assert (start[1:] == end[:-1]).all() and end[-1] - start[0] == path.span.duration_ns
    work = [
        path.segments[path.segments["kind"].isin(["compute", "communication"])][["rank", "name"]].to_numpy().tolist()
        for path in (apart, together)
    ]
    assert work[0] == work[1]
    assert gains(together) == pytest.approx(gains(apart), abs=LATENCY_US)


def of_rows(kernels: list[dict[str, Any]], calls: list[dict[str, Any]], folder: Path) -> CriticalPath:
    """The path of a job of one rank with these kernels and calls."""
    ranks = {"ranks": [row("ranks", rank=0, status="ok", late=False)]}
    job = write_tables(folder, run_row("job", "job") | {"kind": "job"}, ranks)
    write_tables(job / "ranks", run_row("00000", ""), {"kernels": kernels, "api_calls": calls})
    return critical_path(Job(store.open_run(job)), None)


def launched(number: int, at: int | None, start: int, end: int, stream: tuple[int, int], name: str) -> tuple[Any, list[Any]]:
    """A kernel, times in us, and its call; no call where it is not in the profile."""
    kernel = row("kernels", correlation=number, process=1, device=stream[0], stream=stream[1], start_ns=1_000 * start, end_ns=1_000 * end, full_name=name)  # fmt: skip
    times = {} if at is None else {"start_ns": 1_000 * at, "end_ns": 1_000 * (at + 3)}
    return kernel, [
        row("api_calls", correlation=number, process=1, thread=1, name="cudaLaunchKernel", **times)
    ] if times else []


@pytest.mark.parametrize("second", [(1, 7), (0, 9)], ids=["two devices", "two streams"])
def test_devices_that_work_in_turn_are_on_the_path_in_turn(second: tuple[int, int], tmp_path: Path) -> None:
    """The second one starts 10 us after the first, and what is launched halfway 11 us after that one."""
    made = [
        launched(1, 0, 10, 5_000, (0, 7), "first"),
        launched(2, 5, 5_010, 9_710, second, "second"),
        launched(3, 5_080, 9_721, 9_930, (second[0], 20), "third"),
    ]
    path = of_rows([kernel for kernel, _ in made], [call for _, calls in made for call in calls], tmp_path)
    assert path.segments.loc[path.segments["kind"] == "compute", "name"].tolist() == ["first", "second", "third"]
    assert path.kernels.set_index("name")["inferred"].to_dict() == {"first": 1, "second": 1, "third": 0}
    assert times(path, "kind") == {"compute": 4_990 + 4_700 + 209, "idle": 10 + 11}


def test_work_without_a_launch_was_launched_before_what_follows_it_on_its_stream(tmp_path: Path) -> None:
    """`waited for` runs after `early`, whose launch the profile lacks, so that it seems to be launched when it starts."""
    made = [
        launched(1, None, 300, 400, (0, 13), "early"),
        launched(2, 100, 401, 1_000, (0, 13), "waited for"),
        launched(4, 120, 1_100, 1_200, (0, 7), "last"),
        launched(5, 130, 1_050, 1_055, (0, 21), "other"),
    ]
    wait = row("api_calls", correlation=3, process=1, thread=1, name="cudaStreamWaitEvent", start_ns=110_000, end_ns=111_000)
    made.append(launched(9, 10, 20, 100, (0, 7), "first"))
    calls = [call for _, calls in made for call in calls]
    path = of_rows([kernel for kernel, _ in made], [*calls, wait], tmp_path)
    assert path.segments.loc[path.segments["kind"] == "compute", "name"].tolist() == ["first", "early", "waited for", "last"]


@pytest.mark.parametrize(("begin", "names"), [(58, ["first", "second"]), (5, ["second"])], ids=["neighbours", "branches"])
def test_nodes_of_a_graph_are_neighbours_where_they_overlap_a_little_and_else_branches(
    begin: int, names: list[str], tmp_path: Path
) -> None:
    call = row("api_calls", correlation=1, process=1, start_ns=0, end_ns=1_000, thread=1, name="cudaGraphLaunch")
    kernels = [
        row("kernels", correlation=1, process=1, start_ns=1_000 * start, end_ns=1_000 * (start + 60), full_name=name)
        for start, name in ((10, "first"), (10 + begin, "second"))
    ]
    path = of_rows(kernels, [call], tmp_path)
    assert path.segments.loc[path.segments["kind"] == "compute", "name"].tolist() == names


@pytest.mark.slow
def test_an_event_that_came_early_limits_the_gain_if_its_call_is_in_the_profile(tmp_path: Path) -> None:
    made = PathJob(TWO_STREAMS)
    truth = made.duration_us(2) - made.with_faster("main").duration_us(2)
    program = [Kernel("gemm", 100), Kernel("side", 128, 13, after=(7,)), *TWO_STREAMS[2:]]
    close = PathJob(program)
    assert gains(found(made, tmp_path / "far"))["main"] == pytest.approx(truth) == pytest.approx(13)
    assert gains(found(close, tmp_path / "close"))["main"] == pytest.approx(2, abs=LATENCY_US)


def test_threads_take_turns(tmp_path: Path) -> None:
    """Thread 200 launches the backward pass, while thread 100 waits for it."""
    program = [
        Host(100, "forward"),
        Kernel("a", 10),
        Host(80, "backward", 200),
        Kernel("b", 10, thread=200),
        Host(60, "optimizer"),
        Kernel("c", 10),
    ]
    path = found(PathJob(program, ranks=1, iterations=3, told=False), tmp_path)
    names = times(path, "name")
    assert names["forward"] > 70 and names["backward"] == 80 and names["optimizer"] == 60


@pytest.mark.slow
def test_without_aligned_clocks_the_path_stays_in_the_rank_with_the_longest_iteration(tmp_path: Path) -> None:
    path = found(PathJob(HOST_BOUND, told=False, offset_us={1: 9_999_999.0}), tmp_path)
    assert not path.aligned and set(path.segments["rank"]) == {path.span.rank} == set(path.replayed)


@pytest.mark.slow
def test_the_path_stays_in_its_rank_if_the_clocks_cannot_tell_who_came_last(tmp_path: Path) -> None:
    sure = found(PathJob(STRAGGLER), tmp_path / "sure")
    unsure = found(PathJob(STRAGGLER, uncertainty_ns=1e6), tmp_path / "unsure")
    assert len(set(sure.segments["rank"])) > len(set(unsure.segments["rank"])) == 1


@pytest.mark.slow
def test_profiles_without_launches_give_a_path_through_the_streams(tmp_path: Path) -> None:
    path = found(PathJob(STRAGGLER, launches=False), tmp_path)
    assert not path.has_launches and times(path, "name")["gemm"] == 4 * 300
    assert "host" not in times(path, "kind")


@pytest.mark.slow
def test_profiles_without_iterations_are_one(tmp_path: Path) -> None:
    job = Job(store.open_run(PathJob(STRAGGLER, numbered=False).write(tmp_path)))
    frame = iterations(job)
    assert len(frame) == 1 and typical(frame) is None
    path = critical_path(job, None)
    assert times(path, "name")["gemm"] == 4 * 4 * 300


def test_an_iteration_without_device_work_is_not_there(tmp_path: Path) -> None:
    job = Job(store.open_run(PathJob([Host(100)]).write(tmp_path)))
    assert iterations(job).empty
    with pytest.raises(ValueError, match="no device work in iteration 2"):
        critical_path(job, 2)


def test_the_typical_iteration_has_the_median_duration() -> None:
    frame = pd.DataFrame({"iteration": [3, 4, 5, 6], "duration_ns": [9, 2, 5, 1]}).astype({"iteration": "Int64"})
    assert typical(frame) == 4 and typical(frame[:3]) == 5


@pytest.mark.slow
def test_only_the_ranks_of_the_path_are_opened(tmp_path: Path) -> None:
    folder = PathJob(STRAGGLER, ranks=6).write(tmp_path)
    opened = []

    class Watched(Job):
        def open_rank(self, rank: int) -> store.Run:
            opened.append(rank)
            return super().open_rank(rank)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpladder.dashboard.core.critical_path._FURTHER_EVENTS", 0)
        path = critical_path(Watched(store.open_run(folder)), 2)
    assert set(opened) == set(path.segments["rank"]) | set(path.replayed) and len(set(opened)) < 6
    assert set(path.replayed) < set(path.ranks) and (path.kernels["gain_ns"] <= path.kernels["tenth_ns"]).all()


def test_a_path_through_too_many_events_is_not_replayed(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpladder.dashboard.core.critical_path._MOST_EVENTS", 10)
        path = found(PathJob(STRAGGLER), tmp_path)
    assert path.replayed == () and path.kernels["gain_ns"].isna().all() and (path.kernels["tenth_ns"] > 0).all()


@pytest.mark.slow
def test_matches_that_contradict_each_other_are_not_replayed(tmp_path: Path) -> None:
    folder = PathJob(STRAGGLER).write(tmp_path)
    file = folder / "collectives.parquet"
    rows = pq.read_table(file)
    place, match = rows.schema.get_field_index("match"), np.array(rows["match"].to_pylist())
    first, second = np.unique(match)[8:10]
    of_rank = rows["rank"].to_numpy() == 1
    crossed = np.where(of_rank & (match == first), second, np.where(of_rank & (match == second), first, match))
    pq.write_table(rows.set_column(place, rows.schema.field("match"), pa.array(crossed)), file)
    path = critical_path(Job(store.open_run(folder)), 2)
    assert path.replayed == () and path.kernels["gain_ns"].isna().all()
    assert (path.segments["start_ns"].to_numpy()[1:] == path.segments["end_ns"].to_numpy()[:-1]).all()


def test_a_job_without_the_profiles_of_its_ranks_is_refused(tmp_path: Path) -> None:
    folder = PathJob(STRAGGLER).write(tmp_path)
    (folder / "ranks").rename(tmp_path / "elsewhere")
    with pytest.raises(store.StoreError, match="has no profile of rank"):
        critical_path(Job(store.open_run(folder)), 2)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_are_covered_and_replayed(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    lasts = rng.uniform(5, 200, (40, 4))
    program: list[Operation] = []
    for place in range(40):
        kind, us = rng.integers(6), lasts[place]
        if kind == 0:
            program.append(Host(lambda rank, _, us=us: us[rank] / 2, f"op {place % 3}"))  # type: ignore[misc]
        elif kind == 1:
            program.append(Synchronize())
        elif kind == 2:
            program.append(Kernel(REDUCE, 20, 20, after=(7,)))
        else:
            stream = int(rng.choice([7, 7, 13]))
            after = (20, 13) if stream == 7 else (7,)
            program.append(Kernel(f"kernel {place % 4}", lambda rank, _, us=us: us[rank], stream, after))  # type: ignore[misc]
    program.append(Kernel(REDUCE, 20, 20, after=(7,)))
    made = PathJob(program)
    path = found(made, tmp_path)
    assert (path.segments["start_ns"].to_numpy()[1:] == path.segments["end_ns"].to_numpy()[:-1]).all()
    ranks = Ranks(Job(store.open_run(tmp_path / "job")))
    assert (gains_ns(ranks, ranks.ranks, spans(ranks)[1:3], path.kernels["name"].tolist(), 0.0) == 0).all()
    for name, gain in gains(path).items():
        truth = made.duration_us(2) - made.with_faster(name).duration_us(2)
        assert gain == pytest.approx(truth, abs=2 * LATENCY_US), name
