"""Devices: the variants of a workload on two devices, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import streamlit as st

from warpladder.dashboard.compare import side_by_side
from warpladder.dashboard.compare.side_by_side import SideBySide
from warpladder.dashboard.core import cells, processes, run_index
from warpladder.dashboard.core.numbers import significant
from warpladder.dashboard.core.run_index import ListedRun
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.devices import chart, query
from warpladder.data import store


def draw(run: store.Run) -> None:
    """Draw the page. A is the device of the run of the page."""
    with widgets.controls():
        among = [name for name in runs.load(run).workloads if _others(run, name)]
        if not among:
            _no_other_device(run)
        workload = widgets.choose_workload(run, among)
        other = _choose_other(run, workload)
        try:
            b = runs.load(other.run)
        except store.StoreError as error:
            widgets.nothing(f"The run of B cannot be read: {error}", "Choose another.")
        a = runs.load(run)
        timings = runs.ask_both(run, other.run, side_by_side.timings, workload)
        if not timings:
            why = f"{run_index.device_of(run)} and {other.facts.device} timed no variant of {workload} at the same case."
            case = runs.ask(run, cells.charted_cases, workload)["case"].iloc[-1]
            how = runs.how_to_record(run, workload, f"--case {case}")
            _record(f"{why} Record a case of this run on {other.facts.device}:", how)
        timing = widgets.choose_timing_of(timings, on_gpu=a.on_gpu)
        found = runs.ask_both(run, other.run, side_by_side.side_by_side, workload, timing)
        cases = runs.ask(run, cells.charted_cases, workload).set_index("case")["params"]
        case = widgets.choose_case_of({name: cases[name] for name in found.cases}, found.cases)
        on = side_by_side.devices_of(a, b, found)
        devices = side_by_side.short_names(*on)
        rates = query.rates(a, b, found)
        about = " and ".join(
            f"{device}, run {run_index.dated(each)}" for device, each in zip(on, (run, other.run), strict=True)
        )
        shown = chart.Shown(found.of_case(case), devices, about, rates)
        show = _choose_show(shown)
    if found.changed_sources:
        names = ", ".join(found.changed_sources)
        widgets.badge(f"source differs: {names}", "orange", help="Their times are not of the same code.")
    look = runs.look_of(run, widgets.theme())
    widgets.show_chart(widgets.drawn(chart.variants, shown, look, show))
    _losers(found, devices)
    with st.expander("The winners of each case"):
        _winners(found, devices)
    with st.expander("Each variant at each case"):
        _ratios(found, devices, rates)


def _choose_other(run: store.Run, workload: str) -> ListedRun:
    others = _others(run, workload)
    names, about = _names(run, others), "Device A is that of the run above."
    device = state.choose("other", "Device B", names, always=True, owner=workload, help=about)
    return _choose_run(others[device], "Run of B", workload)


def _others(run: store.Run, workload: str) -> dict[str, tuple[ListedRun, ...]]:
    """The other devices with their runs of a workload. Of a GPU's run, the other GPUs come first."""
    every, own = runs.context().every, run_index.device_of(run)
    found = {
        device: run_index.suitable(every, device, workload) for device in run_index.devices_of(every, workload) if device != own
    }
    on_gpu = bool(run.info["device_name"])
    return dict(sorted(found.items(), key=lambda each: bool(each[1][0].run.info["device_name"]) != on_gpu))


def _names(run: store.Run, listed: Mapping[str, Sequence[ListedRun]]) -> dict[str, str]:
    """What other devices are called. Beside a run of a host they are their processors, whose variants alone both runs can have.

    Args:
        listed: of `_others`.
    """
    if run.info["device_name"]:
        return {device: device for device in listed}
    processors = {device: str(of_device[0].run.info["cpu_name"]) for device, of_device in listed.items()}
    return {device: name if name == device else f"{name}, beside {device}" for device, name in processors.items()}


def _choose_run(listed: Sequence[ListedRun], label: str, workload: str) -> ListedRun:
    """One of the runs of a device that have a workload; at first the newest suitable one."""
    by_name = {each.name: each for each in listed}
    if len(by_name) == 1:
        return listed[0]
    titles = {name: run_index.dated(each.run) for name, each in by_name.items()}
    return by_name[state.choose("with", label, titles, owner=f"{workload} {listed[0].facts.device}", always=True)]


def _no_other_device(run: store.Run) -> NoReturn:
    device, names = run_index.device_of(run), runs.load(run).workloads
    why = f"Only {device} has times of {', '.join(names)}." if names else "This run has no variants to compare."
    how = runs.how_to_record(run, names[0] if names else "WORKLOAD")
    _record(f"{why} Record a workload on another device, then copy the folder of that run here:", how)


def _record(why: str, command: str) -> NoReturn:
    """Say why there is nothing to show, with the command that changes it and runs that have something. Ends the page."""

    def say() -> None:
        st.info(plain(why))
        st.code(command, language="bash")
        widgets.offer_runs()

    pages.end(say)


def _choose_show(shown: chart.Shown) -> chart.Show:
    options = {"time": "Time", "floor": "% of floor", "ratio": "Ratio"}
    if not any(pair.a.percent_of_floor.known and pair.b.percent_of_floor.known for pair in shown.pairs):
        options.pop("floor")
    return cast("chart.Show", state.choose("show", "Show", list(options), text=options.__getitem__, style="segmented"))


def _precision(found: SideBySide) -> dict[str, str]:
    return {"precision": "Precision"} if len({each.precision for each in found.contests}) > 1 else {}


def _losers(found: SideBySide, devices: tuple[str, str]) -> None:
    """The variants that win on one device and lose on the other."""
    if not found.contests:
        return
    sided = side_by_side.one_sided(found)
    st.markdown(f"## {plain(side_by_side.losers(sided, devices))}")
    if sided:
        columns = {"variant": "Variant", "case": "Case", **_precision(found), "wins": "Wins on", "loses": "Loses on"}
        columns |= {"slower": "Slower there", "to": "Than", "source": "Source"}
        widgets.table_of_times(query.frame_of_losers(sided, side_by_side.labels(devices)), columns)


def _winners(found: SideBySide, devices: tuple[str, str]) -> None:
    """The winners of every case, with what they lose on the other device."""
    a, b = side_by_side.labels(devices)
    widgets.table_of_times(
        query.winners(found.contests),
        {
            "result": st.column_config.TextColumn("Winners", help="Differ: beyond the noise of the case on both devices."),
            "case": "Case",
            **_precision(found),
            "a": st.column_config.TextColumn(f"Wins on {a}", help="≈: tied with the fastest."),
            "b": st.column_config.TextColumn(f"Wins on {b}", help="≈: tied with the fastest."),
            "a_on_b": _loss(a, b),
            "b_on_a": _loss(b, a),
        },
    )
    single = " and ".join(f"the {device}" for device, count in zip(devices, found.processes, strict=True) if count == 1)
    st.caption(
        plain(
            "The winners in each precision among the rungs; where there are no two rungs, among the peers too. Each device is judged within "
            f"its own run.{f' One process took the samples of {single}: {processes.UNKNOWN}.' if single else ''}"
        )
    )


def _loss(won: str, other: str) -> Any:
    help = f"How much slower the fastest of {won} is than the fastest of {other}, on {other}."
    return st.column_config.TextColumn(f"{won}'s, on {other}", help=help, width=190)


def _ratios(found: SideBySide, devices: tuple[str, str], rates: tuple[query.Rate, ...]) -> None:
    a, b = side_by_side.labels(devices)
    if rates:
        given = ", ".join(f"{rate.what} {significant(rate.ratio)} ({rate.a}, {rate.b})" for rate in rates)
        st.caption(plain(f"The ceilings, as times on the {devices[1]} over the {devices[0]}: {given}."))
    columns = {
        "case": "Case",
        "variant": "Variant",
        "wins": st.column_config.TextColumn("Wins on", width="small"),
        "a_median_ns": widgets.number(f"{a}, ms", style="%.4g"),
        "b_median_ns": widgets.number(f"{b}, ms", style="%.4g"),
        "ratio": widgets.number(f"{b} / {a}", style="%.3f"),
        "ratio_low": widgets.number("from", style="%.3f"),
        "ratio_high": widgets.number("to", style="%.3f"),
        "ratio_of_floors": widgets.number(
            "Floors", "The floor on B over the floor on A, where both come from the same ceilings.", "%.3f"
        ),
        "a_percent_of_floor": widgets.number(f"{a}, % of floor", style="%.3g"),
        "b_percent_of_floor": widgets.number(f"{b}, % of floor", style="%.3g"),
        "source": st.column_config.TextColumn("Source"),
    }
    frame = query.frame_of(found.pairs)
    wins = frame["wins"].replace({"A": a, "B": b})
    frame = frame.assign(wins=wins, source=frame["same_source"].map({True: "same", False: "differs"}))
    widgets.table_of_times(frame, columns)
