"""Commands that print text run where no extra is installed, and the others name the extra that they need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_forecast import recording
from tests.commands.test_forecast_host import host_bound
from tests.doc_pages import ROOT

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("choreographer", "distributed", "numba", "plotly", "streamlit"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from warpladder.__main__ import main
sys.argv = ["warpladder", *sys.argv[1:]]
main()
"""
EXAMPLE = "docs/examples/training_step.json.gz"


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["import", EXAMPLE],
        ["extract", EXAMPLE],
        ["summary", "recorded"],
        ["compare", "recorded", "recorded"],
        ["forecast", "bound/made.json.gz", "recorded"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_that_prints_text_needs_neither_plotly_nor_streamlit(arguments: list[str], tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    host_bound(tmp_path / "bound")
    named = [str(ROOT / each) if each == EXAMPLE else str(tmp_path / each) if "/" in each else each for each in arguments]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *named, *([] if named[0] == "runs" else ["--data-dir", str(tmp_path)])],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert "plotly" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1) and done.stdout


@pytest.mark.parametrize(
    ("arguments", "module"), [(["app"], "streamlit"), (["export", "recorded", "--out", "charts"], "plotly")]
)
def test_a_command_that_needs_the_dashboard_names_the_extra_in_one_line(
    arguments: list[str], module: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments, "--data-dir", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    cure = f"warpladder {arguments[0]}: {module} is not installed; pip install 'warpladder[dashboard]'"
    assert (done.returncode, done.stderr.splitlines()) == (2, [cure])
    assert not (tmp_path / "charts").exists()
