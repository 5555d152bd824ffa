"""The findings, statuses and errors of a run; its launches and copies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.compare import overview
from warpladder.dashboard.compare.suspect import stale_variants, unsteady
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core import processes
from warpladder.dashboard.core.cell import Cell
from warpladder.dashboard.core.numbers import format_half_width
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData
from warpladder.data.arrays import NONE, lookup
from warpladder.data.names import Source
from warpladder.data.nesting import nearest
from warpladder.data.words import counted, first_of

#: What may be believed where nothing is against it: of a recording, and of a profile, in which no result was compared with a reference.
_MEASURED: Final = "every cell is right, and the checks found nothing"
_UNJUDGED: Final = "the checks found nothing; no output was judged"
_PROFILED: Final = "the import found nothing in the profile that is missing or doubtful"
_NOT_COLLECTED: Final = "Nsight Systems names data that it could not collect"
_SEVERITY_ORDER: Final = ("error", "warning", "info")
#: Half an interval over its median, beyond which a winner's time is not believed.
_ROUGH: Final = 0.1
#: Winners that the sentence names.
_MOST_ROUGH: Final = 3
_STATUS_ORDER: Final = ("ok", "wrong_result", "launch_error", "out_of_memory", "timeout", "skipped")


@dataclass(frozen=True)
class Verdict:
    """Whether a run may be believed.

    Attributes:
        against: the reasons not to; empty where it may.
        but: what to keep in mind all the same.
        failed: how many cells failed; empty for none. They cannot win, so that the winners can be believed.
        rough: the winners whose time is known only roughly.
        passed: what holds where nothing is against it.
        missing: what a profile lacks by its own words; empty where it lacks nothing.
    """

    against: tuple[str, ...]
    but: tuple[str, ...]
    failed: str = ""
    rough: tuple[str, ...] = ()
    passed: str = _MEASURED
    missing: str = ""

    @property
    def sentence(self) -> str:
        """`Yes. 3 doubtful times, which never win.`, `No: 2 checks found an error.`, or what of it can be believed."""
        if self.against:
            return f"No: {'; '.join(filter(None, (*self.against, self.failed)))}."
        rough = f"times of winners are rough: {first_of(self.rough, _MOST_ROUGH)}" if self.rough else ""
        if in_part := "; ".join(filter(None, (self.failed, rough, self.missing))):
            return f"In part. {'; '.join((in_part[0].upper() + in_part[1:], *self.but))}."
        but = "; ".join(self.but)
        return f"Yes. {but[0].upper()}{but[1:]}." if but else f"Yes: {self.passed}."


def verdict(data: RunData, root: Path) -> Verdict:
    """Whether a run may be believed, and why.

    It may not where a check found an error, and where a workload has no winner; in part where a cell of a rung, host variant or peer failed.

    Args:
        root: the project's folder, whose sources are compared with those that were measured.
    """
    roles = data.variants[["workload", "variant", "role"]]
    failed = failures(data).query("status != 'skipped'").merge(roles, on=["workload", "variant"], how="left")
    failed = failed[failed["role"] != "specimen"]
    found = findings(data).query("role != 'specimen'")
    # What Nsight Systems could not collect is missing; what it collected is right.
    of_tool = found["source"] == Source.NSYS
    lines = overview.lines(data, root)
    lacking = [line.workload for line in lines if not line.variant]
    against = (
        _counted(int(((found["severity"] == "error") & ~of_tool).sum()), "check", "found an error"),
        f"no trusted winner of {', '.join(dict.fromkeys(lacking))}" if lacking else "",
    )
    warned = found[found["severity"] == "warning"]
    of_run = list(dict.fromkeys(warned.loc[warned["variant"] == "", "source"]))
    but = (
        _counted(int((warned["variant"] != "").sum()), "warning", "about cells that therefore never win"),
        f"{counted(len(of_run), 'warning')} about the whole run: {', '.join(of_run).replace('_', ' ')}" if of_run else "",
        _counted(len(unsteady(data)), "time", "known only roughly"),
        _counted(len(stale_variants(data, root)), "source", "changed since"),
        "what was not reached is missing" if (found["source"] == Source.NOT_REACHED).any() else "",
        processes.UNKNOWN if (found["source"] == Source.FEWER_PROCESSES).any() or processes.remark(data) else "",
    )
    right = data.results[data.results["status"] == "ok"]
    measured = _UNJUDGED if len(right) and right["verified_elements"].isna().all() else _MEASURED
    passed = _PROFILED if data.info["kind"] in ("import", "job") else measured
    missing = _NOT_COLLECTED if ((found["severity"] == "error") & of_tool).any() else ""
    rough = tuple(filter(None, map(_rough, lines)))
    lost = (
        f"{_counted(len(failed), 'cell', 'failed and cannot win')}, such as {failed['variant'].iloc[0]}" if len(failed) else ""
    )
    return Verdict(tuple(filter(None, against)), tuple(filter(None, but)), lost, rough, passed, missing)


def topics(data: RunData) -> tuple[str, ...]:
    """What the page can show of a run. A recording has all, and each tells what the recording lacks; a profile has what it can have."""
    of_profile = {
        "findings": True,
        "verdicts": len(data.results) > 0,
        "noise": len(data.samples) > 0,
        "samples": len(data.samples) > 0,
        "copies": bool(data.traces),
        "ceilings": len(data.ceilings) > 0,
        "run": True,
    }
    recorded = data.info["kind"] == "recording"
    return tuple(name for name, known in of_profile.items() if recorded or known)


def _rough(best: Cell) -> str:
    """`v01_numpy of conv2d is known to ±23 %`; empty where the winner's time is known better, or there is no winner."""
    time = best.median_ns
    half = (time.high - time.low) / 2 / time.value if time.known else 0.0
    known = format_half_width(time.value, time.low, time.high)
    return f"{best.variant} of {best.workload} is known to {known}" if half > _ROUGH else ""


def _counted(count: int, what: str, then: str) -> str:
    """`2 cells failed`; empty for none."""
    return f"{counted(count, what)} {then}" if count else ""


def findings(data: RunData) -> pd.DataFrame:
    """The diagnostics, joined by kind: diagnostics about one variant, and diagnostics about the run.

    Returns:
        `severity` (errors first), `source`, and

        - `workload`, `variant`, `role`: identify the variant; empty for a finding about the run;
        - `cells`: number of diagnostics joined;
        - `example`: case and config of the first diagnostic; empty where it names no case;
        - `text`: about a variant, the first text, because its figures differ by cell; about the run, all texts, one a line.
    """
    rows = data.diagnostics.merge(data.variants[["workload", "variant", "role"]], on=["workload", "variant"], how="left")
    about = ["workload", "variant", "role"]
    rows[about] = rows[about].fillna("")
    rows["example"] = [
        " ".join(str(value) for value in cell if pd.notna(value) and value != "")
        for cell in rows[["case", "config"]].itertuples(index=False)
    ]
    grouped = rows.groupby(["severity", "source", *about], sort=False, as_index=False).agg(
        cells=("text", "size"), example=("example", "first"), text=("text", list)
    )
    grouped["text"] = [
        texts[0] if variant else "\n".join(texts) for variant, texts in zip(grouped["variant"], grouped["text"], strict=True)
    ]
    by_severity = grouped["severity"].map(_SEVERITY_ORDER.index).sort_values(kind="stable")
    return grouped.loc[by_severity.index].reset_index(drop=True)


def statuses(data: RunData) -> pd.DataFrame:
    """One row for each workload: `workload`, a count for each status that occurs, with `ok` first, and `total`."""
    counts = pd.crosstab(data.results["workload"], data.results["status"])
    counts = counts[[status for status in _STATUS_ORDER if status in counts]]
    counts = counts.reindex([workload for workload in data.workloads if workload in counts.index])
    counts.columns.name = None
    return counts.assign(total=counts.sum(axis=1)).reset_index(names="workload")


def failures(data: RunData) -> pd.DataFrame:
    """Results that are not ok: `workload`, `variant`, `config`, `case`, `status`, `detail`, `rel_l2_error`, `tolerance`."""
    columns = [*STATUS_KEY, "status", "detail", "rel_l2_error", "tolerance"]
    return data.results.loc[data.results["status"] != "ok", columns].reset_index(drop=True)


def skips(data: RunData) -> pd.DataFrame:
    """Skipped cells by reason: `workload`, `detail`, and the numbers `variants` and `cells`, with the most cells first."""
    skipped = data.results[data.results["status"] == "skipped"]
    grouped = skipped.groupby(["workload", "detail"], sort=False, as_index=False).agg(
        variants=("variant", "nunique"), cells=("variant", "size")
    )
    return grouped.sort_values("cells", ascending=False, kind="stable").reset_index(drop=True)


def stop_reasons(data: RunData) -> pd.DataFrame:
    """The reasons that sampling stopped in cells that are ok.

    Returns:
        `workload`, `reason` (such as `device cold: converged`, without the figures in `results.detail`, which differ by cell)
        and `cells`, with the most frequent reason first.
    """
    passed = data.results.loc[data.results["status"] == "ok", ["workload", "detail"]]
    reasons = passed.assign(reason=passed["detail"].str.split(";")).explode("reason")
    reasons["reason"] = reasons["reason"].str.split(",").str[0].str.strip()
    reasons = reasons[reasons["reason"].fillna("") != ""]
    counts = reasons.groupby(["workload", "reason"], sort=False).size().rename("cells").reset_index()
    return counts.sort_values("cells", ascending=False, kind="stable").reset_index(drop=True)


def errors(data: RunData) -> pd.DataFrame:
    """The largest measured errors against float64 of correct cells, by workload and precision.

    Returns:
        `workload`, `precision`, the numbers `variants` and `cells`, `rel_l2_error`, `max_rel_error`, and `tolerance` (the
        largest of the cells).
    """
    frame = data.results[(data.results["status"] == "ok") & data.results["rel_l2_error"].notna()]
    frame = frame.merge(data.variants[["workload", "variant", "precision", "role"]], on=["workload", "variant"])
    grouped = (
        frame[frame["role"] != "specimen"]
        .groupby(["workload", "precision"], sort=False, as_index=False)
        .agg(
            variants=("variant", "nunique"),
            cells=("variant", "size"),
            rel_l2_error=("rel_l2_error", "max"),
            max_rel_error=("max_rel_error", "max"),
            tolerance=("tolerance", "max"),
        )
    )
    return grouped.assign(precision=grouped["precision"].map(word))


_DIRECTIONS: Final = ("h2d", "d2h")


@dataclass(frozen=True)
class Attribution:
    """The number and time of a trace's kernels: all kernels, kernels outside of ranges, and kernels with an unknown launch."""

    kernels: int
    time_ns: int
    outside: int
    outside_ns: int
    unlaunched: int
    unlaunched_ns: int


def attribution(data: RunData) -> Attribution:
    """The counts of kernels that are not attributed to a range; zeros without a table `kernels`."""
    if "kernels" not in data.traces.tables:
        return Attribution(0, 0, 0, 0, 0, 0)
    outside, unlaunched = _unattributed(data)
    time_ns = data.traces.durations("kernels")
    every = (np.ones(len(time_ns), dtype=bool), outside, unlaunched)
    return Attribution(*(int(each) for chosen in every for each in (chosen.sum(), time_ns[chosen].sum())))


def unattributed(data: RunData) -> pd.DataFrame:
    """Kernels with launches that are not attributed to a range, the longest first.

    The columns are `kernel`, `outside` and `unlaunched` (numbers of launches), and `time_ns` (of both).
    """
    columns = ["kernel", "outside", "unlaunched", "time_ns"]
    if "kernels" not in data.traces.tables:
        return pd.DataFrame(columns=columns)
    outside, unlaunched = _unattributed(data)
    rows = np.flatnonzero(outside | unlaunched)
    names = data.traces.texts("kernels", "name")
    frame = pd.DataFrame(
        {
            "kernel": np.asarray(names.categories, dtype=object)[names.codes[rows]],
            "outside": outside[rows].astype(int),
            "unlaunched": unlaunched[rows].astype(int),
            "time_ns": data.traces.durations("kernels")[rows],
        }
    )
    sums = frame.groupby("kernel", as_index=False, sort=False).sum()
    return sums.sort_values(["time_ns", "kernel"], ascending=[False, True], ignore_index=True)[columns]


def dropped(data: RunData) -> tuple[str, ...]:
    """The records that the tool reports as lost."""
    return tuple(data.diagnostics.loc[data.diagnostics["source"] == Source.DROPPED, "text"])


def rounds(data: RunData) -> pd.DataFrame:
    """The bytes that each end-to-end round copied, beside the bytes of its case.

    A round is the range of one sample, including the baseline's second entry, without warm-ups. Copies in inner ranges count.

    Returns:
        `workload`, `variant`, `config`, `case`, `range` (its text), `h2d_bytes` and `d2h_bytes` (copied), `case_h2d_bytes`,
        `case_d2h_bytes` and `equal`. There are no rows where the trace has no such range or no copies.
    """
    columns = [*STATUS_KEY, "range", "h2d_bytes", "d2h_bytes", "case_h2d_bytes", "case_d2h_bytes", "equal"]
    traces = data.traces
    if not {"ranges", "memory_ops"} <= set(traces.tables):
        return pd.DataFrame(columns=columns)
    scope = traces.texts("ranges", "scope")
    ids = traces.numbers("ranges", "range_id")
    parent = lookup(ids, traces.numbers("ranges", "parent_id"))
    ours = (np.asarray(scope) == "end_to_end") & (traces.numbers("ranges", "round") >= 0)
    outermost = ours & ~((parent >= 0) & ours[parent])
    # For each copy, the place of the outermost range of a sample around it, or `NONE`.
    at = lookup(ids, traces.ranges_of_work("memory_ops"))
    at = np.where((at >= 0) & ours[at], nearest(parent, outermost)[at], NONE)
    kind, moved = traces.texts("memory_ops", "kind"), traces.numbers("memory_ops", "bytes")
    chosen = np.flatnonzero(outermost)
    read = {**{column: column for column in STATUS_KEY}, "range": "text"}
    texts_and_sums: dict[str, Any] = {name: np.asarray(traces.texts("ranges", column))[chosen] for name, column in read.items()}
    for direction in _DIRECTIONS:
        copies = (at >= 0) & (np.asarray(kind) == direction)
        sums = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, at[copies], moved[copies])
        texts_and_sums[f"{direction}_bytes"] = sums[chosen]
    cases = data.cases.rename(columns={f"{direction}_bytes": f"case_{direction}_bytes" for direction in _DIRECTIONS})
    keys = ["workload", "case"]
    frame = pd.DataFrame(texts_and_sums).merge(cases[[*keys, "case_h2d_bytes", "case_d2h_bytes"]], on=keys)
    equal = (frame["h2d_bytes"] == frame["case_h2d_bytes"]) & (frame["d2h_bytes"] == frame["case_d2h_bytes"])
    return frame.assign(equal=equal)[columns]


def by_case(frame: pd.DataFrame) -> pd.DataFrame:
    """`rounds` by case: `workload`, `case`, `rounds`, `equal` (numbers of rounds), and the case's bytes in each direction."""
    keys = ["workload", "case", "case_h2d_bytes", "case_d2h_bytes"]
    sums = frame.groupby(keys, sort=False, as_index=False).agg(rounds=("equal", "size"), equal=("equal", "sum"))
    return sums[["workload", "case", "rounds", "equal", "case_h2d_bytes", "case_d2h_bytes"]]


def _unattributed(data: RunData) -> tuple[Any, Any]:
    """Masks of the kernels outside of all ranges, and of the kernels with an unknown launch."""
    traces = data.traces
    return traces.ranges_of_work("kernels") == NONE, traces.numbers("kernels", "launch_start_ns") == NONE
