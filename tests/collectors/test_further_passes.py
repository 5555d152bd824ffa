"""`record --trace` and `--counters`: times without a tool, and further passes in the same run. The tool here is a script."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from tests.collectors.core.test_under_tool import fake_nsys
from tests.commands.test_exit_codes import bench
from tests.synthetic import made_runs, made_sweeps
from warpladder import recording
from warpladder.__main__ import command
from warpladder.collectors import choice, further_passes
from warpladder.collectors.core.checked import Checks
from warpladder.collectors.core.code_rows import launch_rows
from warpladder.collectors.core.environment import CollectorError, Tool
from warpladder.collectors.core.plan import PlanError, Request, make_plan, write_cells
from warpladder.collectors.cuda import assembly
from warpladder.collectors.inside import stress
from warpladder.collectors.nsight_systems import record as nsight_systems
from warpladder.collectors.sanitizer import record as sanitizer
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.run_data import load
from warpladder.data import store
from warpladder.data.names import Source, diagnostic_row

pytestmark = pytest.mark.slow

app = command()


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, *, writes: bool) -> Result:
    """Record with a trace, the host's clock in place of CUDA events."""
    fake_nsys(folder, monkeypatch, writes=writes)
    monkeypatch.setattr(recording, "UNDER_TOOL", {"nsight_systems": ("host_clock", nsight_systems.record)})
    monkeypatch.setattr(choice, "problem_of", lambda name: None)
    monkeypatch.setattr(further_passes, "TIMED_BY", "host_clock")
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
    ("option", "checks", "source"),
    [("--sanitize", sanitizer.Pass, Source.SANITIZER), ("--stress", stress.Pass, Source.STRESS)],
)
def test_a_variant_with_a_finding_is_never_best(
    option: str, checks: type[Checks], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = diagnostic_row("error", source, "a bad write", {"workload": "sums", "variant": "good"})
    monkeypatch.setattr(checks, "rows", lambda self: [finding])
    monkeypatch.setattr(further_passes, "SANITIZER", Tool("true", "coreutils", ()))
    monkeypatch.setattr(Tool, "problem", None)
    monkeypatch.setattr(assembly, "problem", lambda: None)
    monkeypatch.setattr(further_passes, "TIMED_BY", "host_clock")
    monkeypatch.setattr(further_passes, "check_kinds", lambda further, plan: None)
    options = ("--collector", "host_clock", "--max-rounds", "6", "--processes", "1", option)
    done = CliRunner().invoke(app, ["record", str(bench(tmp_path)), *options, "--data-dir", str(tmp_path / "runs")])
    assert done.exit_code == 1, done.output
    assert f"error: sums/good {source}: a bad write" in done.stderr.splitlines()
    *_, last = done.stderr.splitlines()
    assert last.startswith("not right: ") and last.endswith(f": {source}: a bad write")
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert set(cells(load(run))["flags"]) == {(source,)}


def test_counters_of_nothing_cost_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "problem_of", lambda name: None)
    monkeypatch.setattr(further_passes, "TIMED_BY", "host_clock")
    options = ("--collector", "host_clock", "--max-rounds", "6", "--processes", "1", "--counters")
    done = CliRunner().invoke(app, ["record", str(bench(tmp_path)), *options, "--data-dir", str(tmp_path / "runs")])
    ((run,), _) = store.list_runs([tmp_path / "runs"])
    assert done.exit_code == 2, done.output
    assert done.stderr.splitlines()[-1] == (
        "--counters: the pass that reads counters failed: no cell of a GPU was timed; the run has the reason of each cell; the times are "
        f"kept as run {run.run_id}"
    )
    assert len(run.table("samples"))


@pytest.mark.parametrize(
    ("collector", "gpus", "why"),
    [
        ("cupti", 1, "--trace: cupti traces already"),
        ("host_clock", 1, "--trace: host_clock times no work of a GPU"),
        ("cuda_events", 2, "--trace: the tool sees one process; with --gpus 2"),
    ],
)
def test_a_trace_is_refused_where_there_is_nothing_to_trace(collector: str, gpus: int, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        further_passes.trace_by(collector, gpus)


def test_the_tracer_is_the_first_that_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: dict[str, str] = {}
    monkeypatch.setattr(choice, "problem_of", problems.get)
    assert further_passes.trace_by("cuda_events", 1).collector == "nsight_systems"
    problems["nsight_systems"] = "no nsys"
    assert further_passes.trace_by("cuda_events", 1).collector == "cupti"
    problems["cupti"] = "not installed"
    with pytest.raises(CollectorError, match="--trace: nsight_systems: no nsys; cupti: not installed"):
        further_passes.trace_by("cuda_events", 1)


def test_the_further_pass_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "problem_of", lambda name: None)
    trace = further_passes.trace_by("cuda_events", 1)
    asked = Request(names=["conv2d"], max_rounds=50, processes=3, seconds=2.0)
    further = further_passes.request_of(trace, asked, Path())
    assert (further.max_rounds, further.processes, further.names) == (3, 1, ["conv2d"])
    assert further_passes.request_of(trace, Request(max_rounds=2), Path()).max_rounds == 2


@pytest.mark.parametrize(
    ("collector", "gpus", "why"),
    [
        ("nsight_compute", 1, "--counters: nsight_compute reads counters already"),
        ("host_clock", 1, "--counters: host_clock times no work of a GPU that could be profiled"),
        ("cuda_events", 4, "--counters: the tool sees one process; with --gpus 4"),
    ],
)
def test_counters_are_refused_where_nothing_can_be_profiled(collector: str, gpus: int, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        further_passes.counters_by(collector, gpus)


def test_counters_are_of_the_fastest_config_of_each_variant(tmp_path: Path) -> None:
    """In the made run, `v05_swizzled` has two configs; each case has its own fastest one."""
    run = store.open_run(made_runs.write(tmp_path))
    cells, told = further_passes.counted_cells(run)
    assert len({(cell.workload, cell.variant, cell.case) for cell in cells}) == len(cells)
    samples = run.table("samples").query("scope == 'device' and cache == 'cold' and gpus <= 1")
    medians = samples.groupby(["workload", "variant", "case", "config"])["duration_ns"].median()
    for cell in cells:
        of_variant = medians.loc[cell.workload, cell.variant, cell.case]
        assert of_variant[cell.config] == of_variant.min()
    seconds = 15 + 3 * len(cells)
    about = f"at least {seconds:.0f} s: the kernels of libraries are not counted yet"
    assert told == f"cells whose counters are read: {len(cells)}, {about}"


def test_cells_without_counters_are_named_with_the_reason(tmp_path: Path) -> None:
    cell = {"workload": "sums", "config": "", "case": "n=10"}
    results = [
        {**cell, "variant": name, "detail": why} for name, why in (("a", ""), ("b", "interrupted"), ("c", "interrupted"))
    ]
    tables = {"counters": [{**cell, "variant": "a"}], "results": results}
    of = further_passes.FurtherPass("--counters", "reads counters", choice.COUNTER, ("counters",), {Source.NSIGHT_COMPUTE})
    (found,) = further_passes.lacking(of, SimpleNamespace(records=tables.__getitem__))  # type: ignore[arg-type]
    assert (found["source"], found["text"]) == ("nsight_compute", "no counters of sums/b/n=10 and 1 more: interrupted")


def test_cells_of_more_than_32_different_launches_are_left_out(tmp_path: Path) -> None:
    path = made_runs.write(tmp_path)
    (cell, *others), _ = further_passes.counted_cells(store.open_run(path))
    sizes = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
    launch = {**cell.key, "launch_index": 0, "kernel": "k", "code": None, **sizes, "dynamic_shared_bytes": 0}
    alike = [{**launch, **others[0].key, "launch_index": place} for place in range(99)]
    different = [{**launch, "launch_index": place, "grid_x": place + 1} for place in range(33)]
    made_sweeps.add(path, "cell_launches", [*launch_rows(different), *launch_rows(alike)])
    cells, about = further_passes.counted_cells(store.open_run(path))
    assert cells == others
    assert about.endswith("; left out for more than 32 launches: 1")


def test_a_request_of_some_cells_plans_these_alone(tmp_path: Path) -> None:
    everything = make_plan(Request(names=["conv2d"]))
    chosen = [job.cells[1] for job in everything.jobs]
    write_cells(tmp_path / "cells.json", chosen)
    planned = make_plan(Request(names=["conv2d"], cells=tmp_path / "cells.json"))
    assert [cell for job in planned.jobs for cell in job.cells] == chosen
    (tmp_path / "cells.json").write_text("{")
    with pytest.raises(PlanError, match="holds no list of cells"):
        make_plan(Request(names=["conv2d"], cells=tmp_path / "cells.json"))
