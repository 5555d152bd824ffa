"""The file that `warpladder extract` writes is recorded on the host, with PyTorch."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.doc_pages import ROOT
from tests.workloads.functions.recording import record
from warpladder.__main__ import command

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("options", [("--top", "2"), ("--op", "aten::add_"), ("--range", "block", "--together")])
def test_every_case_of_the_file_is_right(options: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    trace, out = ROOT / "docs" / "examples" / "training_step.json.gz", tmp_path / "bench_job.py"
    done = CliRunner().invoke(command(), ["extract", str(trace), *options, "--out", str(out), "--data-dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    run = record(tmp_path, out.read_text())
    results = run.table("results")
    assert set(results["status"]) == {"ok"}, results["detail"].tolist()
    assert set(results["variant"]) == {"as_called", "compiled"}
    checked = CliRunner().invoke(
        command(), ["extract", str(trace), *options[:2], *options[2:], "--check", str(run.path), "--data-dir", str(tmp_path)]
    )
    assert checked.exit_code == 0, checked.output
    assert (
        f"of {results['case'].nunique() if len(set(results['workload'])) == 1 else len(results) // 2} baselines"
        in checked.stdout
    )
