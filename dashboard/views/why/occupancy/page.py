"""Occupancy: what limits the resident warps of each kernel, and what another choice would give."""

from typing import Final, NoReturn

import streamlit as st

from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.views.why.occupancy import chart, query
from warpladder.data import store

_COLUMNS: Final = {
    "name": st.column_config.TextColumn("Kernel", width=300),
    "registers": st.column_config.NumberColumn("Registers", help="Of a thread.", width=68),
    "shared_bytes": st.column_config.NumberColumn("Shared, B", help="Of a block, static and dynamic.", width=74),
    "threads": st.column_config.NumberColumn("Threads", help="Of a block.", width=60),
    "blocks": st.column_config.NumberColumn("Blocks", help="Resident blocks of a multiprocessor.", width=56),
    "limiter": st.column_config.TextColumn("Limited by", width=165),
    "occupancy_percent": st.column_config.NumberColumn(
        "Occupancy", format="%.1f %%", help="Resident warps over the most that a multiprocessor can have.", width=78
    ),
    "waves": st.column_config.NumberColumn(
        "Waves", format="%.2f", help="Blocks of the grid over the blocks that are resident at once.", width=56
    ),
    "last_wave_percent": st.column_config.NumberColumn(
        "Last wave", format="%.0f %%", help="The share of the last wave's places that have a block.", width=70
    ),
}


def draw(run: store.Run) -> None:
    data = runs.load(run)
    with_code, limits = data.code.workloads, query.limits_of_run(data)
    if not with_code or limits is None:
        _nothing(run, has_code=bool(with_code))
    with widgets.controls():
        workload = widgets.choose_workload(run, among=with_code)
        case = widgets.choose_case(run, workload, among=data.code.cases(workload))
        names = query.launch_names(data, workload, case)
        if not names:
            widgets.nothing("The registers of its kernels are not known.", "Record the run again: warpladder record.")
        first = query.first_name(data, workload, case, names)
        name = state.choose("launch", "Kernel", list(names), default=first, owner=f"{workload} {case}")
    cell, kernel = names[name]
    result = query.what_if(kernel, limits.capability, query.sms_of_run(data))
    assert result is not None
    look = runs.look_of(run, widgets.theme())
    widgets.show_chart(chart.curves(result, look, workload, case, cell.variant, name))
    st.markdown("## Every kernel of the case")
    frame = query.rows(data, workload, case).assign(name=list(names))
    widgets.table(
        frame,
        column_order=[name for name in _COLUMNS if name in frame],
        column_config=_COLUMNS,
        height=widgets.height(frame),
    )


def _nothing(run: store.Run, *, has_code: bool) -> NoReturn:
    """Say why there is no occupancy, and lead to runs that have some. Ends the page."""
    if has_code:
        widgets.nothing(
            f"The limits of compute capability {run.info['compute_capability'] or 'without a name'} are not known.",
            "Choose another run above.",
        )
    st.info("This run has no machine code. Record kernels in CUDA C++ on a machine with a GPU, then choose that run above:")
    st.code(runs.how_to_record(run, next(iter(runs.load(run).workloads), "WORKLOAD")), language="bash")
    widgets.offer_runs()
    pages.end()
