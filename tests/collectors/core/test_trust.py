"""What a run gives reason to distrust."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from warpladder.collectors.core import trust
from warpladder.collectors.core.plan import case_row
from warpladder.data import limits, store
from warpladder.data.names import Ceiling, Source, by_size
from warpladder.workloads import registry

pytestmark = pytest.mark.slow

VARIANTS = [
    {"workload": "w", "variant": name, "kind": kind, "role": "rung", "precision": "fp32"}
    for name, kind in (("gpu", "cuda"), ("cpu", "host"))
]
CEILINGS = [{"name": Ceiling.DEVICE_COPY, "value": 4000.0}, {"name": Ceiling.HOST_COPY, "value": 30.0}]


def case(n: int) -> dict[str, Any]:
    return {
        "workload": "w",
        "case": f"n={n}",
        "flops": 0,
        "min_bytes": n,
        "h2d_bytes": n // 2,
        "d2h_bytes": n // 2,
        "passes": 1,
        "params": json.dumps({"n": n}),
    }


def samples(variant: str, n: int, duration_ns: int, scope: str = "device", cache: str = "cold") -> list[dict[str, Any]]:
    row = {"workload": "w", "variant": variant, "config": "", "case": f"n={n}", "scope": scope, "cache": cache, "twin": 0}
    return [{**row, "gpus": 1, "duration_ns": duration_ns, "throttle_reasons": 0} for _ in range(3)]


def found(rows: list[dict[str, Any]], *sizes: int, l2_bytes: int | None = None) -> list[tuple[str, str]]:
    rows = trust.check(pd.DataFrame(rows), [case(n) for n in sizes], VARIANTS, CEILINGS, l2_bytes)
    return [(row["source"], row["case"]) for row in rows]


def test_a_rate_above_the_copy_ceiling_is_distrusted() -> None:
    # 1 MB in 200 ns is 5000 GB/s, above 4000; in 250 ns it is 4000.
    assert found(samples("gpu", 1_000_000, 200), 1_000_000) == [(Source.ABOVE_CEILING, "n=1000000")]
    assert found(samples("gpu", 1_000_000, 250), 1_000_000) == []


IDLE, POWER, HOT = 0x1, 0x4, 0x20  # reasons of NVML; idle slows nothing


@pytest.mark.parametrize(
    ("reasons", "severities"),
    [
        ((HOT, IDLE, IDLE), []),
        ((HOT, HOT, IDLE), ["warning"]),
        ((POWER, POWER, IDLE), ["info"]),
        ((POWER, HOT, HOT), ["warning"]),
    ],
)
def test_at_least_half_of_the_samples_of_all_processes_make_a_clock_slowed_or_at_the_power_limit(
    reasons: tuple[int, ...], severities: list[str]
) -> None:
    rows = [{**row, "throttle_reasons": reason} for row, reason in zip(samples("gpu", 10**6, 1000), reasons, strict=True)]
    findings = trust.check(pd.DataFrame(rows), [case(10**6)], VARIANTS, CEILINGS, None)
    assert [row["severity"] for row in findings] == severities
    assert all((row["source"], row["case"]) == (Source.THROTTLING, "n=1000000") for row in findings)


def test_a_hot_rate_may_be_above_it_but_not_beyond_what_caches_do() -> None:
    assert found(samples("gpu", 1_000_000, 200, cache="hot"), 1_000_000) == []
    # 1 MB in 60 ns is 16,700 GB/s, above 4 x 4000.
    assert found(samples("gpu", 1_000_000, 60, cache="hot"), 1_000_000) == [(Source.ABOVE_CEILING, "n=1000000")]


def test_the_error_of_the_events_is_allowed_for_in_single_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4 MB take 1000 ns at 4000 GB/s, and the margin is about a tenth; 750 ns with an error of 270 ns may be 1020 ns.
    measured = [*CEILINGS, {"name": Ceiling.EVENT_UNCERTAINTY, "value": 0.14}]
    assert found(samples("gpu", 4_000_000, 750), 4_000_000) == [(Source.ABOVE_CEILING, "n=4000000")]
    monkeypatch.setattr(f"{__name__}.CEILINGS", measured)
    assert found(samples("gpu", 4_000_000, 750), 4_000_000) == []
    assert found(samples("gpu", 4_000_000, 550), 4_000_000) == [(Source.ABOVE_CEILING, "n=4000000")]
    assert found(samples("gpu", 4_000_000, 200, cache="hot"), 4_000_000) == [(Source.ABOVE_CEILING, "n=4000000")]


def test_a_view_that_copies_nothing_is_distrusted_even_if_its_time_is_noisy() -> None:
    # 134 MB in 19 us is 7,060 GB/s where memory copies 30; the time grew 7.6 times for 64 times the work.
    rows = samples("cpu", 2_097_152, 2500, "operation", "hot") + samples("cpu", 134_217_728, 19_000, "operation", "hot")
    assert (Source.ABOVE_CEILING, "n=134217728") in found(rows, 2_097_152, 134_217_728)


def test_a_time_that_does_not_grow_with_the_work_is_distrusted() -> None:
    # 7 MB more take memory at least 12 us, at 20 times what it was measured to copy.
    rows = samples("cpu", 1_000_000, 11_000, "operation", "hot") + samples("cpu", 8_000_000, 14_000, "operation", "hot")
    assert found(rows, 1_000_000, 8_000_000) == [(Source.NOT_GROWING, "n=8000000")]


def test_a_time_that_grows_is_not() -> None:
    rows = samples("cpu", 1000, 700, "operation", "hot") + samples("cpu", 8000, 5600, "operation", "hot")
    assert found(rows, 1000, 8000) == []


def test_a_case_of_empty_arrays_is_no_size_from_which_a_time_grows() -> None:
    durations_ns = {0: 500, 1_000_000: 11_000, 8_000_000: 14_000}
    rows = [row for n, ns in durations_ns.items() for row in samples("cpu", n, ns, "operation", "hot")]
    assert found(rows, *durations_ns) == [(Source.NOT_GROWING, "n=8000000")]


def test_what_fits_beside_an_idle_small_case_is_not_blamed_for_a_flat_time() -> None:
    # 7.3 MB more take memory 1.7 us, less than the small case takes for its start and its latencies.
    rows = samples("gpu", 500_000, 3200) + samples("gpu", 8_000_000, 3700)
    assert found(rows, 500_000, 8_000_000) == []
    rows = samples("gpu", 500_000, 20_000, "operation", "hot") + samples("gpu", 8_000_000, 15_000, "operation", "hot")
    assert found(rows, 500_000, 8_000_000) == []


def test_what_is_written_may_still_be_in_the_l2_when_the_clock_stops() -> None:
    # 134 MB in 28 us is 4,790 GB/s; without the 60 MB that the L2 may hold it is 2,640.
    rows = samples("gpu", 134_000_000, 28_000)
    assert found(rows, 134_000_000) == [(Source.ABOVE_CEILING, "n=134000000")]
    assert found(rows, 134_000_000, l2_bytes=60_000_000) == []
    # Half of the bytes are read, and none of them is there before: 134 MB in 15 us is too fast whatever the L2 holds.
    assert found(samples("gpu", 134_000_000, 15_000), 134_000_000, l2_bytes=200_000_000) == [
        (Source.ABOVE_CEILING, "n=134000000")
    ]


@pytest.mark.parametrize(("passes", "duration_ns", "flagged"), [(1, 10_000, True), (10, 10_000, False), (2, 8_000, True)])
def test_by_rates_passes_after_the_first_may_find_what_the_l2_holds(passes: int, duration_ns: int, flagged: bool) -> None:
    """134 MB at 4,000 GB/s. Of ten passes over 13.4 MB, 6.7 MB have to move; of two over 67 MB, 33.5 and then 7 MB."""
    rows = pd.DataFrame(samples("gpu", 134_000_000, duration_ns))
    found = trust.check(rows, [{**case(134_000_000), "passes": passes}], VARIANTS, CEILINGS, 60_000_000)
    assert [row["source"] for row in found] == [Source.ABOVE_CEILING] * flagged


def test_a_case_that_mostly_reads_is_held_against_the_rate_of_reading() -> None:
    # 1 MB read at 4500 GB/s takes 222 ns; 190 ns is within the margin of 1.1 of neither 4500 (202) nor 4000 (227).
    reads = {**case(1_000_000), "h2d_bytes": 999_000, "d2h_bytes": 1000}
    ceilings = [*CEILINGS, {"name": Ceiling.DEVICE_READ, "value": 4500.0}]
    for duration_ns, expected in ((215, []), (190, [Source.ABOVE_CEILING])):
        rows = trust.check(pd.DataFrame(samples("gpu", 1_000_000, duration_ns)), [reads], VARIANTS, ceilings, None)
        assert [row["source"] for row in rows] == expected
    assert "to move 4,499 GB/s of such reads and writes" in rows[0]["text"]
    # Against the copy alone, 215 ns would be too fast.
    rows = trust.check(pd.DataFrame(samples("gpu", 1_000_000, 215)), [reads], VARIANTS, CEILINGS, None)
    assert [row["source"] for row in rows] == [Source.ABOVE_CEILING]


#: Of 1 MB: 400 ns with a cold L2, 100 ns with a hot one; in proportion below, as no size is smaller.
BY_SIZE = [
    {"name": by_size(Ceiling.DEVICE_COPY, cache, nbytes), "value": us}
    for cache, nbytes, us in (
        ("cold", 1_000_000, 0.4),
        ("cold", 8_000_000, 2.2),
        ("hot", 1_000_000, 0.1),
        ("hot", 8_000_000, 1.2),
    )
]


@pytest.mark.parametrize(
    ("cache", "duration_ns", "expected"),
    # 400 / 1.1 is 364, and 100 / 1.25 is 80.
    [("cold", 365, 0), ("cold", 362, 1), ("hot", 81, 0), ("hot", 79, 1)],
)
def test_by_size_a_cell_is_held_against_its_own_cache_and_the_size_of_the_l2_saves_nothing(
    cache: str, duration_ns: int, expected: int
) -> None:
    rows = pd.DataFrame(samples("gpu", 1_000_000, duration_ns, cache=cache))
    told = trust.check(rows, [case(1_000_000)], VARIANTS, [*CEILINGS, *BY_SIZE], 60_000_000)
    assert [row["source"] for row in told] == [Source.ABOVE_CEILING] * expected
    if told:
        least = {"cold": "2,500", "hot": "10,000"}[cache]
        assert f"to move {least} GB/s of so many bytes with a {cache} L2: the work is not done" in told[0]["text"]


@pytest.mark.parametrize(("duration_ns", "expected"), [(2510, 0), (2490, 1)])
def test_a_processor_may_be_four_times_as_fast_as_its_times_by_size(duration_ns: int, expected: int) -> None:
    ceilings = [*CEILINGS, {"name": by_size(Ceiling.HOST_COPY, "hot", 1_000_000), "value": 10.0}]
    rows = pd.DataFrame(samples("cpu", 1_000_000, duration_ns, "operation", "hot"))
    told = trust.check(rows, [case(1_000_000)], VARIANTS, ceilings, None)
    assert [row["source"] for row in told] == [Source.ABOVE_CEILING] * expected
    assert all("to move 100 GB/s of so many bytes: the work is not done" in row["text"] for row in told)


def test_by_size_a_hot_time_that_does_not_grow_is_distrusted_with_a_narrow_margin() -> None:
    # 7 MB more take a hot L2 1.1 us, with the margin 0.88: more than the small case takes. By rates they take 0.44 us with that of 4.
    rows = pd.DataFrame(
        [*samples("gpu", 1_000_000, 870, "operation", "hot"), *samples("gpu", 8_000_000, 1100, "operation", "hot")]
    )
    cases = [case(1_000_000), case(8_000_000)]
    told = trust.check(rows, cases, VARIANTS, [*CEILINGS, *BY_SIZE], None)
    assert [row["source"] for row in told] == [Source.NOT_GROWING]
    assert trust.check(rows, cases, VARIANTS, CEILINGS, None) == []


def test_what_a_rank_took_for_its_share_says_nothing_of_the_case() -> None:
    shares = [{**row, "gpus": 8} for row in samples("gpu", 1_000_000, 40)]  # an eighth of 1 MB in 40 ns is 3,125 GB/s
    assert found(samples("gpu", 1_000_000, 250) + shares, 1_000_000) == []
    assert found(shares, 1_000_000) == []


def test_a_run_without_samples_has_nothing_to_distrust() -> None:
    assert trust.check(pd.DataFrame(), [], [], [], None) == []


def test_samples_of_no_scope_that_is_checked_give_no_finding() -> None:
    # Samples as they are read back, and of a run that was ended before a scope that counts.
    rows = pd.DataFrame(samples("gpu", 1000, 10, "end_to_end", "hot")).astype({"scope": "str"})
    assert trust.check(rows, [case(1000)], VARIANTS, CEILINGS, None) == []
    assert trust.check(pd.DataFrame(samples("gpu", 1000, 10)), [case(1000)], VARIANTS, [], None) == []


# -- the pitfalls of call_routes -------------------------------------------------------------------------------------------

ROUTES = registry.load("call_routes")
BOTH = {Source.ABOVE_CEILING, Source.NOT_GROWING}


def findings_of(variant: str, durations_ns: Mapping[str, int], scope: str = "operation") -> set[str]:
    """Sources of the findings about a variant that took these times, by case, on a machine of these ceilings."""
    row = {"workload": "call_routes", "variant": variant, "config": "", "scope": scope, "cache": "hot", "twin": 0, "gpus": 1}
    row |= {"throttle_reasons": None}
    rows = pd.DataFrame([{**row, "case": case, "duration_ns": ns} for case, ns in durations_ns.items() for _ in range(3)])
    cases = [case_row(ROUTES, case) for case in map(ROUTES.case, durations_ns)]
    of = ROUTES.variant(variant)
    variants = [{"workload": "call_routes", "variant": variant, "kind": of.kind, "role": of.role, "precision": of.precision}]
    return {finding["source"] for finding in trust.check(rows, cases, variants, CEILINGS, 60_000_000)}


def test_the_lazy_views_of_the_routes_are_distrusted_on_host_and_gpu() -> None:
    # 134 MB in 0.3 us is 447,000 GB/s.
    flat = {"n=64,calls=1": 300, "n=1024,calls=1": 310, "n=4096,calls=1": 300}
    assert findings_of("numpy_view", flat) == BOTH
    assert findings_of("cupy_view", flat) == BOTH
    assert findings_of("cupy_view", dict.fromkeys(flat, 1), scope="device") == BOTH


def test_the_call_that_nobody_waits_for_is_distrusted_by_its_time_too() -> None:
    # 134 MB take at least 8 us, at four times what memory was measured to copy. They may be half in the L2: 15,000 GB/s.
    flat = {"n=64,calls=1": 5000, "n=1024,calls=1": 5000, "n=4096,calls=1": 5000}
    assert findings_of("cupy_unsynchronized", flat) == {Source.NOT_GROWING}
    # A hundred calls take a hundred times as long, and hide nothing.
    many = {"n=64,calls=100": 500_000, "n=1024,calls=100": 500_000}
    assert Source.NOT_GROWING in findings_of("cupy_unsynchronized", {**flat, **many})


def test_an_honest_route_is_not_distrusted() -> None:
    honest = {"n=64,calls=1": 9000, "n=1024,calls=1": 11_000, "n=4096,calls=1": 60_000, "n=64,calls=100": 300_000}
    assert findings_of("cupy_raw_module", honest) == set()


# -- floors of arithmetic and of copies, and repeats that were skipped --------------------------------------------------------------

RATES = [
    {"name": Ceiling.FP32_FMA, "value": 50.0},
    {"name": Ceiling.TF32_MMA, "value": 300.0},
    {"name": Ceiling.BF16_WGMMA, "value": 800.0},
    {"name": Ceiling.HOST_FMA, "value": 1.0},
    {"name": Ceiling.H2D_PINNED, "value": 50.0},
    {"name": Ceiling.D2H_PINNED, "value": 50.0},
]


def told(variant: str, duration_ns: int, *, precision: str = "fp32", scope: str = "device", **of_case: int) -> list[str]:
    """Texts of the findings about one cell of one megabyte, with other columns of its case."""
    variants = [{**each, "precision": precision} for each in VARIANTS]
    rows = pd.DataFrame(samples(variant, 1_000_000, duration_ns, scope, "cold" if scope == "device" else "hot"))
    found = trust.check(rows, [{**case(1_000_000), **of_case}], variants, RATES, None)
    assert {row["source"] for row in found} <= {Source.ABOVE_CEILING}
    return [row["text"] for row in found]


def test_operations_faster_than_the_arithmetic_that_was_measured_are_distrusted() -> None:
    # 1 PFLOP in 1.2 us is 833 million TFLOP/s. A floor that is 110 % is within the margin: 1 GFLOP takes 20 us at 50 TFLOP/s.
    (text,) = told("gpu", 1200, flops=10**15)
    assert text.startswith("device cold: 833,333,333 TFLOP/s, where fp32_fma was measured to reach 50")
    assert told("gpu", 18_000, flops=10**9) and not told("gpu", 18_500, flops=10**9)


def test_each_precision_is_held_against_its_own_arithmetic_and_what_is_not_measured_against_none() -> None:
    # 1 GFLOP takes 3.33 us in TF32 at 300 TFLOP/s, 10 us in 3xTF32 and 1.25 us in bf16 at 800. Short work may be 1.35 times as fast.
    assert not told("gpu", 2500, precision="tf32", flops=10**9) and told("gpu", 2450, precision="tf32", flops=10**9)
    (text,) = told("gpu", 7400, precision="3xtf32", flops=10**9)
    assert "tf32_mma / 3" in text and not told("gpu", 7450, precision="3xtf32", flops=10**9)
    assert not told("gpu", 930, precision="bf16", flops=10**9) and told("gpu", 920, precision="bf16", flops=10**9)
    for precision in ("fp16", "fp8", "int8", "int", "mixed"):
        assert not told("gpu", 1, precision=precision, flops=10**12)
        assert not told("cpu", 1, precision=precision, scope="operation", flops=10**12)


def test_the_host_is_held_against_its_product_of_matrices_with_a_wider_margin() -> None:
    # 1 GFLOP takes 1 ms at 1 TFLOP/s; eight times as fast is allowed.
    assert not told("cpu", 126_000, scope="operation", flops=10**9) and told("cpu", 124_000, scope="operation", flops=10**9)


def test_end_to_end_is_held_against_its_copies() -> None:
    # 50 MB each way take 1 ms at 50 GB/s, both at once.
    sizes = {"h2d_bytes": 50_000_000, "d2h_bytes": 50_000_000}
    (text,) = told("gpu", 900_000, scope="end_to_end", **sizes)
    assert "900,000 ns, where the copies alone take 1,000,000 ns at the rate of h2d_pinned" in text
    assert not told("gpu", 910_000, scope="end_to_end", **sizes)


def repeats(cold_ns: int, hot_ns: int, *, nbytes: int = 1_000_000, ceilings: list[dict[str, Any]]) -> list[str]:
    """Findings about a kernel with these times, on a device whose best kernel is twice as fast with a hot L2 of 60 MB."""
    rows = samples("gpu", nbytes, cold_ns) + samples("gpu", nbytes, hot_ns, cache="hot")
    found = trust.check(pd.DataFrame(rows), [case(nbytes)], VARIANTS, [*CEILINGS, *ceilings], 60_000_000)
    return [row["source"] for row in found if row["source"] == Source.REPEATS_SKIPPED]


TWICE = [
    {"name": by_size(Ceiling.DEVICE_COPY, cache, nbytes), "value": us * nbytes / 1_000_000}
    for nbytes in (1_000_000, 1_000_000_000)
    for cache, us in (("cold", 0.4), ("hot", 0.2))
]


def test_a_batch_whose_executions_after_the_first_do_nothing_is_distrusted() -> None:
    # The L2 explains 2 x 2.0 times. A cold start may cost 5 us more.
    assert repeats(100_000, 1_500, ceilings=TWICE) == [Source.REPEATS_SKIPPED]
    assert repeats(45_100, 10_000, ceilings=TWICE) == [Source.REPEATS_SKIPPED]
    assert repeats(44_900, 10_000, ceilings=TWICE) == []
    assert repeats(6_000, 1_100, ceilings=TWICE) == [], "a few microseconds of a cold start explain it"


def test_of_more_bytes_than_the_l2_holds_it_explains_less() -> None:
    # A tenth of 600 MB is in the L2: 1.25 / 0.9 = 1.39 times.
    assert repeats(10_000_000, 7_000_000, nbytes=600_000_000, ceilings=TWICE) == [Source.REPEATS_SKIPPED]
    assert repeats(10_000_000, 7_400_000, nbytes=600_000_000, ceilings=TWICE) == []


def test_without_times_by_size_nothing_is_known_of_what_the_l2_explains() -> None:
    assert repeats(100_000, 1_500, ceilings=[]) == []


RECORDED = [run for run in store.list_runs([store.RECORDED])[0] if run.rows("samples")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("run", RECORDED, ids=lambda run: run.path.name)
def test_no_honest_cell_of_a_run_that_ships_is_distrusted(run: store.Run) -> None:
    cases, variants, ceilings = (run.table(name).to_dict("records") for name in ("cases", "variants", "ceilings"))
    found = trust.check(run.table("samples"), cases, variants, ceilings, run.info["l2_bytes"])
    specimens = {row["variant"] for row in variants if row["role"] == "specimen"}
    untrue = [row for row in found if row["source"] != Source.THROTTLING]  # a slowed clock is the machine's
    assert {row["variant"] for row in untrue} <= specimens
    assert Source.TRUST not in {row["source"] for row in found}


@pytest.mark.thorough
def test_a_hot_l2_may_speed_up_every_cell_that_ships_as_much_as_on_the_device_that_was_measured_by_size() -> None:
    """The runs without times by size too, with the least gain of the others on the same kind of GPU."""
    gains: dict[str, float] = {}
    for run in RECORDED:
        own = limits.hot_gain({row["name"]: row["value"] for row in run.table("ceilings").to_dict("records")})
        kind = run.info["device_name"]
        gains[kind] = min(gains.get(kind, math.inf), own if own == own else math.inf)
    assert {kind.split()[1]: f"{gain:.1f}" for kind, gain in gains.items()} == {"H100": "2.2", "H200": "1.9"}
    most = 0.0
    for run in RECORDED:
        samples = run.table("samples")
        device = samples[(samples["scope"] == "device") & (samples["gpus"] == 1) & (samples["twin"] == 0)]
        cell = ["workload", "variant", "config", "case"]
        medians = device.groupby([*cell, "cache"])["duration_ns"].median().unstack("cache").dropna().reset_index()
        both = medians.merge(run.table("cases"), on=["workload", "case"])
        explained = limits.most_from_l2(
            both["min_bytes"] / both["passes"], run.info["l2_bytes"], gains[run.info["device_name"]]
        )
        most = max(most, (both["cold"] / both["hot"].clip(lower=1) / explained).max())
    assert 0.7 < most < 0.83, "more than a sixth is left"
