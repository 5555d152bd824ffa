"""README, CONTRIBUTING, docs/ and the pages of data/: every code block is run, every name and link is there."""

import ast
import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

from tests.doc_pages import BLOCKS, NEW_RUNG, PAGES, ROOT, Block, name_of, prose_of
from tests.emulator import emulator
from tests.workloads.declared import emulation_cases, inputs_and_outputs, kernels
from warpladder import Run
from warpladder.__main__ import command as command_line
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes
from warpladder.commands.common import Commands
from warpladder.dashboard.ui import template
from warpladder.data import schema, store
from warpladder.pytest_plugin import Judge
from warpladder.workloads import registry
from warpladder.workloads.api import Case
from warpladder.workloads.declare.launches import AllReduce, RowsOf

pytestmark = pytest.mark.slow

APP: Final = command_line()
#: Options of such programs, of pytest, of nsys and of the project's modules without click, as far as the text names them.
OTHER_OPTIONS: Final = {"--host", "--no-dashboard", "--nthreads", "--nworkers", "--protocol"} | {
    *("--tls-ca-file", "--tls-cert", "--tls-key", "--type"),
    "--import-source",
    *("--cuda-graph-trace", "--cuda-memory-usage"),
    *("--bind-to", "--help", "--include-blobs", "--output", "--target"),
    *("--warpladder-baseline", "--warpladder-runs"),
}
#: What CONTRIBUTING adds: a rung's entry, a reader of files, a query, a chart, a command.
EXAMPLES: Final = [block.text for block in BLOCKS if block.language == "python" and block.page.name == "CONTRIBUTING.md"]
#: Pages whose Python has tests of its own: this file, tests/workloads/declare/functions/test_examples.py, tests/test_docs_jobs.py and tests/test_docs_own_kernel.py.
OWN_TESTS: Final = ("CONTRIBUTING.md", "README.md", "jobs.md", "own-kernel.md")


def test_every_block_has_a_language_that_is_checked() -> None:
    assert {block.language for block in BLOCKS} <= {"sh", "python", "cpp", "json", "text"}
    assert all(json.loads(block.text) for block in BLOCKS if block.language == "json")


def test_code_stands_in_fenced_blocks_only() -> None:
    assert not [(name_of(page), line) for page in PAGES for line in prose_of(page) if line.startswith("    ")]


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


def _calls(names: dict[str, Any]) -> None:
    """Of a notebook."""
    assert set(names["table"]["status"]) == {"ok", "skipped"} and set(names["table"].columns) >= {"n", "median_ns", "speedup"}
    drawn = (names[name].layout.title.text for name in ("ladder", "times", "roofline"))
    assert [text.partition(":")[0] for text in drawn] == ["conv2d, n=8192", "conv2d", "conv2d, n=8192"]
    assert names["comparison"].sentence


def _example(names: dict[str, Any]) -> None:
    assert names["WORKLOAD"].name == "row_sum"


def _compared(names: dict[str, Any]) -> None:
    assert list(names["result"].table()["status"]) == ["ok", "ok"] and not names["result"].notes


#: What the Python blocks of docs/ define -> what is asked of it.
DEFINED: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "WORKLOAD": _example,
    "shares": _shares,
    "launches": _launches,
    "table": _calls,
    "run": _run,
    "result": _compared,
    "test_the_sums_are_equal": lambda names: names["test_the_sums_are_equal"](Judge("sums", Path("runs"), None)),
}


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "python" and block.page.name not in OWN_TESTS], ids=str
)
def test_a_block_of_python_does_what_its_page_says(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "make_case": lambda rows: Case({"rows": rows}, 0, 0),
        "step": lambda inputs, outputs: outputs["w"].fill(1.0),
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
    }
    exec(compile(block.text, str(block), "exec"), names)
    checks = [ask for name, ask in DEFINED.items() if name in names and not (name == "run" and isinstance(names[name], Run))]
    assert len(checks) == 1
    checks[0](names)


@emulator.needs_compiler
def test_the_rung_that_contributing_adds_is_one_file_and_one_entry(tmp_path: Path) -> None:
    (source,) = (block.text for block in BLOCKS if block.language == "cpp" and block.page.name == "CONTRIBUTING.md")
    (entry,) = (text for text in EXAMPLES if NEW_RUNG in text)
    (tmp_path / f"{NEW_RUNG}.cu").write_text(source)
    workload, rungs = registry.load("conv2d"), importlib.import_module("warpladder.workloads.conv2d.rungs")
    names = dict(vars(rungs))
    exec(f"rung = {entry}", names)
    rung = replace(names["rung"], source=tmp_path / f"{NEW_RUNG}.cu")
    assert names["rung"].source == rungs.KERNELS / f"{NEW_RUNG}.cu" and rung.draft, "no shipped run has it yet"
    assert NEW_RUNG not in {variant.name for variant in workload.variants}
    assert all(rung.header.values())
    cases = emulation_cases(workload)
    program, config = emulator.build(rung, kernels(rung, cases)), rung.configs[0]
    for case in cases:
        inputs, outputs = inputs_and_outputs(workload, case)
        program.run(rung.launches(case, config), inputs, outputs)
        expected = workload.reference(case, inputs)["c"]
        assert np.linalg.norm(outputs["c"] - expected) <= workload.tolerance["fp32"] * np.linalg.norm(expected)
    compiler = pytest.importorskip("warpladder.collectors.cuda.compiler", exc_type=ImportError)
    for arch in ("sm_75", "sm_90"):
        (kernel,) = compiler.compile_variant(rung, kernels(rung, cases), arch).kernels.values()
        assert (kernel.spill_bytes, kernel.registers <= 64) == (0, True), "blocks have up to 1,024 threads"


def test_the_chart_that_contributing_adds_is_drawn_of_a_shipped_run() -> None:
    query, chart = (text for text in EXAMPLES if "def spread(" in text)
    cells, run_data = (importlib.import_module(f"warpladder.dashboard.core.{name}") for name in ("cells", "run_data"))
    names = dict(vars(importlib.import_module("warpladder.dashboard.views.ladder.query")))
    exec(query, names)
    data = run_data.load(store.find_run("H200 conv2d", [store.RECORDED]))
    frame = names["spread"](data, "conv2d", "n=512", cells.timings(data, "conv2d")[0])
    exec(chart, names)
    drawn = names["spread"](frame, template.look(data))
    assert drawn.name == "spread-conv2d-n-512-device-cold" and "n = " in drawn.note
    assert list(drawn.figure.data[0].y) == list(frame.sort_values("half_width_percent")["variant"])
    hostile = names["spread"](frame.assign(variant="<b>v01</b>"), template.look(data))
    assert set(hostile.figure.data[0].y) == {"&lt;b&gt;v01&lt;/b&gt;"}
    # The error of the clock is 0.4 us of 1.5 us and more in this run, which did not measure it.
    assert frame["half_width_percent"].between(0, 30).all()


# -- names, links, figures -----------------------------------------------------------------------------------------


def test_the_collector_that_contributing_adds_imports_its_file(tmp_path: Path) -> None:
    (example,) = (text for text in EXAMPLES if "def import_report(" in text)
    names: dict[str, Any] = {}
    exec(example, names)
    spans, other = tmp_path / "spans.csv", tmp_path / "other.csv"
    spans.write_text("name,start_ns,duration_ns\nload,0,1500\ncompute,2000,5000\n")
    other.write_text("name,start_ns,duration_ns\nload,0,long\n")
    assert names["is_spans"](spans) and not names["is_spans"](ROOT / "README.md")
    run_id = names["import_report"](spans, tmp_path, "", None, [], Notes())
    ranges = store.open_run(tmp_path / run_id).table("ranges")
    assert ranges[["text", "start_ns", "end_ns"]].values.tolist() == [["load", 0, 1500], ["compute", 2000, 7000]]
    with pytest.raises(ReportError, match=r"other\.csv: a line is not name,start_ns,duration_ns: .*'long'"):
        names["import_report"](other, tmp_path, "", None, [], Notes())


def test_the_example_of_a_command_prints_the_size_of_a_run() -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[-1], names)
    done = CliRunner().invoke(Commands({"": [names["command"]]}, help=""), ["size", "H200 conv2d"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert 0 < float(done.stdout.removesuffix(" MB\n")) < 100
    absent = CliRunner().invoke(Commands({"": [names["command"]]}, help=""), ["size", "nowhere"])
    assert absent.exit_code == 2 and absent.stderr.startswith("nowhere: no such run")


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


def test_links_lead_to_files_and_headings_that_are_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https://)([^)]+)\)", "\n".join(prose_of(page))):
            name, _, heading = target.partition("#")
            file = page.parent / name if name else page
            assert file.exists(), f"{name_of(page)}: {target}"
            assert not heading or heading in _headings(file), f"{name_of(page)}: {target}"


@cache
def _headings(page: Path) -> set[str]:
    titles = [line.lstrip("#").strip().lower() for line in prose_of(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_and_options_that_the_text_names_are_there(page: Path) -> None:
    texts = re.findall(r"`([^`]+)`", "\n".join(prose_of(page)))
    for text in texts:
        if re.fullmatch(r"(workloads|tests|docs|data|benchmarks)/[\w./-]*|requirements-\w+\.txt", text):
            made_by_contributing = page.name == "CONTRIBUTING.md" and NEW_RUNG in text
            assert (ROOT / text).exists() or text == "data/local/" or "my_kernel" in text or made_by_contributing, text
    gone = {"--cases", "--workload", "--without-shift", "--scheduler", "--shell"} if page.name == "CHANGELOG.md" else set()
    options = gone | {option for command in APP.commands.values() for parameter in command.params for option in parameter.opts}
    named = {option for text in texts for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert named <= options | OTHER_OPTIONS


def test_the_readme_is_short_and_its_figures_are_those_of_the_results() -> None:
    readme = (ROOT / "README.md").read_text().splitlines()
    results = (ROOT / "docs" / "results.md").read_text().splitlines()
    start = readme.index("|---|---|---|---|")
    rows = [line for line in readme[start + 1 :] if line.count("|") == 5]
    assert 0 < len(rows) <= 12
    assert set(rows) <= set(results)
    assert len(readme) <= 140


def test_tables_that_the_text_names_are_tables_of_a_run() -> None:
    for page in PAGES:
        assert set(re.findall(r"[Tt]able `(\w+)`", page.read_text())) <= set(schema.TABLES), name_of(page)
