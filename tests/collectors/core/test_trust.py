"""What a run gives reason to distrust."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from warpladder.collectors.core import trust
from warpladder.data.names import Ceiling, Source
from warpladder.workloads import registry

VARIANTS = [
    {"workload": "w", "variant": name, "kind": kind, "role": "rung"} for name, kind in (("gpu", "cuda"), ("cpu", "host"))
]
CEILINGS = [{"name": Ceiling.DEVICE_COPY, "value": 4000.0}, {"name": Ceiling.HOST_COPY, "value": 30.0}]


def case(n: int) -> dict[str, Any]:
    return {"workload": "w", "case": f"n={n}", "min_bytes": n, "params": json.dumps({"n": n})}


def samples(variant: str, n: int, duration_ns: int, scope: str = "device", cache: str = "cold") -> list[dict[str, Any]]:
    row = {"workload": "w", "variant": variant, "config": "", "case": f"n={n}", "scope": scope, "cache": cache, "twin": 0}
    return [{**row, "gpus": 1, "duration_ns": duration_ns} for _ in range(3)]


def found(rows: list[dict[str, Any]], *sizes: int, l2_bytes: int | None = None) -> list[tuple[str, str]]:
    rows = trust.check(pd.DataFrame(rows), [case(n) for n in sizes], VARIANTS, CEILINGS, l2_bytes)
    return [(row["source"], row["case"]) for row in rows]


def test_a_rate_above_the_copy_ceiling_is_distrusted() -> None:
    # 1 MB in 200 ns is 5000 GB/s, above 4000; in 250 ns it is 4000.
    assert found(samples("gpu", 1_000_000, 200), 1_000_000) == [(Source.ABOVE_CEILING, "n=1000000")]
    assert found(samples("gpu", 1_000_000, 250), 1_000_000) == []


def test_a_hot_rate_may_be_above_it_but_not_beyond_what_caches_do() -> None:
    assert found(samples("gpu", 1_000_000, 200, cache="hot"), 1_000_000) == []
    # 1 MB in 60 ns is 16,700 GB/s, above 4 x 4000.
    assert found(samples("gpu", 1_000_000, 60, cache="hot"), 1_000_000) == [(Source.ABOVE_CEILING, "n=1000000")]


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


def test_what_fits_beside_an_idle_small_case_is_not_blamed_for_a_flat_time() -> None:
    # 7.3 MB more take memory 1.7 us, less than the small case takes for its start and its latencies.
    rows = samples("gpu", 500_000, 3200) + samples("gpu", 8_000_000, 3700)
    assert found(rows, 500_000, 8_000_000) == []
    rows = samples("gpu", 500_000, 20_000, "operation", "hot") + samples("gpu", 8_000_000, 15_000, "operation", "hot")
    assert found(rows, 500_000, 8_000_000) == []


def test_what_is_written_may_still_be_in_the_l2_when_the_clock_stops() -> None:
    # 134 MB in 28 us is 4,790 GB/s; without the 60 MB that the L2 holds it is 2,640.
    rows = samples("gpu", 134_000_000, 28_000)
    assert found(rows, 134_000_000) == [(Source.ABOVE_CEILING, "n=134000000")]
    assert found(rows, 134_000_000, l2_bytes=60_000_000) == []
    # Half of the bytes are read, and none of them is there before: 134 MB in 15 us is too fast whatever the L2 holds.
    assert found(samples("gpu", 134_000_000, 15_000), 134_000_000, l2_bytes=200_000_000) == [
        (Source.ABOVE_CEILING, "n=134000000")
    ]


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
    rows = pd.DataFrame([{**row, "case": case, "duration_ns": ns} for case, ns in durations_ns.items() for _ in range(3)])
    cases = [
        {"workload": "call_routes", "case": case.name, "min_bytes": case.min_bytes, "params": json.dumps(dict(case.params))}
        for case in map(ROUTES.case, durations_ns)
    ]
    of = ROUTES.variant(variant)
    variants = [{"workload": "call_routes", "variant": variant, "kind": of.kind, "role": of.role}]
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
