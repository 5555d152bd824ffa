"""The sidebar: the run, its device and the pinned run, with what the runs of a machine measured."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.core import changes, counters, run_index
from warpladder.dashboard.core.between_runs import runs_of, same_machine
from warpladder.dashboard.core.cell import Timing, name_of
from warpladder.dashboard.core.changes import Change, History, sentence
from warpladder.dashboard.core.history import Medians, medians
from warpladder.dashboard.core.numbers import format_duration, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, Need, label_of
from warpladder.dashboard.ui import ranks, runs, state, widgets
from warpladder.dashboard.ui.text import cut, plain, short
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError


def names(run: store.Run) -> tuple[str, ...]:
    """The names of the listed runs of the machine of a run. An answer that depends on them takes them as an argument."""
    every = runs.listing(runs.data_dirs()).runs
    return tuple(name for name, each in every.items() if same_machine(each.info, run.info))


def history(names_of_runs: Sequence[str], data: RunData) -> History:
    """What these runs measured of a workload, the oldest first. Runs that cannot be read are left out."""
    every = runs.listing(runs.data_dirs()).runs
    runs_with_name = [every[name] for name in names_of_runs if name in every]

    def of(workload: str) -> list[Medians]:
        medians_of_runs = runs.glance(runs_of(runs_with_name, data.info, workload), medians, workload)
        return [each for each in medians_of_runs if isinstance(each, Medians)]

    return of


PIN: Final = "pin"
_CHOSEN: Final = "pinned baseline"
_MOST_CHARACTERS: Final = 44
_TABLE_PX: Final = 420
_TABLE_WIDTH_PX: Final = 700


@dataclass(frozen=True)
class PinnedBaseline:
    """A pinned run; `variant` is empty for all of its variants."""

    run: store.Run
    variant: str

    @property
    def title(self) -> str:
        label = label_of(self.run)
        return f"{label}, {self.variant}" if self.variant else label


def chosen() -> PinnedBaseline | None:
    """The pinned baseline of this session, or None."""
    pin: PinnedBaseline | None = st.session_state.get(_CHOSEN)
    return pin


def sidebar() -> None:
    """Show the pinned baseline with a button that unpins it, or a button that pins the shown run. Called once in each rerun."""
    text = state.text_of(PIN, "")
    pin = _resolved(text)
    st.session_state[_CHOSEN] = pin
    if text and pin is None:
        state.note(f"The link pins {short(text)}, which is not a run here, nor RUN@VARIANT.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if pin:
            widgets.badge(f"pinned: {cut(pin.title, _MOST_CHARACTERS)}", "blue", help=plain(f"Ratios are over {pin.title}."))
            st.button("Unpin", key="unpin", type="tertiary", on_click=state.set_text, args=(PIN, "", ""))
        elif runs.chosen():
            button("run")


def button(key: str, run: store.Run | None = None, variant: str = "", label: str = "Pin as baseline") -> None:
    """A button that pins a run, or one variant of it. The run is the shown one where None is given."""
    name = state.link().get("run", "") if run is None else _name(run)
    text = f"{name}@{variant}" if variant else name
    about = f"the variant {variant}" if variant else "this run"
    st.button(
        label,
        key=f"pin {key}",
        type="tertiary",
        on_click=state.set_text,
        args=(PIN, "", text),
        help=plain(f"Every page then shows ratios over {about}."),
    )


def counterparts(run: store.Run, timing: Timing) -> tuple[Change, ...] | str:
    """Every cell of a run in one timing against its counterpart of the pinned baseline, the slowest first.

    The counterpart has the same workload, case, timing, variant, config and number of GPUs. Of a pinned variant it is the fastest
    config of that variant in the case.

    Returns:
        The changes, whose ratios are the run's time over the pinned run's time; or the reason that there are no changes.
    """
    pin = chosen()
    if pin is None:
        return "nothing is pinned"
    if pin.run.path == run.path and not pin.variant:
        return "this run is the pinned one"
    try:
        changes = runs.ask(run, _against, runs.as_recorded(pin.run), pin.variant, timing.scope, names(run))
    except store.StoreError as error:
        return str(error)
    return changes if isinstance(changes, str) else tuple(change for change in changes if change.timing == timing)


def show(run: store.Run, timing: Timing, frame: pd.DataFrame) -> dict[tuple[str, str], Change] | None:
    """A line with the verdicts of cells against the pinned baseline, and a table with the ratio of each; nothing without a pin.

    Args:
        frame: rows of `cells` of one process, in this timing.

    Returns:
        The changes by variant and config, of the last case where there are several; None where no ratio is known.
    """
    if chosen() is None:
        return None
    changes = counterparts(run, timing)
    if isinstance(changes, str):
        _line(changes)
        return None
    shown = set(frame[["workload", "case", "variant", "config"]].itertuples(index=False, name=None))
    shown_changes = [change for change in changes if change.gpus <= 1 and _cell(change) in shown]
    _verdicts(shown_changes)
    return {(change.variant, change.config): change for change in shown_changes} or None


def show_run(run: store.Run) -> None:
    """The same for every cell of a run in the first timing of each workload."""
    if (pin := chosen()) is None or pin.run.path == run.path:
        return
    changes = runs.ask(run, _against, runs.as_recorded(pin.run), pin.variant, "", names(run))
    if isinstance(changes, str):
        _line(changes)
    else:
        _verdicts(changes)


def show_counters(run: store.Run, workload: str, case: str, frame: pd.DataFrame) -> None:
    """A line and a table with each variant's profiled time over the pinned baseline's; nothing without a pin.

    Args:
        frame: rows of `counters.by_config`.
    """
    pin = chosen()
    if pin is None or (pin.run.path == run.path and not pin.variant):
        return
    data = runs.load(runs.as_recorded(pin.run))
    if case not in counters.counted_cases(data, workload):
        _line("it has no counters of this case")
        return
    pinned_rows = {(row["variant"], row["config"]): row for row in counters.by_config(data, workload, case).to_dict("records")}
    fastest = min((row for row in pinned_rows.values() if row["variant"] == pin.variant), key=_time, default=None)
    rows = []
    for row in frame.to_dict("records"):
        other = fastest if pin.variant else pinned_rows.get((row["variant"], row["config"]))
        if other is not None:
            percents = {f"{what}, points": row[f"{what}_percent"] - other[f"{what}_percent"] for what in ("compute", "memory")}
            times = {"Pinned": format_duration(_time(other)), "Here": format_duration(_time(row))}
            ratio = {"Here over pinned": _time(row) / _time(other)}
            rows.append({"Variant": name_of(row["variant"], row["config"]), **times, **ratio, **percents})
    if not rows:
        _line("it has no counters of these variants")
        return
    most = max(rows, key=lambda row: abs(row["Here over pinned"] - 1))
    summary = f"{most['Variant']} takes {format_ratio(most['Here over pinned'])} its time there, the largest change"
    _line(f"{summary}; one execution each, so without a verdict", lambda: _table(rows))


def _resolved(text: str) -> PinnedBaseline | None:
    every = runs.listing(runs.data_dirs()).runs
    if text in every:
        return PinnedBaseline(every[text], "")
    name, _, variant = text.rpartition("@")
    if name not in every or not variant:
        return None
    try:
        variants = set(every[name].table("variants", ["variant"])["variant"])
    except store.StoreError:
        return None
    return PinnedBaseline(every[name], variant) if variant in variants else None


def _against(
    data: RunData, pinned: runs.NamedRun, variant: str, scope: str, names: tuple[str, ...]
) -> tuple[Change, ...] | str:
    """The changes of a run against the pinned run, or the reason that the two cannot be compared.

    Args:
        names: of the runs of the machine, which tell its noise.
    """
    options, recordings = changes.Options(scope), history(names, data)
    before, after = changes.Side(runs.load(pinned), variant), changes.Side(data)
    try:
        cells = (
            changes.against_variant(before, after, options, recordings)
            if variant
            else changes.compare(before, after, options, recordings).changes
        )
    except changes.NotComparable as error:
        return str(error)
    return cells or "they have no case in common"


def _cell(change: Change) -> tuple[str, str, str, str]:
    return change.workload, change.case, change.variant, change.config


def _time(row: dict[Any, Any]) -> float:
    return float(row["time_ns"])


def _verdicts(changes: Iterable[Change]) -> None:
    listed = list(changes)
    if not listed:
        _line("it has none of these cells")
        return
    rows = [
        {
            "Verdict": each.verdict,
            "Here over pinned": each.ratio.value,
            "from": each.ratio.low,
            "to": each.ratio.high,
            "Workload": each.workload,
            "Case": each.case,
            "Variant": each.name,
            "Pinned": format_duration(each.a_ns.value),
            "Here": format_duration(each.b_ns.value),
        }
        for each in listed
    ]
    if len({row["Workload"] for row in rows}) == 1:
        rows = [{name: value for name, value in row.items() if name != "Workload"} for row in rows]
    _line(sentence(listed), lambda: _table(rows))


def _line(text: str, details: Callable[[], None] | None = None) -> None:
    pin = chosen()
    title = pin.title if pin else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":small[**vs pinned {plain(title)}:** {plain(text)}]", width="content")
        if details:
            with st.popover("Each ratio", type="tertiary"):
                details()


def _table(rows: list[dict[str, Any]]) -> None:
    ratio = st.column_config.NumberColumn(format="%.3f")
    points = st.column_config.NumberColumn(format="%+.1f")
    columns = {**dict.fromkeys(("Here over pinned", "from", "to"), ratio), "compute, points": points, "memory, points": points}
    height = _TABLE_PX if len(rows) > 10 else "content"
    widgets.table(pd.DataFrame(rows), column_config=columns, height=height, width=_TABLE_WIDTH_PX)


def _name(run: store.Run) -> str:
    """What the URL calls a run."""
    every = runs.listing(runs.data_dirs()).runs
    return next((name for name, other in every.items() if other.path == run.path), run.run_id)


_LAST_FIXED: Final = "run fixed last"
_RUN_WIDGET: Final = "choose run"
_DEVICE_WIDGET: Final = "choose device"
_LIST_PX: Final = 640  # width of the list of runs
_MOST_BAD: Final = 5  # names of bad runs in the sidebar


def draw(need: Need, *, of_one_run: bool) -> None:
    """Choose the run of the page, and list the runs that cannot be opened.

    Args:
        need: what the page needs of the run.
        of_one_run: the page shows one run, which its URL names. Otherwise the URL names only a run that was chosen.
    """
    try:
        folders = runs.data_dirs()
    except (argparse.ArgumentError, store.StoreError) as error:
        st.error(plain(f"{error}; start the dashboard with: warpladder app --data-dir FOLDER"))
        st.stop()
    listing = runs.listing(folders)
    name, listing = _find(listing, folders, need)
    if name is None:
        runs.choose(None)
    else:
        _draw_run(listing, name, need, of_one_run=of_one_run)
        if not _opens(listing, name):
            listing = runs.listing(folders)
    _draw_bad(listing)


def _draw_run(listing: runs.Listing, name: str, need: Need, *, of_one_run: bool) -> None:
    run = listing.runs.get(name) or listing.refused[name]
    device = run_index.device_of(run)
    devices = run_index.devices(listing.every)
    if len(devices) > 1 or device not in devices:
        st.session_state[_DEVICE_WIDGET] = device
        options = list(dict.fromkeys([*devices, device]))
        st.selectbox("Device", options, key=_DEVICE_WIDGET, on_change=_choose_device, filter_mode="contains")
    # A bad run stays among the options while it is shown.
    titles = run_index.titles(listing.every)
    if name not in listing.runs:
        titles = {**titles, name: str(run.info["label"] or name)}
    st.session_state[_RUN_WIDGET] = name
    st.caption("Run")
    with st.popover(plain(titles[name].split(" · ")[0]), width="stretch", help=plain(titles[name])):
        st.selectbox(
            "Run",
            list(titles),
            format_func=titles.__getitem__,
            key=_RUN_WIDGET,
            on_change=_choose_run,
            filter_mode="contains",
            width=_LIST_PX,
            help="Type a part of a label, date, device or workload.",
        )
    fixed = state.text_of(state.RUN, "", written=False) == name
    state.name_run(name, written=fixed or of_one_run)
    if run.info["kind"] == "job" and need in run_index.OF_TRACES:
        run = ranks.choose(run, name)
    runs.choose(run, _picked(name), name, fixed=fixed)
    runs.set_context(runs.Context(device, need, listing.every))
    _facts(run.info, listing.index.get(name))
    for reason in run.left_out.values():
        st.caption(plain(f"Left out: {reason}"))
    _draw_newest(listing, name, device, need)


def _draw_newest(listing: runs.Listing, name: str, device: str, need: Need) -> None:
    """Say that the run was found, or lead back from a run chosen by hand to the one that is found."""
    listed = listing.index.get(name)
    own = tuple(listed.facts.workloads) if listed else ()
    workload = state.coming("workload")
    workload = workload if workload in own else next(iter(own), "")
    newest = run_index.suitable(listing.every, device, workload, need)
    if not newest:
        return
    if newest[0].name == name:
        st.caption(plain(f"Newest suitable run of {workload}"), help=plain(run_index.RULE))
    elif runs.is_fixed():
        st.button(
            plain(f"Newest run of {workload}"),
            type="tertiary",
            on_click=_unfix,
            args=(device,),
            help=plain(f"{run_index.RULE} It is {newest[0].title}."),
        )


def _draw_bad(listing: runs.Listing) -> None:
    if listing.bad:
        names = [run.name for run in listing.bad]
        more = f" and {len(names) - _MOST_BAD} more" if len(names) > _MOST_BAD else ""
        st.caption(plain(f"Cannot be opened: {', '.join(names[:_MOST_BAD])}{more}. Runs & checks says why."))


def _opens(listing: runs.Listing, name: str) -> bool:
    with st.spinner("Checking the run …"):
        return runs.opens(listing.runs.get(name) or listing.refused[name])


def _find(listing: runs.Listing, folders: Any, need: Need) -> tuple[str | None, runs.Listing]:
    """The name of the run to show, None without a run; and the listing, from which runs that turned out to be bad are gone."""
    fixed = _fixed(listing, need)
    if fixed:
        _opens(listing, fixed)  # what a check finds too large is left out of the listing from then on
        return fixed, runs.listing(folders)
    every = listing.every
    devices = run_index.devices(every)
    device = state.text_of(state.DEVICE, "")
    if device and device not in devices:
        state.note(f"The link asks for device {short(device)}, which no run is of.")
        state.set_text(state.DEVICE, "", "")
        device = state.text_of(state.DEVICE, "")
    if not device:
        workload = state.coming("workload")
        having = (name for name in devices if workload in run_index.workloads(every, name, need))
        device = next(having, next(iter(devices), ""))
    for each in _in_order(every, device, need):
        if _opens(listing, each.name):
            now = runs.listing(folders)
            checked = now.index.get(each.name)
            if checked and each.facts.has(need) and not checked.facts.has(need):
                continue  # the table that the page needs is too large to be read
            return each.name, now if checked else listing
    return None, runs.listing(folders)


def _in_order(every: run_index.Runs, device: str, need: Need) -> Iterable[ListedRun]:
    """The runs to show where none is fixed, the first one first."""
    workload = state.coming("workload")
    first = run_index.suitable(every, device, workload, need)
    yield from first
    if not first and (name := run_index.first_workload(every, device, need)):
        if workload in run_index.workloads(every, device, Need.NOTHING):
            state.note(f"No run of {workload} on {device} has {need}; showing one of {name}.")
        yield from run_index.suitable(every, device, name, need)
    yield from run_index.having([each for each in every if each.facts.device == device], need, device)
    if need is not Need.NOTHING:
        yield from _in_order(every, device, Need.NOTHING if need is Need.TIMES else Need.TIMES)
    yield from run_index.having(every, Need.NOTHING, device)


def _fixed(listing: runs.Listing, need: Need) -> str:
    """The run that was chosen by hand or by a link; empty where it is gone, or lacks the workload that was chosen after it."""
    name = state.text_of(state.RUN, "", written=False)
    if not name:
        st.session_state[_LAST_FIXED] = ""
        return ""
    before = st.session_state.get(_LAST_FIXED, "")
    st.session_state[_LAST_FIXED] = name
    if name not in listing.runs and name not in listing.refused:
        state.note(f"The link asks for run {short(name)}, which is not here; showing the newest suitable one.")
        return _drop()
    listed, workload = listing.index.get(name), state.coming("workload")
    if listed is None or not workload or workload in listed.facts.workloads:
        return name
    others = run_index.suitable(listing.every, listed.facts.device, workload, need)
    if not others:
        return name
    if before != name and not state.changed("workload"):
        state.forget("workload")  # the run was chosen after the workload
        return name
    state.note(f"Run {listed.title} has no {workload}; showing the newest suitable run that has it.")
    state.set_text(state.DEVICE, "", listed.facts.device)
    return _drop()


def _drop() -> str:
    state.set_text(state.RUN, "", "")
    st.session_state[_LAST_FIXED] = ""
    return state.text_of(state.RUN, "", written=False)


def _choose_device() -> None:
    _unfix(st.session_state[_DEVICE_WIDGET])


def _unfix(device: str) -> None:
    """Show the newest suitable run of a device."""
    state.set_text(state.RUN, "", "")
    state.set_text(state.DEVICE, "", device)


def _choose_run() -> None:
    state.set_text(state.RUN, "", st.session_state[_RUN_WIDGET])
    state.set_text(state.DEVICE, "", "")


def _picked(name: str) -> Naming | None:
    """The naming by which the URL or this session picks variants of the run."""
    if not (text := state.text_of(state.PICK, name)):
        return None
    try:
        return Naming.parse(text)
    except NamingError as error:
        state.note(f"The link picks variants by a pattern that cannot be used. {error}")
        return None


def _facts(info: Mapping[str, Any], listed: ListedRun | None) -> None:
    # The commit of an import belongs to the importer, and not to the profiled program.
    commit = str(info["git_commit"])[:8] if info["kind"] == "recording" else ""
    dirty = " with uncommitted changes" if info["git_dirty"] else ""
    lines = [
        str(info["device_name"] or info["cpu_name"]),
        f"{info['started_at']:%Y-%m-%d %H:%M} UTC",
        f"{info['collector']} {info['collector_version']}",
        f"commit {commit}{dirty}" if commit else "",
        ", ".join(listed.facts.marks) if listed else "",
    ]
    st.caption("  \n".join(plain(line) for line in lines if line))
