"""Runs & checks: what speaks against believing a run, and how each figure was measured."""

import json
from typing import Final, Literal

import pandas as pd
import streamlit as st

from dashboard import runs, state, widgets
from dashboard.charts import distribution
from dashboard.queries import axes, cells, compare, staleness, trust
from dashboard.text import plain
from data import store

_COLORS: Final[dict[str, Literal["red", "orange", "gray"]]] = {"error": "red", "warning": "orange"}


def page() -> None:
    """Draw the page."""
    widgets.heading("Runs & checks", "May these numbers be believed?")
    if runs.chosen() is None:
        _bad_runs()
    run = widgets.run_of_page()
    topics = {
        "findings": "Findings",
        "verdicts": "Verdicts",
        "noise": "A/A noise",
        "samples": "Samples of a cell",
        "ceilings": "Ceilings",
        "run": "Run",
    }
    topic = state.choose("topic", "Show", list(topics), text=topics.__getitem__, style="segmented", labelled=False)
    {"findings": _findings, "verdicts": _verdicts, "noise": _noise, "samples": _samples, "ceilings": _ceilings, "run": _run}[
        topic
    ](run)
    widgets.end_page()


def _bad_runs() -> None:
    """Runs that cannot be opened, each with its cure."""
    for bad in runs.listing(runs.data_dirs()).bad:
        st.error(f"**{plain(bad.path.name)}** cannot be opened. {plain(bad.reason)}")


def _findings(run: store.Run) -> None:
    _bad_runs()
    found: pd.DataFrame = runs.ask(run, trust.findings)
    stale: pd.DataFrame = runs.ask(run, staleness.stale_variants, runs.PROJECT)
    specimens = found[found["role"] == "specimen"]
    others = found[found["role"] != "specimen"]
    serious = int((others["severity"] != "info").sum())
    st.markdown(
        f"**{serious}** warnings and errors, **{len(others) - serious}** notes, **{len(stale)}** sources changed since."
    )
    _list_findings(others)
    if len(stale):
        st.markdown("#### Sources that changed since they were measured")
        st.caption("The run keeps the source as measured; record again to measure what stands there now.")
        widgets.table(stale)
    if len(specimens):
        st.markdown("#### Specimens: known pitfalls, caught as they should be")
        _list_findings(specimens)


def _list_findings(found: pd.DataFrame) -> None:
    """Each finding in full: what it is about, and below it what was found."""
    for row in found.to_dict("records"):
        about = " / ".join(filter(None, (row["workload"], row["variant"])))
        cells = "1 cell" if row["cells"] == 1 else f"{row['cells']} cells, the first"
        where = f"{cells}: {row['example']}" if row["example"] else "the run"
        with st.container(border=True, gap="xxsmall"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.badge(plain(row["severity"]), color=_COLORS.get(row["severity"], "gray"))
                st.markdown(f"**{plain(row['source'].replace('_', ' '))}** {plain(about)}", width="content")
                st.caption(plain(where), width="content")
            st.markdown(f":small[{plain(row['text'])}]")


def _verdicts(run: store.Run) -> None:
    widgets.table(runs.ask(run, trust.verdicts))
    failures: pd.DataFrame = runs.ask(run, trust.failures)
    failures = failures[failures["status"] != "skipped"]
    st.markdown(f"#### Cells that failed: {len(failures)}")
    if len(failures):
        widgets.table(failures)
    skips: pd.DataFrame = runs.ask(run, trust.skips)
    st.markdown(f"#### Cells that were skipped: {skips['cells'].sum()}")
    if len(skips):
        widgets.table(skips)
    st.markdown("#### Why sampling stopped")
    widgets.table(runs.ask(run, trust.stop_reasons))


def _noise(run: store.Run) -> None:
    noise: pd.DataFrame = runs.ask(run, compare.noise_floors)
    if noise.empty:
        widgets.nothing("No baseline of this run was sampled twice.", "Record it again: every recording does so.")
    share = 100 * float(noise["holds_one"].mean())
    st.markdown(
        plain(
            f"In each case the baseline is sampled as two variants. The interval of their ratio holds 1 in "
            f"{int(noise['holds_one'].sum())} of {len(noise)} cells ({share:.0f} %); 95 % is what an honest interval gives."
        )
    )
    widgets.table(noise)


def _samples(run: store.Run) -> None:
    frame: pd.DataFrame = runs.ask(run, cells.cells)
    frame = frame[frame["n"] > 0]
    with widgets.controls():
        workload = widgets.choose_workload(run)
        case = widgets.choose_case(run, workload)
        view = widgets.choose_view(run, workload)
        here = frame[(frame["workload"] == workload) & (frame["case"] == case)]
        here = here[(here["scope"] == view.scope) & (here["cache"] == view.cache)]
        if here.empty:
            widgets.nothing(
                f"No variant of {workload} was timed at {case} in {widgets.timing(run, view)}.",
                "Choose another case, scope or cache.",
            )
        names = [f"{row.variant} {row.config}".strip() for row in here.itertuples()]
        baseline: axes.Baseline | None = runs.ask(run, axes.baseline, workload, view)
        first = f"{baseline.variant} {baseline.config}".strip() if baseline else None
        name = state.choose("cell", "Variant", names, default=first)
    row = here.iloc[names.index(name)]
    samples = runs.load(run).samples
    chosen = pd.Series(True, index=samples.index)
    for column in ("workload", "variant", "config", "case", "cache", "scope", "gpus"):
        chosen &= samples[column] == row[column]
    widgets.show_chart(distribution.samples_over_rounds(samples[chosen], runs.look_of(run, widgets.theme())))


def _ceilings(run: store.Run) -> None:
    st.caption("What this machine was measured to do, in the same run. Floors are counted from these, never from a data sheet.")
    ceilings = runs.load(run).ceilings
    if ceilings.empty:
        widgets.nothing("This run measured no ceiling.", "Record it again: make record.")
    widgets.table(ceilings, column_config={"value": st.column_config.NumberColumn(format="%.4g")})


def _run(run: store.Run) -> None:
    info = dict(run.info)
    packages = json.loads(str(info.pop("packages")) or "{}")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        fields = pd.DataFrame({"field": list(info), "value": ["" if v is None else str(v) for v in info.values()]})
        widgets.table(fields[fields["value"] != ""], height="content")
    with right:
        widgets.table(pd.DataFrame({"package": list(packages), "version": [str(v) for v in packages.values()]}))
        st.caption("Command that recorded it")
        st.code(str(info["command"]), language="bash", wrap_lines=True)


page()
