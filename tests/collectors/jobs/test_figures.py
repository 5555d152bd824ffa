"""The figures of a rank: by hand on small cases, and against a plain count of nanoseconds on random ones."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from tests.limits import cpu_seconds
from warpladder.collectors.jobs import rank
from warpladder.data import job_tables, timeline
from warpladder.data.arrays import NONE
from warpladder.data.columns import Table
from warpladder.data.iterations import Steps
from warpladder.data.timeline import COMMUNICATION, COMPUTE, MEMORY, DeviceWork

NO_STEPS = Steps(*(np.empty(0, np.int64) for _ in range(3)))
Row = tuple[int, int, int, int, str, tuple[int, int] | None]


def work_of(*rows: Row, device: tuple[int, ...] = ()) -> DeviceWork:
    """Device work of one process from rows of start, end, stream, kind, name and the times of the launch, with a call for each time.

    Args:
        device: of each row; all on the first GPU without it.
    """
    names = sorted({row[4] for row in rows})
    launches = [row[5] or (0, 0) for row in rows]
    return DeviceWork(
        start=np.array([row[0] for row in rows], np.int64),
        end=np.array([row[1] for row in rows], np.int64),
        process=np.full(len(rows), 100),
        device=np.array(device or [0] * len(rows), np.int64),
        stream=np.array([row[2] for row in rows], np.int64),
        kind=np.array([row[3] for row in rows], np.int8),
        name=np.array([names.index(row[4]) for row in rows], np.int64),
        names=names,
        correlation=np.array([begin * 1000 + end for begin, end in launches], np.int64),
        launch_start=np.array([begin for begin, _ in launches], np.int64),
        launch_end=np.array([end for _, end in launches], np.int64),
        launched=np.array([row[5] is not None for row in rows], np.bool_),
    )


def steps_of(*rows: tuple[int, int, int]) -> Steps:
    return Steps(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def kernel(start: int, end: int, launch: tuple[int, int] | None = None, *, kind: int = COMPUTE, stream: int = 7) -> Row:
    return start, end, stream, kind, ("gemm", "nccl", "h2d")[kind], launch


def columns(table: Table) -> set[str]:
    return {column.name for column in table.columns}


def test_breakdown_counts_overlapping_work_once_and_exposed_communication_without_compute() -> None:
    # compute [0, 40) and [30, 50), communication [20, 80), memory [70, 90)
    work = work_of(
        kernel(70, 90, kind=MEMORY), kernel(0, 40), kernel(20, 80, kind=COMMUNICATION, stream=8), kernel(30, 50, stream=9)
    )
    assert timeline.breakdown(work) == {
        "span_ns": 90,
        "busy_ns": 90,
        "compute_ns": 50,
        "communication_ns": 60,
        "memory_ns": 20,
        "exposed_ns": 30,
        "host_wait_ns": 0,
        "kernel_wait_ns": 0,
        "other_idle_ns": 0,
        "graph_ns": 0,
        "long_wait_ns": 0,
        "untold_ns": 0,
        "managed_ns": 0,
    }


@pytest.mark.parametrize(
    ("next_work", "cause"),
    [
        pytest.param(kernel(10_500, 11_000, (10_001, 10_100)), "host_wait_ns", id="launched after the gap began"),
        pytest.param(kernel(10_500, 11_000, (10_000, 10_100)), "kernel_wait_ns", id="launched as the gap began"),
        pytest.param(kernel(10_500, 11_000), "kernel_wait_ns", id="launch not in the trace"),
        pytest.param(kernel(39_999, 41_000, (5, 6)), "kernel_wait_ns", id="just below 30 us"),
        pytest.param(kernel(40_000, 41_000, (5, 6)), "other_idle_ns", id="30 us"),
    ],
)
def test_idle_time_has_the_cause_of_the_gap_before_the_next_work(next_work: Row, cause: str) -> None:
    found = timeline.breakdown(work_of(next_work, kernel(0, 10_000, (0, 1)), kernel(100, 200, (0, 1), stream=8)))
    idle = {name: found[name] for name in ("host_wait_ns", "kernel_wait_ns", "other_idle_ns")}
    assert idle.pop(cause) == next_work[0] - 10_000
    assert set(idle.values()) == {0}


def test_long_waits_for_the_host_and_gaps_before_work_without_a_launch_are_parts_of_idle_time() -> None:
    work = work_of(
        kernel(0, 10_000, (0, 1)),
        kernel(110_000, 120_000, (100_000, 100_001)),  # 100 us after, was not launched: no long wait yet
        kernel(220_001, 230_000, (200_000, 200_001)),  # 100,001 ns after
        kernel(300_000, 310_000),  # 70 us after
        kernel(330_000, 340_000),  # 20 us after: a short gap, whatever launched it
        (400_000, 410_000, 7, MEMORY, "unified_h2d", None),  # 60 us after
        (450_000, 460_000, 7, MEMORY, "unified_d2h", None),  # 40 us after
    )
    found = timeline.breakdown(work)
    parts = ("host_wait_ns", "long_wait_ns", "kernel_wait_ns", "other_idle_ns", "untold_ns", "managed_ns")
    assert [found[name] for name in parts] == [200_001, 100_001, 20_000, 170_000, 170_000, 40_000]


def test_of_work_that_starts_together_the_work_launched_first_decides_in_any_order() -> None:
    rows = [kernel(0, 10, (0, 1)), kernel(50, 60, (40, 41)), kernel(50, 55, (5, 6), stream=8)]
    for order in (rows, rows[::-1]):
        assert timeline.breakdown(work_of(*order))["kernel_wait_ns"] == 40


def test_nothing_has_no_figures() -> None:
    work = work_of()
    assert set(timeline.breakdown(work).values()) == set(rank.rank_columns(work).values()) == {0}
    assert {*timeline.breakdown(work), *rank.rank_columns(work)} <= columns(job_tables.RANKS)
    assert rank.idle_rows(work) == timeline.iteration_rows(work, NO_STEPS) == []
    assert len(rank.kernel_rows(work, NO_STEPS)) == 0


def test_launches_count_their_calls_once_and_delays_only_forwards() -> None:
    work = work_of(
        kernel(100, 105, (0, 10)),
        kernel(110, 400, (0, 10)),  # of the same call: a graph
        kernel(15, 16, (12, 20), kind=MEMORY),  # starts before its call ends; a copy is no kernel
        kernel(100_121, 100_122, (12, 21)),
        kernel(200_122, 200_180, (12, 22)),
        kernel(500_000, 500_001),
    )
    assert rank.rank_columns(work) == {
        "launches": 5,
        "launch_ns": 10 + 8 + 9 + 10,
        "delay_ns": 90 + 100 + 0 + 100_100 + 200_100,
        "delayed": 2,
        "short_kernels": 2,
    }


def test_a_delay_of_100_us_is_not_yet_delayed() -> None:
    assert rank.rank_columns(work_of(kernel(100_010, 100_011, (0, 10))))["delayed"] == 0
    assert rank.rank_columns(work_of(kernel(100_011, 100_012, (0, 10))))["delayed"] == 1


def test_calls_of_different_threads_at_the_same_time_count_each() -> None:
    work = work_of(kernel(100, 105, (0, 10)), kernel(110, 400, (0, 10)))
    work.correlation[:] = 1, 2
    assert rank.rank_columns(work)["launch_ns"] == 20


def test_work_belongs_to_the_iteration_of_its_launch() -> None:
    steps = steps_of((3, 100, 200), (4, 200, 300), (5, 350, 400))
    work = work_of(
        kernel(250, 260, (199, 205)),
        kernel(350, 370, (200, 205)),
        kernel(360, 370, (300, 301)),
        kernel(150, 160, (99, 150)),
        kernel(401, 405, (399, 400)),
    )
    assert steps.numbers_at(work.launched_at).tolist() == [3, 4, -1, -1, 5]
    assert NO_STEPS.numbers_at(work.launched_at).tolist() == [-1] * 5


def test_work_without_a_launch_was_launched_as_the_work_before_it_on_its_stream() -> None:
    steps = steps_of((3, 100, 200), (4, 200, 300))
    work = work_of(
        kernel(120, 130),  # before the first launch of its stream: launched before the trace began
        kernel(140, 150, (110, 111)),
        kernel(210, 220),  # behind the one above, which was launched in 3
        kernel(240, 250, (230, 231)),
        kernel(250, 260),
        kernel(130, 140, stream=8),  # no launch of this stream is known, so its start counts
        kernel(310, 320, stream=8),
        kernel(150, 160),  # of another GPU, where stream 7 is another one
        device=(0, 0, 0, 0, 0, 0, 0, 1),
    )
    assert steps.numbers_at(work.launched_at).tolist() == [-1, 3, 3, 4, 4, 3, -1, 3]


def test_an_iteration_lasts_until_its_work_has_ended_and_has_a_row_without_any() -> None:
    steps = steps_of((3, 0, 100), (4, 100, 200), (7, 200, 300))
    work = work_of(
        kernel(260, 280, (205, 210)),
        kernel(20, 50, (1, 2)),
        kernel(40, 90, (1, 2), kind=COMMUNICATION, stream=8),
        kernel(230, 250, (210, 211)),  # launched in 7 as the first above
        kernel(400, 500, (300, 301)),
    )
    first, second, third = timeline.iteration_rows(work, steps)
    assert set(first) == columns(job_tables.ITERATIONS) - {"rank", "collectives", "wait_ns", "last"}
    assert {name: first[name] for name in ("iteration", "start_ns", "end_ns", "device_start_ns", "device_end_ns")} == {
        "iteration": 3,
        "start_ns": 0,
        "end_ns": 100,
        "device_start_ns": 20,
        "device_end_ns": 90,
    }
    assert (first["span_ns"], first["busy_ns"], first["compute_ns"], first["exposed_ns"]) == (70, 70, 30, 40)
    assert second == {
        **dict.fromkeys(first, 0),
        "iteration": 4,
        "start_ns": 100,
        "end_ns": 200,
        "device_start_ns": None,
        "device_end_ns": None,
    }
    assert (third["device_start_ns"], third["span_ns"], third["busy_ns"], third["kernel_wait_ns"]) == (230, 50, 40, 10)


def test_iterations_do_not_overlap_and_count_the_work_of_others() -> None:
    steps = steps_of((1, 0, 100), (2, 100, 200))
    work = work_of(
        kernel(1_000, 1_800, (10, 11)),
        kernel(110, 120, (105, 106), kind=MEMORY, stream=20),  # of 2, while 1 still waits for its kernel
        kernel(1_800, 2_000, (20, 21), kind=COMMUNICATION),
        kernel(2_000, 2_500, (120, 121)),
        kernel(1_900, 2_100, (130, 131), stream=9),  # of 2, and hides communication of 1
    )
    first, second = timeline.iteration_rows(work, steps)
    # The work launched up to the end of 1 runs until 2000. From 1900 on, its communication is hidden.
    assert (first["device_start_ns"], first["device_end_ns"], second["device_start_ns"]) == (1_000, 2_000, 2_000)
    assert (first["compute_ns"], first["communication_ns"], first["exposed_ns"]) == (900, 200, 100)
    assert (second["span_ns"], second["compute_ns"], second["memory_ns"]) == (500, 500, 0)
    # 880 ns before 1 begins are idle, outside of all iterations, and 10 ns are the copy.
    assert timeline.breakdown(work)["span_ns"] == 10 + 880 + 1_000 + 500


def test_the_times_of_a_rank_with_two_gpus_are_sums_over_them() -> None:
    # GPU 0 computes in [0, 50), GPU 1 in [60, 100); both are stream 7. GPU 1 waits for the launch at 40, GPU 0 for nothing more.
    work = work_of(kernel(0, 50, (0, 1)), kernel(60, 100, (40, 41)), device=(0, 1))
    found = timeline.breakdown(work)
    assert (found["span_ns"], found["busy_ns"], found["host_wait_ns"]) == (200, 90, 110)
    one, other = rank.device_rows(work)
    assert set(one) == columns(job_tables.RANK_DEVICES) - {"rank"}
    assert (one["device"], one["span_ns"], one["busy_ns"]) == (0, 100, 50)
    assert (other["device"], other["busy_ns"], other["host_wait_ns"]) == (1, 40, 60)
    (row, last) = timeline.iteration_rows(work, steps_of((1, 0, 20), (2, 20, 60)))
    assert (row["device_start_ns"], row["device_end_ns"], row["span_ns"], row["busy_ns"]) == (0, 50, 100, 50)
    assert (last["device_start_ns"], last["device_end_ns"], last["span_ns"], last["busy_ns"]) == (60, 100, 80, 40)
    assert [(row["device"], row["stream"], row["host_wait_ns"]) for row in rank.idle_rows(work)] == [(0, 7, 0), (1, 7, 0)]


def test_a_gpu_that_a_rank_scarcely_uses_is_none_of_its_gpus() -> None:
    rows = (kernel(0, 10), kernel(1_000, 3_000), kernel(3_000, 3_100, kind=MEMORY))
    found = rank.device_rows(work_of(*rows, device=(0, 3, 1)))
    assert [(row["device"], row["span_ns"], row["busy_ns"]) for row in found] == [(3, 3_100, 2_110)]
    assert len(rank.device_rows(work_of(kernel(0, 21), *rows[1:], device=(0, 3, 1)))) == 2


def test_executions_of_a_kernel_are_summed_by_iteration_name_and_kind() -> None:
    work = work_of(
        (0, 10, 7, COMPUTE, "gemm", (1, 2)),
        (20, 40, 8, COMPUTE, "gemm", (2, 3)),
        (50, 55, 7, MEMORY, "h2d", (3, 4)),
        (60, 63, 7, COMPUTE, "h2d", (3, 4)),
        (70, 71, 7, COMPUTE, "gemm", (150, 151)),
        (80, 82, 7, COMPUTE, "add", None),
    )
    table = rank.kernel_rows(work, steps_of((6, 0, 5)))
    assert table.column_names == [column.name for column in job_tables.RANK_KERNELS.columns[1:]]
    assert table.schema.types == [column.type for column in job_tables.RANK_KERNELS.columns[1:]]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (None, "add", "compute", 1, 2, 2, 2, 4.0),
        (None, "gemm", "compute", 1, 1, 1, 1, 1.0),
        (6, "gemm", "compute", 2, 30, 10, 20, 500.0),
        (6, "h2d", "compute", 1, 3, 3, 3, 9.0),
        (6, "h2d", "memory", 1, 5, 5, 5, 25.0),
    ]


def test_idle_time_of_a_stream_is_by_cause_and_its_queue_over_the_changes() -> None:
    work = work_of(
        kernel(100, 200, (10, 20)),
        kernel(250, 300, (20, 30)),  # 50 after, had been launched
        kernel(400, 500, (310, 320)),  # 100 after, was not
        kernel(40_500, 40_600, (320, 330)),  # 40,000 after, had been
        kernel(0, 100_000, (1, 2), stream=8),
        kernel(5, 6, (1, 2), stream=NONE),
        kernel(0, 1, stream=9),
        kernel(1, 2, stream=9),
    )
    rows = rank.idle_rows(work)
    assert set(rows[0]) == columns(job_tables.IDLE) - {"rank"}
    assert rows[0] == {
        "device": 0,
        "stream": 7,
        "host_wait_count": 1,
        "host_wait_ns": 100,
        "kernel_wait_count": 1,
        "kernel_wait_ns": 50,
        "other_count": 1,
        "other_ns": 40_000,
        # 1 2 | 1 0 | 1 2 | 1 0
        "queued": 8,
        "queue_mean": 1.0,
        "queue_most": 2,
    }
    assert rows[1] == {**dict.fromkeys(rows[0], 0), "stream": 8, "queued": 2, "queue_mean": -0.5, "queue_most": 0}
    assert rows[2] == {**dict.fromkeys(rows[0], 0), "stream": 9, "queue_mean": None, "queue_most": None}


def test_the_queue_grows_before_it_falls_at_the_same_time() -> None:
    (row,) = rank.idle_rows(work_of(kernel(10, 20, (10, 11)), kernel(20, 30, (10, 11))))
    assert (row["queue_mean"], row["queue_most"]) == (1.0, 2)


def random_work(rng: np.random.Generator, devices: int = 1) -> DeviceWork:
    """Up to 12 pieces of work within 60 ns; the gaps are scaled so that all causes occur."""
    count = int(rng.integers(1, 13))
    start = rng.integers(0, 60, count)
    launch = start - rng.integers(0, 30, count)
    return DeviceWork(
        start=start,
        end=start + rng.integers(0, 12, count),
        process=np.full(count, 100),
        device=rng.integers(0, devices, count),
        stream=rng.integers(-1, 3, count),
        kind=rng.integers(0, 4, count).astype(np.int8),
        name=rng.integers(0, 3, count),
        names=["a", "b", "c"],
        correlation=np.arange(count),
        launch_start=launch,
        launch_end=launch + rng.integers(0, 5, count),
        launched=rng.random(count) < 0.8,
    )


def scaled(work: DeviceWork, unit: int) -> DeviceWork:
    times = {name: getattr(work, name) * unit for name in ("start", "end", "launch_start", "launch_end")}
    return DeviceWork(**{**vars(work), **times})


def running(work: DeviceWork, chosen: np.ndarray) -> set[int]:
    """Every nanosecond in which any of the chosen work ran."""
    return {ns for i in np.flatnonzero(chosen) for ns in range(work.start[i], work.end[i])}


def gaps(work: DeviceWork, chosen: np.ndarray, unit: int) -> dict[str, list[int]]:
    """Lengths of gaps by cause: runs of nanoseconds without work, cut where work of no length lies in them."""
    found: dict[str, list[int]] = defaultdict(list)
    items = sorted(
        (int(work.start[i]), int(work.launch_start[i]) if work.launched[i] else -(10**9), int(work.end[i]))
        for i in np.flatnonzero(chosen)
    )
    reached = items[0][0]
    for start, launch, end in items:
        if start > reached:
            near = (start - reached) * unit < 30_000
            found["host_wait" if launch > reached else "kernel_wait" if near else "other"].append(start - reached)
        reached = max(reached, end)
    return found


@pytest.mark.slow
@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(200))
def test_figures_equal_a_count_of_nanoseconds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, unit = random_work(rng), 3_000
    work = scaled(plain, unit)
    everything = np.ones(len(plain), np.bool_)
    compute, communication, memory, graph = (running(plain, plain.kind == kind) for kind in range(4))
    busy = running(plain, everything)
    causes = gaps(plain, everything, unit)
    found = timeline.breakdown(work)
    assert found == found | {
        "span_ns": (int(plain.end.max()) - int(plain.start.min())) * unit,
        "busy_ns": len(busy) * unit,
        "compute_ns": len(compute) * unit,
        "communication_ns": len(communication) * unit,
        "memory_ns": len(memory) * unit,
        "exposed_ns": len(communication - compute - graph) * unit,
        "host_wait_ns": sum(causes["host_wait"]) * unit,
        "kernel_wait_ns": sum(causes["kernel_wait"]) * unit,
        "other_idle_ns": sum(causes["other"]) * unit,
        "graph_ns": len(graph - compute) * unit,
    }
    assert found["busy_ns"] + found["host_wait_ns"] + found["kernel_wait_ns"] + found["other_idle_ns"] == found["span_ns"]
    rows = rank.idle_rows(work)
    assert [row["stream"] for row in rows] == sorted(set(plain.stream.tolist()) - {NONE})
    for row in rows:
        causes = gaps(plain, plain.stream == row["stream"], unit)
        for cause in ("host_wait", "kernel_wait", "other"):
            assert (row[f"{cause}_count"], row[f"{cause}_ns"]) == (len(causes[cause]), sum(causes[cause]) * unit)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_each_execution_counts_in_one_iteration(seed: int) -> None:
    work = random_work(np.random.default_rng(seed))
    table = rank.kernel_rows(work, steps_of((0, -20, 10), (1, 10, 30), (2, 35, 50)))
    assert pa.compute.sum(table["count"]).as_py() == len(work)
    assert pa.compute.sum(table["total_ns"]).as_py() == int((work.end - work.start).sum())


def test_figures_of_50_000_activities_take_little_time() -> None:
    rng = np.random.default_rng(0)
    count = 50_000
    start = np.cumsum(rng.integers(1, 40_000, count))
    launch = start - rng.integers(0, 3_000_000, count)
    work = DeviceWork(
        start=start,
        end=start + rng.integers(1_000, 60_000, count),
        process=np.full(count, 100),
        device=np.zeros(count, np.int64),
        stream=rng.integers(7, 10, count),
        kind=rng.integers(0, 3, count).astype(np.int8),
        name=rng.integers(0, 300, count),
        names=[f"kernel_{number}" for number in range(300)],
        correlation=np.arange(count),
        launch_start=launch,
        launch_end=launch + 5_000,
        launched=np.ones(count, np.bool_),
    )
    edges = np.linspace(launch.min(), launch.max(), 21).astype(np.int64)
    steps = Steps(np.arange(20), edges[:-1], edges[1:])
    with cpu_seconds(0.5):
        timeline.breakdown(work)
        rank.rank_columns(work)
        timeline.iteration_rows(work, steps)
        rank.kernel_rows(work, steps)
        rank.idle_rows(work)


def test_a_collective_that_queues_is_ready_when_what_it_needs_has_ended_and_none_before_the_one_that_it_queues_behind() -> None:
    """In an order of their own, the sums of gradients of two ranks waited for each other without end."""
    us = 1000

    def reduce(start: int, end: int, called: int) -> Row:
        return kernel(start * us, end * us, (called * us, called * us + us), kind=COMMUNICATION, stream=24)

    # Two kernels compute up to 100 and 250 us. The second sum is ready at 250 us, and begins behind the first one. The fourth queues too, and
    # needs only what ended at 250 us, but the third one comes late for another reason.
    sums = [reduce(120, 400, 12), reduce(401, 500, 22), reduce(700, 800, 32), reduce(801, 900, 42)]
    work = work_of(kernel(0, 100 * us, (10 * us, 11 * us)), kernel(150 * us, 250 * us, (20 * us, 21 * us)), *sums)
    start, end, stream = (np.array([row[place] for row in sums], np.int64) for place in range(3))
    ready = rank._ready(work, start, end, np.zeros(4, np.int64), stream)
    assert ready.tolist() == [120 * us, 250 * us, 700 * us, 700 * us]
    # The GPU computes last up to 250 us, before the end of each.
    assert rank._held(work, start, end, np.zeros(4, np.int64)).tolist() == [150 * us, 250 * us, 550 * us, 650 * us]
