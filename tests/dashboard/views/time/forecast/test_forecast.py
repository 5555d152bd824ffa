"""The page Forecast on a made profile and its recording."""

import shutil
from pathlib import Path

import pytest

from tests.commands.test_extract import Made, tensor
from tests.commands.test_forecast import recording, trace
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.time.forecast import chart as charts
from warpladder.dashboard.views.time.forecast import query as queries
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
GRAPHS = Path(__file__).parents[4] / "fixtures" / "kineto" / "cuda_graph"
CEILINGS = {"device_copy": 0.032}


def imported(folder: Path, path: Path, label: str) -> str:
    return str(import_report(path, folder, label, None, []))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forecast")
    imported(made, trace(made), "before")
    on_host = Made()
    on_host.operator("aten::relu", 0, 9, tensor(4, 4))
    (made / "host").mkdir()
    imported(made, on_host.write(made / "host"), "host")
    recording(made, 5_000)
    info = {"kind": "recording", "collector": "cuda_events", "device_name": "GPU of the test", "source": ""}
    ceilings = [row("ceilings", name=name, device="cuda:0", value=value) for name, value in CEILINGS.items()]
    write_tables(made, run_row("limits", "limits") | info, {"ceilings": ceilings})
    return made


def run_of(folder: Path, label: str) -> store.Run:
    return store.find_run(label, [folder])


@pytest.fixture(scope="module")
def program(folder: Path) -> Program:
    return Program.of(run_of(folder, "before"), CEILINGS)


@pytest.fixture(scope="module")
def found(folder: Path, program: Program) -> queries.Found:
    return queries.found(program, run_data.load(run_of(folder, "recorded")))


def test_the_stages_lead_from_todays_step_over_the_forecast_to_the_bound(found: queries.Found) -> None:
    stages = found.stages
    assert stages["stage"].tolist()[:3] == [queries.TODAY, "aten::relu", queries.FORECAST]
    assert stages["stage"].tolist()[-1] == queries.BOUND
    inner = stages[stages["kind"] != "step"]
    before = [row["after_ns"] for row in stages.to_dict("records")]
    assert inner["before_ns"].tolist() == [before[place - 1] for place in inner.index]
    assert stages["after_ns"].is_monotonic_decreasing
    assert stages["after_ns"].iloc[0] == found.forecast.step_ns
    assert stages["after_ns"].iloc[2] == pytest.approx(found.forecast.after_ns.value)
    assert stages["after_ns"].iloc[-1] == pytest.approx(found.forecast.step_ns - found.forecast.bound_ns)


def test_without_a_recording_the_bound_alone_is_shown(program: Program) -> None:
    found = queries.found(program, None)
    assert set(found.stages["kind"]) == {"step", "floor"} and queries.FORECAST not in set(found.stages["stage"])
    assert queries.headline(found.forecast).endswith("with every operation at its floor")


def test_without_ceilings_and_recording_today_is_all(folder: Path) -> None:
    found = queries.found(Program.of(run_of(folder, "before"), {}), None)
    assert found.stages["stage"].tolist() == [queries.TODAY]
    assert len(found.operations) == 3 and found.operations["floor_ns"].isna().all()


def test_many_operations_are_one_stage(program: Program) -> None:
    stages = [(f"op{number}", {number: 0.5}) for number in range(12)]
    joined = queries.joined(stages)
    assert [name for name, _ in joined[-2:]] == ["op7", "4 more operations"]
    assert joined[-1][1] == dict.fromkeys(range(8, 12), 0.5)
    assert queries.joined(stages[:9]) == stages[:9]


def test_bars_of_stages_span_what_they_save(folder: Path, found: queries.Found) -> None:
    chart = charts.waterfall(found.stages, found.forecast, look(run_data.load(run_of(folder, "before"))))
    whole, variants, floors = chart.figure.data
    assert (whole.name, len(whole.y)) == ("a step", 3)
    (saved,) = variants.x
    assert saved == pytest.approx(found.forecast.gained_ns.value) and variants.base[0] + saved == found.forecast.step_ns
    assert sum(floors.x) == pytest.approx(found.forecast.bound_ns - found.forecast.gained_ns.value)
    assert any(note.text.startswith("−") for note in chart.figure.layout.annotations)


def test_the_page_finds_the_recording(folder: Path, open_app: Open) -> None:
    app = open_app(folder, "forecast", run=run_of(folder, "before").run_id)
    assert "would take" in words(app) and "with the best variants" in words(app)
    assert app.selectbox(key="choose recording").value == "recorded"


def test_the_page_without_a_recording_has_the_commands_that_make_one(folder: Path, open_app: Open) -> None:
    run = run_of(folder, "before")
    app = open_app(folder, "forecast", run=run.run_id, recording="none")
    assert f"warpladder extract {run.argument} --out" in app.main.code[0].value
    assert "with every operation at its floor" in words(app)


@pytest.mark.thorough
def test_the_operators_of_graphs_come_from_another_profile_of_the_gpu(tmp_path: Path, open_app: Open) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    graph = imported(alone, GRAPHS / "graph.json.gz", "graph")
    assert "their operators ran when it was captured" in words(open_app(alone, "forecast", run=graph))
    shutil.copytree(alone, both)
    imported(both, GRAPHS / "eager.json.gz", "eager")
    app = open_app(both, "forecast", run=graph)
    assert "captured" not in words(app)
    operators = app.main.dataframe[0].value["operation"].tolist()
    assert "aten::layer_norm" in operators and "[CUDA graph]" not in operators


@pytest.mark.parametrize(("label", "text"), [("host", "no device work"), ("recorded", "no operators of PyTorch")])
def test_runs_without_a_timeline_have_a_reason(folder: Path, open_app: Open, label: str, text: str) -> None:
    app = open_app(folder, "forecast", run=run_of(folder, label).run_id)
    assert any(text in info.value for info in app.main.info)
