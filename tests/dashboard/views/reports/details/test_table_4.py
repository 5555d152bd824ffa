"""Table 4 of the generator's report, its advice, and its finding, tested on made runs of several GPUs."""

from pathlib import Path

import pandas as pd
import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.details import table_4
from warpladder.data import store

__all__ = ["open_app"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("table_4")
    made_sweeps.write_scaling(made, "scaling", rounds=8)
    made_runs.write(made, "alone", rounds=4)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "scaling"))


def test_the_reports_advice_changes_at_200_images_and_beyond_1000() -> None:
    assert [table_4.advised(images) for images in (10, 199, 200, 1000, 1001, 5248)] == [1, 1, 2, 2, 4, 4]


def test_table_4_has_the_best_number_of_gpus_a_node_for_its_eight_sizes() -> None:
    table = table_4.table_4()
    best = dict(table.loc[table["best"], ["images", "per_node"]].to_numpy().tolist())
    assert best == {10: 1, 100: 1, 880: 2, 1000: 2, 2224: 4, 2512: 4, 4856: 4, 5248: 4}
    row = table[(table["images"] == 880) & (table["per_node"] == 1)]
    assert row["over_best"].item() == pytest.approx(0.248 / 0.197)


@pytest.mark.parametrize(
    ("two", "four", "said", "ranks"),
    [((0.4, 0.5, 0.6), (0.2, 0.3, 0.4), "holds", 4), ((0.9, 1.0, 1.1), (0.2, 0.3, 0.4), "open", 4), ((1.4, 1.5, 1.6), (0.9, 1.0, 1.1), "differs", 2)],
)  # fmt: skip
def test_the_reports_finding_holds_only_where_every_larger_number_is_slower(
    two: tuple[float, ...], four: tuple[float, ...], said: str, ranks: int
) -> None:
    same = {
        "scope": "end_to_end",
        "kind": "cuda",
        "case": "images=10",
        "size_rank": 0,
        "flags": (),
        "n": 6,
    }
    ends = ("speedup_low", "speedup", "speedup_high")
    every = ((1, (1.0, 1.0, 1.0)), (2, two), (4, four))
    rows = [{**same, "ranks": count, **dict(zip(ends, values, strict=True))} for count, values in every]
    found = table_4.finding(pd.DataFrame(rows))
    assert found and (found.verdict, found.ranks, found.case) == (said, ranks, "images=10")
    few = table_4.finding(pd.DataFrame(rows).assign(n=5))
    assert few and few.verdict == "open", "five samples on a side decide nothing"
    flagged = pd.DataFrame(rows).assign(flags=[("waits_inside",), (), ()])
    assert (found := table_4.finding(flagged)) and found.verdict == "open"
    assert table_4.finding(pd.DataFrame(rows).assign(scope="device")) is None


def test_the_chart_frames_the_advised_numbers_and_counts_where_they_are_best_here(data: RunData) -> None:
    (chart,) = table_4.charts(data, look(data))
    assert chart.name == "generator-gpus-v12-wgmma-end-to-end-hot"
    assert chart.title == (
        "gan_tconv: the advised number of GPUs is best in 8 of 8 sizes of the report, and best or tied here in 8 of 8"
    )
    assert "for few images fewer GPUs are faster here, as in the report on other hardware" in chart.note
    assert len(chart.figure.layout.shapes) == 8
    assert sum(tile.text.endswith("best") for tile in chart.figure.layout.annotations) == 8


def test_a_run_of_one_gpu_has_no_such_chart_and_the_page_says_how_to_record_one(open_app: Open, folder: Path) -> None:
    alone = load(store.open_run(folder / "alone"))
    assert not list(table_4.charts(alone, look(alone)))
    said = words(open_app(folder, "details", run="alone", topic="gpus"))
    assert "No generation of images (gan_tconv) was timed on several GPUs in this run." in said


@pytest.mark.slow
def test_the_page_has_the_map_of_the_run_above_the_table(open_app: Open, folder: Path) -> None:
    said = words(open_app(folder, "details", run="scaling", topic="gpus"))
    assert "gan_tconv, v12_wgmma · TF32: 1 GPU is best up to images=100, 2 up to images=1000, 4 above" in said
    assert "best or tied here in 8 of 8" in said
