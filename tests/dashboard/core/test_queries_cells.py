"""Cells and floors of a run of four small cells, with every figure worked out by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from tests.synthetic.made_runs import row
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.limits import HOST_COPY_BYTES
from warpladder.data.names import Ceiling, Phase, by_size

pytestmark = pytest.mark.slow

COLD = Timing("device", "cold")
STEADY = (100, 100, 100, 100, 100, 100)


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of a table, with what they leave out null or empty."""
    return pd.DataFrame([row(table, **given) for given in rows], columns=list(row(table)))


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
    started = pd.Timestamp("2026-11-01T12:00Z")
    info = frame("run", [{"device_name": "GPU", "l2_bytes": 1000, "started_at": started}]).iloc[0].to_dict()
    # 2 GB/s and 0.001 TFLOP/s: 2 bytes and 1 operation a nanosecond.
    ceilings = [
        (Ceiling.DEVICE_COPY, "cuda:0", 2.0),
        (Ceiling.FP32_FMA, "cuda:0", 0.001),
        ("tf32_mma", "cuda:0", 0.006),
        ("bf16_mma", "cuda:0", 0.005),
        ("bf16_wgmma", "cuda:0", 0.01),
        (Ceiling.LAUNCH, "cuda:0", 0.02),
    ]
    ceilings += [
        (Ceiling.H2D_PINNED, "cuda:0", 0.5),
        (Ceiling.D2H_PINNED, "cuda:0", 0.25),
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


def with_ceilings(data: RunData, values: Mapping[str, float]) -> RunData:
    """The run with these ceilings of its GPU, besides its own or instead of them."""
    more = frame("ceilings", [{"name": name, "device": "cuda:0", "value": value} for name, value in values.items()])
    others = data.ceilings[~data.ceilings["name"].isin(values)]
    return replace(data, ceilings=pd.concat([others, more], ignore_index=True))


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


def test_a_ceiling_moves_the_bytes_of_the_case_and_has_no_rate_of_arithmetic() -> None:
    row = only(run_of([variant("copy", role="ceiling")], samples("copy", STEADY)))
    assert row["gb_per_s"] == 1.0
    assert all(pd.isna(row[name]) for name in ("gflop_per_s", "gflop_per_s_low", "gflop_per_s_high"))


@pytest.mark.parametrize(
    ("precision", "flops", "floor_ns", "bound"),
    [("fp32", 90, 90, "compute"), ("tf32", 360, 60, "compute"), ("3xtf32", 120, 60, "compute"), ("bf16", 900, 90, "compute")],
)
def test_the_floor_knows_the_precision(precision: str, flops: int, floor_ns: float, bound: str) -> None:
    # TF32 does 6 operations a nanosecond, 3xTF32 a third of that, and bf16 10.
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": flops, "min_bytes": 100}
    row = only(run_of([variant("v01_a", precision=precision)], samples("v01_a", STEADY), cases=[case]))
    assert row["floor_ns"] == pytest.approx(floor_ns)
    assert row["floor_bound"] == bound


@pytest.mark.sampled(2)
@pytest.mark.parametrize("precision", ["fp64", "fp16", "fp8", "int8", "int", "mixed"])
def test_operations_in_a_precision_without_a_ceiling_have_no_floor(precision: str) -> None:
    def found(flops: int) -> pd.Series:
        case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": flops, "min_bytes": 100}
        return only(run_of([variant("v01_a", precision=precision)], samples("v01_a", STEADY), cases=[case]))

    row = found(900)
    assert pd.isna(row["floor_ns"]) and row["floor_bound"] is None and pd.isna(row["percent_of_floor"])
    # A case without operations moves bytes alone.
    assert (found(0)["floor_ns"], found(0)["floor_bound"]) == (50, "memory")


@pytest.mark.parametrize(
    ("inputs", "outputs", "floor_ns", "named"),
    [
        (50, 50, 50, "device_copy"),
        (100, 0, 25, "device_read"),
        # 75 of 100 bytes read: halfway between 0.5 and 0.25 ns a byte.
        (75, 25, 37.5, "device_copy and device_read"),
        # Unknown copies: half of the bytes is read.
        (0, 0, 50, "device_copy"),
    ],
)
def test_the_floor_of_memory_is_that_of_the_mix_of_the_case(inputs: int, outputs: int, floor_ns: float, named: str) -> None:
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 1, "min_bytes": 100}
    data = run_of([variant("v01_a")], samples("v01_a", STEADY), cases=[{**case, "h2d_bytes": inputs, "d2h_bytes": outputs}])
    data = with_ceilings(data, {Ceiling.DEVICE_READ: 4.0})
    assert (only(data)["floor_ns"], only(data)["floor_ceiling"]) == (pytest.approx(floor_ns), named)


@pytest.mark.parametrize(
    ("min_bytes", "floor_ns", "bound"),
    [
        (HOST_COPY_BYTES, 2 * HOST_COPY_BYTES, "memory"),
        (HOST_COPY_BYTES - 1, 10, "compute"),
    ],  # 0.5 bytes and 0.1 operations a ns
)
def test_without_times_by_size_the_memory_of_the_processor_bounds_only_what_its_caches_do_not_hold(
    min_bytes: int, floor_ns: float, bound: str
) -> None:
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 1, "min_bytes": min_bytes}
    timed = samples("numpy", STEADY, scope="operation", cache="hot")
    found = only(run_of([variant("numpy", role="host", kind="host")], timed, cases=[case]))
    assert (found["floor_ns"], found["floor_bound"]) == (pytest.approx(floor_ns), bound)


#: 100 bytes copied: 40 ns with a cold L2, 25 ns with a hot one; 200 bytes: 60 and 70 ns.
BY_SIZE = {
    by_size(Ceiling.DEVICE_COPY, cache, nbytes): us
    for cache, nbytes, us in (("cold", 100, 0.04), ("hot", 100, 0.025), ("cold", 200, 0.06), ("hot", 200, 0.07))
}


@pytest.mark.parametrize(
    ("scope", "cache", "min_bytes", "floor_ns", "named"),
    [
        ("device", "cold", 100, 40, "device_copy by size (cold)"),
        ("device", "hot", 100, 25, "device_copy by size (hot)"),
        ("operation", "hot", 200, 70, "device_copy by size (hot)"),
        # The copies leave what they like in the L2: the shorter time counts.
        ("end_to_end", "hot", 100, 25, "device_copy by size (hot)"),
        ("end_to_end", "hot", 200, 60, "device_copy by size (cold)"),
    ],
)
def test_by_size_the_floor_of_memory_is_that_of_the_row_s_l2(
    scope: str, cache: str, min_bytes: int, floor_ns: float, named: str
) -> None:
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": 1, "min_bytes": min_bytes}
    data = run_of([variant("v01_a")], samples("v01_a", STEADY, scope=scope, cache=cache), cases=[case])
    row = only(with_ceilings(data, BY_SIZE))
    assert (row["floor_ns"], row["floor_bound"], row["floor_ceiling"]) == (pytest.approx(floor_ns), "memory", named)
    # Without times by size, 2 bytes a nanosecond.
    assert (only(data)["floor_ns"], only(data)["floor_ceiling"]) == (min_bytes / 2, "device_copy")


def test_by_size_each_of_several_gpus_has_the_time_of_its_share() -> None:
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "min_bytes": 200}
    timed = [*samples("v01_a", STEADY), *(row for rank in (0, 1) for row in samples("v02_b", STEADY, gpus=2, rank=rank))]
    data = run_of([variant("v01_a"), variant("v02_b")], timed, cases=[case])
    found = cells(with_ceilings(data, BY_SIZE)).set_index("variant")["floor_ns"]
    assert found.to_dict() == pytest.approx({"v01_a": 60, "v02_b": 40})


@pytest.mark.parametrize(
    ("precision", "flops", "scope", "named"),
    [
        ("fp32", 900, "device", "fp32_fma"),
        ("tf32", 9000, "device", "tf32_mma"),
        ("3xtf32", 900, "device", "tf32_mma / 3"),
        ("fp32", 1, "end_to_end", "d2h_pinned"),
        ("bf16", 9000, "device", "bf16_wgmma"),
    ],
)
def test_a_cell_names_the_ceiling_of_its_floor(precision: str, flops: int, scope: str, named: str) -> None:
    case = {"workload": "w", "case": "n=1", "size_rank": 0, "params": '{"n":1}', "flops": flops, "min_bytes": 100}
    case |= {"h2d_bytes": 60, "d2h_bytes": 40}
    row = only(run_of([variant("v01_a", precision=precision)], samples("v01_a", STEADY, scope=scope), cases=[case]))
    # Of 60 bytes in and 40 out the copy out is longer; a mix of 60 % reads has the only rate that was measured.
    assert row["floor_ceiling"] == named


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
    row = only(run_of([variant("v01_a")], samples("v01_a", STEADY, scope=Phase.H2D)))
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


@pytest.mark.parametrize(("empty_us", "floor_ns", "bound"), [(0.08, 80, "launch"), (0.04, 50, "memory")])
def test_no_floor_of_a_gpu_is_below_its_empty_kernel(empty_us: float, floor_ns: float, bound: str) -> None:
    cell = only(with_ceilings(run_of([variant("v01_a")], samples("v01_a", STEADY)), {Ceiling.GRAPH_NODE: empty_us}))
    assert (cell["floor_ns"], cell["floor_bound"]) == (pytest.approx(floor_ns), bound)


def test_the_empty_kernel_bounds_no_variant_of_the_host() -> None:
    host = run_of([variant("v01_a", kind="host")], samples("v01_a", STEADY, cache="hot", scope="operation"))
    cell = only(with_ceilings(host, {Ceiling.GRAPH_NODE: 1000.0}))
    assert (cell["floor_ns"], cell["floor_bound"]) == (300, "compute")
