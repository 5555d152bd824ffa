"""Experiments: what one kernel spends its time on, from altered copies of it, without hardware counters."""

from typing import Final, NoReturn

import streamlit as st

from warpladder.dashboard.core.run_index import ListedRun, Need
from warpladder.dashboard.ui import counted_run, pages, runs, state, widgets
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views.why.experiments import chart, query
from warpladder.data import store
from warpladder.data.naming import CellName

_COMMAND: Final = "warpladder why {} --variant {} --case {}"


def draw(run: store.Run) -> None:
    every = runs.load(run).workloads
    looked_into = (name for name in every if counted_run.find(run, name, Need.EXPERIMENTS, query.cells))
    workload = widgets.choose_workload(run, default=next(looked_into, None))
    found = counted_run.find(run, workload, Need.EXPERIMENTS, query.cells)
    if found is None:
        _nothing(run, workload)
    cell = _choose(run, found, workload)
    data, look = found.run, runs.look_of(found.run, widgets.theme())
    inside = runs.ask(data, query.inside, cell)
    if inside.was_altered:
        widgets.show_chart(chart.without(inside, look, cell))
    if found.run.path != run.path:
        st.caption(plain(f"Experiments of {found.title}, on the variants whose sources are those of this run."))
    if at_marks := chart.at_marks(inside, look, cell):
        widgets.show_chart(at_marks)
    if blocks := runs.ask(data, query.blocks, cell):
        numbers = [str(number) for number in blocks.multiprocessors]
        ends = {numbers[0]: " (the last to end)", numbers[-1]: " (the first to end)"} if len(numbers) > 1 else {}
        chosen = state.choose(
            "multiprocessor",
            "Multiprocessor",
            numbers,
            owner="/".join(cell),
            text=lambda number: f"{number}{ends.get(number, '')}",
        )
        widgets.show_chart(chart.over_time(blocks, int(chosen), inside, look, cell))
    if inside.was_altered:
        st.caption("Other variants and cases:")
        st.code(_COMMAND.format(cell.workload, cell.variant, cell.case), language="bash")


def _choose(run: store.Run, found: ListedRun, workload: str) -> CellName:
    """The cell to show: a case, and a variant of it with the sources of the run."""
    cells = runs.ask(found.run, query.cells, workload)
    if found.run.path != run.path:
        equal = counted_run.equal_variants(run, found.run, workload)
        cells = tuple(cell for cell in cells if cell.variant in equal)
    case = widgets.choose_case(found.run, workload, among=list(dict.fromkeys(cell.case for cell in cells)))
    names = {cell.variant: cell for cell in cells if cell.case == case}
    wanted = state.coming("variant")
    with widgets.controls():
        name = state.choose("variant", "Variant", list(names))
    if wanted and wanted not in names:
        st.info(plain(f"No experiment was made on {wanted}. This makes one:"))
        st.code(_COMMAND.format(workload, wanted, case), language="bash")
    return names[name]


def _nothing(run: store.Run, workload: str) -> NoReturn:
    """Show the command that makes experiments. Ends the section."""
    data = runs.load(run)
    if not query.alterable(data, workload):
        widgets.nothing(
            f"{workload} has no kernel in CUDA C++ in this run.", "Experiments alter such kernels; choose another workload."
        )
    wanted = state.coming("variant")
    if not (known := runs.recorded_as(run, workload)):
        why = f"An experiment alters the source of a kernel and measures it again, which a report of {workload} does not allow."
        widgets.nothing(why, "Write the kernel as a variant of your own, and record it:", widgets.HOW_TO_RECORD_OWN)
    case = widgets.choose_case(run, workload)
    able = query.alterable(data, workload, case)
    name = wanted if wanted in able else able[0]
    st.info(plain(f"No experiment was made on these sources of {workload}. On a machine with a GPU, this makes them:"))
    st.code(_COMMAND.format(known, name, case), language="bash")
    widgets.offer_runs(Need.EXPERIMENTS)
    pages.end()
