"""Pages over runs that were imported: a page that such a run has nothing for says why, and what command gives it."""

import re
import shlex
from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs, made_runs, made_sweeps, made_traces
from tests.synthetic.made_runs import row
from warpladder.collectors.nsight_compute.parse import import_report
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.ui import widgets
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.home import page as home_page
from warpladder.dashboard.views.home import query as home
from warpladder.dashboard.views.time.transfers import chart as transfer_charts
from warpladder.dashboard.views.time.transfers import query as transfers
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store
from warpladder.data.naming import CellName, Naming
from warpladder.data.schema import TABLES

__all__ = ["open_app"]

REPORT = Path(__file__).parents[1] / "fixtures" / "nsight-compute-2025.3" / "report.ncu-rep"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    made_traces.write(folder, "trace")
    made_traces.write(folder, "without ranges", without=("ranges",))
    made_jobs.write(folder, broken=())
    made_runs.write_host_run(folder, "host", rounds=8)
    return folder


@pytest.mark.parametrize("page", ["ladder", "sizes", "why", "compare", "machine_code", "ranks"])
@pytest.mark.parametrize("run", ["without ranges", "job"])
def test_a_page_without_anything_to_show_of_a_profile_has_a_command(open_app: Open, folder: Path, page: str, run: str) -> None:
    app = open_app(folder, page, run=run)
    assert not app.exception
    if not app.main.get("bidi_component"):
        assert app.main.info and app.main.code
    assert "Record it again" not in words(app) and "cell by cell" not in words(app)


@pytest.mark.parametrize("run", ["trace", "job"])
def test_two_profiles_are_compared_by_the_command_that_the_page_shows(open_app: Open, folder: Path, run: str) -> None:
    app = open_app(folder, "compare", run=run)
    assert [block.value for block in app.main.code] == [f"warpladder compare BEFORE {folder / run}"]


def test_a_finding_is_one_kernel_and_its_name_is_that_of_the_summary(tmp_path: Path) -> None:
    """Kernels of one function with other template arguments are other kernels."""
    path = made_traces.write(tmp_path)
    (gemm,) = made_traces.KERNELS[:1]
    further = {
        "correlation": 98,
        "process": 100,
        "start_ns": 13_000,
        "end_ns": 13_500,
        "device": 0,
        "full_name": "gemm<int>(int*)",
    }
    nothing = {column.name: None for column in TABLES["kernels"].columns if column.nullable}
    made_sweeps.add(path, "kernels", [nothing | further | {"name": gemm[5], "stream": 7}])
    data = load(store.open_run(path))
    found, kernels = home.findings(data), home.profile(data).kernels
    shown = found[~found["what"].str.startswith("idle")].set_index("what")["time_ns"].to_dict()
    assert shown == dict(zip(kernels["name"], kernels["total_ns"], strict=True))
    assert shown["gemm<float>"] == 3_600 and shown["gemm<int>"] == 500


def test_home_of_a_trace_says_why_the_device_is_idle(open_app: Open, folder: Path) -> None:
    assert re.search(r"Idle: [a-z ]+ [\d.]+ %", words(open_app(folder, "home", run="trace")))


def test_shares_of_ranges_are_told_where_there_are_ranges(open_app: Open, folder: Path) -> None:
    assert "launched inside NVTX ranges" in words(open_app(folder, "timeline", run="trace"))
    assert "NVTX ranges" not in words(open_app(folder, "timeline", run="without ranges"))


@pytest.mark.parametrize(
    ("kind", "why"), [("unified_d2h", "the host uses managed memory"), ("h2d", "launch not in the profile")]
)
def test_a_gap_among_the_findings_has_its_cause(tmp_path: Path, kind: str, why: str) -> None:
    path = made_traces.write(tmp_path)
    nothing = {column.name: None for column in TABLES["memory_ops"].columns if column.nullable}
    copy = {"correlation": 97, "process": 100, "start_ns": 50_000, "end_ns": 51_000, "kind": kind, "device": 0, "stream": 7}
    made_sweeps.add(path, "memory_ops", [nothing | copy])
    found = home.findings(load(store.open_run(path)))
    assert found["what"].iloc[0] == f"idle: {why}" and found["time_ns"].iloc[0] == 50_000 - 12_300


def test_long_words_beside_the_bar_of_a_copy_have_room(tmp_path: Path) -> None:
    look = Look("light", {}, "", on_gpu=True)
    frame = transfers.transfers(load(store.open_run(made_traces.write(tmp_path)))).head(1)

    def room(unknown: int) -> float:
        axis = transfer_charts.transfers(frame.assign(unknown=unknown, n=550), look).figure.layout.xaxis
        return float(axis.range[1]) / float(frame["time_ns"].iloc[0])

    assert 1.7 < room(0) < room(184)


def test_a_migration_has_no_memory_of_the_host_in_its_name(tmp_path: Path) -> None:
    path = made_traces.write(tmp_path)
    nothing = {column.name: None for column in TABLES["memory_ops"].columns if column.nullable}
    further = {
        "correlation": 97,
        "process": 100,
        "start_ns": 14_000,
        "end_ns": 19_000,
        "kind": "unified_h2d",
        "bytes": 4_096,
        "device": 0,
    }
    made_sweeps.add(path, "memory_ops", [nothing | further | {"stream": 7}])
    data = load(store.open_run(path))
    chart = transfer_charts.transfers(transfers.transfers(data), Look("light", {}, "", on_gpu=True))
    assert "migration to the device: 4.10 kB" in chart.title


def test_ranges_of_a_profile_can_become_variants(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="trace")
    assert "Import its report again with a pattern that takes its NVTX ranges as variants" in words(app)
    (code,) = [block.value for block in app.main.code]
    command, report, option, pattern = shlex.split(code)[1:]
    assert (command, report, option) == ("import", "report.nsys-rep", "--variant-from")
    assert Naming.parse(pattern).name(["tiled n=8"], "app") == [CellName("app", "tiled", "", "8")]


@pytest.mark.parametrize(
    ("ships", "how"),
    [(True, "warpladder record tensor_transpose"), (False, "warpladder new my_kernel\nwarpladder record my_kernel.py")],
)
def test_a_report_of_counters_says_how_its_kernels_get_times(open_app: Open, tmp_path: Path, ships: bool, how: str) -> None:
    """A workload that ships is recorded with its name; of kernels of one's own, variants are written first."""
    if ships:
        made_runs.write(tmp_path / "no-recorded-runs", "shipped", rounds=8, workloads=("tensor_transpose",))
    run = import_report(REPORT, tmp_path / "runs", "", None, [])
    app = open_app(tmp_path / "runs", "ladder", run=run)
    assert "A report of counters has the times of single executions under the profiler." in words(app)
    assert [block.value for block in app.main.code] == [how]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("largest part: idle", "Largest part: idle"),
        ("gemm_f32 differs the most: rank 2", "gemm_f32 differs the most: rank 2"),
        ("3 steps: median 2 ms", "3 steps: median 2 ms"),
        ("add<int> differs", "add<int> differs"),
    ],
)
def test_a_sentence_has_a_capital_and_a_name_keeps_its_letters(told: str, shown: str) -> None:
    assert home_page._capital(told) == shown


@pytest.mark.parametrize(
    ("run", "sentence", "topics"),
    [
        (
            "trace",
            "Yes: the import found nothing in the profile that is missing or doubtful.",
            ["Findings", r"Launches \& copies", "Run"],
        ),
        ("job", "Yes: the import found nothing in the profile that is missing or doubtful.", ["Findings", "Run"]),
    ],
)
def test_trust_has_of_a_profile_what_a_profile_can_have(
    open_app: Open, folder: Path, run: str, sentence: str, topics: list[str]
) -> None:
    app = open_app(folder, "trust", run=run)
    assert sentence in words(app)
    assert list(app.segmented_control(key="choose topic").options) == topics


def test_of_a_report_alone_no_experiment_can_be_made(open_app: Open, tmp_path: Path) -> None:
    run = import_report(REPORT, tmp_path / "runs", "", None, [])
    app = open_app(tmp_path / "runs", "why", run=run, section="experiments")
    assert "which a report of tensor_transpose does not allow" in words(app)
    assert [block.value for block in app.main.code] == [widgets.HOW_TO_RECORD_OWN]


def test_what_a_profiler_could_not_collect_is_no_doubt_about_the_rest(tmp_path: Path) -> None:
    path = made_traces.write(tmp_path)
    told = {"severity": "error", "source": "nsys", "text": "Unable to collect CPU samples"}
    made_sweeps.add(path, "diagnostics", [row("diagnostics", **told)])
    sentence = "In part. Nsight Systems names data that it could not collect."
    assert trust.verdict(load(store.open_run(path)), tmp_path).sentence == sentence
    made_sweeps.add(path, "diagnostics", [row("diagnostics", **told | {"source": "dropped"})])
    assert trust.verdict(load(store.open_run(path)), tmp_path).sentence == "No: 1 check found an error."


def test_trust_has_every_topic_of_a_recording(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "trust", run="host", topic="ceilings")
    assert len(app.segmented_control(key="choose topic").options) == 7


@pytest.mark.parametrize("page", ["home", "calls", "timeline", "transfers", "trust"])
def test_a_screen_reader_finds_the_answer_as_the_first_heading_below_that_of_the_page(
    open_app: Open, folder: Path, page: str
) -> None:
    app = open_app(folder, page, run="trace")
    marks = [block.value.partition(" ")[0] for block in app.main.markdown if block.value.startswith("#")]
    assert marks[0] == "#" and set(marks[1:]) == {"##"}
