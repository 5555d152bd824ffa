"""Sizes, regions and the reports' tables."""

from collections.abc import Iterator

import pandas as pd
import pytest

from tests.synthetic import made_runs
from warpladder.dashboard.compare import winners
from warpladder.dashboard.core.cell import Timing, records
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ladder import query as ladder
from warpladder.dashboard.views.reports.details import blocks, copies, overheads
from warpladder.dashboard.views.reports.details import copies as charts
from warpladder.dashboard.views.sizes import query as sizes
from warpladder.data import store

pytestmark = pytest.mark.slow

COLD = Timing("device", "cold")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunData]:
    yield load(store.open_run(made_runs.write(tmp_path_factory.mktemp("runs"), rounds=20)))


def test_a_size_is_in_the_region_that_its_bytes_and_its_floor_put_it_in(run: RunData) -> None:
    found = sizes.regions(run, "conv2d").set_index("size")
    # 8 n^2 bytes against 62.9 MB of L2: 33.6 MB fit at 2048, 134 MB do not at 4096.
    assert found["fits_l2"].to_dict() == {"n=512": True, "n=1024": True, "n=2048": True, "n=4096": False, "n=8192": False}
    # 8 n^2 bytes at 4000 GB/s against a launch of 2.5 us: 2.1 us at 1024, 8.4 us at 2048.
    assert found["launch_bound"].to_dict() == {"n=512": True, "n=1024": True, "n=2048": False, "n=4096": False, "n=8192": False}


def test_each_size_shows_the_fastest_config_of_each_variant_and_no_specimen(run: RunData) -> None:
    found = sizes.sizes(run, "conv2d", COLD)
    naive = found[found["variant"] == "v01_naive"]
    assert naive["size_value"].tolist() == [512, 1024, 2048, 4096, 8192]
    assert set(naive["config"]) == {"block=16"}
    hot = sizes.sizes(run, "tensor_transpose", Timing("operation", "hot"), "perm=210")
    assert "numpy_view" not in set(hot["variant"]) and "numpy" in set(hot["variant"])
    assert set(hot["params"]) == {'{"n":64,"perm":"210"}', '{"n":256,"perm":"210"}', '{"n":512,"perm":"210"}'}


def test_the_winner_of_each_case_has_its_margin_over_the_next(run: RunData) -> None:
    found = records(winners.best_per_size(run, "conv2d", COLD))
    assert [winner.variant for winner in found] == ["v04_sliding"] * 5
    # Sliding at 0.985 against clusters at 0.90, each with 1.5 us on top of 134 us at full speed.
    (last,) = [winner for winner in found if winner.case == "n=8192"]
    assert last.runner_up == "v05_cluster"
    assert last.margin.value == pytest.approx((134_218 / 0.90 + 1500) / (134_218 / 0.985 + 1500), rel=0.005)
    assert not last.tied


def test_the_ladder_stands_in_order_and_names_what_failed_on_it(run: RunData) -> None:
    found = ladder.ladder(run, "conv2d", "n=512", COLD)
    rungs = ["v01_naive", "v02_shared", "v03_register_tile", "v04_sliding", "v05_cluster"]
    assert found["variant"].tolist() == ["copy", *rungs, "cudnn"]
    failed = found[found["n"] == 0]
    assert failed[["variant", "status"]].to_numpy().tolist() == [["v05_cluster", "wrong_result"]]
    assert found.loc[found["variant"] == "v01_naive", "gain"].isna().all()


def test_the_parts_of_a_run_sum_to_one(run: RunData) -> None:
    found = overheads.overheads(run, "conv2d")
    assert set(found["part"]) == {"allocate", "h2d", "compute", "d2h", "free"}
    assert found.groupby(["case", "variant"])["fraction"].sum().tolist() == pytest.approx(
        [1.0] * found.groupby(["case", "variant"]).ngroups
    )
    naive = found[(found["variant"] == "v01_naive") & (found["case"] == "n=512")].set_index("part")["median_ns"]
    # 1 MiB each way at 55 GB/s.
    assert naive["h2d"] == pytest.approx(2**20 / 55, rel=0.01) and naive["allocate"] == pytest.approx(200_000, rel=0.01)


def test_the_sensitivity_to_the_block_is_relative_to_the_fastest_block(run: RunData) -> None:
    found = blocks.block_sensitivity(run, "conv2d")
    at_8192 = found[(found["case"] == "n=8192") & (found["variant"] == "v01_naive")].set_index("block")["relative"]
    assert at_8192[16] == 1
    assert at_8192[8] == pytest.approx(0.19 / 0.17, rel=0.01)
    assert set(found["variant"]) == {"v01_naive", "v02_shared"}


def test_speedups_over_the_host_are_smaller_with_the_copies(run: RunData) -> None:
    found = copies.with_and_without_copies(run, "tensor_transpose")
    best = found[(found["case"] == "n=512,perm=210") & (found["variant"] == "v05_swizzled")].set_index("copies")["speedup"]
    host_ns, min_bytes = 500 + 8 * 512**3 / 1.0, 8 * 512**3
    assert best[False] == pytest.approx(host_ns / (1500 + min_bytes / (4000 * 0.97)), rel=0.02)
    assert best[True] == pytest.approx(host_ns / (1500 + min_bytes / (4000 * 0.97) + 24_000 + min_bytes / 55), rel=0.02)
    assert not found["paired"].any()


def test_a_run_without_a_gpu_has_none_of_the_tables_that_need_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    host = load(store.open_run(made_runs.write_host_run(tmp_path_factory.mktemp("host"), rounds=8)))
    tables: list[pd.DataFrame] = [
        overheads.overheads(host, "conv2d"),
        blocks.block_sensitivity(host, "conv2d"),
        copies.with_and_without_copies(host, "tensor_transpose"),
    ]
    assert [len(table) for table in tables] == [0, 0, 0]
    assert not sizes.regions(host, "conv2d")[["fits_l2", "launch_bound"]].to_numpy().any()


def test_size_is_the_axis_of_the_copies_where_a_workload_has_one_series(run: RunData) -> None:
    frame = copies.with_and_without_copies(run, "conv2d")
    assert copies.sizes_to_choose(frame, "conv2d") == ((), "")
    chart = charts.chart(frame, look(run), "conv2d")
    assert list(chart.figure.layout.xaxis.categoryarray) == ["n=512", "n=1024", "n=2048", "n=4096", "n=8192"]


def test_the_copies_of_several_permutations_are_shown_at_one_size_and_first_at_that_of_the_report(run: RunData) -> None:
    frame = copies.with_and_without_copies(run, "tensor_transpose")
    # The report measured 64x64x64.
    assert copies.sizes_to_choose(frame, "tensor_transpose") == (("n=64", "n=256", "n=512"), "n=64")
    chart = charts.chart(frame, look(run), "tensor_transpose", size="n=256")
    assert list(chart.figure.layout.xaxis.categoryarray) == [f"perm={perm}" for perm in made_runs.PERMUTATIONS]
    assert set(chart.data["size"]) == {"n=256"}
    assert chart.title.endswith(", at n=256")
