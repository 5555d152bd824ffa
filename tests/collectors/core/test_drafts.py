"""Drafts: variants and workloads that are measured only where they are named."""

from dataclasses import replace
from pathlib import Path

import pytest

from warpladder.collectors.core.plan import Plan, Request, WorkloadRef, make_plan
from warpladder.workloads import registry
from warpladder.workloads.api import Workload


def with_draft(name: str) -> Workload:
    """`tensor_transpose`, one of whose variants is a draft."""
    workload = registry.load("tensor_transpose")
    variants = tuple(replace(variant, draft=variant.name == name) for variant in workload.variants)
    return replace(workload, variants=variants)


def planned(workload: Workload, *names: str) -> Plan:
    loaded = [(workload, WorkloadRef(workload.name, None))]
    return make_plan(Request(case_set="quick", variants=names), loaded=loaded)


def measured(plan: Plan) -> set[str]:
    return {cell.variant for job in plan.jobs for cell in job.cells}


def test_a_draft_is_measured_only_where_it_is_named() -> None:
    workload = with_draft("v09_padded_tile")
    assert measured(planned(workload)) == {variant.name for variant in workload.variants} - {"v09_padded_tile"}
    assert measured(planned(workload, "v09_padded_tile", "v01_copy")) == {"v09_padded_tile", "v01_copy"}


@pytest.mark.slow
def test_a_workload_that_is_a_draft_is_measured_only_where_it_is_named(monkeypatch) -> None:
    draft = replace(registry.load("conv2d"), draft=True)
    load = registry.load
    monkeypatch.setattr(registry, "load", lambda name: draft if name == "conv2d" else load(name))
    of_all = {job.workload.name for job in make_plan(Request()).jobs}
    assert of_all == {name for name in registry.names() if not registry.load(name).draft}
    assert "conv2d" not in of_all
    assert {job.workload.name for job in make_plan(Request(names=["conv2d"])).jobs} == {"conv2d"}


def test_a_file_names_its_workload(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text(
        "from dataclasses import replace\n"
        "from warpladder.workloads import registry\n"
        'WORKLOAD = replace(registry.load("conv2d"), name="mine", draft=True)\n'
    )
    assert {job.workload.name for job in make_plan(Request(files=[file])).jobs} == {"mine"}
