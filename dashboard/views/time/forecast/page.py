"""Forecast: what a step gains from the best variants of its operations."""

from math import isnan
from typing import Final, NamedTuple

import streamlit as st

from warpladder.dashboard.core.operations.forecast import Hosts, about_steps, advice
from warpladder.dashboard.core.operations.hot_operations import Ceilings
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, Need
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.time.forecast import chart, query
from warpladder.data import store

_RECORD: Final = "warpladder extract {} --out bench_job.py\nwarpladder record bench_job.py"
_NO_RUN: Final = "none"
_GRAPHS: Final = "The operators of CUDA graphs come from the other profiles of this GPU, where these have the same kernels in the same order."
#: Other profiles that are offered, and among which those without CUDA graphs are looked for.
_MOST_OTHERS: Final = 20


def draw(run: store.Run) -> None:
    if not runs.ask(run, query.has_work):
        widgets.no_operators(run)
    with widgets.controls():
        known = Ceilings.of(str(run.info["device_name"] or ""), (each.run for each in runs.context().every)).values
        others = tuple(each.run for each in _others(run))
        profile = _Profile(run, _rank(run), tuple(sorted(known.items())), others)
        program = _program(profile)
        if program.hot.on_host:
            widgets.nothing(
                "This profile has no device work, so there is no timeline to forecast.", "Profile the program on a GPU."
            )
        recording = _choose_recording(_recordings(program))
    found = runs.ask(run, _found, profile, recording)
    if len(found.stages) > 1:
        widgets.show_chart(widgets.drawn(chart.waterfall, found.stages, found.forecast, runs.look_of(run, widgets.theme())))
    else:
        st.markdown(f"## {plain(query.headline(found.forecast))}")
    if recording is None:
        st.info("No recording of its operations is chosen. Write them as benchmarks, add your variants, and record the file:")
        option = "" if profile.rank is None else f" --rank {profile.rank}"
        st.code(_RECORD.format(f"{profile.run.argument}{option}"), language="bash")
    hosts = Hosts.of(program)
    for sentence in advice(hosts):
        st.info(plain(f"{sentence[0].upper()}{sentence[1:]}."))
    told = about_steps(hosts, f"warpladder forecast {run.argument}")
    st.caption(plain(". ".join(f"{each[0].upper()}{each[1:]}" for each in told) + "."))
    if isnan(found.forecast.bound_ns):
        st.caption("No floor is known, since no run of this GPU has ceilings. warpladder record on it measures them.")
    if why := query.unknown_graphs(program):
        st.caption(plain(f"{_GRAPHS} {why[0].upper()}{why[1:]}."))
    st.markdown("## Operations")
    widgets.table_of_times(found.operations, _OPERATIONS)


def _rank(run: store.Run) -> int | None:
    """The rank of a job to show; None for a single trace."""
    if not isinstance(run, store.RanksOfJob):
        return None
    names = list(map(str, run.ranks))
    return int(state.choose("rank", "Rank", names) if len(names) > 1 else names[0])


class _Profile(NamedTuple):
    """A profile, and what else its program is made of; see `query.program`."""

    run: store.Run
    rank: int | None
    ceilings: tuple[tuple[str, float], ...]
    others: tuple[store.Run, ...]


def _program(profile: _Profile) -> Program:
    return runs.share(profile.run, query.program, profile.rank, profile.ceilings, profile.others)


def _recordings(program: Program) -> list[ListedRun]:
    """The runs on its GPU that measured a form of the program, those with the most forms first."""
    workloads = {operation.workload for operation in program.hot.operations if operation.workload}
    likely = [
        each
        for each in runs.context().every
        if each.facts.timed
        and not workloads.isdisjoint(each.facts.workloads)
        and program.device in ("", str(each.run.info["device_name"] or ""))
    ]
    measured = runs.glance([each.run for each in likely], query.cells_of)
    forms = query.forms_of(program.hot)
    counts = [0 if isinstance(cells, store.StoreError) else len(forms & cells) for cells in measured]
    ranked = sorted(zip(counts, likely, strict=True), key=lambda pair: (pair[0], pair[1].facts.started_at), reverse=True)
    return [each for count, each in ranked if count]


def _others(run: store.Run) -> list[ListedRun]:
    """The newest other profiles of the same kind and GPU."""
    profiles = [
        each
        for each in runs.context().having(Need.OPERATORS)
        if each.run.path != run.path and all(each.run.info[name] == run.info[name] for name in ("kind", "device_name"))
    ]
    return sorted(profiles, key=lambda each: each.facts.started_at, reverse=True)[:_MOST_OTHERS]


def _choose_recording(offered: list[ListedRun]) -> store.Run | None:
    """One of the runs, at first the first one, or None."""
    if not offered:
        return None
    by_name = {each.name: each for each in offered}
    title = lambda name: by_name[name].title if name in by_name else name  # noqa: E731
    help = "Of the file that warpladder extract wrote."
    chosen = by_name.get(state.choose("recording", "Recording", [*by_name, _NO_RUN], text=title, help=help, always=True))
    return chosen.run if chosen else None


def _found(data: RunData, profile: _Profile, recording: store.Run | None) -> query.Found:
    return query.found(_program(profile), runs.load(recording) if recording else None)


_OPERATIONS: Final = {
    "operation": st.column_config.TextColumn("Operator", width="medium"),
    "benchmark": st.column_config.TextColumn("Benchmark", width=160, help="Empty where it cannot be called again."),
    "percent": widgets.number("Share, %", "Of the device time.", "%.3g"),
    "device_ns": widgets.number("A step, ms", "Device time of its kernels, copies and sets."),
    "floor_ns": widgets.number(
        "Floor, ms", "The least time for its bytes and operations; empty without a ceiling of its precision."
    ),
    "worth_ns": widgets.number("Worth, ms", "Time above the floor."),
    "variants": st.column_config.TextColumn("Best variants", width="small"),
    "times_faster": st.column_config.TextColumn("Times faster", width="small", help="The baseline over the best variant."),
    "saved_ns": widgets.number("Saves, ms", "Device time that all its calls in a step take less."),
    "gained_ns": widgets.number("Gains alone, ms", "What a step ends earlier if only this operation is replaced."),
    "gained_low_ns": widgets.number("Low, ms", "The lower end of this gain, with the uncertainty of the ratios."),
    "gained_high_ns": widgets.number("High, ms", "The upper end of this gain."),
    "hidden_ns": widgets.number("Hidden, ms", "What is saved and not gained: another stream or the host is waited for."),
    "why": st.column_config.TextColumn("Why not", width="medium", help="Why it cannot be called again."),
}
