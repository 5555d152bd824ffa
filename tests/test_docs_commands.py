"""README, CONTRIBUTING, docs/ and the pages of data/: every command is run or its words are checked."""

import importlib.util
import re
import runpy
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from tests.doc_pages import BLOCKS, NEW_RUNG, ROOT, name_of
from warpladder.__main__ import command as command_line
from warpladder.collectors import choice
from warpladder.collectors.choice import ENTRIES
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.collectors.programs import record as programs
from warpladder.commands import record, watch
from warpladder.commands.common import split
from warpladder.dashboard import export
from warpladder.dashboard.views import FORMER, VIEWS
from warpladder.data.naming import Naming
from warpladder.workloads import registry

pytestmark = pytest.mark.slow

APP: Final = command_line()
FIXTURES: Final = ROOT / "tests" / "fixtures"
REPORTS: Final = {
    ".sqlite": FIXTURES / "nsight-systems-2023.4" / "nested" / "report.sqlite",
    ".ncu-rep": FIXTURES / "nsight-compute-2025.3" / "report.ncu-rep",
}
#: Programs that are not of the project: a command of the project that they start is checked, their own options are not.
OTHERS: Final = ("ssh", "salloc", "compute-sanitizer", "ncu", "proton")
COMMANDS: Final = [
    pytest.param(line, id=f"{name_of(block.page)}:{block.line + place}")
    for block in BLOCKS
    if block.language == "sh"
    for place, line in enumerate(block.text.splitlines())
]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's docs and runs, and with the user's files that the docs name."""
    for name in ("docs", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("my_kernel.py", "bench.py", "bench_step.py"):
        shutil.copy(ROOT / "docs" / "examples" / "row_sum.py", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_one_that_there_is(line: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for inner in re.findall(r"\$\(([^)]*)\)", line):
        check(shlex.split(inner), monkeypatch)
    check(shlex.split(line, comments=True), monkeypatch)


def check(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in this process, or as much of it as needs no GPU, no tool and no minute."""
    program, *rest = words
    if program in OTHERS:
        starts = [place for place, word in enumerate(rest) if Path(word).name in ("python", "warpladder")]
        for place in starts[:1]:
            check(rest[place:], monkeypatch)
    elif program == "make":
        target, *variables = rest
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        for variable in variables:
            check_command([target, *shlex.split(variable.removeprefix("ARGS="))], monkeypatch)
    elif Path(program).name == "warpladder":
        check_command(rest, monkeypatch)
    elif Path(program).name == "pip":
        check_packages(rest)
    elif Path(program).name == "pytest":
        check_tests(rest)
    elif program == "cc":
        sources = [word for word in rest if word.endswith(".c")]
        assert sources and all((ROOT / source).is_file() for source in sources)
    else:
        assert program in ("python", ".venv/bin/python")
        assert rest[0] == "-m"
        check_module(rest[1], rest[2:], monkeypatch)


def check_packages(words: Sequence[str]) -> None:
    assert words[0] == "install"
    if words[1].startswith((".", "warpladder[")):
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(words[1].removeprefix("warpladder").removeprefix(".").strip("[]").split(",")) <= {"", *extras}
        return
    if words[1] == "-r":
        assert (ROOT / words[2]).is_file()
        return
    known = "".join(file.read_text() for file in ROOT.glob("requirements*.txt")) + "nvidia-nccl-cu12 nvidia-nccl-cu13"
    assert words[-1].partition("==")[0] in known


def check_tests(words: Sequence[str]) -> None:
    """Options, those of our plugin too, and places of a pytest command, and what it selects: variants, workloads and tools of compute-sanitizer."""
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "-m":
            assert words.pop(0) in (ROOT / "pyproject.toml").read_text()
        elif word == "-k":
            every = {name for workload in registry.load_all([], []) for name in (workload.name, *_variants(workload.name))}
            assert set(words.pop(0).split()) <= {*every, NEW_RUNG, "and", "racecheck"}
        elif word.startswith("--"):
            assert f'"{word}"' in (ROOT / "warpladder" / "pytest_plugin.py").read_text()
            words.pop(0)
        else:
            file, _, name = word.partition("::")
            assert (ROOT / file).exists()
            assert not name or f"def {name}(" in (ROOT / file).read_text()


def _variants(workload: str) -> set[str]:
    return {variant.name for variant in registry.load(workload).variants}


def check_module(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "warpladder":
        check_command(words, monkeypatch)
    elif module == "pytest":
        check_tests(words)
    elif module == "warpladder.workloads.mlp_training.train":
        train = importlib.import_module(module)
        monkeypatch.setattr(train, "train", lambda step, batch, epochs: iter(()))
        assert train.main(words) == 0
    elif module == "tests.collectors.cuda.run_every_kernel":
        workload, option, variant = words
        assert (option, variant in _variants(workload)) == ("--variants", True)
    elif module == "warpladder.collectors.nsight_compute.metrics":
        monkeypatch.delitem(sys.modules, module, raising=False)
        runpy.run_module(module, run_name="__main__")
    elif module == "tests.browser.take_pictures":
        page, picture = words
        assert page.partition("?")[0] in {view.name for view in VIEWS} | set(FORMER) and picture.endswith(".png")
    elif module == "benchmarks.peers":  # tests/benchmarks runs it; the other words go to `record`
        assert importlib.util.find_spec(f"benchmarks.peers.{words[0]}")
    elif module == "benchmarks.drawn_sizes":  # needs a GPU
        assert importlib.util.find_spec(module) and importlib.util.find_spec(f"warpladder.workloads.{words[0]}")
    else:
        assert module in ("benchmarks.big_report", "benchmarks.big_trace", "benchmarks.ideas")  # tests/benchmarks runs them
        assert importlib.util.find_spec(module)
        assert not words


def check_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command, *rest = words
    if command == "record":
        check_recording(words, monkeypatch)
    elif command == "why":
        given = APP.commands[command].make_context(command, rest).params
        assert make_plan(Request([given["workload"]], cases=given["cases"], variants=given["variants"])).jobs
    elif command == "capture":
        given = APP.commands[command].make_context(command, rest).params
        assert given["program"].suffix == ".py" and given["arguments"] == ("--steps", "5")
    elif command == "new":
        Path("my_kernel.py").unlink()  # it would not be overwritten
        _done(CliRunner().invoke(APP, words))
    elif command == "import" and "--variant-from" not in rest and (made := [each for each in map(_report, rest) if each]):
        _done(CliRunner().invoke(APP, ["import", *made, "--data-dir", "runs"]))
    elif command in ("import", "profile"):
        given = APP.commands[command].make_context(command, rest).params
        assert given["variant_from"] == "" or Naming.parse(given["variant_from"])
    elif command == "extract":
        given = APP.commands[command].make_context(command, rest).params
        if not given["check"]:
            if given["out"]:
                given["out"].unlink()  # it would not be overwritten
            _done(CliRunner().invoke(APP, [*words, "--data-dir", "runs"]))
    elif command == "forecast":
        assert Path(APP.commands[command].make_context(command, rest).params["trace"]).is_file()
    elif command == "app":
        given = APP.commands[command].make_context(command, rest).params
        assert all(Path(folder).is_dir() for folder in given["data_dirs"])
    elif command == "versus":
        given = APP.commands[command].make_context(command, rest).params
        if given["toolchains"]:
            assert make_plan(Request(given["programs"], cases=given["cases"], variants=split(given["variants"]))).jobs
            return
        assert given["collector"] in choice.OF_PROGRAMS
        options = ("name", "runs", "warmup", "timeout_s", "same_output", "check")
        assert programs.Request.parse(given["programs"], **{name: given[name] for name in options})
    elif command == "compare":
        assert APP.commands[command].make_context(command, rest).params["b"]
    elif command == "summary" and "--all" in rest:  # of the newest own run, which a fresh checkout lacks
        assert APP.commands[command].make_context(command, rest).params["every"]
    elif command == "export":
        check_export(words, monkeypatch)
    else:
        _done(CliRunner().invoke(APP, words))


def _report(word: str) -> str:
    """A real report in the place of the one that a command names; empty where none can be opened here."""
    original = REPORTS.get(Path(word).suffix)
    if original is None or (original.suffix == ".ncu-rep" and not choice.has_module("ncu_report")):
        return ""
    return str(shutil.copy(original, word.replace("*", "every")))


def check_recording(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the plan, which names no workload, variant, case or axis that there is not."""
    if "docs/examples/softmax.py" in words:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    asked: list[Any] = []
    for name in ("_record", "_record_against"):
        monkeypatch.setattr(record, name, lambda order, *_, **shown: asked.append(order))
    monkeypatch.setattr(watch, "watch", asked.append)
    _done(CliRunner().invoke(APP, words))
    (order,) = asked
    assert order.collector in ("auto", *ENTRIES)
    assert sys.modules[type(order.request).__module__].make_plan(order.request).jobs


def check_export(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is named is loaded; its charts are drawn by other tests."""
    monkeypatch.setattr(export, "write", lambda *arguments: None)
    _done(CliRunner().invoke(APP, words))


def _done(result: Result) -> None:
    assert result.exit_code == 0, result.output
