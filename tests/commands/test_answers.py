"""The last lines of a recording: findings of one kind in one line, and the commands that print the rest."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from rich.progress import Progress, ProgressSample

from tests.collectors.core.recordings import QUICK_CASES
from tests.synthetic import made_runs
from warpladder import progress, recording
from warpladder.__main__ import command
from warpladder.collectors.core.environment import measure_all
from warpladder.collectors.core.plan import Request
from warpladder.commands import doctor, ending
from warpladder.dashboard.core import run_data
from warpladder.dashboard.text import summary
from warpladder.data import store
from warpladder.data.names import Source, diagnostic_row

CASES = [f"n={64 * size}" for size in range(1, 18)]
NOT_WAITED = "the operation clock was stopped while the device was still at work: the call was never synchronised"
UNREACHED = "2 of 20 cases not reached within 60 s of measuring; to measure all: warpladder record bench.py --no-limit"


def cell(variant: str, case: str) -> dict[str, str]:
    return {"workload": "sums", "variant": variant, "config": "", "case": case}


def first_recording(folder: Path, caught: int) -> Path:
    """Of a GPU: a specimen that is caught in some of 17 cells, a call that waits in three, and a peer that fails in two."""
    ok = [cell(variant, case) for variant in ("v01_good", "unsynchronized") for case in CASES]
    results = [made_runs.row("results", **each, status="ok") for each in ok]
    results += [
        made_runs.row("results", **cell("peer", case), status="launch_error", detail="no such tile") for case in CASES[:2]
    ]
    results += [made_runs.row("results", **cell("host", CASES[0]), status="skipped", detail="needs a package")]
    found = [
        diagnostic_row("warning", Source.NEVER_SYNCHRONIZED, NOT_WAITED, cell("unsynchronized", case))
        for case in CASES[:caught]
    ]
    found += [diagnostic_row("warning", Source.WAITS_INSIDE, "the call waits", cell("v01_good", case)) for case in CASES[:3]]
    found += [diagnostic_row("info", Source.NOT_REACHED, UNREACHED), diagnostic_row("error", Source.CEILINGS, "no copy")]
    roles = {"v01_good": "rung", "unsynchronized": "specimen", "peer": "peer", "host": "host"}
    tables = {
        "variants": [
            made_runs.row("variants", workload="sums", variant=name, role=role, kind="cuda", precision="fp32")
            for name, role in roles.items()
        ],
        "cases": [made_runs.row("cases", workload="sums", case=case, params="{}") for case in CASES],
        "results": results,
        "diagnostics": found,
    }
    return made_runs.write_tables(folder, made_runs.run_row("first", "") | {"kind": "recording"}, tables)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return first_recording(tmp_path_factory.mktemp("runs"), caught=17)


def test_findings_of_a_kind_take_one_line_and_the_specimens_that_were_caught_one_of_their_own(run: Path) -> None:
    assert list(summary.findings(store.open_run(run))) == [
        "17 ok, 2 launch_error, 1 skipped (needs a package)",
        "specimens (known pitfalls, which the checks have to catch): 17 caught: unsynchronized",
        "sums/peer: launch_error in 2 cells, the first sums/peer/n=64: no such tile",
        "error: ceilings: no copy",
        "warning: waits_inside in 3 places, the first sums/v01_good/n=64 the call waits",
        UNREACHED,
        "each of them: warpladder summary RUN --all",
    ]


def test_every_finding_has_a_line_where_all_are_asked_for(run: Path) -> None:
    lines = list(summary.findings(store.open_run(run), every=True))
    assert lines[0].startswith("34 ok, 2 launch_error, 1 skipped")
    assert len(lines) == 1 + 2 + 17 + 3 + 2
    assert f"warning: sums/unsynchronized/n=64 never_synchronized: {NOT_WAITED}" in lines


def test_a_specimen_that_was_not_caught_is_counted(tmp_path: Path) -> None:
    said = list(summary.findings(store.open_run(first_recording(tmp_path, caught=12))))
    missed = ", ".join(f"sums/unsynchronized/{case}" for case in CASES[12:15])
    assert any(
        "12 of 17 cells caught; not caught, because a case is too small to tell or a check fails: " + missed in line
        for line in said
    )


def test_the_command_that_measures_all_is_the_one_that_was_typed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(ending, "say", said.append)
    ending.report(run, typed=["record", "kernels/bench.py", "--if-none"])
    assert said[-2].endswith("; to measure all: warpladder record kernels/bench.py --no-limit")
    assert measure_all("warpladder.record(sums, seed=3)") == "warpladder.record(sums, seed=3, no_limit=True)"


def test_summary_prints_the_newest_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, dict[str, bool]]] = []
    monkeypatch.setattr(ending, "report", lambda path, form, **shown: asked.append((path, shown)))
    none = CliRunner().invoke(command(), ["summary", "--data-dir", str(tmp_path)])
    assert (none.exit_code, none.stderr.count("\n")) == (2, 1)
    path = made_runs.write_tables(
        tmp_path,
        made_runs.run_row("one", "first"),
        {"cases": [made_runs.row("cases", workload="sums", case="n=1", params="{}")]},
    )
    for words in (["--all"], ["first"]):
        assert CliRunner().invoke(command(), ["summary", *words, "--data-dir", str(tmp_path)]).exit_code == 0
    assert asked == [(path, {"sizes": True, "every": True}), (path, {"sizes": True, "every": False})]


def test_variants_for_a_gpu_alone_are_refused_on_a_host_and_leave_no_run(tmp_path: Path) -> None:
    words = ["record", "conv2d", "--variants", "v01_copy,cudnn", "--collector", "host_clock", "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(command(), words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "v01_copy and 1 more need an NVIDIA GPU, and the collector is host_clock (asked for); "
        "record numpy, numba_serial, numba_parallel here, or these on a machine with one\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_file_of_kernels_alone_is_refused_with_what_can_be_done_without_a_gpu(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text(
        "import numpy as np\nimport warpladder\nbench = warpladder.Benchmark('twice', n=[64])\n"
        "bench.inputs(lambda n, rng: rng.standard_normal(n, np.float32))\nbench.reference(lambda x: 2 * x)\n"
        "bench.cuda('__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }',"
        " name='twice', kernel='twice', grid=1, block='n')\n"
    )
    done = CliRunner().invoke(
        command(), ["record", str(file), "--collector", "host_clock", "--data-dir", str(tmp_path / "runs")]
    )
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith("; record on one with a GPU; `warpladder disassemble FILE` needs none\n")


def test_the_first_line_on_a_machine_without_a_gpu_reads_as_no_error() -> None:
    planned = recording.plan(recording.Order(Request(["conv2d"]), Path(), [], "host_clock"))
    assert planned.headline == "collector host_clock: asked for"
    assert replace(planned, why="this machine has no NVIDIA driver").headline == (
        "collector host_clock: this machine has no NVIDIA driver; variants for a GPU are skipped"
    )


def test_the_time_left_is_no_longer_than_a_recording_may_take() -> None:
    left = progress._TimeLeft()
    bar = Progress(left)
    bar.add_task("", total=64)
    (task,) = bar.tasks
    clock = iter([0.0, 1.0, 10.0])
    task.get_time = bar.get_time = lambda: 10.0
    task.start_time = 0.0
    task._progress.extend([ProgressSample(next(clock), 0), ProgressSample(next(clock), 1), ProgressSample(next(clock), 2)])
    assert str(left.render(task)) == "left 0:03:34"
    left.limit_s = 30.0
    assert str(left.render(task)) == "left 0:00:20"


def test_doctor_ends_with_the_commands_that_work_here() -> None:
    done = CliRunner(env={"COLUMNS": "120"}).invoke(command(), ["doctor"])
    lines = [line.strip() for line in done.stdout.splitlines()]
    found = lines[lines.index("what you can do now") + 1 :]
    assert [line.split("  ")[0] for line in found] == [words for words, _ in doctor.possible()]
    assert found[0].startswith("warpladder app")


@pytest.mark.slow
def test_the_first_minute_on_a_gpu_takes_30_lines_at_most(run: Path) -> None:
    """The findings of the run here, and the answer of a recorded run whose rows are as many as those of all workloads."""
    data = run_data.load(store.open_run(store.RECORDED / "20261127T041834Z-h200-gan-tconv-eea1"))
    with pytest.MonkeyPatch.context() as patch:
        rows = summary.figures(data)
        several = pd.concat([rows.assign(workload=f"workload_{number}") for number in range(9)])
        patch.setattr(summary, "figures", lambda data, every_size: several)
        answered = summary.terminal(data, 120, sizes=False, every=False).splitlines()
        assert len(summary.terminal(data, 120, sizes=False, every=True).splitlines()) > 30
    headline, run_id = 1, 1
    assert headline + len(list(summary.findings(store.open_run(run)))) + len(answered) + run_id <= 30


@pytest.mark.thorough
def test_all_in_json_is_every_variant_at_every_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_runs.write(tmp_path, "one", label="one", rounds=6, workloads=("conv2d",))
    rows = {}
    for every in (False, True):
        ending.report(path, "json", every=every)
        rows[every] = json.loads(capsys.readouterr().out)
    assert len(rows[True]) > len(rows[False]) and {"variant", "case", "median_ns", "status"} <= set(rows[True][0])


@pytest.mark.slow
def test_a_quiet_recording_prints_findings_and_the_answer(tmp_path: Path) -> None:
    order = ["record", "-q", str(QUICK_CASES), "--case", "n=100", "--max-rounds", "1", "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(command(), order)
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].endswith(" ok")
    assert not done.stderr.startswith("collector") and "/2" not in done.stderr
