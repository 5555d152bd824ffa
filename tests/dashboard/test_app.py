"""The pages with no run and beside bad runs, their choices and their URLs, through Streamlit's own test driver. `tests/walk` opens
each page on each run."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import choose_run, lead, plotted, rows, run_of
from tests.synthetic import made_runs
from warpladder.dashboard.views import VIEWS
from warpladder.data import figures, store

APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"
#: Each section, which is opened by its own name; the first one of a page may be the page.
PAGES = tuple(section.name for view in VIEWS for section in view.sections)
Open = Callable[..., AppTest]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a GPU run `gpu` and a host run `host`."""
    folder = tmp_path_factory.mktemp("synthetic")
    made_runs.write(folder, "gpu", rounds=20)
    made_runs.write_host_run(folder, "host")
    return folder


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """Opens a page on the runs of one folder alone."""
    monkeypatch.setattr(store, "LOCAL", tmp_path / "no-local-runs")
    monkeypatch.setattr(store, "RECORDED", tmp_path / "no-recorded-runs")

    def opened(folder: Path, page: str = "home", **query: str) -> AppTest:
        monkeypatch.setenv("WARPLADDER_DATA_DIR", str(folder))
        app = AppTest.from_file(str(APP), default_timeout=30)
        if page != "home":
            lead(app, page)
        app.query_params.update(query)
        app.run()
        assert not app.exception, app.exception[0].message
        return app

    return opened


def words(app: AppTest) -> str:
    """All the prose of a page, without the marks that keep names from being read as Markdown."""
    blocks = (*app.main.markdown, *app.main.caption, *app.main.info, *app.main.error, *app.main.warning)
    return " ".join(str(block.value) for block in blocks).replace("\\", "")


@pytest.mark.parametrize("page", PAGES)
def test_with_no_run_every_page_says_what_to_type(open_app: Open, tmp_path: Path, page: str) -> None:
    app = open_app(tmp_path / "empty", page)
    assert [block.value for block in app.main.code] == ["warpladder record"]


@pytest.fixture(scope="module")
def beside_bad_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    made_runs.write_host_run(folder, "good", rounds=8)
    truncated = made_runs.write_host_run(folder, "truncated", rounds=8) / "samples.parquet"
    truncated.write_bytes(truncated.read_bytes()[:1000])
    foreign = made_runs.write_host_run(folder, "foreign", rounds=8) / "cases.parquet"
    cases = pq.read_table(foreign)
    pq.write_table(cases.append_column("colour", pa.array(["red"] * len(cases))), foreign)
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", PAGES)
def test_bad_runs_stop_no_page_and_are_named_on_each(open_app: Open, beside_bad_runs: Path, page: str) -> None:
    app = open_app(beside_bad_runs, page)

    assert run_of(app) == "good"
    if page != "trust":
        assert "Cannot be opened: foreign, truncated" in words(app)
    else:
        reasons = [str(block.value).replace("\\", "") for block in app.main.error]
        assert len(reasons) == 2
        assert "foreign column colour" in reasons[0]
        assert "samples.parquet: not a readable parquet file" in reasons[1]
        assert all("record or import the run again" in reason for reason in reasons)


def test_a_run_damaged_behind_its_footer_says_so_and_leaves_the_others_open(open_app: Open, tmp_path: Path) -> None:
    made_runs.write_host_run(tmp_path, "good", rounds=8)
    samples = made_runs.write_host_run(tmp_path, "damaged", rounds=8) / "samples.parquet"
    content = bytearray(samples.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    samples.write_bytes(content)

    app = open_app(tmp_path, "ladder", run="damaged")
    assert "samples.parquet: damaged" in words(app)

    choose_run(app, "good")
    assert not app.error
    assert not app.exception


def test_overview_gives_the_figures_with_interval_n_and_what_the_checks_distrust(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, run="gpu")
    frame = rows(app).set_index("Workload")
    assert frame["Best rung"].to_dict() == {"conv2d": "v04_sliding", "tensor_transpose": "v05_swizzled"}
    # 8 * 8192^2 bytes at 0.985 of 4000 GB/s, and 1.5 us.
    assert float(frame.loc["conv2d", "Time"].partition(" µs ±")[0]) == pytest.approx(137.76, rel=0.005)
    assert [len(percents) for percents in frame["By size"]] == [5, 3], "a bar for each size"
    assert frame.loc["conv2d", "⚠"].startswith("⚠")
    text = words(app)
    assert "n ≥ 20" in text and "95 % intervals" in text
    assert "conv2d: 1 cell flagged: throttling" in text


def test_a_choice_goes_into_the_url_and_the_url_gives_the_same_page_again(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu")
    place = {"run": "gpu", "workload": "tensor_transpose"}
    assert chosen_of(app) == place, "the URL names the run, the workload and what differs from the default"
    app.selectbox(key="choose workload").set_value("conv2d").run()
    app.selectbox(key="choose metric").set_value("gb_per_s").run()
    app.segmented_control(key="choose cache").set_value("hot").run()
    chosen = chosen_of(app)
    assert chosen == {"run": "gpu", "workload": "conv2d", "cache": "hot", "metric": "gb_per_s"}

    again = open_app(synthetic, "sizes", **chosen)
    assert again.selectbox(key="choose workload").value == "conv2d"
    assert again.selectbox(key="choose metric").value == "gb_per_s"
    assert again.segmented_control(key="choose cache").value == "hot"
    assert chosen_of(again) == chosen


def chosen_of(app: AppTest) -> dict[str, str]:
    return {key: "".join(values) for key, values in app.query_params.items()}


@pytest.mark.thorough
def test_a_url_with_a_run_is_whole_and_the_menu_keeps_the_choices(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "ladder", run="gpu")
    for page, query, shown in (
        ("sizes", {}, ["tensor_transpose", "cold"]),
        ("sizes", {"run": "gpu", "workload": "conv2d", "cache": "hot"}, ["conv2d", "hot"]),
        ("roofline", {}, ["conv2d", "hot"]),
        ("ladder", {"run": "gpu"}, ["tensor_transpose", "cold"]),  # as Back does
        ("sizes", {"run": "gpu", "workload": "conv2d", "cache": "hot"}, ["conv2d", "hot"]),
    ):
        lead(app, page)
        app.query_params.clear()
        app.query_params.update(query)
        app.run()
        assert [app.selectbox(key="choose workload").value, app.segmented_control(key="choose cache").value] == shown, (
            page,
            query,
        )


def test_a_rerun_that_carries_an_old_url_undoes_no_choice(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu")
    app.selectbox(key="choose workload").set_value("conv2d").run()
    app.query_params["workload"] = "tensor_transpose"
    app.segmented_control(key="choose cache").set_value("hot").run()
    assert app.query_params["workload"] == "conv2d"
    assert app.query_params["cache"] == "hot"


@pytest.mark.thorough
def test_a_url_changed_by_the_back_button_is_followed(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu")
    app.selectbox(key="choose workload").set_value("conv2d").run()
    app.query_params["workload"] = "tensor_transpose"
    app.run()
    assert app.selectbox(key="choose workload").value == "tensor_transpose"


def test_the_axes_of_a_case_live_in_the_url_one_by_one(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "ladder", run="gpu", workload="tensor_transpose", **{"case.n": "256", "case.perm": "120"})
    assert app.query_params["case.n"] == "256"
    assert app.query_params["case.perm"] == "120"
    app.selectbox(key="choose case.n").set_value("64").run()
    assert (app.query_params["case.n"], app.query_params["case.perm"]) == ("64", "120")


def test_an_unknown_value_in_the_url_falls_back_with_one_line(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu", metric="<b>joy</b>")
    assert app.selectbox(key="choose metric").value == "median_ns"
    assert "The link asks for metric <b>joy</b>, which is not here; showing median_ns." in words(app)


@pytest.mark.parametrize("gone", [{"workload": "raytracer"}, {"case.n": "77"}])
def test_a_workload_or_a_case_that_is_gone_is_said_to_be(open_app: Open, synthetic: Path, gone: dict[str, str]) -> None:
    app = open_app(synthetic, "ladder", run="gpu", **gone)
    assert f"{next(iter(gone.values()))}, which is not here." in words(app)
    assert not plotted(app)
    (link,) = app.main.get("page_link")
    assert (link.proto.page, link.proto.query_string) == ("ladder", "run=gpu")


def test_a_run_that_is_gone_is_said_to_be_and_nothing_takes_its_place(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "ladder", run="gone")
    for _ in range(2):
        assert "The link asks for run gone, which is not here" in words(app)
        assert chosen_of(app) == {"run": "gone"} and not plotted(app)
        assert set(rows(app)["Run"]) == {"gpu", "host"}, "the runs to choose from"
        app.run()


def test_what_was_chosen_on_one_page_is_kept_on_the_next(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu", workload="conv2d")
    lead(app, "ladder")
    app.query_params.clear()
    app.run()
    assert app.selectbox(key="choose workload").value == "conv2d"
    assert app.query_params["workload"] == "conv2d"
    assert "metric" not in app.query_params


def shown_variants(app: AppTest) -> list[str]:
    return list(app.button_group(key="choose variants").value)


@pytest.mark.thorough
def test_the_variants_chosen_of_a_workload_stay_with_it(open_app: Open, synthetic: Path) -> None:
    """The two workloads have three host variants in common."""
    app = open_app(synthetic, "sizes", run="gpu", workload="conv2d", scope="operation")
    app.button_group(key="choose variants").set_value(["v01_naive", "numpy"]).run()
    assert shown_variants(app) == ["v01_naive", "numpy"]
    assert "2 of 10 variants are shown" in words(app)
    assert "first of the 2 shown is v01_naive" in words(app)
    app.selectbox(key="choose workload").set_value("tensor_transpose").run()
    assert len(shown_variants(app)) == 8, "all of the device"
    assert "8 of 11 variants are shown" in words(app)
    assert "first is v05_swizzled" in words(app)
    assert "variants" not in app.query_params
    app.selectbox(key="choose workload").set_value("conv2d").run()
    assert shown_variants(app) == ["v01_naive", "numpy"]


@pytest.mark.thorough
def test_the_variants_chosen_of_a_run_stay_with_it(open_app: Open, tmp_path: Path) -> None:
    for name in ("first", "second"):
        made_runs.write(tmp_path, name, rounds=8)
    app = open_app(tmp_path, "sizes", run="first", workload="conv2d")
    app.button_group(key="choose variants").set_value(["cudnn"]).run()
    choose_run(app, "second", workload="conv2d")
    assert len(shown_variants(app)) == 7
    assert "first is v04_sliding" in words(app)


@pytest.mark.thorough
def test_a_link_to_a_narrowed_view_opens_it(open_app: Open, synthetic: Path) -> None:
    link = {"run": "gpu", "workload": "conv2d", "variants": ["cudnn", "v02_shared"]}
    app = open_app(synthetic, "sizes", **link)
    assert set(shown_variants(app)) == {"v02_shared", "cudnn"}
    assert "2 of 7 variants are shown" in words(app)
    assert app.query_params["variants"] == ["v02_shared", "cudnn"]
    app.selectbox(key="choose metric").set_value("gb_per_s").run()
    assert set(shown_variants(app)) == {"v02_shared", "cudnn"}


def test_a_link_to_variants_that_are_not_there_shows_all_and_says_so(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, "sizes", run="gpu", workload="conv2d", variants="v99_gone")
    assert len(shown_variants(app)) == 7
    assert "The link asks for variants v99_gone, which is not here" in words(app)


def test_a_name_that_is_markup_is_shown_as_text(open_app: Open, synthetic: Path) -> None:
    app = open_app(synthetic, run="**bold** [link](http://example.com) :red[x]")
    shown = [str(block.value) for block in app.main.warning if "The link asks for" in str(block.value)]
    assert len(shown) == 1
    assert r"\*\*bold\*\* \[link\]\(http\:" in shown[0]


@pytest.fixture(scope="module")
def without_device_time(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which a rung has no device time, as a program that computes on the host in between."""
    folder = tmp_path_factory.mktemp("without")
    file = made_runs.write(folder, "gpu", rounds=8) / "samples.parquet"
    table = pq.read_table(file)
    text = {name: table[name].cast(pa.string()) for name in ("variant", "scope")}
    gone = pc.and_(pc.equal(text["variant"], "v03_register_tile"), pc.equal(text["scope"], "device"))
    assert 0 < pc.sum(gone).as_py() < len(table)
    pq.write_table(table.filter(pc.invert(gone)), file)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["home", "sizes", "ladder", "roofline", "details", "trust"])
def test_a_rung_without_device_time_takes_no_page_away(open_app: Open, without_device_time: Path, page: str) -> None:
    app = open_app(without_device_time, page, run="gpu", workload="conv2d")
    assert not app.error


@pytest.mark.thorough
def test_an_interrupted_run_opens_at_the_largest_case_that_it_has(open_app: Open, tmp_path: Path) -> None:
    """Of 512 to 8192 the last two were not reached."""
    file = made_runs.write(tmp_path, "gpu", rounds=8) / "samples.parquet"
    table = pq.read_table(file)
    last = pc.is_in(table["case"].cast(pa.string()), pa.array(["n=4096", "n=8192"]))
    pq.write_table(table.filter(pc.invert(last)), file)
    app = open_app(tmp_path, "ladder", run="gpu", workload="conv2d")
    assert app.selectbox(key="choose case.n").value == "2048"
    assert not app.info


@pytest.mark.sampled(3)
@pytest.mark.parametrize("topic", ["copies", "overheads", "blocks", "phases", "routes"])
@pytest.mark.parametrize("workload", ["tensor_transpose", "conv2d"])
def test_each_table_of_the_details_opens_or_says_why_not(open_app: Open, synthetic: Path, topic: str, workload: str) -> None:
    app = open_app(synthetic, "details", run="gpu", topic=topic, workload=workload)
    assert app.button_group(key="choose topic").value == topic


@pytest.mark.thorough
@pytest.mark.parametrize("report", figures.reports())
def test_every_published_table_opens(open_app: Open, synthetic: Path, report: str) -> None:
    app = open_app(synthetic, "published", run="gpu", workload=report)
    for table in app.selectbox(key="choose table").options:
        app.selectbox(key="choose table").select(table)
        app.run()
        assert not app.exception, (table, app.exception[0].message)


@pytest.mark.thorough
def test_published_opens_at_the_report_of_a_workload_that_the_run_has(open_app: Open, synthetic: Path) -> None:
    # Of those of conv2d and tensor_transpose the first; the reports begin with that of cnn_conv.
    assert open_app(synthetic, "published", run="gpu").selectbox(key="choose workload").value == "conv2d"


@pytest.mark.parametrize("page", ["home", "roofline", "trust"])
@pytest.mark.parametrize("value", [[], [""]])
def test_a_data_dir_without_a_value_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, page: str, value: list[str]) -> None:
    monkeypatch.setattr("sys.argv", ["app.py", "--data-dir", *value])
    app = AppTest.from_file(str(APP), default_timeout=30)
    if page != "home":
        lead(app, page)
    app.run()
    assert not app.exception
    assert "--data-dir" in app.main.error[0].value.replace("\\", "")


def test_no_page_allows_unsafe_html_or_fetches_an_icon_font() -> None:
    for file in APP.parent.rglob("*.py"):
        source = file.read_text()
        for banned in ("unsafe_allow_html", "st.html", "components.v1", ":material/", "pickle", "eval("):
            assert banned not in source, f"{file.name} has {banned}"
