"""The pinned baseline: a run, or a variant of one, whose ratios the pages show; and what the runs of a machine measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import changes
from warpladder.dashboard.compare.between_runs import runs_of, same_machine
from warpladder.dashboard.compare.changes import Change, History, sentence
from warpladder.dashboard.compare.levels import Medians, medians
from warpladder.dashboard.core import counters
from warpladder.dashboard.core.cell import Timing, name_of
from warpladder.dashboard.core.numbers import format_duration, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import label_of
from warpladder.dashboard.ui import runs, state, widgets
from warpladder.dashboard.ui.text import cut, plain, short
from warpladder.data import store


def names(run: store.Run) -> tuple[str, ...]:
    """The names of the listed runs of the machine of a run. An answer that depends on them takes them as an argument."""
    every = runs.listing(runs.data_dirs()).runs
    return tuple(name for name, each in every.items() if same_machine(each.info, run.info))


def history(names_of_runs: Sequence[str], data: RunData) -> History:
    """The medians of a workload in these runs, the oldest first. Runs that cannot be read are left out."""
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
    pin: PinnedBaseline | None = st.session_state.get(_CHOSEN)
    return pin


def draw() -> None:
    """Show the pinned baseline with a button that unpins it, or a button that pins the shown run. Called once in each rerun."""
    text = state.text_of(PIN, "")
    pin = _resolved(text)
    st.session_state[_CHOSEN] = pin
    if text and pin is None:
        state.note(f"The link pins {short(text)}, which is not a run here, nor RUN@VARIANT.")
    if pin:
        widgets.badge(f"pinned: {cut(pin.title, _MOST_CHARACTERS)}", "blue", help=plain(f"Ratios are over {pin.title}."))
        st.button("Unpin", key="unpin", type="tertiary", on_click=state.set_text, args=(PIN, "", ""))
    elif (run := runs.chosen()) and "samples" in run.tables:
        button("run")


def button(key: str, run: store.Run | None = None, variant: str = "", label: str = "Pin") -> None:
    """A button that pins a run, or one variant of it. The run is the shown one where None is given."""
    every = runs.listing(runs.data_dirs()).runs.items()
    named = (name for name, other in every if run and other.path == run.path)
    name = next(named, run.run_id) if run else state.link().get("run", "")
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
        changes = runs.ask_both(run, runs.as_recorded(pin.run), against, pin.variant, timing.scope, names(run))
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
    shown_changes = [
        change
        for change in changes
        if change.gpus <= 1 and (change.workload, change.case, change.variant, change.config) in shown
    ]
    _verdicts(shown_changes)
    return {(change.variant, change.config): change for change in shown_changes} or None


def show_run(run: store.Run) -> None:
    """The same for every cell of a run in the first timing of each workload."""
    if (pin := chosen()) is None or pin.run.path == run.path:
        return
    changes = runs.ask_both(run, runs.as_recorded(pin.run), against, pin.variant, "", names(run))
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
    name = next((each for each in every if text.startswith(f"{each}@")), "")
    variant = text.removeprefix(f"{name}@")
    if not name or not variant:
        return None
    try:
        variants = set(every[name].table("variants", ["variant"])["variant"])
    except store.StoreError:
        return None
    return PinnedBaseline(every[name], variant) if variant in variants else None


def against(data: RunData, pinned: RunData, variant: str, scope: str, names: tuple[str, ...]) -> tuple[Change, ...] | str:
    """The changes of a run against the pinned run, or the reason that the two cannot be compared.

    Args:
        names: of the runs of the machine, which tell its noise.
    """
    options, recordings = changes.Options(scope), history(names, data)
    before, after = changes.Side(pinned, variant), changes.Side(data)
    try:
        if variant:
            cells = changes.against_variant(before, after, options, recordings)
        else:
            cells = changes.compare(before, after, options, recordings).changes
    except changes.NotComparable as error:
        return str(error)
    return cells or "they have no case in common"


def _time(row: dict[Any, Any]) -> float:
    return float(row["time_ns"])


def _verdicts(listed: Sequence[Change]) -> None:
    if not listed:
        _line("it has none of these cells")
        return
    several = len({each.workload for each in listed}) > 1
    rows = [
        {
            "Verdict": each.verdict,
            "Here over pinned": each.ratio.value,
            "from": each.ratio.low,
            "to": each.ratio.high,
            **({"Workload": each.workload} if several else {}),
            "Case": each.case,
            "Variant": each.name,
            "Pinned": format_duration(each.a_ns.value),
            "Here": format_duration(each.b_ns.value),
        }
        for each in listed
    ]
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
    widgets.table(pd.DataFrame(rows), column_config=columns, height=height, width=700)
