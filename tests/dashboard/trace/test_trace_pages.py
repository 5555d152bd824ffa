"""The pages on traces, and every other page on a run that has nothing else."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import run_of
from tests.dashboard.test_app import PAGES, Open, open_app, words
from tests.synthetic import made_runs, made_traces
from tests.synthetic.made_traces import HOSTILE
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard import export
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.export import charts_of
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    made_traces.write(folder)
    made_traces.write_variants(folder)
    made_traces.write(folder, "calls only", without=("ranges", "kernels", "memory_ops"))
    made_runs.write_host_run(folder, "host", rounds=8)
    return folder


def shown_table(app: AppTest, column: str) -> list[object]:
    return next(list(frame.value[column]) for frame in reversed(app.main.dataframe) if column in frame.value)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("run", ["trace", "variants", "calls only"])
def test_every_page_opens_on_a_run_that_is_a_trace_alone(open_app: Open, traced: Path, page: str, run: str) -> None:
    app = open_app(traced, page, run=run)
    assert not app.error
    assert run_of(app) == run


def test_home_of_a_trace_without_variants_leads_to_its_pages(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "overview", run="trace")
    leads = [link.proto.label for link in app.main.get("page_link")]
    assert leads == ["Time by kernel and operator →", "Timeline →", "Copies →"]


def test_api_and_kernels_names_what_makes_up_the_time_and_shows_each_summary(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "calls", run="trace")
    assert "2 of 3 kernels make up 93.9 %: gemm 73.5 %" in words(app)
    assert "3 of 5 API calls make up 96.4 %" in words(app)
    assert shown_table(app, "Total Time (ns)") == [3600, 1000, 300]
    app = open_app(traced, "calls", run="trace", summary="nvtx_kern_sum")
    assert shown_table(app, "Kern Inst") == [1, 1, 1, 1, 2, 1, 1, 2, 1]
    assert app.query_params["summary"] == "nvtx_kern_sum"


def test_a_trace_of_calls_alone_shows_what_it_has(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "calls", run="calls only")
    assert "API calls make up" in words(app) and "kernels make up" not in words(app)
    assert "no trace of copies" in words(open_app(traced, "transfers", run="calls only"))


def test_transfers_tells_rate_and_what_copies_leave_of_a_speedup(open_app: Open, traced: Path) -> None:
    app = open_app(traced, "transfers", run="variants")
    assert "Copies take 32.0 µs, 62.5 % of it host to device, pinned" in words(app)
    assert "v02_fast over v01_slow: 4.00× kernel, 3.00× + launch, 1.55× + copies, 1.50× end to end" in words(app)
    app = open_app(traced, "transfers", run="trace")
    assert "Copies take 4.00 µs, 50.0 % of it device to host, pageable: 2.00 MB at 1.00 TB/s" in words(app), (
        "the memset is no copy"
    )
    assert "With launch and copies open takes 4.67× its kernels' time, end to end 13.3×" in words(app)


@pytest.mark.parametrize("page", ["calls", "transfers"])
def test_a_run_without_a_trace_says_how_to_import_one(open_app: Open, traced: Path, page: str) -> None:
    app = open_app(traced, page, run="host")
    assert "This run has no trace" in words(app)
    assert [block.value for block in app.main.code] == ["warpladder import REPORT"]


NOTHING_OF_TRACES = ("ranges", "kernels", "memory_ops", "api_calls")


@pytest.mark.parametrize(
    ("page", "without", "lacks", "option"),
    [
        ("transfers", ("memory_ops",), "no trace of copies, though it has kernels", "--trace=cuda"),
        ("transfers", ("memory_ops", "kernels"), "no trace of copies. Profile", "--trace=cuda"),
        ("timeline", NOTHING_OF_TRACES, "no trace. Profile", "--trace=cuda,nvtx"),
        ("calls", NOTHING_OF_TRACES, "no trace of kernels or API calls", "--trace=cuda"),
    ],
)
def test_a_page_says_what_an_imported_report_lacks_and_the_option_that_adds_it(
    open_app: Open, tmp_path: Path, page: str, without: tuple[str, ...], lacks: str, option: str
) -> None:
    made_traces.write(tmp_path, without=without)
    app = open_app(tmp_path, page, run="trace")
    assert "The report report.nsys-rep has " in words(app) and lacks in words(app)
    assert "Import a report" not in words(app)
    (code,) = [block.value for block in app.main.code]
    assert code == f"nsys profile {option} --output=report COMMAND\nwarpladder import report.nsys-rep"


@pytest.mark.parametrize(("page", "option"), [("timeline", "ProfilerActivity.CUDA"), ("transfers", "ProfilerActivity.CUDA")])
def test_a_page_advises_the_options_of_pytorch_for_its_trace(open_app: Open, tmp_path: Path, page: str, option: str) -> None:
    path = tmp_path / "trace.json"
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 50, "args": {}}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [operator]}))
    app = open_app(tmp_path / "runs", page, run=import_report(path, tmp_path / "runs", "", None, []))
    assert option in words(app) and "nsys" not in words(app) and "--trace" not in words(app)
    (code,) = [block.value for block in app.main.code]
    assert option in code and "nsys" not in code


@pytest.mark.thorough
def test_the_commit_beside_an_import_is_not_shown_as_the_programs(open_app: Open, traced: Path, tmp_path: Path) -> None:
    app = open_app(traced, "overview", run="trace")
    assert "commit" not in app.main.caption[0].help
    export.write(load(store.open_run(traced / "trace")), tmp_path, ["csv"])
    report = (tmp_path / "report.html").read_text()
    assert "<dt>importer's commit</dt>" in report and "<dt>importer's Python</dt>" in report
    assert "<dt>commit</dt>" not in report


def test_a_hostile_kernel_name_is_text_in_every_chart(traced: Path, tmp_path: Path) -> None:
    data = load(store.open_run(traced / "trace"))
    charts = list(charts_of(data))
    assert [chart.name for chart in charts] == ["trace-kernels", "trace-api-calls", "transfers", "transfer-stages"]
    assert all("<img" not in chart.figure.to_json() for chart in charts)
    hostile = load(store.open_run(made_traces.write(tmp_path, label=HOSTILE)))
    export.write(hostile, tmp_path / "out", ["csv"])
    assert "<img src=x" not in (tmp_path / "out" / "report.html").read_text()
