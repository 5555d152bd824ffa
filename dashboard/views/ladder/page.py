"""Ladder: the gain of each rung at one case, with the rung's source; or the error of each variant beside its time."""

import re
from pathlib import PurePath
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import suspect, within_run
from warpladder.dashboard.core import processes
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.ui import ideas, pages, runs, source, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.ladder import chart, errors, query
from warpladder.data import source_text, store
from warpladder.installation import ROOT

#: The columns that `_source` reads; the further ones would be copied with each selection of rows.
_OF_SOURCE: Final = ["variant", "config", "kind", "role", "precision", "case", "n", "flags", "median_ns", "gain_over"]
_SHOWN: Final = {"rungs": "Rung by rung", "error": "Error and time"}
#: The comment with the fields of `_HEADER` at the top of a source, which stands above it.
_FIELDS: Final = re.compile(r"\A// Idea:.*\n(?://.*\n)*\n*")
_CODE_HEIGHT = 290
_HEADER = (("idea", "Idea"), ("bottleneck", "Bottleneck"), ("next", "Next"), ("source", "Source"))


def draw(run: store.Run) -> None:
    with widgets.controls():
        workload = widgets.choose_workload(run)
        case = widgets.choose_case(run, workload)
        timing = widgets.choose_timing(run, workload)
        errors_known = runs.ask(run, query.has_errors, workload)
        shown = state.choose("show", "Show", _SHOWN) if errors_known else "rungs"
    if shown == "error":
        _error_and_time(run, workload, case, timing)
    else:
        _rungs(run, workload, case, timing)


def _error_and_time(run: store.Run, workload: str, case: str, timing: Timing) -> None:
    frame = runs.ask(run, query.error_and_time, workload, case, timing)
    if frame.empty:
        widgets.nothing(
            f"No variant of {workload} has both a time in {widgets.timing(run, timing)} and a measured error at {case}.",
            "Choose another case, scope or cache.",
        )
    widgets.show_chart(widgets.drawn(errors.error_and_time, frame, runs.look_of(run, widgets.theme())))


def _rungs(run: store.Run, workload: str, case: str, timing: Timing) -> None:
    frame = runs.ask(run, query.ladder, workload, case, timing)
    if not (frame["n"] > 0).any():
        widgets.nothing(
            f"No variant of {workload} was timed at {case} in {widgets.timing(run, timing)}.",
            "Choose another case, scope or cache.",
        )
    # The columns of errors and energy and the precision in names leave less room for the times.
    # The style sheet of the pages puts them one below the other in a narrow window.
    wide = frame["precision"].nunique() > 1 or frame["energy_mj"].notna().any()
    left, right = st.container(key="side-by-side").columns([15, 7] if wide else [13, 9], gap="medium")
    with left:
        drawn = widgets.drawn(chart.answering, frame, runs.look_of(run, widgets.theme()))
        timed = drawn.data.loc[drawn.data["n"] > 0].sort_index()["variant"].tolist()
        widgets.show_chart(drawn, on_click=lambda place: state.pick("variant", timed[int(place)]))
        words = ("Click a row for the source of its variant", runs.ask(run, processes.remark))
        st.caption(". ".join(each[:1].upper() + each[1:] for each in words if each) + ".")
    with right:
        _source(run, workload, frame[_OF_SOURCE])
    widgets.attribution(run)


def _source(run: store.Run, workload: str, frame: pd.DataFrame) -> None:
    """Show one variant's registers and shared memory, its source as measured, and the header of the source whole."""
    variants = runs.load(run).variants
    headers: dict[str, dict[Any, Any]] = {
        row["variant"]: row for row in variants[variants["workload"] == workload].to_dict("records")
    }
    timed = frame[frame["n"] > 0]
    best = query.leaders(frame)
    fastest = str((best if len(best) else timed).sort_values("median_ns")["variant"].iloc[0])
    titles = {variant: f"{variant}: {headers[variant]['title']}" for variant in frame["variant"]}
    name = state.choose("variant", "Source of", titles, default=fastest, fitted=False)
    variant = headers[name]
    step = query.step_to(frame, name)
    if step and (because := runs.ask(run, query.explanation, workload, str(frame["case"].iloc[0]), *step)):
        st.markdown(f":small[**Measured** {plain(because)}]")
    _why(run, workload, frame, name)
    ideas.line(ideas.ideas_of(variant["source_path"]))
    facts = [variant["source_path"] or "source as measured", within_run.word(variant["precision"])]
    counts = {"registers": "registers", "shared_bytes": "B shared", "spill_bytes": "B spilled"}
    facts += [f"{variant[key]} {unit}" for key, unit in counts.items() if pd.notna(variant[key])]
    facts += [f"fastest here with {config}" for config in timed.loc[timed["variant"] == name, "config"] if config]
    stale = runs.ask(run, suspect.stale_variants, ROOT)
    changed = stale[(stale["workload"] == workload) & (stale["variant"] == name)]
    st.caption(plain(" · ".join([*facts, *(f"changed since: {reason}" for reason in changed["reason"])])))
    _code(variant)
    header = [f":small[**{label}** {plain(variant[key])}]" for key, label in _HEADER if variant[key] not in ("", "-")]
    if header:
        st.markdown("  \n".join(header))


def _why(run: store.Run, workload: str, frame: pd.DataFrame, name: str) -> None:
    """Links to why the variant is slower than the next one, and to its machine code."""
    if not run.info["device_name"]:
        return
    place = state.link(workload=workload)
    with st.container(horizontal=True, gap="small"):
        if faster := query.next_faster(frame, name):
            pages.link("why", f"Why it is slower than {plain(faster)} →", **place, why_a=name, why_b=faster)
        elif step := query.step_to(frame, name):
            pages.link("why", f"Why it is faster than {plain(step[0][0])} →", **place, why_a=step[0][0], why_b=name)
        if "machine_code" in run.tables:
            pages.link("why.machine_code", "Machine code →", **place, variant=name)
        if (frame.loc[frame["variant"] == name, "kind"] == "cuda").any():
            pages.link("why.experiments", "Experiments →", **place, variant=name)


def _code(variant: dict[Any, Any]) -> None:
    """Show the source as measured, without its header, which is below it. Of a rung that includes others, one file at a time: at first its own."""
    files = source_text.files(variant["source_text"], PurePath(variant["source_path"] or variant["variant"]).name)
    name = next(iter(files))
    if len(files) > 1:
        name = state.choose("file", "File", list(files), fitted=False, labelled=False, owner=variant["variant"])
    source.show(
        "ladder", _FIELDS.sub("", files[name], count=1), "cuda" if variant["kind"] == "cuda" else "python", _CODE_HEIGHT
    )
