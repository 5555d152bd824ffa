"""Every page of the dashboard on comparisons of programs: timed alone, and traced."""

import sys
from pathlib import Path

import pytest

from tests.collectors.programs.recording import compared, fake_nsys, script
from tests.dashboard.test_app import PAGES, Open, open_app, words
from warpladder.collectors.programs.profiled import NsightSystems
from warpladder.dashboard.compare.levels import medians
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="programs are timed on Linux"),
]


def test_the_sources_of_programs_do_not_tell_what_is_unchanged(runs: dict[str, str]) -> None:
    run = store.find_run(runs["timed"], [Path(runs["folder"])])
    (workload,) = set(run.table("cases")["workload"])
    of_run = medians(run, workload)
    assert of_run.of_programs and any(of_run.sources.values()) and not of_run.tells_unchanged


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name -> id of a run; the data folder is under `folder`."""
    folder = tmp_path_factory.mktemp("programs")
    slow, fast = script(folder / "solver_v1 | é", "sleep 0.03"), script(folder / "solver_v2", "exit 0")
    with pytest.MonkeyPatch.context() as patch:
        fake_nsys(folder, patch)
        traced = compared(folder, f"{slow} 2048", f"{fast} 2048", profiler=NsightSystems(), runs=6)
    timed = compared(folder, f"{slow} 64", f"{fast} 64", "false 64", runs=6)
    return {"folder": str(folder / "runs"), "traced": traced.run_id, "timed": timed.run_id}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("run", ["traced", "timed"])
def test_every_page_opens(open_app: Open, runs: dict[str, str], page: str, run: str) -> None:
    app = open_app(Path(runs["folder"]), page, run=runs[run])
    assert not app.error
    assert not app.exception


def test_the_ladder_names_the_faster_program_and_the_pages_of_traces_say_that_there_is_none(
    open_app: Open, runs: dict[str, str]
) -> None:
    folder, run = Path(runs["folder"]), runs["timed"]
    assert "solver_v2 takes" in words(open_app(folder, "ladder", run=run))
    for page in ("timeline", "transfers", "calls"):
        assert "This run has no trace" in words(open_app(folder, page, run=run))


def test_transfers_of_traced_programs_sum_their_copies(open_app: Open, runs: dict[str, str]) -> None:
    app = open_app(Path(runs["folder"]), "transfers", run=runs["traced"])
    assert "Copies take" in words(app)
    assert any("copies_ns" in frame.value or "speedup_with_copies" in frame.value for frame in app.main.dataframe)
