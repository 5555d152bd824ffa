"""A job of reports in which CUDA graphs were traced as a whole: what communicates in them is not known, and the ranks' warnings say so."""

from pathlib import Path

import pytest

from tests.collectors.jobs.made_reports import ALL_REDUCE, GEMM, JobReport
from tests.collectors.nsight_systems.reports import write
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles, tell
from warpladder.collectors.trace.notes import Notes
from warpladder.dashboard.compare import job_changes
from warpladder.dashboard.compare.job_changes import GRAPHS, JobData
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.text import compare_jobs
from warpladder.dashboard.text.job import render
from warpladder.dashboard.ui.template import Look
from warpladder.dashboard.views.ranks import chart, query
from warpladder.dashboard.views.ranks.critical_path import query as critical_path
from warpladder.data import store

_STEPS, _US = 4, 1000


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def imported(folder: Path, notes: Notes) -> store.Run:
    """Two ranks whose product of 100 us a step is a graph; its all-reduce of 30 us, which follows after 1 us, is none."""
    made = JobReport([(70, 0), (80, 1)], steps=_STEPS).tables()
    kernels = made["CUPTI_ACTIVITY_KIND_KERNEL"]
    of_graph = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
    made["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [
        {**{name: row[name] for name in of_graph}, "graphId": 3} for row in kernels if row["demangledName"] == GEMM
    ]
    made["CUPTI_ACTIVITY_KIND_KERNEL"] = [row for row in kernels if row["demangledName"] == ALL_REDUCE]
    write(folder / "report.sqlite", made)
    run_id = import_job(Request(profiles(str(folder / "report.sqlite")), ""), folder / "runs", notes)
    return store.open_run(folder / "runs" / run_id)


@pytest.mark.slow
def test_graphs_are_a_class_of_their_own_and_what_communicates_is_not_known(tmp_path: Path) -> None:
    run = imported(tmp_path, Notes())
    ranks = run.table("ranks")
    assert ranks["graph_ns"].tolist() == [_STEPS * 100 * _US] * 2 and ranks["compute_ns"].tolist() == [0, 0]
    idle = ranks[["host_wait_ns", "kernel_wait_ns", "other_idle_ns"]].sum(axis=1)
    assert (ranks["graph_ns"] + ranks["exposed_ns"] + idle).tolist() == ranks["span_ns"].tolist()
    assert set(run.table("rank_kernels").query("kind == 'graph'")["name"]) == {"[CUDA graph]"}
    answer, rows = query.answer(load(run)), query.breakdown(load(run))
    # Graphs of 100 us and all-reduces of 29 us a step: each rank arrives 1 us after its product, and leaves 30 us after it.
    assert answer.graph_percent == pytest.approx(100 * 100 / 129)
    assert rows[["communication_ns", "exposed_ns"]].isna().all(axis=None)
    assert query.by_iteration(load(run))["exposed_ns"].isna().all()


@pytest.mark.slow
def test_the_summary_tells_how_to_profile_in_place_of_a_figure(tmp_path: Path) -> None:
    lines = render(load(imported(tmp_path, Notes())), "table").replace("\n  ", " ").splitlines()
    # Four graphs of 100 us on each rank.
    assert any(line.split("  ")[0] == "CUDA graphs, whose kernels are not known" and " 400 µs" in line for line in lines)
    assert lines[-1].startswith("next: profile with nsys profile --cuda-graph-trace=node:")
    assert not any("exposed" in line for line in lines)
    heading = next(line for line in lines if line.startswith("rank"))
    assert "graphs" in heading


@pytest.mark.thorough
def test_the_charts_show_what_is_known(tmp_path: Path) -> None:
    figures, breakdown = chart.charts(load(imported(tmp_path, Notes())), Look("light", {}, "", on_gpu=True))
    assert "busy_ns" in figures.data and "traced whole" in figures.title
    assert "CUDA graphs" in {bar.name for bar in breakdown.figure.data}


@pytest.mark.thorough
def test_graphs_on_the_critical_path_are_no_compute_and_a_note_tells_so(tmp_path: Path) -> None:
    data = load(imported(tmp_path, Notes()))
    found = critical_path.path(data, 2)
    kinds = critical_path.by_kind(found).set_index("kind")["time_ns"]
    assert kinds["CUDA graphs"] == 100 * _US and "compute" not in kinds
    assert any("traced as a whole" in note for note in critical_path.notes(found))


@pytest.mark.slow
def test_a_comparison_has_no_figures_of_what_runs_in_graphs(tmp_path: Path) -> None:
    job = JobData.of(imported(tmp_path, Notes()))
    found = job_changes.compare(job, job)
    assert GRAPHS in [each.name for each in found.figures] and not {"compute", "communication"} & {
        each.name for each in found.figures
    }
    assert "not known, and not compared" in compare_jobs.render(found, job, job, compare_jobs.JobGate(), "table")


@pytest.mark.slow
def test_the_warnings_of_the_ranks_are_those_of_the_job(tmp_path: Path) -> None:
    notes = Notes()
    imported(tmp_path, notes)
    texts = [row["text"] for row in notes.rows if row["severity"] == "warning" and "traced as a whole" in row["text"]]
    assert len(texts) == 1 and texts[0].startswith(f"{2 * _STEPS} CUDA graph launches were traced as a whole")
    assert texts[0].endswith("profile with --cuda-graph-trace=node (all 2 ranks)")


def warned(*texts: str, severity: str = "warning") -> list[dict[str, str]]:
    return [{"severity": severity, "source": "streams", "text": text} for text in texts]


@pytest.mark.parametrize(
    ("of_ranks", "told"),
    [
        ({0: warned("a"), 1: warned("a"), 2: []}, ["a (ranks 0 and 1)"]),
        (
            {0: warned("1,000 kernels are left out"), 1: warned("1 kernels are left out")},
            ["1,001 kernels are left out (all 2 ranks)"],
        ),
        ({0: [], 3: warned("gemm lasts 3.4 s over 289 others")}, ["gemm lasts 3.4 s over 289 others (rank 3)"]),
        (
            {0: warned("gemm lasts 3.4 s"), 1: warned("gemm lasts 2 s")},
            ["gemm lasts 3.4 s (rank 0; with other numbers on rank 1)"],
        ),
        ({0: warned("of the job", "b"), 1: []}, ["b (rank 0)"]),
        ({0: warned("a", severity="info"), 1: []}, []),
        ({rank: warned("a") for rank in range(10)} | {10: []}, ["a (ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more)"]),
        ({5: warned("a")}, ["a"]),
    ],
)
def test_a_warning_is_told_once_with_its_ranks(of_ranks: dict[int, list[dict[str, str]]], told: list[str]) -> None:
    notes = Notes()
    notes.add("warning", "streams", "of the job")
    tell(of_ranks, notes)
    assert [row["text"] for row in notes.rows[1:]] == told
