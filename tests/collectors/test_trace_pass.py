"""`record --trace`: times without a tracer, and a trace of a further pass in the same run. The tool here is a script."""

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.collectors.core.test_under_tool import fake_nsys
from tests.commands.test_exit_codes import bench
from warpladder import recording
from warpladder.__main__ import command
from warpladder.collectors import choice, trace_pass
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.plan import PlanError, Request
from warpladder.collectors.nsight_systems import record as nsight_systems
from warpladder.collectors.nsight_systems import run as nsys_run
from warpladder.data import store
from warpladder.data.names import Source

pytestmark = pytest.mark.slow

app = command()


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, *, writes: bool) -> Result:
    """Record with a trace, the host's clock in place of CUDA events."""
    fake_nsys(folder, monkeypatch, writes=writes)
    monkeypatch.setattr(nsight_systems, "NSYS", nsys_run.NSYS)
    monkeypatch.setattr(recording, "UNDER_TOOL", {"nsight_systems": partial(nsight_systems.record, inside="host_clock")})
    monkeypatch.setattr(choice, "problem_of", lambda name: None)
    monkeypatch.setattr(trace_pass, "TIMED_BY", "host_clock")
    options = ("--collector", "host_clock", "--max-rounds", "6", "--processes", "1", "--trace", "--label", "mine")
    return CliRunner().invoke(app, ["record", str(bench(folder)), *options, "--data-dir", str(folder / "runs")])


def test_a_trace_is_of_a_further_pass_and_the_times_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = record(tmp_path, monkeypatch, writes=True)
    assert done.exit_code == 0, done.output
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert run.run_id == done.stdout.splitlines()[-1]
    assert (run.info["collector"], run.info["label"]) == ("host_clock", "mine")
    assert run.table("samples")["round"].max() == 5, "the rounds are those of the first pass"
    assert len(run.table("kernels")) == 20
    found = run.table("diagnostics")
    *_, told = found.loc[found["source"] == Source.TRACING, "text"]
    assert told == (
        "the trace is of a further pass by nsight_systems 2025.3.1; the times are those of host_clock, which no tracer disturbed"
    )
    assert not found["source"].isin([Source.LOST]).any()


@pytest.mark.thorough
def test_a_trace_that_fails_costs_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = record(tmp_path, monkeypatch, writes=False)
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert done.exit_code == 2, done.output
    last = done.stderr.splitlines()[-1]
    assert last.startswith("--trace: the pass that traces failed: nsys wrote no report")
    assert last.endswith(f"the times are kept as run {run.run_id}")
    assert len(run.table("samples")) and not len(run.table("kernels"))


@pytest.mark.parametrize(
    ("collector", "gpus", "why"),
    [
        ("cupti", 1, "--trace: cupti traces already"),
        ("host_clock", 1, "--trace: host_clock times no work of a GPU"),
        ("cuda_events", 2, "--trace: a tracer sees one process; with --gpus 2"),
    ],
)
def test_a_trace_is_refused_where_there_is_nothing_to_trace(collector: str, gpus: int, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        trace_pass.tracer_for(collector, gpus)


def test_the_tracer_is_the_first_that_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: dict[str, str] = {}
    monkeypatch.setattr(choice, "problem_of", problems.get)
    assert trace_pass.tracer_for("cuda_events", 1) == "nsight_systems"
    problems["nsight_systems"] = "no nsys"
    assert trace_pass.tracer_for("cuda_events", 1) == "cupti"
    problems["cupti"] = "not installed"
    with pytest.raises(CollectorError, match="--trace: nsight_systems: no nsys; cupti: not installed"):
        trace_pass.tracer_for("cuda_events", 1)


def test_the_further_pass_takes_few_rounds() -> None:
    asked = Request(names=["conv2d"], max_rounds=50, processes=3, seconds=2.0)
    further = trace_pass.request_of(asked)
    assert (further.max_rounds, further.processes, further.names) == (3, 1, ["conv2d"])
    assert trace_pass.request_of(Request(max_rounds=2)).max_rounds == 2
