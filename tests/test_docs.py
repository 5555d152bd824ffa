"""README, CONTRIBUTING, docs/ and the pages of data/: every command is run or its words are checked, every code block is run, every name and link is there."""

import ast
import importlib.util
import re
import runpy
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner, Result

import collectors.cli
import dashboard.__main__
import dashboard.export
from collectors import choice, commands
from dashboard.ui import template
from data import schema, store
from data.naming import Naming
from tests.emulator import emulator
from tests.workloads.declared import emulation_cases, inputs_and_outputs, kernels
from workloads import registry
from workloads.api import Case, CudaVariant
from workloads.communication import AllReduce, RowsOf

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md", "data/published/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)
FIXTURES: Final = ROOT / "tests" / "fixtures"
REPORTS: Final = {
    ".sqlite": FIXTURES / "nsight-systems-2023.4" / "nested" / "report.sqlite",
    ".ncu-rep": FIXTURES / "nsight-compute-2025.3" / "report.ncu-rep",
}
#: The rung that CONTRIBUTING adds.
NEW_RUNG: Final = "v12_read_only_loads"
#: Programs that are not of the project: a command of the project that they start is checked, their own options are not.
OTHERS: Final = ("ssh", "salloc", "compute-sanitizer", "ncu")
#: Options of such programs, of pytest, of nsys and of the project's modules without click, as far as the text names them.
OTHER_OPTIONS: Final = {"--type", "--cuda-graph-trace", "--bind-to"}


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{_name(self.page)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text().splitlines(), start=1))
    for number, line in lines:
        if line.strip().startswith("```"):
            text = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                text.append(inner)
            yield Block(page, number + 1, line.strip().removeprefix("```"), textwrap.dedent("\n".join(text)) + "\n")


def prose_of(page: Path) -> list[str]:
    """Lines of a page outside of its blocks."""
    inside, lines = False, []
    for line in page.read_text().splitlines():
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


BLOCKS: Final = [block for page in PAGES for block in blocks_of(page)]
#: What CONTRIBUTING adds: a rung's entry, a query, a chart.
EXAMPLES: Final = [block.text for block in BLOCKS if block.language == "python" and block.page.name == "CONTRIBUTING.md"]
COMMANDS: Final = [
    pytest.param(line, id=f"{_name(block.page)}:{block.line + place}")
    for block in BLOCKS
    if block.language == "sh"
    for place, line in enumerate(block.text.splitlines())
]


# -- commands ------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's docs and runs, and with the user's files that the docs name."""
    for name in ("docs", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "docs" / "examples" / "row_sum.py", tmp_path / "my_kernel.py")
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
        starts = [place for place, word in enumerate(rest) if Path(word).name == "python"]
        for place in starts[:1]:
            check(rest[place:], monkeypatch)
    elif program == "make":
        target, *variables = rest
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        for variable in variables:
            check_module("collectors", [target, *shlex.split(variable.removeprefix("ARGS="))], monkeypatch)
    elif Path(program).name == "pip":
        check_packages(rest)
    elif Path(program).name == "pytest":
        check_tests(rest)
    else:
        assert program in ("python", ".venv/bin/python")
        assert rest[0] == "-m"
        check_module(rest[1], rest[2:], monkeypatch)


def check_packages(words: Sequence[str]) -> None:
    assert words[0] == "install"
    if words[1] == "-r":
        assert (ROOT / words[2]).is_file()
        return
    known = "".join(file.read_text() for file in ROOT.glob("requirements*.txt")) + "nvidia-nccl-cu12 nvidia-nccl-cu13"
    assert words[-1] in known


def check_tests(words: Sequence[str]) -> None:
    """Options and places of a pytest command, and what it selects: variants, workloads and tools of compute-sanitizer."""
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "-m":
            assert words.pop(0) in (ROOT / "pyproject.toml").read_text()
        elif word == "-k":
            every = {name for workload in registry.load_all([], []) for name in (workload.name, *_variants(workload.name))}
            assert set(words.pop(0).split()) <= {*every, NEW_RUNG, "and", "racecheck"}
        else:
            file, _, name = word.partition("::")
            assert (ROOT / file).exists()
            assert not name or f"def {name}(" in (ROOT / file).read_text()


def _variants(workload: str) -> set[str]:
    return {variant.name for variant in registry.load(workload).variants}


def check_module(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "collectors":
        check_collectors(words, monkeypatch)
    elif module == "dashboard":
        check_dashboard(words, monkeypatch)
    elif module == "pytest":
        check_tests(words)
    elif module == "workloads.mlp_training.train":
        train = importlib.import_module(module)
        monkeypatch.setattr(train, "train", lambda step, batch, epochs: iter(()))
        assert train.main(words) == 0
    elif module == "tests.collectors.cuda.run_every_kernel":
        workload, option, variant = words
        assert (option, variant in _variants(workload)) == ("--variants", True)
    elif module == "collectors.nsight_compute.metrics":
        monkeypatch.delitem(sys.modules, module, raising=False)
        runpy.run_module(module, run_name="__main__")
    else:
        assert module == "benchmarks.big_report"  # tests/benchmarks runs it
        assert importlib.util.find_spec(module)
        assert not words


def check_collectors(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command, *rest = words
    if command == "record":
        check_recording(words, monkeypatch)
    elif command == "import" and "--variant-from" not in rest and (made := [each for each in map(_report, rest) if each]):
        _done(CliRunner().invoke(collectors.cli.app, ["import", *made, "--data-dir", "runs"]))
    elif command in ("import", "profile"):
        given = collectors.cli.app.commands[command].make_context(command, rest).params
        assert given["variant_from"] == "" or Naming.parse(given["variant_from"])
    else:
        _done(CliRunner().invoke(collectors.cli.app, words))


def _report(word: str) -> str:
    """A real report in the place of the one that a command names; empty where none can be opened here."""
    original = REPORTS.get(Path(word).suffix)
    if original is None or (original.suffix == ".ncu-rep" and not choice.has_module("ncu_report")):
        return ""
    return str(shutil.copy(original, word.replace("*", "every")))


def check_recording(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the plan, which names no workload, variant, case or axis that there is not."""
    asked: list[Any] = []
    monkeypatch.setattr(commands, "record_run", lambda *arguments: asked.append(arguments))
    _done(CliRunner().invoke(collectors.cli.app, words))
    ((request, collector, *_),) = asked
    assert collector in ("auto", *choice.COLLECTORS)
    assert sys.modules[type(request).__module__].make_plan(request).jobs


def check_dashboard(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is named is loaded; its charts are drawn by other tests."""
    command, *rest = words
    if command == "app":
        given = dashboard.__main__.app.commands[command].make_context(command, rest).params
        assert all(Path(folder).is_dir() for folder in given["data_dirs"])
    elif rest[0] == "RUN":
        given = dashboard.__main__.app.commands[command].make_context(command, rest).params
        assert Naming.parse(given["variant_from"])
    else:
        monkeypatch.setattr(dashboard.export, "write", lambda *arguments: None)
        _done(CliRunner().invoke(dashboard.__main__.app, words))


def _done(result: Result) -> None:
    assert result.exit_code == 0, result.output


# -- blocks --------------------------------------------------------------------------------------------------------


def test_every_block_has_a_language_that_is_checked() -> None:
    assert {block.language for block in BLOCKS} <= {"sh", "python", "cpp", "text"}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_code_stands_in_fenced_blocks_only(page: Path) -> None:
    assert not [line for line in prose_of(page) if line.startswith("    ")]


def _shares(names: dict[str, Any]) -> None:
    """Ten rows for three ranks."""
    parts = names["shares"](Case({"rows": 10}, 0, 0), 3)
    assert [(part.case.params["rows"], part.first) for part in parts] == [(4, 0), (3, 4), (3, 7)]


def _launches(names: dict[str, Any]) -> None:
    first, beside, second, last = names["launches"](Case({"rows": 10}, 0, 0), {})
    assert (first.kernel, second.kernel) == ("first_half", "second_half")
    assert (beside, last) == (AllReduce((RowsOf("w", 0, 500),), beside=True), AllReduce((RowsOf("w", 500, 500),)))


def _run(names: dict[str, Any]) -> None:
    outputs = {"w": np.zeros(2, np.float32)}
    names["run"](Case({"rows": 10}, 0, 0), {}, outputs)
    assert outputs["w"].tolist() == [1.0, 1.0]  # alone, the average is one's own


def _example(names: dict[str, Any]) -> None:
    assert names["WORKLOAD"].name == "row_sum"


#: What the Python blocks of docs/ define -> what is asked of it.
DEFINED: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "WORKLOAD": _example,
    "shares": _shares,
    "launches": _launches,
    "run": _run,
}


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "python" and block.page.name != "CONTRIBUTING.md"], ids=str
)
def test_a_block_of_python_does_what_its_page_says(block: Block) -> None:
    names: dict[str, Any] = {
        "make_case": lambda rows: Case({"rows": rows}, 0, 0),
        "step": lambda inputs, outputs: outputs["w"].fill(1.0),
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
    }
    exec(compile(block.text, str(block), "exec"), names)
    checks = [ask for name, ask in DEFINED.items() if name in names]
    assert len(checks) == 1
    checks[0](names)


@emulator.needs_compiler
def test_the_rung_that_contributing_adds_is_one_file_and_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = (block.text for block in BLOCKS if block.language == "cpp")
    (entry,) = (text for text in EXAMPLES if NEW_RUNG in text)
    (tmp_path / f"{NEW_RUNG}.cu").write_text(source)
    workload, rungs = registry.load("conv2d"), importlib.import_module("workloads.conv2d.rungs")
    monkeypatch.setattr(rungs, "KERNELS", tmp_path)
    names = dict(vars(rungs))
    exec(f"rung = {entry}", names)
    rung = names["rung"]
    assert isinstance(rung, CudaVariant)
    assert rung.rung == 1 + max(variant.rung or 0 for variant in workload.variants)
    assert all(rung.header.values())
    cases = emulation_cases(workload)
    program, config = emulator.build(rung, kernels(rung, cases)), rung.configs[0]
    for case in cases:
        inputs, outputs = inputs_and_outputs(workload, case)
        program.run(rung.launches(case, config), inputs, outputs)
        expected = workload.reference(case, inputs)["c"]
        assert np.linalg.norm(outputs["c"] - expected) <= workload.tolerance["fp32"] * np.linalg.norm(expected)


def test_the_chart_that_contributing_adds_is_drawn_of_a_shipped_run() -> None:
    _, query, chart = EXAMPLES
    axes, run_data = (importlib.import_module(f"dashboard.core.{name}") for name in ("axes", "run_data"))
    names = dict(vars(importlib.import_module("dashboard.views.ladder.query")))
    exec(query, names)
    data = run_data.load(store.find_run("H200 conv2d", [store.RECORDED]))
    frame = names["spread"](data, "conv2d", "n=512", axes.timings(data, "conv2d")[0])
    exec(chart, names)
    drawn = names["spread"](frame, template.look(data))
    assert drawn.name == "spread-conv2d-n-512"
    assert list(drawn.figure.data[0].y) == list(frame.sort_values("half_width_percent")["variant"])
    assert frame["half_width_percent"].between(0, 5).all()


# -- names, links, figures -----------------------------------------------------------------------------------------


@cache
def _defined(file: Path) -> set[str]:
    """Functions and classes of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


def test_the_functions_that_make_a_figure_are_where_architecture_says() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+) \| (`[^|]+) \|$", page.partition("## How a figure is made")[2], re.MULTILINE)
    assert len(rows) > 15
    for functions, places in rows:
        files = [ROOT / place for place in re.findall(r"`([^`]+)`", places)]
        rooms = {file.relative_to(ROOT).parts[0] for file in files}
        there = [file for file in files if file.is_file()]
        every = there if len(there) == len(files) else [file for room in rooms for file in (ROOT / room).rglob("*.py")]
        assert set(re.findall(r"`([\w.]+)`", functions)) <= {name for file in every for name in _defined(file)}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", "\n".join(prose_of(page))):
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not heading or heading in _headings(file), target


def _headings(page: Path) -> set[str]:
    titles = [line.lstrip("#").strip().lower() for line in prose_of(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_and_options_that_the_text_names_are_there(page: Path) -> None:
    texts = re.findall(r"`([^`]+)`", "\n".join(prose_of(page)))
    for text in texts:
        if re.fullmatch(r"(workloads|tests|docs|data|benchmarks)/[\w./-]*|requirements-\w+\.txt", text):
            made_by_contributing = page.name == "CONTRIBUTING.md" and NEW_RUNG in text
            assert (ROOT / text).exists() or text == "data/local/" or "my_kernel" in text or made_by_contributing, text
    options = {
        option
        for app in (collectors.cli.app, dashboard.__main__.app)
        for command in app.commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    named = {option for text in texts for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert named <= options | OTHER_OPTIONS


def test_the_readme_is_short_and_its_figures_are_those_of_the_results() -> None:
    readme = (ROOT / "README.md").read_text().splitlines()
    results = (ROOT / "docs" / "results.md").read_text().splitlines()
    start = readme.index("|---|---|---|---|")
    rows = [line for line in readme[start + 1 :] if line.count("|") == 5]
    assert 0 < len(rows) <= 12
    assert set(rows) <= set(results)
    assert len(readme) <= 90


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_tables_that_the_text_names_are_tables_of_a_run(page: Path) -> None:
    assert set(re.findall(r"[Tt]able `(\w+)`", page.read_text())) <= set(schema.TABLES)
