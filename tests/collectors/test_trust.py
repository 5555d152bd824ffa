"""What a run gives reason to distrust."""

import json
from typing import Any

import pandas as pd

from collectors import trust

VARIANTS = [
    {"workload": "w", "variant": name, "kind": kind, "role": "rung"} for name, kind in (("gpu", "cuda"), ("cpu", "host"))
]
CEILINGS = [{"name": "device_copy", "value": 4000.0}, {"name": "host_copy", "value": 30.0}]


def case(n: int) -> dict[str, Any]:
    return {"workload": "w", "case": f"n={n}", "min_bytes": n, "params": json.dumps({"n": n})}


def samples(variant: str, n: int, duration_ns: int, scope: str = "device", cache: str = "cold") -> list[dict[str, Any]]:
    row = {"workload": "w", "variant": variant, "config": "", "case": f"n={n}", "scope": scope, "cache": cache, "twin": 0}
    return [{**row, "gpus": 1, "duration_ns": duration_ns} for _ in range(3)]


def found(rows: list[dict[str, Any]], *sizes: int) -> list[tuple[str, str]]:
    rows = trust.check(pd.DataFrame(rows), [case(n) for n in sizes], VARIANTS, CEILINGS)
    return [(row["source"], row["case"]) for row in rows]


def test_a_rate_above_the_copy_ceiling_is_distrusted() -> None:
    # 1 MB in 200 ns is 5000 GB/s, above 4000; in 250 ns it is 4000.
    assert found(samples("gpu", 1_000_000, 200), 1_000_000) == [("above_ceiling", "n=1000000")]
    assert found(samples("gpu", 1_000_000, 250), 1_000_000) == []


def test_a_hot_rate_may_be_above_it_but_not_beyond_what_caches_do() -> None:
    assert found(samples("gpu", 1_000_000, 200, cache="hot"), 1_000_000) == []
    # 1 MB in 60 ns is 16,700 GB/s, above 4 x 4000.
    assert found(samples("gpu", 1_000_000, 60, cache="hot"), 1_000_000) == [("above_ceiling", "n=1000000")]


def test_a_view_that_copies_nothing_is_distrusted_even_if_its_time_is_noisy() -> None:
    # 134 MB in 19 us is 7,060 GB/s where memory copies 30; the time grew 7.6 times for 64 times the work.
    rows = samples("cpu", 2_097_152, 2500, "operation", "hot") + samples("cpu", 134_217_728, 19_000, "operation", "hot")
    assert ("above_ceiling", "n=134217728") in found(rows, 2_097_152, 134_217_728)


def test_a_time_that_does_not_grow_with_the_work_is_distrusted() -> None:
    rows = samples("cpu", 1000, 700, "operation", "hot") + samples("cpu", 8000, 750, "operation", "hot")
    assert found(rows, 1000, 8000) == [("not_growing", "n=8000")]


def test_a_time_that_grows_is_not() -> None:
    rows = samples("cpu", 1000, 700, "operation", "hot") + samples("cpu", 8000, 5600, "operation", "hot")
    assert found(rows, 1000, 8000) == []


def test_launch_bound_kernels_are_not_blamed_for_flat_times() -> None:
    rows = samples("gpu", 1000, 2500) + samples("gpu", 8000, 2600)
    assert found(rows, 1000, 8000) == []


def test_what_a_rank_took_for_its_share_says_nothing_of_the_case() -> None:
    shares = [{**row, "gpus": 8} for row in samples("gpu", 1_000_000, 40)]  # an eighth of 1 MB in 40 ns is 3,125 GB/s
    assert found(samples("gpu", 1_000_000, 250) + shares, 1_000_000) == []
    assert found(shares, 1_000_000) == []


def test_a_run_without_samples_has_nothing_to_distrust() -> None:
    assert trust.check(pd.DataFrame(), [], [], []) == []
