"""The runs that ship: readable, small, and measured on the sources that stand here now."""

from pathlib import Path

import pytest

from dashboard.queries import run_data, staleness
from data import store
from workloads import registry

ROOT = Path(__file__).resolve().parent.parent
GOOD, BAD = store.list_runs([store.RECORDED])


def test_every_recorded_run_opens() -> None:
    assert GOOD
    assert not BAD


def test_the_recorded_runs_stay_under_ten_megabytes() -> None:
    assert sum(file.stat().st_size for file in store.RECORDED.rglob("*.parquet")) < 10_000_000


@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_no_recorded_variant_has_changed_since(run: store.Run) -> None:
    stale = staleness.stale_variants(run_data.load(run), ROOT)
    assert stale.empty, f"record again: {stale.to_string()}"


@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_every_declared_variant_and_full_case_is_in_the_run(run: store.Run) -> None:
    results = run.table("results")
    for name in results["workload"].unique():
        workload = registry.load(name)
        here = results[results["workload"] == name]
        assert set(here["variant"]) == {variant.name for variant in workload.variants}
        assert set(here["case"]) == {case.name for case in workload.cases if "full" in case.sets}


@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_no_recorded_cell_is_wrong_and_none_is_timed_unverified(run: store.Run) -> None:
    results, samples = run.table("results"), run.table("samples")
    assert set(results["status"]) <= {"ok", "skipped"}
    cell = ["workload", "variant", "config", "case"]
    verified = results.query("status == 'ok'").set_index(cell)
    assert (verified["verified_elements"] > 0).all()
    assert set(map(tuple, samples[cell].drop_duplicates().to_numpy())) <= set(verified.index)
