"""The runs that ship: readable, small, and measured on the sources that stand here now."""

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pytest

from warpladder.dashboard.compare import suspect
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.views.reports.details import overheads, phases, routes
from warpladder.data import figures, store
from warpladder.data.limits import event_error_ns
from warpladder.data.names import found_by_size
from warpladder.workloads import registry

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
GOOD, BAD = store.list_runs([store.RECORDED])
#: Two medians of the same time on one device differ by no more than this and the error of events, at times of buffers that lie elsewhere.
MOST_PERCENT_OF_FLOOR = 104
#: Cells of 1 MiB that are copies by the driver (run, variant, case): their floor was measured before those were tried for it.
COPIES_BY_THE_DRIVER = {
    ("20261127T012648Z-h100-tensor-transpose-3537", variant, "n=64,perm=012") for variant in ("cupy", "torch")
}
#: A variant is sampled about ten times for `record --set quick`, which measures 25 cases in 60 s.
LONGEST_OF_QUICK_NS = 250_000_000


def test_every_recorded_run_opens() -> None:
    assert GOOD
    assert not BAD


@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_the_values_of_a_recorded_run_pass_their_check_its_sources_stand_here_and_none_of_its_cells_is_wrong(
    run: store.Run,
) -> None:
    data = run_data.load(store.open_run(run.path))
    assert not data.results.empty
    stale = suspect.stale_variants(data, ROOT)
    assert stale.empty, f"record again: {stale.to_string()}"
    assert set(data.results["status"]) <= {"ok", "skipped"}
    assert not data.results["detail"].str.contains("interrupted").any()
    cell = ["workload", "variant", "config", "case"]
    verified = data.results.query("status == 'ok'").set_index(cell)
    assert (verified["verified_elements"] > 0).all()
    for samples in (data.samples, data.together):
        timed = samples.groupby(cell, observed=True).size().index
        assert set(timed) <= set(verified.index), "timed, and not verified"


def test_the_recorded_runs_stay_under_ten_megabytes() -> None:
    assert sum(file.stat().st_size for file in store.RECORDED.rglob("*.parquet")) < 10_000_000


@pytest.mark.sampled(6)
@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_no_recorded_cell_is_faster_than_its_floor_where_the_run_has_times_of_memory_by_size(run: store.Run) -> None:
    data = run_data.load(run)
    if not any(map(found_by_size, data.ceilings["name"])):
        pytest.skip("recorded before memory was measured by size")
    found = cells(data)
    timed = found[(found["role"] != "specimen") & (found["n"] > 0)]
    single = (timed["scope"] == "device") & (timed["cache"] == "cold")
    longest_ns = timed["median_ns"] + single * event_error_ns(
        dict(zip(data.ceilings["name"], data.ceilings["value"], strict=True))
    )
    above = timed[timed["percent_of_floor"] * timed["median_ns"] / longest_ns > MOST_PERCENT_OF_FLOOR]
    known = [
        (run.run_id, variant, case) in COPIES_BY_THE_DRIVER
        for variant, case in zip(above["variant"], above["case"], strict=True)
    ]
    above = above[~np.array(known, bool)]
    assert above.empty, above[["variant", "config", "case", "scope", "percent_of_floor", "floor_ceiling"]].to_string()


#: Of a workload and names of its variants.
_NOT_RECORDED: Final = (
    "{}: no shipped run has {}; record the workload on a GPU and ship the run, or declare them with draft=True"
)


def full_cases(name: str) -> set[str]:
    return {case.name for case in registry.load(name).cases if "full" in case.sets}


def results_of(name: str) -> list[pd.DataFrame]:
    """Results of a workload out of each run that has any."""
    of_runs = [run.table("results").groupby("workload") for run in GOOD]
    return [workloads.get_group(name) for workloads in of_runs if name in workloads.groups]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("run", GOOD, ids=lambda run: run.run_id)
def test_every_declared_variant_but_later_ones_of_other_devices_is_in_the_run_unless_it_was_asked_for_some(
    run: store.Run,
) -> None:
    for name, results in run.table("results").groupby("workload"):
        declared = {variant.name: variant for variant in registry.load(name).variants if not variant.draft}
        recorded = set(results["variant"])
        assert recorded <= set(declared)
        if "--variant" not in run.info["command"]:  # of `record` it is `--variants`, of `why` `--variant`
            missing = {each for each in declared if each not in recorded and declared[each].role != "peer"}
            later = [other for other in GOOD if other.info["started_at"] > run.info["started_at"]]
            of_others = (other for other in later if other.info["device_name"] != run.info["device_name"])
            nowhere = missing - {variant for other in of_others for variant in variants_of(other, str(name))}
            assert not nowhere, _NOT_RECORDED.format(name, sorted(nowhere))


def variants_of(run: store.Run, name: str) -> set[str]:
    """The variants of a workload that a run has results of."""
    return set(run.table("results").query("workload == @name")["variant"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in registry.names() if not registry.load(name).draft])
def test_one_run_of_the_recorded_has_every_variant_of_a_workload_and_one_every_full_case_and_all_but_later_peers(
    name: str,
) -> None:
    declared = [variant for variant in registry.load(name).variants if not variant.draft]
    names = {variant.name for variant in declared}
    missing = min((names - variants_of(run, name) for run in GOOD), key=len)
    assert names in [variants_of(run, name) for run in GOOD], _NOT_RECORDED.format(name, sorted(missing))
    ours = {variant.name for variant in declared if variant.role != "peer"}
    of_full_runs = [results for results in results_of(name) if set(results["case"]) == full_cases(name)]
    assert any(ours <= set(results["variant"]) for results in of_full_runs)


@pytest.mark.parametrize("name", [name for name in registry.names() if registry.load(name).draft])
def test_no_recorded_run_has_a_workload_that_is_a_draft(name: str) -> None:
    assert not results_of(name), "it is recorded: it is no draft any more"


def test_each_collector_has_a_run_among_the_recorded() -> None:
    assert {run.info["collector"] for run in GOOD} == {"cuda_events", "cupti", "nsight_systems", "nsight_compute"}


def recorded(table: str, columns: list[str]) -> set[tuple[str, ...]]:
    """The values that these columns have together in any run that has the table."""
    frames = [run.table(table, columns).astype(str).drop_duplicates() for run in GOOD if table in run.tables]
    return set(pd.concat(frames).itertuples(index=False, name=None))


def test_no_variant_of_a_quick_case_takes_the_time_of_the_other_cases() -> None:
    columns = ["workload", "case", "variant", "duration_ns"]
    samples = pd.concat(run.table("samples", [*columns, "scope"]).query("scope == 'operation'") for run in GOOD)
    medians = samples.groupby(columns[:3])["duration_ns"].median()
    quick = {name: [case for case in registry.load(name).cases if "quick" in case.sets] for name in registry.names()}
    long = [
        (name, case.name, variant.name)
        for name, cases in quick.items()
        for case in cases
        for variant in registry.load(name).variants
        if medians.get((name, case.name, variant.name), 0) > LONGEST_OF_QUICK_NS
        and any(variant.skip(case, config) is None for config in variant.configs)
    ]
    assert not long


def test_a_recorded_run_has_each_name_that_a_detail_of_the_reports_is_drawn_by() -> None:
    results = recorded("results", ["workload", "case"])
    assert {(routes.WORKLOAD, case) for case in (routes.ONE_CASE, routes.ROW_CASE, routes.REPORT_CASE)} <= results
    timed = recorded("samples", ["workload", "scope"])
    assert {(routes.WORKLOAD, scope) for scope in routes.STEPS} <= timed
    assert set(overheads.PARTS) <= {scope for _, scope in timed}
    kernels = {name for (name,) in recorded("kernels", ["name"])}
    assert all(any(kernel.startswith(phase) for kernel in kernels) for phase in phases.PHASES)


def test_a_recorded_run_has_the_host_variant_that_speedups_are_counted_from() -> None:
    variants = {variant for (variant,) in recorded("variants", ["variant"])}
    assert figures.SEQUENTIAL in variants
