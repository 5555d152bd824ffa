"""Trust: the findings about a run, and how its figures were measured."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import suspect, within_run
from warpladder.dashboard.compare.suspect import WIDE, unsteady
from warpladder.dashboard.compare.within_run import noise_floors
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cells import baselines, select
from warpladder.dashboard.core.intervals import MIN_SAMPLES
from warpladder.dashboard.core.numbers import format_measure, significant
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.trust import chart, query
from warpladder.data import store
from warpladder.installation import ROOT

_COLORS: Final[dict[str, Literal["red", "orange", "green", "gray"]]] = {"error": "red", "warning": "orange", "caught": "green"}
#: Lines of a kind of finding that are shown at once.
_MOST_LINES: Final = 5
_WAYS: Final = {"h2d": "to the device", "d2h": "back"}


def draw(run: store.Run) -> None:
    found = runs.ask(run, query.verdict, ROOT)
    st.markdown(f"## {plain(found.sentence)}")
    topics = {
        "findings": ("Findings", _findings),
        "verdicts": ("Statuses", _statuses),
        "noise": ("A/A noise", _noise),
        "samples": ("Samples of a cell", _samples),
        "copies": ("Launches & copies", _launches_and_copies),
        "ceilings": ("Ceilings", _ceilings),
        "run": ("Run", _run),
    }
    known = runs.ask(run, query.topics)
    titles = {name: title for name, (title, _) in topics.items() if name in known}
    topics[state.choose("topic", "Show", titles, style="segmented", labelled=False)][1](run)


def _findings(run: store.Run) -> None:
    findings = runs.ask(run, query.findings)
    stale = runs.ask(run, suspect.stale_variants, ROOT)
    specimens = findings[findings["role"] == "specimen"]
    others = findings[findings["role"] != "specimen"]
    doubtful = runs.ask(run, unsteady)
    serious = int((others["severity"] != "info").sum())
    counts = {"Warnings and errors": serious, "Notes": len(others) - serious, "Doubtful times": len(doubtful)}
    counts["Sources changed since"] = len(stale)
    if told := [f"{what}: **{count}**." for what, count in counts.items() if count]:
        st.markdown(" ".join(told))
    _list_findings(others)
    if len(doubtful):
        st.markdown("## Doubtful times")
        st.caption(
            f"Medians that are known to no more than ±{100 * WIDE:.0f} %, and times that fall as the work grows. Other programs and the "
            "clocks of the machine may have disturbed them: record again while it is idle."
        )
        widgets.table(doubtful.drop(columns="role"))
    if len(stale):
        st.markdown("## Sources that changed since they were measured")
        st.caption("The run keeps the source as measured. Record again to measure the current source.")
        widgets.table(stale)
    if len(specimens):
        st.markdown("## Known pitfalls that the checks caught")
        _list_findings(specimens.assign(severity="caught"))


def _list_findings(findings: pd.DataFrame) -> None:
    """A box for each kind of finding, with a line for each variant, and for each finding about the run."""
    for severity, source in dict.fromkeys(zip(findings["severity"], findings["source"], strict=True)):
        kind = findings[(findings["severity"] == severity) & (findings["source"] == source)]
        with st.container(border=True, gap="xxsmall"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                widgets.badge(severity, _COLORS.get(severity, "gray"))
                st.markdown(f"**{plain(source.replace('_', ' '))}**", width="content")
            lines = [line for row in kind.to_dict("records") for line in _lines(row)]
            st.markdown("  \n".join(f":small[{line}]" for line in lines[:_MOST_LINES]))
            if rest := lines[_MOST_LINES:]:
                with st.expander(f"{len(rest)} more"):
                    st.markdown("  \n".join(f":small[{line}]" for line in rest))


def _lines(finding: Mapping[Any, Any]) -> list[str]:
    """`**conv2d / v02_tile**, 3 cells, the first n=512: …`, or the texts about the run."""
    if not finding["variant"]:
        return [plain(line) for line in finding["text"].splitlines()]
    about = plain(f"{finding['workload']} / {finding['variant']}")
    cells = f"{finding['cells']} cells, the first " if finding["cells"] > 1 else ""
    where = f", {cells}{finding['example']}" if finding["example"] else ""
    return [f"**{about}**{plain(where)}: {plain(' '.join(finding['text'].split()))}"]


def _statuses(run: store.Run) -> None:
    widgets.table(runs.ask(run, query.statuses))
    errors = runs.ask(run, query.errors)
    if len(errors):
        st.markdown("## Largest measured errors against float64, by precision")
        st.caption("rel_l2_error, which the tolerance limits, is the L2 norm of all differences over that of the reference.")
        widgets.table(errors)
    failures = runs.ask(run, query.failures)
    failures = failures[failures["status"] != "skipped"]
    st.markdown(f"## Cells that failed: {len(failures)}")
    if len(failures):
        widgets.table(failures)
    skips = runs.ask(run, query.skips)
    st.markdown(f"## Cells that were skipped: {skips['cells'].sum()}")
    if len(skips):
        widgets.table(skips)
    st.markdown("## Why sampling stopped")
    widgets.table(runs.ask(run, query.stop_reasons))


def _noise(run: store.Run) -> None:
    noise = runs.ask(run, noise_floors)
    if noise.empty:
        widgets.nothing("No baseline of this run was sampled twice.", "Record it again: recordings sample the baseline twice.")
    enough = noise.loc[noise["n"] >= MIN_SAMPLES, "holds_one"]
    if len(enough):
        st.markdown(
            plain(
                f"In each case the baseline is sampled as two variants. The interval of their ratio holds 1 in {int(enough.sum())} of "
                f"{len(enough)} cells ({100 * enough.mean():.0f} %). A correct 95 % interval does so in 95 % of cells."
            )
        )
    widgets.table(noise)


def _samples(run: store.Run) -> None:
    frame = runs.ask(run, cells.cells)
    frame = frame[frame["n"] > 0]
    with widgets.controls():
        workload = widgets.choose_workload(run)
        case = widgets.choose_case(run, workload)
        timing = widgets.choose_timing(run, workload)
        here = select(frame, workload, case, timing)
        if here.empty:
            widgets.nothing(
                f"No variant of {workload} was timed at {case} in {widgets.timing(run, timing)}.",
                "Choose another case, scope or cache.",
            )
        names = [f"{row.variant} {row.config}".strip() for row in here.itertuples()]
        reference = runs.ask(run, baselines, workload, timing, frozenset([case])).get(case)
        first = f"{reference.variant} {reference.config}".strip() if reference else None
        texts = {cell: f"{cell} · {within_run.word(each)}" for cell, each in zip(names, here["precision"], strict=True)}
        name = state.choose("cell", "Variant", texts, default=first)
    row = here.iloc[names.index(name)]
    samples = runs.load(run).samples
    for column in ("workload", "variant", "config", "case", "cache", "scope", "gpus"):
        samples = samples[samples[column] == row[column]]
    widgets.show_chart(widgets.drawn(chart.samples_over_rounds, samples, runs.look_of(run, widgets.theme())))


def _launches_and_copies(run: store.Run) -> None:
    """Check the launches and copies of a run against its own trace."""
    if not runs.load(run).traces:
        widgets.no_trace(run, "no trace", "--trace=cuda,nvtx", Need.TRACE)
    lost = runs.ask(run, query.dropped)
    for text in lost:
        st.error(plain(text))
    attribution = runs.ask(run, query.attribution)
    st.markdown("## Launches")
    st.markdown(plain(_attributed(attribution) + ("" if lost else " No record is reported lost.")))
    unattributed = runs.ask(run, query.unattributed)
    if len(unattributed):
        widgets.table(unattributed)
    st.markdown("## Copies of end-to-end rounds")
    rounds = runs.ask(run, query.rounds)
    if rounds.empty:
        st.markdown("Warpladder recorded no end-to-end rounds in this trace, so there are no bytes to compare.")
        return
    differing = rounds[~rounds["equal"]]
    copied = " and ".join(f"{rounds[f'{way}_bytes'].sum() / 1024:,.2f} KiB {where}" for way, where in _WAYS.items())
    if differing.empty:
        st.markdown(plain(f"All {len(rounds)} end-to-end rounds copied exactly the case's bytes: {copied}."))
    else:
        st.markdown(plain(f"In {len(differing)} of {len(rounds)} end-to-end rounds, the copied bytes differ from the case's:"))
        widgets.table(_in_kib(differing).drop(columns="equal"))
    widgets.table(_in_kib(query.by_case(rounds)))


def _attributed(attribution: query.Attribution) -> str:
    if not attribution.kernels:
        return "The trace has no kernels."
    if not attribution.outside and not attribution.unlaunched:
        return f"All {attribution.kernels:,} kernels were launched inside a range, by a call that was traced."
    shares = [
        f"{count:,} ({significant(100 * time_ns / max(attribution.time_ns, 1), 2)} % of their time) {what}"
        for count, time_ns, what in (
            (attribution.outside, attribution.outside_ns, "were launched outside of any range"),
            (attribution.unlaunched, attribution.unlaunched_ns, "have a launch that was not traced"),
        )
        if count
    ]
    return f"Of {attribution.kernels:,} kernels {' and '.join(shares)}."


def _in_kib(frame: pd.DataFrame) -> pd.DataFrame:
    names = {name: f"{name.removesuffix('_bytes').replace('_', ' ')}, KiB" for name in frame.columns if name.endswith("_bytes")}
    return frame.assign(**{name: frame[name] / 1024 for name in names}).rename(columns=names)


def _ceilings(run: store.Run) -> None:
    st.caption(
        "Rates and times that this machine reached in the same run. Floors are computed from these, not from data sheets."
    )
    ceilings = runs.load(run).ceilings
    if ceilings.empty:
        widgets.nothing("This run measured no ceiling.", "Record it again: warpladder record.")
    texts = [format_measure(*figure) for figure in ceilings[["value", "unit"]].itertuples(index=False, name=None)]
    widgets.table(ceilings.assign(value=texts).drop(columns="unit"))


def _run(run: store.Run) -> None:
    info = dict(run.info)
    packages = json.loads(str(info.pop("packages")) or "{}")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        fields = pd.DataFrame({"field": list(info), "value": ["" if v is None else str(v) for v in info.values()]})
        widgets.table(fields[fields["value"] != ""], height="content")
    with right:
        widgets.table(pd.DataFrame({"package": list(packages), "version": [str(v) for v in packages.values()]}))
        st.caption("Command that recorded the run")
        st.code(str(info["command"]), language="bash", wrap_lines=True)
