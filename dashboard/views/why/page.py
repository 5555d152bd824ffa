"""Why faster: two variants, the cause of their difference in a sentence, and their code."""

from typing import Any, Final, NoReturn

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import counted, counters, run_index
from warpladder.dashboard.core.numbers import format_counter
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun
from warpladder.dashboard.ui import counted_run, pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.why.counters import chart, query
from warpladder.data import store

_HEADER: Final = (("bottleneck", "What limited it"), ("idea", "What it does"))
_WORK: Final = {
    "group": st.column_config.TextColumn("Group", width="small"),
    "name": st.column_config.TextColumn("Quantity", width="medium"),
    "a": "A",
    "b": "B",
    "ratio": widgets.number("B / A", style="%.3f"),
}


def draw(run: store.Run) -> None:
    counted_ones = (name for name in runs.load(run).workloads if counted_run.find(run, name))
    workload = widgets.choose_workload(run, default=next(counted_ones, None))
    found = counted_run.find(run, workload)
    if found is None:
        _not_counted(run, workload)
    source = found.run
    data = runs.load(source)
    case = widgets.choose_case(found.run, workload, among=runs.ask(source, counters.counted_cases, workload))
    timed = runs.ask(run, counted.times, workload, case) if run_index.device_of(run) == found.facts.device else pd.DataFrame()
    timed = timed if len(timed) else runs.ask(source, counted.times, workload, case)
    every = runs.ask(source, counted.best, workload, case, timed)
    if found.run.path != run.path:
        every = every[every["variant"].isin(counted_run.equal_variants(run, found.run, workload))]
    rows = {row["variant"]: row for row in every.to_dict("records")}
    if len(rows) < 2:
        st.info("Only one variant was counted. Record two variants or more with --counters.")
        pages.link("why.counters", "What limits it →", **state.link(run=found.name, workload=workload))
        widgets.end_empty()
    before, after = counted.pair_to_explain(data, workload, every)
    with widgets.controls():
        a = state.choose("why_a", "Slower or before (A)", list(rows), default=before)
        b = state.choose("why_b", "Faster or after (B)", list(rows), default=after)
        everything = st.toggle("Equal figures too", key="why all")
    _explain(data, workload, case, rows[a], rows[b], everything=everything)
    _links(found, workload, a, b)
    if found.run.path != run.path:
        st.caption(plain(f"Counters of {found.title}, of the variants whose sources are those of this run."))
    drawn = query.most_time(every)
    steps = runs.ask(source, counted.steps, workload, case, drawn)
    if len(steps):
        how = query.how_counted(data, len(drawn), len(every)) + query.where_timed(drawn, "")
        widgets.show_chart(widgets.drawn(chart.steps, steps, runs.look_of(found.run, widgets.theme()), workload, case, how))


def _explain(data: RunData, workload: str, case: str, a: dict[Any, Any], b: dict[Any, Any], *, everything: bool) -> None:
    explanation = counted.explained(data, workload, case, a, b)
    if explanation is None:
        st.info("One of the two was not counted.")
        return
    st.markdown(f"## {plain(explanation.sentence(a['variant'], b['variant']))}")
    table = query.work_table(explanation, changed=not everything)
    shown = table.assign(
        a=list(map(format_counter, table["a"], table["unit"])), b=list(map(format_counter, table["b"], table["unit"]))
    )
    widgets.table(shown.drop(columns="unit"), column_config=_WORK, height=min(300, 38 + 35 * max(len(shown), 1)))


def _links(found: ListedRun, workload: str, a: str, b: str) -> None:
    """To the instructions that differ, and to the lines of the faster one."""
    if not found.facts.has(run_index.Need.CODE):
        return
    place = {"run": found.name, "workload": workload}
    with st.container(horizontal=True, gap="small"):
        both = f"The instructions that differ, {plain(a)} and {plain(b)} →"
        pages.link("why.machine_code", both, **place, machine="difference", variant=b, a=a)
        pages.link("why.machine_code", f"Lines and instructions of {plain(a)} →", **place, variant=a)
        pages.link("why.machine_code", f"… of {plain(b)} →", **place, variant=b)
        pages.link("why.counters", "Counters →", **place)


def _not_counted(run: store.Run, workload: str) -> NoReturn:
    """Show the command that counts, and the comments of the sources. Ends the section."""
    for reason in runs.ask(run, query.denied):
        st.warning(plain(reason))
    variants = runs.load(run).variants
    variants = variants[variants["workload"] == workload]
    if (variants["kind"] == "host").all():
        st.info(plain(f"Every variant of {workload} runs on the processor, and hardware counters are read on a GPU."))
    else:
        why = f"No run has hardware counters of these sources of {workload}."
        st.info(plain(f"{why} On a machine with Nsight Compute, record them:"))
        st.code(runs.how_to_record(run, workload, "--counters"), language="bash")
    rungs = variants[variants["role"] == "rung"]
    told = [(row["variant"], [(label, row[key]) for key, label in _HEADER if row[key]]) for row in rungs.to_dict("records")]
    if any(comments for _, comments in told):
        st.markdown("## From the comments in the sources")
        for variant, comments in told:
            lines = [f":small[**{label}** {plain(text)}]" for label, text in comments]
            st.markdown("  \n".join([f"**{plain(variant)}**", *lines]))
    widgets.offer_runs(run_index.Need.COUNTERS)
    pages.end()
