"""The overview of runs whose medians are known, and its badges."""

from pathlib import Path

import pandas as pd
import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from tests.synthetic import made_runs
from warpladder.dashboard.compare.overview import lines, overview
from warpladder.dashboard.compare.winners import best_per_size
from warpladder.dashboard.core.cells import Timing, timings
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.home.page import headline
from warpladder.data import store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunData, RunData]:
    folder = tmp_path_factory.mktemp("runs")
    return load(store.open_run(made_runs.write(folder))), load(store.open_run(made_runs.write_host_run(folder)))


def test_the_overview_finds_the_medians_that_the_synthetic_run_was_made_with(recorded: tuple[RunData, RunData]) -> None:
    found = overview(recorded[0]).set_index("workload")
    conv = found.loc["conv2d"]
    assert (conv["case"], conv["best"], conv["best_config"], conv["baseline"]) == (
        "n=8192",
        "v04_sliding",
        "rows=8",
        "v01_naive",
    )
    # 8 * 8192^2 bytes at 0.985 of 4000 GB/s, and 1.5 us.
    assert conv["best_ns"] == pytest.approx(137_760, rel=0.005)
    assert conv["percent_of_floor"] == pytest.approx(100 * 134_218 / 137_760, rel=0.005)
    assert pd.isna(conv["peer"]), "cuDNN ran out of memory there"
    assert found.loc["tensor_transpose", "cases"] == 6
    # Four of the six permutations at 0.31, the other two at 0.62 of the ceiling, against 0.97.
    assert found.loc["tensor_transpose", "over_peer"] == pytest.approx(
        (0.97 / 0.31) ** (4 / 6) * (0.97 / 0.62) ** (2 / 6), rel=0.01
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("of_layer_2", "rows"),
    [
        # 102 is as good as 100, to 5 %: one row, of the geometric mean of 50 and 102.
        (102, [("n=2", 2, "v01_a", (50 * 102) ** 0.5)]),
        (110, [("layer=1,n=2", 1, "v01_a", 50), ("layer=2,n=2", 1, "v02_b", 100)]),
    ],
)
@pytest.mark.parametrize("sizes", [(1, 2), (2,)])
def test_cases_that_different_variants_win_have_rows_of_their_own(
    sizes: tuple[int, ...], of_layer_2: int, rows: list[tuple[str, int, str, float]]
) -> None:
    cases = [
        {"workload": "w", "case": f"layer={layer},n={n}", "size_rank": n, "params": f'{{"layer":{layer},"n":{n}}}', "min_bytes": 100}
        for n in sizes for layer in (1, 2)
    ]  # fmt: skip
    times = {"v01_a": (50, of_layer_2), "v02_b": (80, 100), "cudnn": (200, 300)}
    taken = [
        row
        for name, of_layers in times.items()
        for layer, ns in enumerate(of_layers, 1)
        for row in samples(name, [ns] * 6, f"layer={layer},n=2")
    ]
    found = overview(run_of([variant("v01_a"), variant("v02_b"), variant("cudnn", "peer")], taken, cases=cases))
    expected = [(*names, pytest.approx(ns, rel=1e-4)) for *names, ns in rows]
    assert list(zip(found["case"], found["cases"], found["best"], found["best_ns"], strict=True)) == expected
    if len(rows) == 2:
        assert found["over_peer"].tolist() == pytest.approx([4.0, 3.0])


def test_a_speedup_is_over_the_copy_that_ran_twice_at_that_size() -> None:
    cases = [{"workload": "w", "case": f"n={n}", "size_rank": n, "params": f'{{"n":{n}}}', "min_bytes": 100} for n in (1, 2, 3)]
    taken = [
        row for n in (1, 2) for row in [*samples("v01_a", [400] * 6, f"n={n}"), *samples("v01_a", [400] * 6, f"n={n}", twin=1)]
    ]
    taken += [
        *samples("v02_b", [200] * 6, "n=3"),
        *samples("v02_b", [200] * 6, "n=3", twin=1),
        *samples("v03_c", [50] * 6, "n=3"),
    ]
    (row,) = overview(run_of([variant("v01_a"), variant("v02_b"), variant("v03_c")], taken, cases=cases)).to_dict("records")
    assert (row["best"], row["baseline"], row["speedup"]) == ("v03_c", "v02_b", pytest.approx(4.0))


@pytest.mark.thorough
def test_the_overview_of_a_machine_without_a_gpu_compares_its_host_variants(recorded: tuple[RunData, RunData]) -> None:
    found = overview(recorded[1]).set_index("workload")
    assert found["best"].tolist() == ["numba_parallel", "numba_parallel"]
    assert found["baseline"].tolist() == ["numba_serial", "numba_serial"]
    assert found.loc["tensor_transpose", "speedup"] == pytest.approx(0.35 / 0.05, rel=0.03)
    assert timings(recorded[1], "conv2d") == (Timing("operation", "hot"),)


def test_of_peers_alone_the_fastest_wins_and_has_no_peer() -> None:
    taken = [row for name, ns in {"cudnn": 200, "cupy": 100}.items() for row in samples(name, [ns] * 6, "n=2")]
    case = {"workload": "w", "case": "n=2", "size_rank": 2, "params": '{"n":2}', "min_bytes": 100}
    data = run_of([variant("cudnn", "peer"), variant("cupy", "peer")], taken, cases=[case])
    (row,) = overview(data).to_dict("records")
    assert (row["best"], row["speedup"]) == ("cupy", pytest.approx(2)) and pd.isna(row["peer"])
    (line,) = lines(data)
    assert headline(line).startswith("w: cupy wins with 100 ns")


def test_badges_say_what_is_distrusted_and_do_not_count_specimens(recorded: tuple[RunData, RunData], tmp_path: Path) -> None:
    found = overview(recorded[0], tmp_path).set_index("workload")["badges"]
    assert found["conv2d"][:3] == ("1 cell flagged: throttling", "1 wrong result", "2 cells failed")
    assert "source changed since: v02_template" in found["tensor_transpose"]
    assert not any("constant_time" in badge for badge in found["tensor_transpose"])


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("H200 gemm_bf16", "v07_equal_shares is tied with v06_clusters: 1.36 ms"),
        ("H200 call_routes", "v01_padded_tile is the fastest rung with 39.5 µs"),
        ("H200 gemm_fp8", "v05_equal_shares is tied with v07_narrow_last: 695 µs"),
        ("H200 cnn_conv", "wins with 1.31 ms (1.31 to 1.31 ms), 84.0 % of its floor"),
        ("H200 tensor_transpose", "wins with 255 µs (253 to 257 µs) in the mean of 6 cases, 96.9 % of its floor"),
    ],
)
def test_no_rung_wins_where_a_peer_is_as_fast_or_faster(label: str, words: str) -> None:
    line, *_ = lines(load(store.find_run(label, [store.RECORDED])))
    assert words in headline(line)
    assert ("wins" in headline(line)) == words.startswith("wins")


def test_the_best_of_every_size_is_that_of_the_case_and_the_last_that_of_the_largest_size() -> None:
    data = load(store.find_run("H200 gan_tconv_bf16", [store.RECORDED]))
    of_sizes, largest = overview(data, every_size=True), overview(data)
    winners = best_per_size(data, "gan_tconv_bf16", Timing("device", "cold"), ("rung",))
    found = of_sizes[["case", "best", "best_config", "best_ns", "percent_of_floor"]].rename(columns={"best": "variant"})
    expected = winners[["case", "variant", "config", "median_ns", "percent_of_floor"]].set_axis(found.columns, axis="columns")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_categorical=False)
    assert len(of_sizes) == 8
    assert of_sizes.iloc[-1].fillna("").to_dict() == largest.iloc[0].fillna("").to_dict() | {"badges": ()}


@pytest.mark.parametrize(("n", "badges"), [(5, ()), (6, ("A/A off in 2 of 2 cells",))])
def test_copies_of_few_samples_are_not_off(n: int, badges: tuple[str, ...]) -> None:
    cases = [
        {"workload": "w", "case": f"n={size}", "size_rank": size, "params": f'{{"n":{size}}}', "min_bytes": 100}
        for size in (1, 2)
    ]
    taken = [row for size in (1, 2) for twin in (0, 1) for row in samples("v01_a", [400 + twin] * n, f"n={size}", twin=twin)]
    assert tuple(overview(run_of([variant("v01_a")], taken, cases=cases))["badges"].iloc[0]) == badges
