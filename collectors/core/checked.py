"""A further pass that looks for faults: each variant of a run at its smallest case. Findings are rows of `diagnostics`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpladder.collectors.core.plan import Plan, WorkloadRef
from warpladder.collectors.core.signals import Stop
from warpladder.data import store
from warpladder.workloads.api import Case, Variant, Workload, format_params

#: A variant with a config at a case, by their names.
Names = tuple[str, str, str]
Cells = list[tuple[Case, Variant, Mapping[str, Any]]]


def cells_of(workload: Workload, variants: Sequence[str]) -> Cells:
    """Every config of the variants at the smallest case that it serves. Cells of one case stand together."""
    cases = sorted(workload.cases, key=lambda case: case.min_bytes or 0)
    found = [
        (case, variant, config)
        for variant in workload.variants
        if variant.name in variants
        for config in variant.configs
        if (case := next((each for each in cases if variant.skip(each, config) is None), None))
    ]
    return sorted(found, key=lambda cell: cases.index(cell[0]))


def request_of(ref: WorkloadRef, cells: Sequence[Names]) -> dict[str, Any]:
    """Cells of a workload as JSON, for the child process that runs them."""
    return {"file": str(ref.file.resolve()) if ref.file else "", "workload": ref.name, "cells": list(cells)}


def requested(request: Mapping[str, Any]) -> tuple[Workload, Cells]:
    """The workload and the cells of a request."""
    workload = WorkloadRef(request["workload"], Path(request["file"]) if request["file"] else None).load()
    cells: Cells = []
    for name, config_text, case in request["cells"]:
        variant = workload.variant(name)
        config = next(each for each in variant.configs if format_params(each) == config_text)
        cells.append((workload.case(case), variant, config))
    return workload, cells


class Checks(ABC):
    """A pass over the workloads of a plan.

    Args:
        run: the run with the times. Its variants that the pass takes are checked, wrong ones too.
        stop: receives signals.
    """

    def __init__(self, plan: Plan, run: store.Run, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()
        measured = {(row["workload"], row["variant"]) for row in run.records("results") if row["status"] != "skipped"}
        own = {(row["workload"], row["variant"]) for row in run.records("variants") if self.takes(row)} & measured
        self.cells: dict[WorkloadRef, list[Names]] = {}
        for ref in dict.fromkeys(job.workload for job in plan.jobs):
            workload = next(each for each in plan.workloads if each.name == ref.name)
            cells = cells_of(workload, [variant for name, variant in own if name == ref.name])
            self.cells[ref] = [(variant.name, format_params(config), case.name) for case, variant, config in cells]

    @staticmethod
    @abstractmethod
    def takes(row: Mapping[str, Any]) -> bool:
        """Whether a variant is checked, by its row of `variants`."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What the pass does, in words."""

    @property
    def variant_count(self) -> int:
        """The variants that are checked."""
        return len({(ref.name, name) for ref, cells in self.cells.items() for name, _, _ in cells})

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Rows of `diagnostics`."""
