"""Cells, floors and comparisons of a run of four small cells, with every figure worked out by hand."""

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dashboard.core import compare, staleness, winners
from dashboard.core.axes import Timing, baseline, charted_cases, series, timings
from dashboard.core.cells import best_config, cells
from dashboard.core.run_data import RunData, load
from dashboard.views.overview.query import overview
from dashboard.views.trust import query as trust
from data import schema, store
from tests import synthetic_run

COLD = Timing("device", "cold")
STEADY = (100, 100, 100, 100, 100, 100)


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of a table, with what they leave out null or empty."""
    columns = schema.TABLES[table].columns
    blank = {column.name: None if column.nullable else "" if str(column.type) == "string" else 0 for column in columns}
    return pd.DataFrame([{**blank, **row} for row in rows], columns=[column.name for column in columns])


def variant(name: str, role: str = "rung", kind: str = "cuda", precision: str = "fp32", **more: Any) -> dict[str, Any]:
    rung = int(name[1:3]) if role == "rung" else None
    return {"workload": "w", "variant": name, "role": role, "kind": kind, "precision": precision, "rung": rung, **more}


def samples(name: str, durations: Sequence[int], case: str = "n=1", config: str = "", **more: Any) -> list[dict[str, Any]]:
    cell = {"workload": "w", "variant": name, "config": config, "case": case, "gpus": 1, "cache": "cold", "scope": "device"}
    return [{**cell, "round": number, "duration_ns": ns, **more} for number, ns in enumerate(durations)]


def run_of(
    variants: Sequence[Mapping[str, Any]],
    timed: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]] = (),
    cases: Sequence[Mapping[str, Any]] = (),
    diagnostics: Sequence[Mapping[str, Any]] = (),
) -> RunData:
    info = frame("run", [{"device_name": "GPU", "l2_bytes": 1000}]).iloc[0].to_dict()
    # 2 GB/s and 0.001 TFLOP/s: 2 bytes and 1 operation a nanosecond.
    ceilings = [
        ("device_copy", "cuda:0", 2.0),
        ("fp32_fma", "cuda:0", 0.001),
        ("tf32_mma", "cuda:0", 0.006),
        ("launch", "cuda:0", 0.02),
    ]
    ceilings += [
        ("h2d_pinned", "cuda:0", 0.5),
        ("d2h_pinned", "cuda:0", 0.25),
        ("host_copy", "cpu", 0.5),
        ("host_fma", "cpu", 0.0001),
    ]
    one = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 30, "min_bytes": 100, "h2d_bytes": 60}
    return RunData(
        info,
        frame("ceilings", [{"name": name, "device": device, "value": value} for name, device, value in ceilings]),
        frame("variants", variants),
        frame("cases", cases or [{**one, "d2h_bytes": 40}]),
        frame("results", results),
        frame("samples", timed),
        frame("diagnostics", diagnostics),
    )


def only(data: RunData) -> Mapping[str, Any]:
    (row,) = cells(data).to_dict("records")
    return row


def test_a_cell_has_its_median_its_rates_and_its_distance_from_the_floor() -> None:
    row = only(run_of([variant("v01_a")], samples("v01_a", [80, 100, 120, 90, 110, 100])))
    assert (row["n"], row["median_ns"], row["low_ns"], row["high_ns"]) == (6, 100, 80, 120)
    assert (row["gb_per_s"], row["gflop_per_s"]) == (1.0, 0.3)
    assert row["gb_per_s_low"] == pytest.approx(100 / 120) and row["gb_per_s_high"] == pytest.approx(100 / 80)
    # 100 bytes at 2 a nanosecond take 50 ns, 30 operations at 1 a nanosecond 30 ns.
    assert (row["floor_ns"], row["floor_bound"], row["percent_of_floor"]) == (50, "memory", 50)


@pytest.mark.parametrize(
    ("precision", "flops", "floor_ns", "bound"),
    [("fp32", 90, 90, "compute"), ("tf32", 360, 60, "compute"), ("3xtf32", 120, 60, "compute"), ("fp64", 900, 50, "memory")],
)
def test_the_floor_knows_the_precision(precision: str, flops: int, floor_ns: float, bound: str) -> None:
    # TF32 does 6 operations a nanosecond and 3xTF32 a third of that; nothing was measured for fp64.
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": flops, "min_bytes": 100}
    row = only(run_of([variant("v01_a", precision=precision)], samples("v01_a", STEADY), cases=[case]))
    assert row["floor_ns"] == pytest.approx(floor_ns)
    assert row["floor_bound"] == bound


def test_the_floor_of_end_to_end_is_the_longer_copy_over_pcie() -> None:
    # 60 bytes at 0.5 take 120 ns, 40 bytes at 0.25 take 160 ns.
    row = only(run_of([variant("v01_a")], samples("v01_a", STEADY, scope="end_to_end")))
    assert (row["floor_ns"], row["floor_bound"]) == (160, "copies")


def test_the_floor_on_the_host_comes_from_the_ceilings_of_the_host() -> None:
    # 100 bytes at 0.5 take 200 ns; 30 operations at 0.1 take 300 ns.
    row = only(run_of([variant("numpy", "host", "host")], samples("numpy", STEADY, gpus=0, scope="operation", cache="hot")))
    assert row["floor_ns"] == pytest.approx(300)
    assert row["floor_bound"] == "compute"


def test_several_gpus_share_the_floor_and_the_slowest_rank_is_the_time() -> None:
    timed = samples("v01_a", STEADY, gpus=2, rank=0) + samples("v01_a", [130] * 6, gpus=2, rank=1)
    row = only(run_of([variant("v01_a")], timed))
    assert (row["n"], row["median_ns"], row["floor_ns"]) == (6, 130, 25)


def test_a_phase_has_a_time_and_no_rate() -> None:
    row = only(run_of([variant("v01_a")], samples("v01_a", STEADY, scope="phase:h2d")))
    assert row["median_ns"] == 100
    assert pd.isna(row["gb_per_s"]) and pd.isna(row["floor_ns"]) and pd.isna(row["percent_of_floor"])


def test_a_cell_that_failed_is_a_row_with_its_reason_and_no_figures() -> None:
    result = {"workload": "w", "variant": "v01_a", "case": "n=1", "status": "timeout", "detail": "no answer in 60 s"}
    row = only(run_of([variant("v01_a")], [], [result]))
    assert (row["n"], row["status"], row["detail"]) == (0, "timeout", "no answer in 60 s")
    assert pd.isna(row["median_ns"]) and pd.isna(row["scope"]) and row["role"] == "rung"


def test_the_second_copy_of_the_baseline_is_left_out_of_its_median() -> None:
    timed = samples("v01_a", STEADY) + samples("v01_a", [900] * 6, twin=1)
    assert only(run_of([variant("v01_a")], timed))["median_ns"] == 100


def test_flags_name_the_checks_that_distrust_a_cell_and_not_what_is_about_the_run() -> None:
    about = [
        {"severity": "warning", "source": "throttling", "workload": "w", "variant": "v01_a", "config": "", "case": "n=1"},
        {"severity": "warning", "source": "not_growing", "workload": "w", "variant": "v01_a"},
        {"severity": "info", "source": "told", "workload": "w", "variant": "v01_a"},
        {"severity": "error", "source": "interrupted"},
        {"severity": "error", "source": "another", "workload": "w", "variant": "v02_b"},
    ]
    assert only(run_of([variant("v01_a")], samples("v01_a", STEADY), diagnostics=about))["flags"] == (
        "throttling",
        "not_growing",
    )


def test_the_best_config_is_the_fastest_that_is_right() -> None:
    timed = [row for config, ns in (("b=1", 90), ("b=2", 70), ("b=3", 50)) for row in samples("v01_a", [ns] * 6, config=config)]
    results = [
        {"workload": "w", "variant": "v01_a", "config": config, "case": "n=1", "status": status}
        for config, status in (("b=1", "ok"), ("b=2", "ok"), ("b=3", "launch_error"))
    ]
    assert best_config(cells(run_of([variant("v01_a")], timed, results)))["config"].tolist() == ["b=2"]


def test_the_caller_may_change_the_frame_of_cells_without_changing_the_next_one() -> None:
    data = run_of([variant("v01_a")], samples("v01_a", STEADY))
    taken = cells(data)
    taken["median_ns"] = 0
    assert only(data)["median_ns"] == 100


def ladder_run() -> RunData:
    timed = samples("v01_a", [400, 404, 396, 400, 402, 398]) + samples("v01_a", [402, 400, 400, 398, 396, 404], twin=1)
    timed += samples("v02_b", [200, 202, 198, 200, 201, 199]) + samples("v03_c", [201, 200, 199, 200, 200, 200])
    return run_of([variant("v01_a"), variant("v02_b"), variant("v03_c")], timed)


def test_speedups_are_ratios_over_the_reference_with_a_verdict() -> None:
    found = compare.speedups(ladder_run(), "w", "n=1", "device", "cold", "v01_a").set_index("variant")
    assert found.loc["v02_b", "speedup"] == 2.0
    assert found["verdict"].to_dict() == {"v01_a": "tied", "v02_b": "faster", "v03_c": "faster"}
    assert found.loc["v02_b", "low"] <= 2 <= found.loc["v02_b", "high"]


def test_a_reference_without_samples_has_no_speedups() -> None:
    assert compare.speedups(ladder_run(), "w", "n=1", "device", "cold", "v09_absent").empty


def test_each_step_of_the_ladder_is_the_gain_over_the_rung_before() -> None:
    found = compare.steps(ladder_run(), "w", "n=1", COLD)
    assert found["previous_variant"].tolist()[1:] == ["v01_a", "v02_b"]
    assert found["gain"].tolist()[1:] == [2.0, 1.0]
    assert found["verdict"].tolist() == ["", "faster", "tied"]


def test_the_baseline_against_itself_holds_one_unless_the_two_differ() -> None:
    assert compare.noise_floors(ladder_run())["holds_one"].tolist() == [True]
    biased = run_of([variant("v01_a")], samples("v01_a", STEADY) + samples("v01_a", [110] * 6, twin=1))
    (row,) = compare.noise_floors(biased).to_dict("records")
    assert row["ratio"] == pytest.approx(1.1) and not row["holds_one"]


def noisy_host_run() -> RunData:
    """Two rungs 10 % apart whose A/A is exact, and two host variants 10 % apart of which one's second copy is off by half."""
    timed = [
        *(samples("v01_a", [110] * 6) + samples("v01_a", [110] * 6, twin=1) + samples("v02_b", STEADY)),
        *(samples("numpy", [1100] * 6, gpus=0) + samples("numpy", [1650] * 6, gpus=0, twin=1)),
        *samples("numba", [1000] * 6, gpus=0),
    ]
    made = [variant("v01_a"), variant("v02_b"), variant("numpy", "host", "host"), variant("numba", "host", "host")]
    cases = [{"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 1, "min_bytes": 1}]
    return run_of(made, timed, cases=cases)


@pytest.mark.parametrize(("reference", "of_rung", "of_host"), [("v01_a", "faster", "slower"), ("numpy", "faster", "tied")])
def test_the_noise_of_a_host_variant_judges_no_device_time_and_the_other_way_round(
    reference: str, of_rung: str, of_host: str
) -> None:
    found = compare.speedups(noisy_host_run(), "w", "n=1", "device", "cold", reference).set_index("variant")
    assert found.loc["v02_b", "verdict"] == of_rung
    assert found.loc["numba", "verdict"] == of_host
    assert found.loc[["v02_b", "numba"], "noise_high"].tolist() == ([1.0, 1.5] if reference == "v01_a" else [1.5, 1.5])


def test_steps_and_winners_of_the_device_are_not_tied_by_the_noise_of_the_host() -> None:
    data = noisy_host_run()
    assert compare.steps(data, "w", "n=1", COLD)["verdict"].tolist() == ["", "faster"]
    (winner,) = winners.best_per_size(data, "w", COLD, ("rung",)).to_dict("records")
    assert (winner["variant"], winner["tied"]) == ("v02_b", False)
    (winner,) = winners.best_per_size(data, "w", COLD, ("host",)).to_dict("records")
    assert (winner["variant"], winner["tied"]) == ("numba", True)


def test_the_baseline_is_the_variant_with_a_second_copy() -> None:
    found = baseline(ladder_run(), "w", COLD)
    assert found is not None and found.variant == "v01_a"
    assert baseline(ladder_run(), "w", Timing("operation", "hot")) is None


def test_what_changes_with_the_size_is_the_size_and_the_rest_a_series() -> None:
    cases = [
        {"workload": "w", "case": f"n={n},perm={perm}", "size_rank": rank, "params": f'{{"n":{n},"perm":"{perm}"}}'}
        for rank, n in enumerate((8, 16)) for perm in ("01", "10")
    ]  # fmt: skip
    data = run_of(
        [], [], cases=[*cases, {"workload": "w", "case": "shape=3x5", "size_rank": None, "params": '{"shape":"3x5"}'}]
    )
    found = charted_cases(data, "w")
    assert found["size"].tolist() == ["n=8", "n=8", "n=16", "n=16"]
    assert found["size_value"].tolist() == [8, 8, 16, 16]
    assert series(data, "w") == ("perm=01", "perm=10")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunData, RunData]:
    folder = tmp_path_factory.mktemp("runs")
    return load(store.open_run(synthetic_run.write(folder))), load(store.open_run(synthetic_run.write_host_run(folder)))


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


def test_the_overview_of_a_machine_without_a_gpu_compares_its_host_variants(recorded: tuple[RunData, RunData]) -> None:
    found = overview(recorded[1]).set_index("workload")
    assert found["best"].tolist() == ["numba_parallel", "numba_parallel"]
    assert found["baseline"].tolist() == ["numba_serial", "numba_serial"]
    assert found.loc["tensor_transpose", "speedup"] == pytest.approx(0.35 / 0.05, rel=0.03)
    assert timings(recorded[1], "conv2d") == (Timing("operation", "hot"),)


def test_badges_say_what_is_distrusted_and_do_not_count_specimens(recorded: tuple[RunData, RunData], tmp_path: Path) -> None:
    found = overview(recorded[0], tmp_path).set_index("workload")["badges"]
    assert found["conv2d"][:3] == ("1 cell flagged: throttling", "1 wrong result", "2 cells failed")
    assert "source changed since: v02_template" in found["tensor_transpose"]
    assert not any("constant_time" in badge for badge in found["tensor_transpose"])


def test_a_variant_is_stale_when_its_source_is_not_what_was_measured(tmp_path: Path) -> None:
    texts = {
        "same.cu": "kernel\n",
        "changed.cu": "kernel v2\n",
        "kept.py": "def a(): ...\n\ndef b(): ...\n",
        "lost.py": "def a(): 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    sha256 = hashlib.sha256(b"kernel\n").hexdigest()
    recorded = [
        variant(
            f"v0{number}_x",
            source_path=path,
            source_text="kernel\n" if path.endswith(".cu") else "def a(): ...\n",
            source_sha256=sha256,
        )
        for number, path in enumerate(["same.cu", "changed.cu", "kept.py", "lost.py", "gone.cu", "", "../outside.cu"])
    ]
    assert staleness.stale_variants(run_of(recorded, []), tmp_path)["source_path"].tolist() == [
        "changed.cu",
        "lost.py",
        "gone.cu",
    ]


def test_a_variant_is_stale_when_what_its_source_includes_has_changed(tmp_path: Path) -> None:
    (tmp_path / "v01_a.cu").write_text('#include "b.cuh"\nkernel\n')
    (tmp_path / "b.cuh").write_text("helper\n")
    text = '#line 1 "b.cuh"\nhelper\n#line 2 "v01_a.cu"\nkernel\n'
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    run = run_of([variant("v01_a", source_path="v01_a.cu", source_text=text, source_sha256=sha256)], [])
    assert staleness.stale_variants(run, tmp_path).empty
    (tmp_path / "b.cuh").write_text("helper v2\n")
    assert staleness.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]
    (tmp_path / "b.cuh").unlink()
    assert staleness.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]


def test_findings_stand_together_by_variant_with_errors_first() -> None:
    said = [
        {"severity": "warning", "source": "a", "text": "x", "workload": "w", "variant": "v01_a", "case": "n=1"},
        {"severity": "error", "source": "b", "text": "y"},
        {"severity": "warning", "source": "a", "text": "z", "workload": "w", "variant": "v01_a", "case": "n=2"},
        {"severity": "warning", "source": "a", "text": "x", "workload": "w", "variant": "v02_b", "case": "n=1"},
    ]
    found = trust.findings(run_of([], [], diagnostics=said))
    assert found[["severity", "variant", "cells", "example", "text"]].to_numpy().tolist() == [
        ["error", "", 1, "", "y"], ["warning", "v01_a", 2, "n=1", "x"], ["warning", "v02_b", 1, "n=1", "x"],
    ]  # fmt: skip


def test_reasons_to_stop_are_counted_without_the_figures_behind_them() -> None:
    results = [
        {"workload": "w", "variant": name, "case": "n=1", "status": status, "detail": detail}
        for name, status, detail in (
            ("v01_a", "ok", "device cold: converged, n=35, ±0.4%; operation hot: at the limit of 3 s, n=9, ±2%"),
            ("v02_b", "ok", "device cold: converged, n=40, ±0.1%"),
            ("v03_c", "timeout", "device cold: converged, n=1, ±0%"),
        )
    ]
    found = trust.stop_reasons(run_of([], [], results))
    assert dict(zip(found["reason"], found["cells"], strict=True)) == {
        "device cold: converged": 2,
        "operation hot: at the limit of 3 s": 1,
    }
    assert trust.verdicts(run_of([], [], results)).to_dict("records") == [{"workload": "w", "ok": 2, "timeout": 1, "total": 3}]


def test_a_finding_that_was_recorded_with_an_exponent_is_read_without_one(tmp_path: Path) -> None:
    recorded = store.RECORDED / "20261122T192051Z-h200-tensor-transpose-e3d6"
    older = shutil.copytree(recorded, tmp_path / recorded.name)
    rows = pq.read_table(older / "diagnostics.parquet")
    said = ["operation hot: 7.12e+04 GB/s, where memory was measured to copy 78 GB/s"] * len(rows)
    pq.write_table(rows.set_column(rows.schema.get_field_index("text"), "text", pa.array(said)), older / "diagnostics.parquet")
    found = set(load(store.open_run(older)).diagnostics["text"])
    assert found == {"operation hot: 71,200 GB/s, where memory was measured to copy 78 GB/s"}
