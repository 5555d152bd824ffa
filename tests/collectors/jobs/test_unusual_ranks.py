"""Ranks whose profiles have unusual numbers: of steps, of threads, of streams on several GPUs. Times are in us, and counted by hand."""

import json
from pathlib import Path

import pytest

from tests.collectors.kineto.made_events import Event, document, host, kernel, launch
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.core.critical_path.spans import Ranks
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.ranks import chart as ranks_chart
from warpladder.dashboard.views.timeline import collectives
from warpladder.data import store

_US = 1_000


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def job(folder: Path, *ranks: list[Event], notes: Notes | None = None) -> RunData:
    """The job of a trace a rank."""
    (folder / "in").mkdir()
    for rank, events in enumerate(ranks):
        (folder / "in" / f"rank-{rank}.json").write_text(json.dumps(document(events)))
    run_id = import_job(Request(profiles(str(folder / "in")), "it"), folder, notes or Notes())
    return load(store.open_run(folder / run_id))


def step(text: str, start: float, lasts: float) -> Event:
    return host(text, start, lasts, "user_annotation")


def shares(data: RunData, iteration: int | None) -> dict[str, int]:
    """The time of each kind and name on the path, in us."""
    segments = paths.critical_path(data.job, iteration).segments
    times = (segments["end_ns"] - segments["start_ns"]) // _US
    return {
        f"{kind} {name}".strip(): int(own.sum()) for (kind, name), own in times.groupby([segments["kind"], segments["name"]])
    }


def test_a_step_lasts_from_the_end_of_the_one_before_it_also_where_numbers_have_gaps(tmp_path: Path) -> None:
    """Steps 0, 10 and 20 of 100 us, each with a kernel of 60 us that ends 80 us after its start."""
    events = []
    for place, number in enumerate((0, 10, 20)):
        begin = 100 * place
        events += [step(f"step {number}", begin, 100), launch(begin + 1, place + 1), kernel(begin + 20, 60, place + 1)]
    frame = paths.iterations(job(tmp_path, events).job)
    assert frame["iteration"].tolist() == [0, 10, 20]
    assert (frame["duration_ns"] // _US).tolist() == [80, 100, 100]


@pytest.mark.slow
def test_numbers_of_threads_may_be_negative_and_equal_to_that_of_no_thread(tmp_path: Path) -> None:
    """Thread -1 works for 150 us in an operator before each launch; thread 0 has an operator of its own, which launches nothing."""
    events: list[Event] = []
    for number in range(4):
        begin = 200 * number
        events += [step(f"step {number}", begin, 200), host("aten::wait", begin, 190, tid=0)]
        events += [
            host("aten::mm", begin + 10, 155, tid=-1),
            launch(begin + 160, number + 1, tid=-1),
            kernel(begin + 170, 20, number + 1),
        ]
    found = shares(job(tmp_path, events), 2)
    # From the end of the kernel before, 10 us before the step, to that of its own: 200 us.
    assert found == {"host": 20, "host aten::mm": 150, "host cudaLaunchKernel": 5, "launch gemm": 5, "compute gemm": 20}


def communication(start: float, end: float, correlation: int, device: int, sequence: int) -> Event:
    event = kernel(start, end - start, correlation, device=device, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    args = {"Collective name": "allreduce", "Process Group Name": str(device), "Seq": sequence, "In msg nelems": 100}
    return event | {"args": event["args"] | args | {"dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]"}}


def two_gpus(late: float) -> list[Event]:
    """A rank on two GPUs, stream 7 on both. All-reduces of GPU 1, in a group of its own, lie within those of GPU 0."""
    events: list[Event] = []
    for number in range(12):
        begin = 1_000 * number
        for device, start, end in ((0, 100 + late, 500), (1, 200 + late, 400)):
            events += [launch(begin + 10 * device, 2 * number + device + 1)]
            events += [communication(begin + start, begin + end, 2 * number + device + 1, device, number)]
    return events


@pytest.mark.slow
def test_collectives_are_those_of_a_gpu_where_two_have_equal_numbers_of_streams(tmp_path: Path) -> None:
    data = job(tmp_path, two_gpus(0), two_gpus(50))
    rows = data.job.frame("collectives", "group", "device", "match")
    assert set(zip(rows["group"], rows["device"], strict=True)) == {("0", 0), ("1", 1)}
    assert rows["match"].notna().all() and rows["match"].nunique() == 24
    work = Ranks(data.job).of(1).work
    matched = [
        (work.streams[stream][1], match) for stream, match in zip(work.stream.tolist(), work.match.tolist(), strict=True)
    ]
    assert len({match for _, match in matched}) == 24 and {match for _, match in matched} == set(rows["match"])
    linked = collectives.matches(load(store.ranks_of(store.open_run(tmp_path / str(data.info["run_id"])), [0, 1])))
    assert sorted(linked.tolist()) == sorted(2 * list(set(rows["match"])))


def test_streams_stand_for_groups_gpu_by_gpu_where_arguments_are_missing(tmp_path: Path) -> None:
    events: list[Event] = []
    for number in range(3):
        for device in (0, 1):
            events += [launch(100 * number + device, 2 * number + device + 1)]
            events += [
                kernel(100 * number + 10 * device + 20, 30, 2 * number + device + 1, device=device, name="ncclKernel_AllReduce")
            ]
    rows = job(tmp_path, events).job.frame("collectives", "group", "number").sort_values(["group", "number"])
    assert rows["group"].tolist() == 3 * ["stream 7 of GPU 0"] + 3 * ["stream 7 of GPU 1"]
    assert rows["number"].tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.thorough
def test_ranks_without_device_work_have_charts_without_values(tmp_path: Path) -> None:
    data = job(tmp_path, [step("step 0", 0, 90), step("step 1", 100, 90), host("aten::mm", 10, 50)])
    assert [chart.figure for chart in ranks_chart.charts(data, Look("light", {}, "", on_gpu=True))]


@pytest.mark.slow
def test_step_numbers_that_start_again_are_told(tmp_path: Path) -> None:
    """Two epochs of steps 0 and 1, and a validation of step 0."""
    notes, events = Notes(), []
    for place, number in enumerate((0, 1, 0, 1, 0)):
        events += [
            step(f"step_{number}", 100 * place, 90),
            launch(100 * place + 1, place + 1),
            kernel(100 * place + 10, 60, place + 1),
        ]
    data = job(tmp_path, events, events, notes=notes)
    told = [row["text"] for row in notes.rows if row["severity"] == "warning" and "start again" in row["text"]]
    assert [text.split(",")[0] for text in told] == ["the numbers of the steps start again 2 times"]
    assert data.job.frame("iterations", "iteration")["iteration"].nunique() == 5
