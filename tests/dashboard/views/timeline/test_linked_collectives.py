"""Collectives in the Timeline of several ranks: the kernels that are linked, their lanes, and who came last."""

import numpy as np
import pytest

from tests.collectors.jobs.made_traces import Job
from tests.dashboard.test_app import Open, open_app, words
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.trace.lanes import build
from warpladder.dashboard.views.timeline import collectives, selection
from warpladder.dashboard.views.timeline.selection import ChosenEvent
from warpladder.data import store

__all__ = ["open_app"]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    folder = tmp_path_factory.mktemp("job")
    Job(ranks=4, slow={1: 1.3}, offset_us={2: 70.0}).write(folder / "job")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))
        return store.open_run(
            folder / "runs" / import_job(Request(profiles(str(folder / "job")), "job"), folder / "runs", Notes())
        )


@pytest.fixture(scope="module")
def data(job: store.Run) -> RunData:
    return load(store.ranks_of(job, [0, 1, 2]))


@pytest.mark.slow
def test_each_communication_kernel_has_its_collective_and_no_other_has_one(data: RunData) -> None:
    matches = collectives.matches(data)
    communicates = np.array(["nccl" in name for name in np.asarray(data.traces.texts("kernels", "full_name"))])
    assert ((matches >= 0) == communicates).all()
    rows = np.flatnonzero(matches == matches[communicates][0])
    assert data.traces.numbers("kernels", "process")[rows].tolist() == [0, 1, 2], "one kernel on each rank that is shown"
    assert np.ptp(data.traces.numbers("kernels", "end_ns")[rows]) < 2_000, "on the clock of the job, they end together"


def test_the_slow_rank_came_last_and_waited_for_nobody(data: RunData) -> None:
    parts = collectives.parts(data, 0)
    assert sorted(parts["rank"]) == [0, 1, 2, 3], "also a rank that is not shown"
    assert (parts["rank"][0], parts["wait_ns"][0]) == (1, 0)
    assert (parts["after_ns"] + parts["wait_ns"]).nunique() == 1
    assert f"rank 1 came last, {parts['after_ns'][0] / 1000:.1f} µs after rank" in collectives.sentence(parts, 0)


def test_the_lanes_of_a_collective_are_shown_and_linked(data: RunData) -> None:
    traces, matches = data.traces, collectives.matches(data)
    lanes = build(traces)
    assert lanes and lanes.of_ranks
    linked = np.flatnonzero(matches == 0).tolist()
    chosen = ChosenEvent("kernels", linked[0])
    without = [lane for lane in lanes.lanes if lane.kind == "device"][:1]
    kernels = [ChosenEvent("kernels", row) for row in linked]
    shown = selection.with_chosen(traces, lanes, without, chosen, kernels)
    span = selection.span_of(traces, lanes, shown, chosen, kernels)
    assert span and len({each["lane"] for each in span["links"]}) == 3
    assert {"lane": span["lane"], "span": span["span"]} in span["links"]
    assert selection.belongs(traces, chosen, linked).device[linked].all()


def test_of_many_ranks_each_has_its_two_busiest_streams(job: store.Run) -> None:
    lanes = build(load(store.ranks_of(job, [0, 1, 2, 3])).traces)
    assert lanes
    streams = {lane.owner[:3] for lane in lanes.busiest() if lane.kind == "device"}
    assert {owner[0] for owner in streams} == {0, 1, 2, 3} and lanes.processes == 4


def test_a_trace_of_one_process_has_no_links(job: store.Run) -> None:
    assert not len(collectives.matches(load(store.open_rank(job, 1))))


@pytest.mark.thorough
def test_the_page_names_the_rank_that_came_last(open_app: Open, job: store.Run, data: RunData) -> None:
    row = int(np.flatnonzero(collectives.matches(data) == 0)[0])
    app = open_app(job.path.parent, "timeline", run=job.run_id, ranks="0,1,2", chosen=f"kernels-{row}")
    assert not app.exception and "of 4 ranks of group 0: rank 1 came last" in words(app)
