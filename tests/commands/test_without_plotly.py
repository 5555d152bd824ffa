"""Commands that print text run where no extra is installed, and the others name the extra that they need."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_forecast import recording
from tests.commands.test_forecast_host import host_bound
from tests.doc_pages import ROOT

PROGRAM = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("choreographer", "cuda", "distributed", "numba", "plotly", "streamlit"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from warpladder.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["warpladder", *words]
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    print("ended", words[0], code, flush=True)
sys.exit(code)
"""
EXAMPLE = ROOT / "docs" / "examples" / "training_step.json.gz"


def started(commands: list[list[str]], folder: Path) -> subprocess.CompletedProcess[str]:
    """These commands, one after another in one process that lacks the packages of the extras."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.slow
def test_commands_that_print_text_need_neither_plotly_nor_streamlit(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    host_bound(tmp_path / "bound")
    commands = [
        ["import", str(EXAMPLE)],
        ["extract", str(EXAMPLE)],
        ["summary", "recorded"],
        ["compare", "recorded", "recorded"],
        ["forecast", str(tmp_path / "bound" / "made.json.gz"), "recorded"],
    ]
    done = started([["runs"], *([*words, "--data-dir", str(tmp_path)] for words in commands)], tmp_path)
    assert "plotly" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    printed = re.split(r"^ended (\w+) (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert printed[1::3] == ["runs", *(words[0] for words in commands)]
    assert set(printed[2::3]) <= {"0", "1"} and all(printed[0:-1:3])


@pytest.mark.slow
def test_a_command_that_needs_an_extra_names_it_in_one_line(tmp_path: Path) -> None:
    source = str(ROOT / "docs" / "examples" / "row_sum.py")
    lacking = [
        (["app", "--data-dir", str(tmp_path)], "streamlit", "dashboard"),
        (["export", "recorded", "--out", "charts", "--data-dir", str(tmp_path)], "plotly", "dashboard"),
        (["disassemble", source], "cuda-bindings", "gpu"),
        (["versus", "--toolchain", "13.0", source], "cuda-bindings", "gpu"),
    ]
    done = started([words for words, *_ in lacking], tmp_path)
    assert done.stderr.splitlines() == [
        f"warpladder {words[0]}: {module} is not installed; pip install 'warpladder[{extra}]'"
        for words, module, extra in lacking
    ]
    assert done.stdout.splitlines() == [f"ended {words[0]} 2" for words, *_ in lacking]
    assert not (tmp_path / "charts").exists()
