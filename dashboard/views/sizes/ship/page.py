"""Which to ship: the variants to ship, what that costs, and the code that chooses among them."""

from dataclasses import dataclass
from typing import Final, cast

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import within_run
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.numbers import NOTHING, format_estimate, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui import runs, source, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.sizes.ship import chart, code, dispatch, query
from warpladder.data import store
from warpladder.data.words import counted

_NO_AXIS: Final = "The cases vary in several axes, or in none that is a number: a table takes the place of branches."
_MOST_CROSSED: Final = 6
_AMONG_HELP: Final = "Rungs are the variants of the ladder, yours too. Peers are those of libraries."


@dataclass(frozen=True)
class _Choices:
    workload: str
    timing: Timing
    precision: str
    among: query.Among
    series: str

    def contest(self, data: RunData) -> query.Contest:
        """The variants that are compared."""
        return query.contest(data, self.workload, self.timing, self.precision, self.among, self.series)


def _ranked(data: RunData, choices: _Choices) -> tuple[query.Contest, tuple[query.Shipment, ...]]:
    contest = choices.contest(data)
    return contest, query.shipments(contest)


def _dispatched(
    data: RunData, choices: _Choices, variants: tuple[str, ...], tolerance: float
) -> tuple[dispatch.Dispatch, tuple[dispatch.Crossover, ...]]:
    contest = choices.contest(data)
    return dispatch.dispatch(data, contest, variants, tolerance), dispatch.crossovers(data, contest, variants)


def draw(run: store.Run) -> None:
    choices = _choices(run)
    contest, offers = runs.ask(run, _ranked, choices)
    if not offers and contest.doubts:
        widgets.nothing(f"Nothing to ship. {'; '.join(code.doubts(contest))}.", "Choose another case, scope or cache.")
    if not offers:
        where = widgets.timing(run, choices.timing)
        widgets.nothing(f"No case of {choices.series} was timed in {where}.", "Choose another series.")
    best = query.recommended(offers)
    answer, costs, losses = st.container(), st.container(), st.container()
    st.markdown("## When each runs")
    with widgets.controls():
        counts = {code.COUNTS[len(offer.variants) - 1]: offer for offer in offers}
        owner = f"{run.path} {choices}"
        default = code.COUNTS[len(best.variants) - 1]
        count = state.choose("ship", "Ship", list(counts), default=default, style="segmented", owner=owner)
        options = {f"{tolerance:g}": f"{tolerance:g} %" for tolerance in dispatch.TOLERANCES}
        about = "A branch that would save less than this, or less than the noise, is left out."
        accepted = state.choose("accept", "Accept a loss of", options, default="1", style="segmented", help=about)
        language = cast("code.Language", state.choose("code", "Dispatch as", code.LANGUAGES, style="segmented"))
    shipped = counts[count]
    with answer:
        st.markdown(f"## {plain(code.answer(contest, shipped))}")
        if contest.doubts:
            st.caption(plain(f"⚠ {'; '.join(code.doubts(contest))}."))
    with costs:
        _costs(contest, offers)
    with losses:
        drawn = widgets.drawn(chart.losses, contest, shipped, runs.look_of(run, widgets.theme()), choices.series)
        widgets.show_chart(drawn, titled=False)
    _code(run, choices, contest, shipped, float(accepted), language)


def _choices(run: store.Run) -> _Choices:
    with widgets.controls():
        workload = widgets.choose_workload(run)
        timing = widgets.choose_timing(run, workload)
        precisions = list(runs.ask(run, query.precisions_of, workload, timing))
        if not precisions:
            widgets.nothing(
                f"No case of {workload} on the size axis was timed in {widgets.timing(run, timing)}.",
                "Choose another scope or cache.",
            )
        picked = precisions[0]
        if len(precisions) > 1:
            picked = state.choose("precision", "Precision", precisions, text=within_run.word, style="segmented")
        series = [query.ALL, *runs.ask(run, cells.series, workload)]
        one = state.choose("series", "Series", series) if len(series) > 2 else query.ALL
        choices = list(runs.ask(run, query.choices, workload, timing))
        among = choices[0]
        if len(choices) > 1:
            texts: dict[str, str] = {each: code.AMONG[each] for each in choices}
            among = cast("query.Among", state.choose("among", "Among", texts, help=_AMONG_HELP))
    return _Choices(workload, timing, picked, among, one)


def _costs(contest: query.Contest, offers: tuple[query.Shipment, ...]) -> None:
    rows = [
        {
            "ship": code.COUNTS[len(offer.variants) - 1],
            "variants": ", ".join(offer.variants),
            "slower on average": _percent(offer.mean),
            "at most": _percent(offer.worst),
            "at": offer.worst_case if offer.worst.value > 0 else "",
            "first or tied": f"{offer.first} of {len(contest.cases)}",
            "not timed": f"{len(offer.missing)} of {len(contest.cases)}",
        }
        for offer in offers
    ]
    frame = pd.DataFrame(rows)
    widgets.table(frame if any(offer.missing for offer in offers) else frame.drop(columns="not timed"))
    if contest.untimed:
        st.caption(plain(f"Without the cases that were not timed: {', '.join(contest.untimed)}."))


def _percent(loss: Estimate) -> str:
    if not loss.known:
        return NOTHING
    return format_estimate(loss, format_percent) if loss.value else "0 %"


def _code(
    run: store.Run,
    choices: _Choices,
    contest: query.Contest,
    shipped: query.Shipment,
    tolerance: float,
    language: code.Language,
) -> None:
    """The dispatch as code, and the crossovers beside it."""
    table, crossed = runs.ask(run, _dispatched, choices, shipped.variants, tolerance)
    written = code.write(table, contest, runs.load(run), language)
    highlight, ending, mime = code.FILES[language]
    name = f"{code.function_name(choices.workload)}.{ending}"
    left, right = st.columns([14, 8], gap="medium")
    with left:
        lines = written.count("\n")
        source.show("dispatch", written, highlight, 300 if lines > 12 else None)
        st.download_button(f"Save {name}", written, name, mime, key=f"save {language}", type="tertiary", on_click="ignore")
    with right:
        branches = (
            counted(len(table.branches), "range") + f" of {table.axis}" if table.axis else counted(len(table.chosen), "case")
        )
        st.caption(
            plain(
                f"{branches}: {format_percent(table.worst.value)} at most and {format_percent(table.mean.value)} on average "
                f"slower than {code.fastest(contest)}. A tie, or a loss within the one accepted, makes no branch."
            )
        )
        if crossed:
            st.caption(
                "Crossovers, between sizes at which one is faster beyond its interval, each variant with its fastest config. The code "
                "compares the configs that it names."
            )
            words = [
                f"{table.axis} {code.crossover(each.at)}: {each.below}, then {each.above}" for each in crossed[:_MOST_CROSSED]
            ]
            st.markdown("  \n".join(f":small[{plain(each)}]" for each in words))
        elif len(shipped.variants) > 1:
            st.caption("No crossover." if table.axis else _NO_AXIS)
