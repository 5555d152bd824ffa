"""The findings, verdicts and errors of a run."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.precision import word
from warpladder.dashboard.core.run_data import VERDICT_CELL, RunData

_SEVERITY_ORDER: Final = ("error", "warning", "info")
_STATUS_ORDER: Final = ("ok", "wrong_result", "launch_error", "out_of_memory", "timeout", "skipped")


def findings(data: RunData) -> pd.DataFrame:
    """The diagnostics, with those of one kind joined: those about one variant, and those about the run.

    Returns:
        `severity` (errors first), `source`, and

        - `workload`, `variant`, `role`: of the variant; empty for a finding about the run;
        - `cells`: number of diagnostics joined;
        - `example`: case and config of the first one; empty where it has none;
        - `text`: about a variant, the text of the first one, whose figures differ by cell; about the run, all texts, a line each.
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
    order = grouped["severity"].map({name: place for place, name in enumerate(_SEVERITY_ORDER)})
    return grouped.assign(order=order).sort_values("order", kind="stable").drop(columns="order").reset_index(drop=True)


def verdicts(data: RunData) -> pd.DataFrame:
    """One row for each workload: `workload`, a count for each status that occurs, with `ok` first, and `total`."""
    counts = pd.crosstab(data.results["workload"], data.results["status"])
    counts = counts[[status for status in _STATUS_ORDER if status in counts]]
    counts = counts.reindex([workload for workload in data.workloads if workload in counts.index])
    counts.columns.name = None
    return counts.assign(total=counts.sum(axis=1)).reset_index(names="workload")


def failures(data: RunData) -> pd.DataFrame:
    """Results that are not ok: `workload`, `variant`, `config`, `case`, `status`, `detail`, `rel_l2_error`, `tolerance`."""
    columns = [*VERDICT_CELL, "status", "detail", "rel_l2_error", "tolerance"]
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
