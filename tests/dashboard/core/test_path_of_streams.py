"""The critical path of imported traces whose streams, events and threads are simulated, so that the true path and gains are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.synthetic.made_streams import HOME, Block, Host, Launch, Operation, Process, Stream, Wait
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.dashboard.core.critical_path import CriticalPath, critical_path
from warpladder.dashboard.core.traces import Job
from warpladder.data import store

SIDE, COPY = (0, 13), (0, 21)
STEP = 2
#: How far a gain may be off, in us: a launch, an event and a neighbour have other latencies, and what is waited for may change between them.
LATENCY = 9.0


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks are imported in this process, which has the modules already."""
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def found(made: Process, folder: Path) -> CriticalPath:
    run_id = import_job(Request(profiles(str(made.write(folder / "in"))), ""), folder / "runs", Notes())
    return critical_path(Job(store.open_run(folder / "runs" / run_id)), STEP)


def kernels(path: CriticalPath) -> list[str]:
    """The kernels on the path in their order."""
    return [str(name) for name in path.segments.loc[path.segments["kind"] == "compute", "name"]]


def checked(made: Process, folder: Path) -> CriticalPath:
    """The path, which covers the step, has the kernels of the simulation, and gains what the simulation gains with faster kernels."""
    path = found(made, folder)
    start, end = path.segments["start_ns"].to_numpy(), path.segments["end_ns"].to_numpy()
    assert (start[1:] == end[:-1]).all() and (start < end).all()
    assert (end[-1] - start[0]) / 1e3 == pytest.approx(made.duration(STEP), abs=0.002)
    assert kernels(path) == made.path(STEP)
    for name, gain in path.kernels.set_index("name")["gain_ns"].to_dict().items():
        truth = made.duration(STEP) - made.with_faster(str(name)).duration(STEP)
        assert gain / 1e3 == pytest.approx(truth, abs=LATENCY), name
    return path


#: `side` ends just before `join` starts, which waits for `copied` alone.
JOIN: list[Operation] = [
    Host(60),
    Launch("first", 100),
    Wait(SIDE, HOME),
    Wait(COPY, HOME),
    Launch("side", 180.5, SIDE),
    Launch("copied", 180, COPY),
    Wait(HOME, COPY),
    Launch("join", 200),
    Block("device"),
]


@pytest.mark.slow
def test_the_path_goes_to_the_stream_whose_event_the_profile_names(tmp_path: Path) -> None:
    path = checked(Process(JOIN), tmp_path)
    assert kernels(path) == ["first", "copied", "join"] and not path.segments["inferred"].any()
    assert path.kernels["inferred"].sum() == 0


@pytest.mark.slow
def test_without_the_names_of_events_the_path_goes_to_what_ended_last_and_says_that_it_is_inferred(tmp_path: Path) -> None:
    path = found(Process(JOIN, names=False), tmp_path)
    assert kernels(path) == ["first", "side", "join"]
    inferred = path.segments[path.segments["inferred"]]
    assert inferred["name"].tolist() == ["first", "side"], "what `side` and `join` waited for"
    assert path.kernels.set_index("name")["inferred"].to_dict() == {"first": 1, "side": 1, "join": 0}


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "known"), [("event", True), ("stream", True), ("event", False), ("stream", False)])
def test_the_host_waits_for_the_stream_or_event_that_the_profile_names(kind: str, known: bool, tmp_path: Path) -> None:
    """`side` ends 2 us after what the host waits for, and before the call returns."""
    program: list[Operation] = [
        Launch("side", 312, SIDE),
        Launch("waited for", 300),
        Block(kind),
        Host(20),
        Launch("next", 200),
        Block("device"),
        Host(20),
    ]
    path = found(Process(program, names=known), tmp_path)
    assert kernels(path) == (["waited for", "next"] if known else ["side", "next"])
    assert path.segments["inferred"].sum() == (0 if known else 1)


@pytest.mark.slow
def test_an_event_that_is_recorded_behind_a_wait_waits_too(tmp_path: Path) -> None:
    """The event of stream 21 waits for `side`: no work of stream 21 lies between."""
    program: list[Operation] = [Host(60), Launch("first", 50), Wait(SIDE, HOME), Launch("side", 200, SIDE), Wait(COPY, SIDE), Wait(HOME, COPY), Launch("join", 80), Block("device")]  # fmt: skip
    assert kernels(checked(Process(program), tmp_path)) == ["first", "side", "join"]


@pytest.mark.slow
def test_an_event_that_was_recorded_before_later_work_does_not_wait_for_that_work(tmp_path: Path) -> None:
    program: list[Operation] = [Host(60), Launch("first", 50), Launch("side", 80, SIDE), Wait(HOME, SIDE), Launch("later", 60, SIDE), Launch("join", 80), Block("device")]  # fmt: skip
    assert kernels(checked(Process(program), tmp_path)) == ["side", "join"]


def random_program(
    rng: np.random.Generator, streams: tuple[Stream, ...], blocks: tuple[str, ...], without_waits: Stream | None = None
) -> list[Operation]:
    program: list[Operation] = [Host(30)]
    for _ in range(24):
        stream, other = (streams[place] for place in rng.integers(len(streams), size=2))
        kind = rng.integers(10)
        if kind < 6:
            program.append(Launch(f"kernel {rng.integers(5)}", round(rng.uniform(20, 150), 3), stream))
        elif kind < 8 and stream != other:
            if without_waits not in (stream, other):
                program.append(Wait(stream, other))
        elif kind == 8:
            program.append(Host(round(rng.uniform(5, 120), 3)))
        else:
            program.append(Block(str(rng.choice(blocks)), stream))
    return [*program, Launch("last", 40.0), Block(blocks[0])]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_the_path_and_the_gains_of_random_programs_are_those_of_the_simulation_whatever_disturbs_them(
    seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    made = Process(random_program(rng, (HOME, HOME, SIDE, COPY), ("device", "stream", "event")))
    path = checked(made, tmp_path / "alone")
    checked(replace(made, early=2.0), tmp_path / "early")
    others = tuple(sorted(round(rng.uniform(0, 0.7 * made.duration(STEP)), 3) for _ in range(15)))
    for name, disturbed in {"queries": replace(made, queries=True), "a thread": replace(made, others=others)}.items():
        again = checked(disturbed, tmp_path / name)
        assert kernels(again) == kernels(path), name
        assert not again.segments["inferred"].any(), name


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_streams_of_one_number_on_several_devices_are_several_streams(seed: int, tmp_path: Path) -> None:
    paths: list[list[str]] = []
    for third in (COPY, (1, 7)):
        program = random_program(np.random.default_rng(seed), (HOME, SIDE, third), ("stream", "event"), third)
        paths.append(kernels(checked(Process(program), tmp_path / str(len(paths)))))
    assert paths[0] == paths[1]
