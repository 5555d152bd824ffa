"""Pages choose device and workload; the run is found, and a run chosen by hand or by a link stays."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import lead
from tests.dashboard.test_app import Open, chosen_of, open_app, words
from tests.synthetic import made_runs, made_sweeps, made_traces

__all__ = ["open_app"]

pytestmark = [pytest.mark.xdist_group("app"), pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Transpositions and convolutions of two days on a GPU, products on the same GPU, a host, and a trace."""
    made = tmp_path_factory.mktemp("many")
    for name, day in (("older", 1), ("newer", 2)):
        dated(made_runs.write(made, name, rounds=6), day)
    dated(made_runs.write_precisions(made, "products", rounds=6), 3)
    made_runs.write_host_run(made, "host", rounds=6)
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


def run_of(app: AppTest) -> str:
    return str(app.sidebar.selectbox(key="choose run").value)


def test_another_workload_shows_its_newest_suitable_run_which_the_url_names(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", workload="conv2d")
    assert run_of(app) == "newer"
    assert "Newest suitable run of conv2d" in words(app)
    app.segmented_control(key="choose workload").set_value("gemm").run()
    assert run_of(app) == "products" == chosen_of(app)["run"]
    app.segmented_control(key="choose workload").set_value("tensor_transpose").run()
    assert run_of(app) == "newer"


def test_a_run_that_a_link_names_stays_while_it_has_the_workload(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", run="older", workload="conv2d")
    app.segmented_control(key="choose workload").set_value("tensor_transpose").run()
    assert run_of(app) == "older" == chosen_of(app)["run"]
    app.segmented_control(key="choose workload").set_value("gemm").run()
    assert run_of(app) == "products" == chosen_of(app)["run"]
    assert "has no gemm; showing the newest suitable run that has it" in words(app)


def test_a_run_chosen_by_hand_brings_its_own_workload_and_leads_back_to_the_newest(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder", workload="conv2d")
    app.sidebar.selectbox(key="choose run").select("products").run()
    assert run_of(app) == "products" and app.segmented_control(key="choose workload").value == "gemm"
    app.sidebar.selectbox(key="choose run").select("older").run()
    (back,) = [button for button in app.sidebar.button if button.label.startswith("Newest run of")]
    back.click().run()
    assert run_of(app) == "newer" == chosen_of(app)["run"]
    assert not [button for button in app.sidebar.button if button.label.startswith("Newest run of")]


def test_another_device_is_a_switch_that_lives_in_the_url(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ladder")
    devices = app.sidebar.selectbox(key="choose device")
    (host,) = [name for name in devices.options if "CPU" in name]
    devices.select(host).run()
    assert run_of(app) == "host" and app.query_params["device"] == host
    assert run_of(open_app(folder, "ladder", device=host)) == "host"
    assert "no run is of" in words(open_app(folder, "ladder", device="abacus"))


@pytest.mark.parametrize(
    ("page", "run"), [("timeline", "trace"), ("calls", "trace"), ("counters", "counted"), ("ladder", "newer")]
)
def test_a_page_finds_a_run_with_what_it_needs(open_app: Open, folder: Path, page: str, run: str) -> None:
    app = open_app(folder, "ladder", workload="conv2d")
    lead(app, page)
    app.query_params.clear()
    app.run()
    assert not app.exception
    assert run_of(app) == run


def test_a_page_offers_the_runs_that_have_what_the_run_of_a_link_lacks(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "timeline", run="newer")
    assert run_of(app) == "newer" and "This run has no trace" in words(app)
    links = [link.proto.query_string for link in app.main.get("page_link") if link.proto.page == "timeline"]
    assert links == ["run=trace"]
