"""The answer of a comparison of programs as text: a row for each, with its time, and how many times as fast as the first it is."""

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.within_run import speedups
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.cells import baselines, cells
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_estimate, format_ratio, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.ui.tables import csv, markdown_table, markdown_text
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.names import Phase

WALL: Final = Timing("operation", "hot")
#: Column -> the phase of the trace, and its heading.
_PHASES: Final = {
    f"{phase.partition(':')[2]}_ns": (phase, heading)
    for phase, heading in ((Phase.COMPUTE, "kernels"), (Phase.H2D, "copies to the device"), (Phase.D2H, "copies back"))
}
_COLUMNS: Final = (
    *("workload", "case", "variant", "status", "n", *Estimate.names("median_ns")),
    *("baseline", *Estimate.names("speedup"), "noise", "verdict"),
    *_PHASES,
    "detail",
)


def figures(data: RunData) -> pd.DataFrame:
    """A row for each program, in the order of the run.

    Returns:
        Columns `workload`, `case`, `variant`, `status`, `n` and `detail`; the estimate `median_ns` of the wall-clock time;
        `speedup`, the baseline's time over the program's, an estimate; `noise`, the noise floor of the comparison as a factor;
        `verdict`: `baseline`, `faster`, `slower`, `tied`, `unknown` from fewer than six rounds, or empty without a time;
        `compute_ns`, `h2d_ns` and `d2h_ns`, the median times of kernels and copies in the trace, null without one.
    """
    every = cells(data)
    rows: list[dict[str, Any]] = []
    for workload, case in data.cases[["workload", "case"]].itertuples(index=False, name=None):
        of_case = every[(every["workload"] == workload) & (every["case"] == case)]
        reference = baselines(data, workload, WALL, frozenset([case])).get(case)
        compared = speedups(data, workload, case, WALL, reference) if reference else {}
        over = {entry.variant: judged for entry, judged in compared.items()}
        for variant in of_case["variant"].drop_duplicates():
            of_variant = of_case[of_case["variant"] == variant]
            timed = of_variant[(of_variant["scope"] == WALL.scope) & (of_variant["cache"] == WALL.cache)]
            row = (timed if len(timed) else of_variant).iloc[0].to_dict()
            speedup = over.get(variant)
            row |= {"baseline": reference.variant if reference else None, "verdict": ""}
            if speedup is not None and reference is not None:
                verdict = "baseline" if variant == reference.variant else speedup.verdict
                row |= {**speedup.ratio.estimate.columns("speedup"), "noise": speedup.noise, "verdict": verdict}
            for name, (phase, _) in _PHASES.items():
                row[name] = of_variant.loc[of_variant["scope"] == phase, "median_ns"].max()
            rows.append(row)
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def render(rows: pd.DataFrame, form: Form) -> str:
    """The rows of `figures` as text that ends with a line feed."""
    if form == "json":
        return json_text(rows)
    if form == "csv":
        return csv(rows)
    phases = {name: heading for name, (_, heading) in _PHASES.items() if rows[name].notna().any()}
    first = next((str(name) for name in rows["baseline"].dropna()), "the first")
    headings = ("program", "time", f"times as fast as {first}", "verdict", "n", *phases.values())
    lines = [_line(row, tuple(phases)) for row in rows.to_dict("records")]
    if form == "markdown":
        return plain_lines((*markdown_table(headings, lines), "", *map(markdown_text, _notes(rows))))
    return plain_lines((*plain_table(headings, lines), *_notes(rows)))


def _line(row: Mapping[Any, Any], phases: tuple[str, ...]) -> tuple[str, ...]:
    timed = not pd.isna(row["median_ns"]) and row["status"] == "ok"
    compared = timed and row["verdict"] not in ("", "baseline")
    return (
        str(row["variant"]),
        format_estimate(Estimate.of(row, "median_ns"), format_duration) if timed else NOTHING,
        format_estimate(Estimate.of(row, "speedup"), format_ratio) if compared else NOTHING,
        str(row["verdict"] or row["status"]) if timed else str(row["status"]),
        str(row["n"]) if timed else NOTHING,
        *(format_duration(row[name]) for name in phases),
    )


def _notes(rows: pd.DataFrame) -> list[str]:
    """The reasons of programs that failed, and the noise of the comparison."""
    notes = [f"{row['variant']}: {row['status']}: {row['detail']}" for row in rows.to_dict("records") if row["status"] != "ok"]
    noise = rows["noise"].max()
    if not pd.isna(noise) and len(rows) > 1:
        first = rows["baseline"].dropna().iloc[0]
        notes.append(f"{first} against itself differs by up to {significant(100 * (noise - 1), 2)} %: less than that is a tie")
    if (rows["verdict"] == "unknown").any():
        notes.append(f"fewer than {MIN_SAMPLES} rounds give no verdict")
    return notes
