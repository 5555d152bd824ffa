"""Pages over runs that were imported: a page that such a run has nothing for says why, and what command gives it."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs, made_runs, made_traces
from warpladder.collectors.nsight_compute.parse import import_report

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
    assert [block.value for block in app.main.code] == [f"warpladder compare BEFORE {run}"]


def test_ranges_of_a_profile_can_become_variants(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="trace")
    assert "This run has no variants to compare. Its NVTX ranges can be:" in words(app)
    assert "time" in [link.proto.page for link in app.main.get("page_link")]


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


def test_trust_has_every_topic_of_a_recording(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "trust", run="host", topic="ceilings")
    assert len(app.segmented_control(key="choose topic").options) == 8
