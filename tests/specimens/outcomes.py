"""What became of specimens and honest variants in a run."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pandas as pd

import warpladder
from tests.specimens.catalogue import Flagged, Honest, Outcome, Restored, Specimen, Unmoved, Wrong
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.wiring import collector_of

#: The least part of an honest variant's time that a specimen that gains nothing takes.
_LEAST = 0.5
#: Sources of warnings that tell how a variant works, and doubt neither its outputs nor its time.
_REMARKS = frozenset({"waits_inside"})


def record(files: Sequence[str], collector: str, data_dir: Path) -> "Recorded":
    """Record files of this folder in one run of few rounds."""
    limits = replace(LIMITS["quick"], seconds=0.1, max_rounds=16, cell_timeout_s=60.0, budget_s=None)
    plan = make_plan(Request(files=[Path(__file__).with_name(file) for file in files]), limits)
    run_id, _ = Recorder(plan, collector_of(collector)).record(data_dir, "", [])
    return Recorded(warpladder.open_run(data_dir / run_id))


class Recorded:
    """A run of specimens among honest variants."""

    def __init__(self, run: "warpladder.Run") -> None:
        self._run = run

    @cached_property
    def _results(self) -> pd.DataFrame:
        return self._run.table()

    @cached_property
    def _warnings(self) -> pd.DataFrame:
        from warpladder.data import store

        found = store.open_run(self._run.path).table("diagnostics")
        return found[found["severity"].isin(["warning", "error"])]

    @cached_property
    def _samples(self) -> pd.DataFrame:
        every = self._run.samples()
        return every[~every["scope"].str.startswith("phase:")]

    @cached_property
    def best(self) -> set[tuple[str, str]]:
        """Workloads with the variants that are called the best."""
        answer = self._run.answer()
        return {
            (row["workload"], row["best"]) for row in answer.to_dict("records") if isinstance(row["best"], str) and row["best"]
        }

    def rows(self, workload: str, variant: str) -> list[dict[str, str]]:
        """The verdicts of a variant, one for each of its cases and configs."""
        of_variant = self._results.query("workload == @workload and variant == @variant")
        columns = of_variant[["case", "config", "status", "detail"]].astype(str).drop_duplicates()
        return [{str(name): value for name, value in row.items()} for row in columns.to_dict("records")]

    def said(self, workload: str, variant: str) -> list[tuple[str, str]]:
        """Source and text of the warnings about a variant, or about a case of its workload."""
        about = self._warnings
        of_workload = (about["workload"] == workload) | about["text"].str.startswith(f"{workload}/")
        of_variant = about["variant"].isna() | (about["variant"] == variant)
        chosen = about[of_workload & of_variant]
        return list(zip(chosen["source"], chosen["text"], strict=True))

    def fault_of(self, specimen: Specimen) -> str:
        """What did not become of a specimen as it should; empty if all did."""
        rows, said = self.rows(specimen.workload, specimen.variant), self.said(specimen.workload, specimen.variant)
        if not rows:
            return "it has no verdict"
        if not any(self._became(specimen, outcome, rows, said) for outcome in specimen.outcomes):
            return f"{specimen.outcomes} expected, and found {rows}, {said}"
        may_win = any(isinstance(outcome, Restored | Unmoved) for outcome in specimen.outcomes)
        if not may_win and (specimen.workload, specimen.variant) in self.best:
            return "it is called the best"
        return ""

    def _became(self, specimen: Specimen, outcome: Outcome, rows: list[dict[str, str]], said: list[tuple[str, str]]) -> bool:
        match outcome:
            case Wrong(detail, status, case):
                of_case = [row for row in rows if case in row["case"]]
                return bool(of_case) and all(row["status"] == status and re.search(detail, row["detail"]) for row in of_case)
            case Flagged(source):
                return any(row["status"] == "ok" for row in rows) and source in {each for each, _ in said}
            case Restored(setting):
                told = [text for source, text in said if source == "process_state"]
                return {row["status"] for row in rows} == {"ok"} and any(re.search(setting, text) for text in told)
            case Unmoved(than):
                return {row["status"] for row in rows} == {"ok"} and self._takes_as_long(specimen, than)

    def _takes_as_long(self, specimen: Specimen, than: str) -> bool:
        """Whether a specimen takes about as long as an honest variant, in every timing.

        The least times are compared: of a few samples beside other programs, any median may be twice what the work takes.
        """
        samples = self._samples[self._samples["workload"] == specimen.workload]
        honest = than or self._run.table(specimen.workload)["baseline"].iloc[0]
        least = samples.groupby(["case", "scope", "cache", "variant"])["duration_ns"].min().unstack()
        return bool((least[specimen.variant] >= _LEAST * least[honest]).dropna().all())

    def fault_of_honest(self, honest: Honest) -> str:
        """Why an honest variant is blamed, or not timed; empty if it is neither. `skipped: …` if this machine lacks its library."""
        rows, said = self.rows(honest.workload, honest.variant), self.said(honest.workload, honest.variant)
        if rows and all(row["status"] == "skipped" for row in rows):
            return f"skipped: {rows[0]['detail']}"
        if not rows or {row["status"] for row in rows} != {"ok"}:
            return f"its verdicts are {rows}"
        if doubts := [each for each in said if each[0] not in _REMARKS]:
            return f"it is distrusted: {doubts}"
        timed = self._samples.query("workload == @honest.workload and variant == @honest.variant")
        return "" if len(timed) else "it is not timed"
