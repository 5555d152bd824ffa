"""Measuring processes that are forked after the imports: what they share, what they do not, and what is left of them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpladder.collectors.core.children import ChildLost, ChildProcess, Forks, Zygote
from warpladder.collectors.core.messages import Measure
from warpladder.collectors.core.plan import Request, WorkloadRef, make_plan
from warpladder.collectors.core.rounds import Limits, Turn

FILE = """
import os
import numpy as np
import warpladder

{first}
imported = os.getpid()
bench = warpladder.Benchmark("pids", n=[8])

@bench.inputs
def inputs(n, rng):
    return rng.random(n, np.float32)

@bench.variant(baseline=True)
@bench.reference
def twice(x):
    {body}
    return 2 * x
"""
TURN = Turn(0, 0, Limits(min_rounds=1, max_rounds=1, seconds=1.0))


@pytest.fixture
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    first, body = getattr(request, "param", ("", "pass"))
    path = tmp_path / "pids.py"
    path.write_text(FILE.format(first=first, body=body))
    return path


@pytest.fixture
def zygote(file: Path) -> Iterator[Zygote]:
    started = Zygote("host_clock", (), [WorkloadRef("pids", file)], ["-c"])
    yield started
    started.end()


def forked(zygote: Zygote) -> ChildProcess:
    return ChildProcess("host_clock", zygote=zygote)


def measured(child: ChildProcess, file: Path) -> list[str]:
    """The statuses of the file's one case."""
    plan = make_plan(Request(files=[file]))
    statuses: list[str] = []

    def take(answer: object) -> bool:
        if getattr(answer, "table", "") == "results":
            statuses.extend(row["status"] for row in answer.rows)  # type: ignore[attr-defined]
        return type(answer).__name__ == "Captured"

    child.ask(Measure(plan.jobs[0], TURN), plan.jobs[0].cells, 60.0, take)
    return statuses


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", [("", "assert 'import fork' in open('/proc/self/cmdline').read()")], indirect=True, ids=["copied"]
)
def test_processes_are_forked_one_after_another_and_measure(zygote: Zygote, file: Path) -> None:
    for _ in range(2):
        child = forked(zygote)
        assert measured(child, file) == ["ok"]
        child.dismiss()
        assert child._process.wait(10) and child._process.returncode == 0
        child.stop()


@pytest.mark.slow
@pytest.mark.parametrize("file", [("", "os._exit(7)"), ("", "os.kill(os.getpid(), 11)")], indirect=True, ids=["exit", "signal"])
def test_the_exit_code_of_a_fork_reaches_the_recorder(zygote: Zygote, file: Path) -> None:
    child = forked(zygote)
    with pytest.raises(ChildLost, match=r"exit code 7|signal 11"):
        measured(child, file)
    child.stop()
    again = forked(zygote)  # the zygote is well
    with pytest.raises(ChildLost):
        measured(again, file)
    again.stop()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file",
    [("import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "pass")],
    indirect=True,
    ids=["threads"],
)
def test_a_process_with_threads_is_not_copied_and_its_workloads_are_measured_all_the_same(zygote: Zygote, file: Path) -> None:
    child = forked(zygote)
    assert measured(child, file) == ["ok"]
    child.stop()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "file",
    [
        (
            "",
            "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import os, time; os.setsid(); time.sleep(99)', 'MARK'])",
        )
    ],
    indirect=True,
    ids=["descendants"],
)
def test_the_end_of_a_fork_ends_its_descendants_and_not_the_zygote(zygote: Zygote, file: Path) -> None:
    def left() -> list[str]:
        return subprocess.run(["pgrep", "-f", "setsid.*MARK$"], capture_output=True, text=True, check=False).stdout.split()

    before = left()
    child = forked(zygote)
    measured(child, file)
    assert len(left()) > len(before)
    child.stop()
    assert left() == before
    assert zygote._process.process.poll() is None


@pytest.mark.slow
def test_a_zygote_that_died_is_replaced_by_processes_of_their_own(file: Path) -> None:
    with Forks("host_clock", [WorkloadRef("pids", file)], ["-c"]) as forks:
        first = forks(())
        assert isinstance(first, ChildProcess)
        assert forks._zygote
        forks._zygote.end()
        with pytest.raises(ChildLost):
            measured(first, file)
        first.stop()
        second = forks(())
        assert isinstance(second, ChildProcess)
        assert measured(second, file) == ["ok"]
        second.stop()
