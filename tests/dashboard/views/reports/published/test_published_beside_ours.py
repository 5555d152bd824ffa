"""The published figures beside those of a run whose medians are known."""

import pandas as pd
import pytest

from tests.synthetic import made_runs
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.published import chart as charts
from warpladder.dashboard.views.reports.published import query as published
from warpladder.dashboard.views.reports.published.conflicts import bank_conflicts
from warpladder.dashboard.views.reports.published.query import Source
from warpladder.data import store
from warpladder.data.figures import COLUMNS


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return run_data.load(store.open_run(made_runs.write(tmp_path_factory.mktemp("runs"))))


def figure(**values: object) -> pd.DataFrame:
    """One row of published figures: the naive convolution at 2048, block 16."""
    row = {
        "report": "made", "table": "1", "quantity": "time", "variant": "naive", "workload": "conv2d", "our_variant": "v01_naive",
        "config": "block=16", "case": "n=2048", "scope": "device", "value": 1.0, "unit": "ms", "hardware": "Made 1", "note": "",
    }  # fmt: skip
    return pd.DataFrame([row | values], columns=list(COLUMNS))


@pytest.mark.slow
def test_a_time_stands_beside_ours_in_the_reports_unit(data: RunData) -> None:
    row = published.beside_ours(data, figure(), Source("1", "time")).iloc[0]
    # 1500 ns of launch and 8 x 2048^2 bytes at 19 % of 4000 GB/s, of which the hot L2 (33.6 MB fit 60 MiB) saves 40 %.
    assert row["ours"] == pytest.approx((1500 + 8 * 2048**2 / 760 * 0.6) * 1e-6, rel=0.01)
    assert row["ours_low"] <= row["ours"] <= row["ours_high"]
    assert (row["published"], row["hardware"], row["n"]) == (1.0, "Made 1", 40)
    assert (row["our_config"], row["our_scope"], row["our_cache"]) == ("block=16", "device", "hot")


def test_nanoseconds_of_a_profile_stand_beside_nanoseconds(data: RunData) -> None:
    row = published.beside_ours(data, figure(unit="ns"), Source("1", "time"), cache="cold").iloc[0]
    assert row["ours"] == pytest.approx(1500 + 8 * 2048**2 / 760, rel=0.01)


def test_the_cache_that_is_asked_for_is_taken(data: RunData) -> None:
    row = published.beside_ours(data, figure(), Source("1", "time"), cache="cold").iloc[0]
    assert row["ours"] == pytest.approx((1500 + 8 * 2048**2 / 760) * 1e-6, rel=0.01)
    assert row["our_cache"] == "cold"


def test_without_a_config_the_fastest_one_stands_for_the_variant(data: RunData) -> None:
    row = published.beside_ours(data, figure(our_variant="v02_shared", config=""), Source("1", "time"), cache="cold").iloc[0]
    assert row["our_config"] == "block=16"
    # 27 % of 4000 GB/s.
    assert row["ours"] == pytest.approx((1500 + 8 * 2048**2 / 1080) * 1e-6, rel=0.01)


def test_a_rate_is_shown_counting_25_and_counting_50_operations_a_point(data: RunData) -> None:
    rate = figure(quantity="rate", unit="GFLOP/s", value=14.0, table="5")
    row = published.beside_ours(data, rate, Source("5", "rate"), cache="cold").iloc[0]
    nanoseconds = 1500 + 8 * 2048**2 / 760
    assert row["ours"] == pytest.approx(25 * 2048**2 / nanoseconds, rel=0.01)
    assert row["ours_at_50"] == pytest.approx(50 * 2048**2 / nanoseconds, rel=0.01)
    assert (row["published"], row["published_at_50"]) == (14.0, 28.0)


def test_host_code_is_compared_as_a_whole_operation(data: RunData) -> None:
    host = figure(variant="serial", our_variant="numba_serial", config="", unit="s")
    row = published.beside_ours(data, host, Source("1", "time")).iloc[0]
    assert row["our_scope"] == "operation"
    # 500 ns and 8 x 2048^2 bytes at 3 % of 20 GB/s.
    assert row["ours"] == pytest.approx((500 + 8 * 2048**2 / 0.6) * 1e-9, rel=0.01)


def test_a_speedup_is_counted_over_the_sequential_host_code(data: RunData) -> None:
    speedup = figure(quantity="speedup", unit="x", value=50.0)
    row = published.beside_ours(data, speedup, Source("1", "speedup"), cache="cold").iloc[0]
    host, kernel = 500 + 8 * 2048**2 / 0.6, 1500 + 8 * 2048**2 / 760
    assert row["ours"] == pytest.approx(host / kernel, rel=0.02)


def test_bank_conflicts_are_computed_for_the_tile_of_the_row(data: RunData) -> None:
    padded = figure(quantity="bank_conflicts", unit="conflicts", config="tile=8x12x9", case="n=64,perm=210", value=0.0)
    assert published.beside_ours(data, padded, Source("1", "bank_conflicts")).iloc[0]["ours"] == 0.0
    plain = figure(quantity="bank_conflicts", unit="conflicts", config="tile=8x8x8", case="n=64,perm=210", value=16.0)
    assert published.beside_ours(data, plain, Source("1", "bank_conflicts")).iloc[0]["ours"] > 0.0


def test_where_we_have_nothing_the_published_figure_stands_alone(data: RunData) -> None:
    for row in (figure(our_variant=""), figure(case="n=3"), figure(quantity="overhead", unit="s")):
        found = published.beside_ours(data, row, Source("1", str(row["quantity"].iloc[0]))).iloc[0]
        assert pd.isna(found["ours"])
        assert (found["published"], found["n"]) == (1.0, 0)


def test_tables_of_which_we_measure_something_come_first() -> None:
    rows = pd.concat([figure(table="7", our_variant=""), figure(table="2"), figure(table="2", quantity="rate", unit="GFLOP/s")])
    found = published.sources(rows)
    assert [(source.table, source.quantity) for source in found] == [("2", "time"), ("2", "rate"), ("7", "time")]
    assert (found[0].slug, found[0].label) == ("2.time", "Table 2: time")
    assert Source("figures 1 to 10, GPUTime", "time").label == "Figures 1 to 10, GPUTime: time"


def test_the_host_which_has_no_config_stands_beside_every_config_of_the_report(data: RunData) -> None:
    host = figure(variant="serial", our_variant="numba_serial", config="block=8", unit="s", scope="operation")
    row = published.beside_ours(data, host, Source("1", "time")).iloc[0]
    # 500 ns and 8 x 2048^2 bytes at 3 % of 20 GB/s.
    assert row["ours"] == pytest.approx((500 + 8 * 2048**2 / 0.6) * 1e-9, rel=0.02)
    assert (row["our_config"], row["why"]) == ("", "")


def test_a_figure_without_ours_says_why(data: RunData) -> None:
    whys = {
        published.beside_ours(data, figure(**values), Source("1", values.get("quantity", "time"))).iloc[0]["why"]
        for values in ({"our_variant": ""}, {"case": "n=77"}, {"quantity": "overhead", "unit": "s"})
    }
    assert whys == {"nothing of ours does the same", "not measured in this run", "on the page Details"}


@pytest.mark.thorough
def test_every_published_variant_has_a_mark_of_its_own_also_where_the_run_has_none_of_ours(data: RunData) -> None:
    blocks = ({"variant": "block 16"}, {"variant": "block 32", "config": "block=32"})
    alone = ({"variant": name, "our_variant": "", "workload": "sort"} for name in ("merge", "quick", "radix"))
    for workload, made in (("conv2d", blocks), ("sort", alone)):
        frame = published.beside_ours(data, pd.concat([figure(**row) for row in made]), Source("1", "time"))
        chart = charts.beside_ours(frame, Source("1", "time"), workload, look(data))
        marks = {trace.name: (trace.marker.color, trace.marker.symbol) for trace in chart.figure.data}
        assert len(marks) == len(set(marks.values())) == frame["variant"].nunique()


@pytest.mark.parametrize(
    ("perm", "tile", "extra"),
    [
        # Thread (z, y, x) of a warp: x = 0..7, y four in a row, z fixed; 32 banks.
        ((0, 1, 2), (8, 8, 8), 0.0),  # word 8y + x: 32 banks
        ((0, 2, 1), (8, 8, 8), 1.0),  # word 8x + y: x and x + 4 share a bank, two passes
        ((1, 0, 2), (8, 8, 8), 3.0),  # word 64y + x: all four y share a bank, four passes
        ((2, 1, 0), (8, 8, 8), 7.0),  # word 64x + 8y: all eight x share a bank, eight passes
        ((0, 2, 1), (8, 8, 12), 0.0),  # word 12x + y: 12x takes 0, 12, 24, 4, 16, 28, 8, 20
        ((2, 1, 0), (8, 12, 9), 0.0),  # word 108x + 9y: 108x takes the multiples of 4
    ],
)
def test_bank_conflicts_are_those_counted_by_hand(perm: tuple[int, ...], tile: tuple[int, ...], extra: float) -> None:
    assert bank_conflicts(tile, perm) == extra


def test_the_published_padding_of_two_permutations_belongs_to_the_inverse_ones() -> None:
    table_2 = {"120": (8, 8, 9), "201": (8, 10, 10)}
    assert [bank_conflicts(tile, [int(axis) for axis in perm]) for perm, tile in table_2.items()] == [0.0, 0.0]
