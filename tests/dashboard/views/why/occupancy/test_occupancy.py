"""What limits the resident warps: rows, words, charts and the page, from a run with machine code that was made without a GPU."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("cuda.bindings")

from tests import machine_code_run
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs
from warpladder.collectors.core.plan import Request
from warpladder.collectors.cuda import disassembly
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.views.why.occupancy import query
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(disassembly.problem() is not None, reason="needs nvdisasm"),
]
WORKLOAD, CASE, VARIANTS = "tensor_transpose", "n=64,perm=210", ("v02_copy_shared", "v08_matrix_tile", "v11_swizzled_tile")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("code")
    machine_code_run.write(made, Request(names=[WORKLOAD], cases=[CASE], variants=VARIANTS))
    made_runs.write(made, "without", rounds=8)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "code"))


@pytest.fixture(scope="module")
def frame(data: RunData) -> pd.DataFrame:
    return query.rows(data, WORKLOAD, CASE)


def test_a_row_for_each_launch(frame: pd.DataFrame) -> None:
    assert set(frame["variant"]) == set(VARIANTS)
    row = frame[frame["config"] == "tile=64,threads=256"].iloc[0]
    # As Nsight Compute reports of this kernel: tests/fixtures/occupancy/launches.json.
    assert (row["registers"], row["shared_bytes"], row["threads"], row["blocks"], row["limiter"]) == (
        40,
        16384,
        256,
        6,
        "registers",
    )
    assert row["occupancy_percent"] == 75
    assert row["waves"] == pytest.approx(64 / 792)
    assert row["last_wave_percent"] == pytest.approx(100 * 64 / 792)


def test_of_a_gpu_without_known_limits_there_are_no_rows(data: RunData) -> None:
    other = replace(data, info={**data.info, "compute_capability": "5.2"})
    assert query.rows(other, WORKLOAD, CASE).empty


def test_the_sentence_has_the_limit(data: RunData) -> None:
    name, (_, kernel) = next(
        each for each in query.launch_names(data, WORKLOAD, CASE).items() if "tile=64,threads=256" in each[0]
    )
    assert name == "v11_swizzled_tile [tile=64,threads=256]"
    result = query.what_if(kernel, "9.0", 132)
    assert result and query.limit_clause(result.own) == "75.0 % of the warps, limited by registers"


@pytest.mark.thorough
def test_every_launch_has_a_chart_with_three_curves(data: RunData, frame: pd.DataFrame) -> None:
    charts = [chart for chart in charts_of(data) if chart.name.startswith("what-if")]
    assert len(charts) == len(frame) == len({chart.name for chart in charts})
    assert set(charts[0].data["over"]) == {"registers", "shared_bytes", "threads"}
    assert charts[0].data["occupancy_percent"].between(0, 100).all()
    assert "compute capability 9.0" in charts[0].note


@pytest.mark.thorough
def test_the_page_shows_the_launch_of_its_address(open_app: Open, folder: Path) -> None:
    launch = "v11_swizzled_tile [tile=64,threads=256]"
    app = open_app(folder, "occupancy", run="code", launch=launch)
    assert f"{launch}: 75.0 % of the warps, limited by registers" in words(app)


def test_a_run_without_machine_code_leads_to_one_with_it(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "occupancy", run="without")
    assert "This run has no machine code." in words(app)
    assert len(app.main.get("page_link")) == 1


def test_the_page_begins_with_the_fastest_rung() -> None:
    run = Path(__file__).parents[4] / "fixtures" / "planted-pairs" / "run"
    data = load(store.open_run(run))
    names = query.launch_names(data, "planted_pairs", "cause=spills")
    assert list(names) == ["v01_slow", "v02_fast"]
    assert query.first_name(data, "planted_pairs", "cause=spills", names) == "v02_fast"
    untimed = replace(data, samples=data.samples.iloc[:0])
    assert query.first_name(untimed, "planted_pairs", "cause=spills", names) == "v01_slow"


def test_of_several_launches_the_page_begins_with_the_main_one() -> None:
    (path,) = store.RECORDED.glob("*-h200-gan-tconv-bf16-*")
    data = load(store.open_run(path))
    names = query.launch_names(data, "gan_tconv_bf16", "images=5248")
    assert (
        query.first_name(data, "gan_tconv_bf16", "images=5248", names) == "v02_warpgroups · 5: layer_product<4, 64, false, 4>"
    )
