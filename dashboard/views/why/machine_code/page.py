"""Machine code: the source beside its instructions, the mix and loops of a kernel, and what differs between two kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.numbers import format_bytes
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.core.sass import Code
from warpladder.dashboard.ui import pages, runs, state, widgets
from warpladder.dashboard.ui.component import component
from warpladder.dashboard.ui.glossary import meanings
from warpladder.dashboard.ui.template import Theme, palette, tones
from warpladder.dashboard.ui.text import cut, plain
from warpladder.dashboard.views.why.machine_code import query
from warpladder.dashboard.views.why.machine_code.query import Family, Kind, family
from warpladder.data import store
from warpladder.data.naming import CellName

_TOPICS: Final = {"source": "Source and SASS", "mix": "Mix and loops", "difference": "Difference"}
_HERE: Final = Path(__file__).resolve().parent
_THIS: Final = "this run"
_KERNEL_LENGTH: Final = 70
_TABLE_HEIGHT: Final = 360
_MIX: Final = {
    "unit": st.column_config.TextColumn("Unit", help="What executes the instructions."),
    "name": st.column_config.TextColumn("Instruction", help="The operation, with the width of an access in bits."),
    "hot": widgets.number("In the hot loop", "Without loops inside it.", "localized"),
    "all": widgets.number("In the kernel", style="localized"),
    "executed": widgets.number("Executed", "Times that warps executed them, in one launch.", "localized"),
}
_LOOPS: Final = {
    "first": st.column_config.TextColumn("From", help="Offset of its first instruction."),
    "last": st.column_config.TextColumn("To", help="Offset of its last instruction, a branch back."),
    "lines": "Source lines",
    "depth": st.column_config.NumberColumn("Depth", help="How many loops are around it."),
    "instructions": widgets.number("Instructions", "Without loops inside it.", "localized"),
    "arithmetic_percent": widgets.number("Arithmetic, %", "Share of floating-point and tensor instructions.", "%.0f"),
    "hot": st.column_config.CheckboxColumn(
        "Hot loop", help="Executed most often; without counts, the one with the most arithmetic."
    ),
}
_CHANGES: Final = {
    "unit": "Unit",
    "name": "Instruction",
    "a": widgets.number("A", style="localized"),
    "b": widgets.number("B", style="localized"),
    "change": widgets.number("Change", style="%+d"),
}
_BAR: Final = """
  <div class="bar">
    <input class="search" type="search" placeholder="Search" aria-label="Search">
    <span class="count" role="status"></span>
    {more}
    <span class="legend"></span>
  </div>
"""
_CODE: Final = f"""
<div class="code">
  {_BAR.format(more='<label><input class="only" type="checkbox"> matches only</label><span class="columns"></span>')}
  <div class="panes">
    <section class="pane left"><div class="head"></div><div class="rows"></div></section>
    <section class="pane right"><div class="head"></div><div class="rows"></div></section>
  </div>
  <div class="status"><button type="button" class="next" disabled>Next</button><span class="words" role="status"></span></div>
</div>
"""
_DIFFERENCE: Final = f"""
<div class="code">
  {
    _BAR.format(
        more='''<button type="button" class="back">↑ Change</button><button type="button" class="on">↓ Change</button>
      <button type="button" class="all">Unfold all</button>'''
    )
}
  <div class="panes">
    <section class="pane both"><div class="head"></div><div class="rows"></div></section>
  </div>
</div>
"""
#: Family of an instruction -> its number in the browser.
_PLACES: Final[Mapping[Family, int]] = {each: place for place, each in enumerate(Family)}


@dataclass(frozen=True)
class _Chosen:
    """A kernel of a run that the page shows."""

    data: RunData
    cell: CellName
    kernel: Kernel
    kernels: tuple[Kernel, ...]

    @property
    def name(self) -> str:
        """The variant with its config."""
        return f"{self.cell.variant} [{self.cell.config}]" if self.cell.config else self.cell.variant


def draw(run: store.Run) -> None:
    data = runs.load(run)
    if not data.code or not (known := data.code.workloads):
        _no_code(data)
    with widgets.controls():
        workload = widgets.choose_workload(run, among=known)
        case = widgets.choose_case(run, workload, among=query.cases(data, workload))
        topic = state.choose("machine", "Show", _TOPICS, style="segmented")
        variant = query.first_variant(data, workload, case)
        side = " of B" if topic == "difference" else ""
        chosen = _choose(data, workload, case, variant, ("variant", "config", "launch"), owner=f"{workload}|{case}", side=side)
        ptx = topic == "source" and bool(chosen.kernel.ptx)
        ptx = ptx and state.choose("isa", "Code", ["SASS", "PTX"], style="segmented") == "PTX"
    if not chosen.kernel.code_id:
        _no_code_of(chosen)
    if topic != "difference":
        words = _resources(chosen.kernel)
        st.caption(plain(words), help=meanings(words) or None)
    if topic == "source":
        _source(chosen, ptx=ptx)
    elif topic == "mix":
        _mix(chosen)
    else:
        _difference(run, chosen)


def _choose(
    data: RunData, workload: str, case: str, variant: str, keys: tuple[str, str, str], owner: str, side: str = ""
) -> _Chosen:
    """A variant, its config and its launch.

    Args:
        variant: the default.
        keys: of the URL.
        owner: see `state.choose`; a variant has its own last config, and a config its own last launch.
        side: ends the labels, such as ` of A`.
    """
    every = query.variants(data, workload, case)
    name = state.choose(keys[0], f"Variant{side}", list(every), default=variant, owner=owner)
    config = every[name][0]
    if len(every[name]) > 1:
        first = query.first_config(data, workload, case, name)
        text = lambda each: each or "none"  # noqa: E731
        config = state.choose(keys[1], f"Config{side}", every[name], default=first, text=text, owner=f"{owner}|{name}")
    cell = CellName(workload, name, config, case)
    kernels = data.code.kernels(cell)
    main = query.main_launch(data, cell)
    if len(kernels) > 1:
        launches = {str(at): f"{at}: {cut(kernel.name, _KERNEL_LENGTH)}" for at, kernel in enumerate(kernels, start=1)}
        owner = f"{owner}|{name}|{config}"
        main = int(state.choose(keys[2], f"Launch{side}", launches, default=str(main + 1), owner=owner)) - 1
    return _Chosen(data, cell, kernels[main], kernels)


def _resources(kernel: Kernel) -> str:
    """The kernel, its architecture and compiler, and what a thread and a block take."""
    parts = [cut(kernel.name, _KERNEL_LENGTH), " ".join(filter(None, [kernel.architecture, kernel.compiler]))]
    parts.append(f"{len(kernel.code):,} instructions")
    if kernel.registers is not None:
        parts.append(f"{kernel.registers} registers a thread")
    static = kernel.static_shared_bytes or 0
    shared = format_bytes(kernel.shared_bytes) if kernel.shared_bytes else "no"
    both = f" ({format_bytes(static)} static, {format_bytes(kernel.dynamic_shared_bytes)} dynamic)"
    if kernel.count > 1:
        parts.append(f"the first of {kernel.count:,} launches that are alike")
    parts.append(f"{shared} shared memory a block{both if static and kernel.dynamic_shared_bytes else ''}")
    if kernel.spill_bytes is not None:
        parts.append(f"{format_bytes(kernel.spill_bytes)} of spills a thread" if kernel.spill_bytes else "no spills")
    parts.append(f"{kernel.blocks:,} blocks of {kernel.threads:,} threads")
    return " · ".join(filter(None, parts))


def _source(chosen: _Chosen, *, ptx: bool) -> None:
    kernel = chosen.kernel
    source = chosen.data.source_text(chosen.cell.workload, chosen.cell.variant)
    heats = query.heats(chosen.data, chosen.cell, kernel)
    if not source:
        st.caption(plain(f"The run has no source of {chosen.cell.variant}."))
    hot = query.hot_loop(chosen.data, chosen.cell, kernel)
    sass = {
        "texts": [each.text for each in kernel.code.instructions],
        "lines": [each.line for each in kernel.code.instructions],
        "families": _families(kernel.code),
        "loops": [[loop.first, loop.last, loop.depth, int(loop == hot)] for loop in kernel.code.loops],
        "heats": heats,
        "legend": [str(each) for each in Family],
    }
    data = {
        "source": source.splitlines(),
        **({name: [] for name in sass} | {"texts": (kernel.ptx or "").splitlines()} if ptx else sass),
        "headings": [f"Source: {chosen.cell.variant}", "PTX" if ptx else f"SASS: {cut(kernel.name, _KERNEL_LENGTH)}"],
        "colors": _colors(widgets.theme()),
        "ptx": ptx,
    }
    component(_HERE, "code", _CODE, ("rows.js", "listing.js", "code.css"))(key="source and machine code", data=data)
    if not heats:
        command = runs.how_to_record(chosen.data, chosen.cell.workload, "--counters")
        st.caption(
            plain(f"This launch has no counters by instruction. On a machine with Nsight Compute, record them: {command}")
        )
    elif not ptx:
        st.caption("▲: more than the least that the accesses need. Counters of one launch under Nsight Compute.")


def _mix(chosen: _Chosen) -> None:
    data, cell, kernel = chosen.data, chosen.cell, chosen.kernel
    st.markdown(f"## {plain(query.answer(data, cell, kernel))}")
    left, right = st.container(key="side-by-side").columns(2, gap="medium")
    with left:
        widgets.table(query.mix(data, cell, kernel), column_config=_MIX, height=_TABLE_HEIGHT)
    with right:
        loops = query.loops(data, cell, kernel)
        if len(loops):
            widgets.table(loops, column_config=_LOOPS, height=widgets.height(loops, 8, _TABLE_HEIGHT))
            st.caption("A loop is the code from the target of a branch backwards to that branch.")
        else:
            st.caption("The kernel has no branch backwards, so no loop.")


def _difference(run: store.Run, chosen: _Chosen) -> None:
    """Two kernels side by side: A, another variant or run, and B, the kernel of the page."""
    having = runs.context().having(Need.CODE, chosen.cell.workload)
    others = [each for each in having if each.run.path != run.path and chosen.cell.workload in each.facts.workloads]
    with widgets.controls():
        name = _THIS
        if others:
            name = state.choose("code_of", "A", {_THIS: "this run", **{each.name: each.title for each in others}})
        other = next((each.run for each in others if each.name == name), run)
        if other is not run and not runs.opens(other):
            widgets.nothing("The other run cannot be opened.", "Choose another run as A.")
        a = _choose_other(runs.load(other), chosen, name)
    if a is None:
        widgets.nothing("The other run has no machine code of this workload.", "Choose another run as A.")
    if not a.kernel.code_id:
        st.info(plain(f"The code of {a.name} is not known. Choose another variant as A."))
        return
    rows = query.rows(a.kernel.code, chosen.kernel.code)
    changed = query.changes(a.kernel.code, chosen.kernel.code)
    st.markdown(f"## {plain(query.difference_sentence(rows, changed))}")
    kinds, codes = list(Kind), (a.kernel.code, chosen.kernel.code)
    data = {
        **{side: [each.text for each in code.instructions] for side, code in zip("ab", codes, strict=True)},
        "families": [_families(code) for code in codes],
        "rows": [[kinds.index(row.kind), row.a, row.b] for row in rows],
        "headings": [f"A: {a.name}, {a.cell.case}", f"B: {chosen.name}, {chosen.cell.case}"],
        "legend": [str(each) for each in Family],
        "colors": _colors(widgets.theme()),
    }
    component(_HERE, "code_difference", _DIFFERENCE, ("rows.js", "difference.js", "code.css"))(
        key="difference of machine code", data=data
    )
    for letter, each in (("A", a), ("B", chosen)):
        st.caption(plain(f"{letter}: {each.name}: {_resources(each.kernel)}"))
    if len(changed):
        st.markdown("### Counts that differ")
        widgets.table(changed, column_config=_CHANGES, height=widgets.height(changed, 11, _TABLE_HEIGHT))


def _choose_other(data: RunData, chosen: _Chosen, name: str) -> _Chosen | None:
    """The kernel A: at first the variant before B in this run, or the same one in another run."""
    workload = chosen.cell.workload
    cases = query.cases(data, workload)
    if not cases:
        return None
    case = chosen.cell.case if chosen.cell.case in cases else cases[-1]
    names = list(query.variants(data, workload, case))
    own = chosen.cell.variant
    variant = own if own in names else names[-1]
    if name == _THIS and own in names:
        variant = names[max(names.index(own) - 1, 0)] if own != names[0] else names[min(1, len(names) - 1)]
    return _choose(data, workload, case, variant, ("a", "a_config", "a_launch"), owner=f"{name}|{workload}|{own}", side=" of A")


def _no_code(data: RunData) -> None:
    """Say that the run has no machine code, with the command that gives some, and lead to runs that have some."""
    if data.workloads:
        how = "Record it on a machine with a GPU and the package nvidia-cuda-nvdisasm, then choose that run above:"
        code = runs.how_to_record(data, data.workloads[0])
    else:
        how, code = "To read the machine code of a program of your own:", "warpladder disassemble PROGRAM"
    st.info(f"This run has no machine code. {how}")
    st.code(code, language="bash")
    widgets.offer_runs()
    pages.end()


def _no_code_of(chosen: _Chosen) -> None:
    """Name the kernels of a cell whose code is not known, and say what records it."""
    names = ", ".join(dict.fromkeys(kernel.name for kernel in chosen.kernels))

    def say() -> None:
        st.info(plain(f"The machine code of {chosen.name} is not known. It launches {names}."))
        st.markdown("A library's code is recorded together with its counters, on a machine with Nsight Compute:")
        st.code(runs.how_to_record(chosen.data, chosen.cell.workload, "--counters"), language="bash")

    pages.end(say)


def _families(code: Code) -> list[int]:
    return [_PLACES[family(each.unit)] for each in code.instructions]


def _colors(theme: Theme) -> dict[str, str]:
    """Colours of instructions differ by at least 24 in CIELAB for all eyes, and have 4.5 to 1 or more against the page."""
    tone, colors = tones(theme), palette(theme)
    of_families = {"family0": colors[0], "family1": tone.bad, "family2": tone.muted, "family3": tone.text}
    return {**of_families, "heat": colors[4], "muted": tone.muted, "grid": tone.grid, "gone": tone.bad, "come": tone.good}
