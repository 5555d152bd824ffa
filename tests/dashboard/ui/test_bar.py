"""The bar: a run is found, named by a link, or chosen in the table."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.dashboard.pages import choose_run, plotted, rows, run_of
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps, made_traces
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.text import summary
from warpladder.dashboard.ui import runs
from warpladder.dashboard.views.trust.query import verdict
from warpladder.data import store
from warpladder.data.names import Source
from warpladder.data.schema import TABLES

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transpositions and convolutions of two days on a GPU, products on the same GPU, a host, and a trace."""
    made = tmp_path_factory.mktemp("many")
    for name, day in (("older", 1), ("newer", 2)):
        dated(made_runs.write(made, name, rounds=6), day)
    dated(made_runs.write_precisions(made, "products", rounds=6), 3)
    made_runs.write_host_run(made, "host", rounds=6)
    products = tuple(each for each in made_runs.PRECISIONS if each.kind == "host")
    made_runs.write_variants(made, "products on a host", "", products, 6, 9, on_gpu=False)
    made_sweeps.write_counted(made, "counted")
    made_traces.write(made, "trace")
    return made


def dated(run: Path, day: int) -> None:
    """Make a run one of that day of March."""
    file = run / "run.parquet"
    table = pq.read_table(file)
    place = table.schema.get_field_index("started_at")
    started = pa.array([pa.scalar(1_772_323_200_000_000 + day * 86_400_000_000).as_py()]).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(table.set_column(place, table.schema.field(place), started.cast(table.schema.field(place).type)), file)


@pytest.mark.thorough
def test_another_workload_shows_its_newest_suitable_run_which_the_url_names(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", workload="conv2d")
    assert run_of(app) == "newer"
    app.selectbox(key="choose workload").set_value("gemm").run()
    assert run_of(app) == "products"
    app.selectbox(key="choose workload").set_value("tensor_transpose").run()
    assert run_of(app) == "newer"


@pytest.mark.thorough
def test_a_run_that_a_link_names_stays_while_it_has_the_workload(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="older", workload="conv2d")
    app.selectbox(key="choose workload").set_value("tensor_transpose").run()
    assert run_of(app) == "older"
    app.selectbox(key="choose workload").set_value("gemm").run()
    assert run_of(app) == "products"


def test_a_link_to_a_run_without_the_workload_says_so_and_shows_no_other(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="older", workload="gemm")
    assert run_of(app) == "older" and "This run has no gemm" in words(app)
    assert not plotted(app)


def in_three_processes(run: Path) -> Path:
    """A run whose rounds three processes took."""
    samples = pq.read_table(run / "samples.parquet")
    processes = pa.array([each % 3 for each in samples["round"].to_pylist()], samples.schema.field("process").type)
    pq.write_table(samples.set_column(samples.schema.get_field_index("process"), "process", processes), run / "samples.parquet")
    return run


@pytest.mark.parametrize(
    ("source", "text", "shown"),
    [
        ("", "", "finished"),
        (Source.FEWER_PROCESSES, "the rounds are of 1 and not of 3 processes, since another one does not fit", "finished"),
        (
            Source.NOT_REACHED,
            "15 of 25 cases not reached within 60 s of measuring; to measure all: warpladder record",
            "finished; 15 of 25 cases not reached within 60 s of measuring",
        ),
        (Source.INTERRUPTED, "the run was interrupted; what was finished by then is kept", "interrupted"),
        (Source.CUT_OFF, "the recording's process was killed before it was done", "killed before its end"),
    ],
)
def test_the_bar_tells_how_a_recording_ended(open_app: Open, tmp_path: Path, source: str, text: str, shown: str) -> None:
    run = in_three_processes(made_runs.write_host_run(tmp_path, "spare", rounds=6))
    if source:
        file = run / "diagnostics.parquet"
        schema = pq.read_schema(run / "diagnostics.parquet") if file.exists() else TABLES["diagnostics"].arrow
        told = made_runs.row("diagnostics", severity="info", source=source, text=text)
        pq.write_table(pa.Table.from_pylist([told], schema), file)
    app = open_app(tmp_path, "calls", run="spare")
    caption = next(each.value for each in app.main.caption if " UTC" in each.value)
    assert caption.replace("\\", "").endswith(f" UTC · {shown}")
    told_of = {
        Source.NOT_REACHED: "what was not reached is missing",
        Source.FEWER_PROCESSES: "how far processes differ is not known",
    }
    found = verdict(load(store.open_run(run)), tmp_path).but
    assert [text in found for text in told_of.values()] == [each == source for each in told_of]


def test_trust_ladder_and_summary_tell_that_one_process_took_all_samples(open_app: Open, tmp_path: Path) -> None:
    one = made_runs.write_host_run(tmp_path, "one", rounds=6)
    three = in_three_processes(made_runs.write_host_run(tmp_path, "three", rounds=6))
    remark = "ne process took all samples: how far processes differ is not known"
    for run, told in ((one, True), (three, False)):
        stored = store.open_run(run)
        assert any(line == f"o{remark}" for line in summary.findings(stored)) == told
        assert ("how far processes differ is not known" in verdict(load(stored), tmp_path).but) == told
        assert (f"O{remark}." in words(open_app(tmp_path, "ladder", run=run.name, workload="conv2d"))) == told


@pytest.mark.parametrize("name", ["trace", "counted"])
def test_the_bar_tells_of_no_import_that_it_finished(open_app: Open, folder: Path, name: str) -> None:
    app = open_app(folder, "calls", run=name)
    (caption,) = (each.value for each in app.main.caption if " UTC" in each.value)
    imported = store.find_run(name, [folder]).info["kind"] == "import"
    assert ("finished" in caption) == (not imported)


def test_a_run_brings_its_own_workload(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", workload="conv2d")
    choose_run(app, "products")
    assert app.selectbox(key="choose workload").value == "gemm"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("page", "run"), [("timeline", "trace"), ("calls", "trace"), ("counters", "counted"), ("ladder", "products")]
)
def test_a_page_finds_a_run_with_what_it_needs_where_none_is_named(open_app: Open, folder: Path, page: str, run: str) -> None:
    assert run_of(open_app(folder, page)) == run


def test_a_page_offers_the_runs_that_have_what_the_run_of_a_link_lacks(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "timeline", run="newer")
    assert run_of(app) == "newer" and "This run has no trace" in words(app)
    links = [link.proto.query_string for link in app.main.get("page_link") if link.proto.page == "timeline"]
    assert links == ["run=trace"]


def test_the_menu_has_the_pages_that_apply_to_the_run(open_app: Open, folder: Path) -> None:
    def of(run: str) -> list[str]:
        app = open_app(folder, "calls", run=run)
        return list(app.session_state["pages in the menu"])

    assert of("newer") == ["home", "ladder", "why", "sizes", "devices", "compare", "reports", "trust"]
    assert of("host") == ["home", "ladder", "sizes", "devices", "reports", "trust"], "no other run of the host to compare with"
    assert of("products on a host") == ["home", "ladder", "sizes", "devices", "trust"], "no report on products"
    assert of("trace") == ["home", "time", "timeline", "trust"]


def test_home_offers_other_workloads_only_where_the_device_has_some(open_app: Open, folder: Path, tmp_path: Path) -> None:
    assert [toggle.key for toggle in open_app(folder, run="host").main.toggle] == ["other workloads"]
    made_runs.write_host_run(tmp_path, "alone", rounds=6)
    assert not open_app(tmp_path, run="alone").main.toggle


def test_a_run_is_found_by_a_word_and_by_its_note(open_app: Open, tmp_path: Path) -> None:
    for name in ("kept", "spare"):
        made_runs.write_host_run(tmp_path, name, rounds=6)
    app = open_app(tmp_path, run="gone")  # shows the table of runs, as the button of the bar does
    assert sorted(rows(app)["Run"]) == ["kept", "spare"]
    app.text_input(key="runs that contain").set_value("spare").run()
    assert list(rows(app)["Run"]) == ["spare"]

    (spare,) = (run for run in store.list_runs([tmp_path])[0] if run.run_id == "spare")
    store.set_note(spare, "before tiling")
    assert store.notes([tmp_path]) == {spare.path: "before tiling"}
    app.text_input(key="runs that contain").set_value("tiling").run()
    assert list(rows(app)["Note"]) == ["before tiling"]


def test_a_run_that_is_deleted_behind_the_page_is_told(open_app: Open, tmp_path: Path) -> None:
    """Within the seconds for which the listing of runs is kept: the check of the run finds that it is gone."""
    made_runs.write_host_run(tmp_path, "spare", rounds=6)
    path = made_runs.write_host_run(tmp_path, "deleted", rounds=6)
    app = open_app(tmp_path, "trust", run="deleted")
    assert not app.exception
    path.rename(tmp_path / ".deleted")
    app.run()
    assert "The link asks for run deleted, which is not here" in words(app) and not app.exception


def test_a_listing_that_ends_while_it_is_looked_up_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([KeyError("its key"), "made again"])

    def kept(folders: tuple[Path, ...]) -> object:
        answer = next(answers)
        if isinstance(answer, KeyError):
            raise answer
        return answer

    monkeypatch.setattr(runs, "_kept_listing", kept)
    assert runs.listing(()) == "made again"
