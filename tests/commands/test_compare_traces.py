"""`warpladder compare` of two traces that were imported one by one: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.collectors.jobs.made_reports import JobReport
from tests.collectors.jobs.made_traces import Job
from tests.collectors.nsight_systems.reports import write
from tests.synthetic.made_runs import run_row, write_tables
from warpladder.__main__ import command


def _import(path: Path, folder: Path, label: str) -> None:
    done = CliRunner().invoke(command(), ["import", str(path), "--label", label, "--data-dir", str(folder)])
    assert done.exit_code == 0, done.stderr


def _trace(folder: Path, label: str, **more: object) -> Path:
    Job(ranks=2, products=2, **more).write(folder / label)  # type: ignore[arg-type]
    return folder / label / "rank-0.json.gz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    without = JobReport([(70, 0)], steps=8).tables()
    without["NVTX_EVENTS"] = [row for row in without["NVTX_EVENTS"] if not row["text"].startswith("step")]
    made = {
        "main": _trace(folder, "main", iterations=8),
        "same": _trace(folder, "same", iterations=8, seed=2),
        "slow": _trace(folder, "slow", iterations=8, seed=3, product_us=230.0),
        "short": _trace(folder, "short", iterations=3),
        "without": write(folder / "without.sqlite", without),
        "report": JobReport([(70, 0)], steps=8).write(folder / "report.sqlite"),
        "slow report": JobReport([(70, 0)], steps=8, slow={0: 1.2}).write(folder / "slow.sqlite"),
    }
    for label, path in made.items():
        _import(path, folder / "runs", label)
    write_tables(folder / "runs", {**run_row("recorded", "recorded"), "kind": "recording"}, {})
    write_tables(folder / "runs", {**run_row("job", "job"), "kind": "job"}, {})
    return folder / "runs"


def compare(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command(), ["compare", *arguments, "--data-dir", str(folder)])


@pytest.mark.thorough
def test_equal_code_passes(folder: Path) -> None:
    done = compare(folder, "main", "same")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "compared: 1 rank and 8 iterations, matched by number\n" in done.stdout
    assert "slower" not in done.stdout and "unknown" not in done.stdout


@pytest.mark.slow
def test_a_slower_kernel_fails_and_is_named(folder: Path) -> None:
    done = compare(folder, "main", "slow")
    assert done.exit_code == 1
    slower = [line for line in done.stdout.splitlines() if line.startswith("slower")]
    assert any("cutlass::Kernel2" in line for line in slower) and not any("nccl" in line for line in slower)
    assert compare(folder, "main", "slow", "--fail-above", "20%").exit_code == 0
    content = json.loads(compare(folder, "main", "slow", "--format", "json").stdout)
    kernel = next(each for each in content["changes"] if "cutlass" in each["name"])
    assert kernel["failed"] and kernel["ratio"]["value"] == pytest.approx(1.15, abs=0.02)


def test_reports_of_nsight_systems_are_compared_likewise(folder: Path) -> None:
    done = compare(folder, "report", "slow report")
    assert done.exit_code == 1 and "1.200" in done.stdout
    assert compare(folder, "slow report", "report").exit_code == 0, "faster"


def test_too_few_iterations_give_no_verdict_and_one_line(folder: Path) -> None:
    done = compare(folder, "main", "short")
    assert done.exit_code == 3
    assert (
        "not compared: iterations 3, 4, 5 and 2 more of A; too few for a verdict: profile at least 6 iterations" in done.stdout
    )
    assert "slower" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "without"), "without: has no numbered iterations; profile with steps"),
        (
            ("main", "recorded"),
            "is an import of one trace, recorded is a run with cells, such as a recording; compare two runs of one kind",
        ),
        (("job", "main"), "job is a job, "),
        (("main", "report"), "compare runs of one device, or add --any-device"),
        (("main", "same", "--match", "best"), "--match: is about the cells of recordings, and jobs and traces have none"),
    ],
)
def test_what_cannot_be_compared_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = compare(folder, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
