"""The page GPUs, its charts and its export, on made runs of several ranks."""

from pathlib import Path

import pytest

from tests.dashboard.core.test_queries_cells import COLD, samples
from tests.dashboard.test_app import Open, open_app, words
from tests.dashboard.views.devices.gpus.test_scaling import HUNDRED, case, ranked, scaled
from tests.synthetic import made_runs, made_sweeps, made_traces
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import cells, scaled_workloads
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.devices.gpus import chart as charts
from warpladder.dashboard.views.devices.gpus import query as queries
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scaling")
    made_sweeps.write_scaling(made, "scaling", rounds=8)
    made_sweeps.write_scaling_on_host(made, "host")
    made_runs.write_host_run(made, "alone", rounds=8)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "scaling"))


@pytest.mark.thorough
def test_the_pages_that_compare_variants_have_the_samples_of_one_process_alone(data: RunData) -> None:
    assert set(data.samples["gpus"]) == {1} and set(data.together["gpus"]) == {2, 4}
    assert set(cells(data)["gpus"].dropna()) == {1}
    # Of 8 rounds: 24 cells with end_to_end and device and 8 of them with two phases; 6 of training in two scopes.
    assert len(data.samples) == 8 * (24 * 2 + 8 * 2 + 6 * 2)


def test_one_process_that_used_two_gpus_is_not_set_apart(tmp_path: Path) -> None:
    """As an imported program may: all its samples are of rank 0."""
    path = made_sweeps.write_one_process(tmp_path, gpus=2)
    found = load(store.open_run(path))
    assert set(found.samples["gpus"]) == {2} and found.together.empty
    assert scaled_workloads(found) == ()


def test_a_made_run_measures_what_it_was_made_to(data: RunData) -> None:
    found = queries.scaling(data, "gan_tconv", Timing("end_to_end", "hot"))
    rows = found[(found["case"] == "images=5248") & (found["variant"] == "v12_wgmma")]
    for row in rows.to_dict("records"):
        made = made_sweeps.generation_ns("v12_wgmma", 5248, row["ranks"], "end_to_end")["end_to_end"]
        assert row["median_ns"] == pytest.approx(made, rel=0.01)


def test_the_map_has_the_best_number_of_gpus_for_each_size(data: RunData) -> None:
    view = Timing("end_to_end", "hot")
    name = queries.variant_to_show(queries.scaling(data, "gan_tconv", view))
    assert name == "v12_wgmma"
    chart = charts.best_counts(queries.crossover(data, "gan_tconv", view, name), look(data))
    # On 4 GPUs 5,248 images take 3 x 140 + 30 us and 5,248 / 4 copies of 49,152 bytes at 39.6 GB/s, on 2 half as many at 55.
    assert chart.title == "gan_tconv, v12_wgmma · TF32: 1 GPU is best up to images=100, 2 up to images=1000, 4 above"
    assert not chart.figure.layout.shapes
    assert sum(tile.text.endswith("best") for tile in chart.figure.layout.annotations) == 8


@pytest.mark.thorough
def test_times_far_apart_stand_on_a_logarithmic_axis_in_weak_scaling() -> None:
    cases = [case(400, 0, 0), case(800, 1, 0)]
    for slow, scale in ((1000, "linear"), (3000, "log")):
        alone = samples("v01_a", HUNDRED, "n=400") + samples("v02_b", [slow] * 6, "n=400")
        two = ranked("v01_a", HUNDRED, HUNDRED, case="n=800") + ranked("v02_b", [slow] * 6, [slow] * 6, case="n=800")
        made = scaled(alone, two, cases)
        chart = charts.weak(queries.weak(made, "w", COLD), look(made))
        assert chart.figure.layout.yaxis.type == scale


@pytest.mark.thorough
def test_the_export_has_the_charts_of_the_page(data: RunData) -> None:
    names = [chart.name for chart in charts_of(data, topics=["gpus"])]
    assert names == [
        "gpus-gan-tconv-v12-wgmma-end-to-end-hot-best", "gpus-gan-tconv-images-5248-end-to-end-hot-speedup",
        "gpus-gan-tconv-v06-pinned-end-to-end-shares",
        "gpus-gan-tconv-v12-wgmma-device-hot-best", "gpus-gan-tconv-images-5248-device-hot-speedup",
        "gpus-mlp-training-v06-overlapped-nccl-operation-hot-best", "gpus-mlp-training-batch-1600-operation-hot-speedup",
        "gpus-mlp-training-weak-400-operation-hot",
        "gpus-mlp-training-v05-nccl-operation-shares", "gpus-mlp-training-v06-overlapped-nccl-operation-shares",
        "gpus-mlp-training-v06-overlapped-nccl-device-hot-best", "gpus-mlp-training-batch-1600-device-hot-speedup",
    ]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, "1 GPU is best up to images=100, 2 up to images=1000, 4 above"),
        ({"variant": "v07_overlapped"}, "gan_tconv, v07_overlapped · fp32: "),
        ({"show": "speedup", "case.images": "2512"}, "gan_tconv, images=2512: 4 GPUs take v12_wgmma · TF32 to"),
        ({"show": "shares"}, "v06_pinned · fp32, images=5248: copies out are"),
        ({"show": "shares", "timing": "device time, hot L2"}, "No variant of gan_tconv has copies or communication as phases"),
        ({"show": "weak"}, "No two cases of gan_tconv give each rank the same work"),
        ({"show": "weak", "workload": "mlp_training", "per_rank": "400"}, "batch 400 a rank: v06_overlapped_nccl keeps"),
        ({"show": "shares", "workload": "mlp_training"}, "v06_overlapped_nccl, batch=1600: communication is"),
        # The fastest of two ranks takes 97 % of 31 us, of which NCCL alone takes 30.
        ({"show": "shares", "workload": "mlp_training"}, "over NCCL's own time for as many bytes: 1.00× on 2 GPUs, 1.00× on 4 GPUs"),
    ],
)  # fmt: skip
def test_the_page_answers_each_of_its_questions(open_app: Open, folder: Path, query: dict[str, str], said: str) -> None:
    assert said in words(open_app(folder, "gpus", run="scaling", **query))


@pytest.mark.thorough
def test_on_the_host_the_page_speaks_of_processes(open_app: Open, folder: Path) -> None:
    """4 images take 1.6 ms by one and 1.8 by two; 16 take 6.4 and 4.2."""
    said = words(open_app(folder, "gpus", run="host"))
    assert "numba_parallel: 1 process is best up to images=4,channels=64, 2 above" in said


HOW_TO_RECORD = "warpladder record gan_tconv mlp_data_parallel --gpus 1,2,4"


def test_a_run_of_one_process_leads_to_those_of_several_gpus_and_says_how_to_record_more(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "gpus", run="alone")
    assert [block.value for block in app.main.code] == [HOW_TO_RECORD]
    assert "Every sample of this run was taken by one process." in words(app)
    assert "Runs with samples of several GPUs:" in words(app)
    links = [link.proto for link in app.main.get("page_link")]
    assert [link.query_string for link in links if link.page == "devices"] == ["section=gpus&run=scaling"]


def test_without_runs_of_several_gpus_the_page_says_how_to_record_one(open_app: Open, tmp_path: Path) -> None:
    made_runs.write(tmp_path, "alone", rounds=4)
    made_traces.write(tmp_path, "trace")  # of two GPUs, but imported
    app = open_app(tmp_path, "gpus", run="alone")
    assert [block.value for block in app.main.code] == [HOW_TO_RECORD]
    assert "Measure on 1, 2 and 4 GPUs, then choose that run above:" in words(app)
    assert not app.main.get("page_link")


@pytest.mark.thorough
def test_home_names_the_page_of_several_gpus(open_app: Open, folder: Path) -> None:
    said = words(open_app(folder, "home", run="scaling"))
    assert "the times on 1 GPU; the page Devices has those of several" in said
