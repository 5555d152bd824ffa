"""Home: the answer of a run, by its kind, and where to go next."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd
import streamlit as st

from warpladder.dashboard.compare import overview, versions
from warpladder.dashboard.compare.changes import NotComparable, Options, sentence
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core import cells, counted, counters, run_index
from warpladder.dashboard.core.cell import Cell, Timing
from warpladder.dashboard.core.numbers import (
    NOTHING,
    format_duration,
    format_ends,
    format_half_width,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import ListedRun, label_of
from warpladder.dashboard.trace.lanes import build
from warpladder.dashboard.trace.parts import IN_APP, IN_PAGE
from warpladder.dashboard.ui import pages, recordings, rows, runs, state, widgets
from warpladder.dashboard.ui.rows import Column
from warpladder.dashboard.ui.text import plain
from warpladder.dashboard.views import VIEWS
from warpladder.dashboard.views.home import chart, query
from warpladder.dashboard.views.ladder.roofline import query as roofline
from warpladder.dashboard.views.ranks import chart as of_ranks
from warpladder.dashboard.views.ranks import query as ranks
from warpladder.dashboard.views.trust import query as trust
from warpladder.data import store
from warpladder.data.words import cut
from warpladder.installation import ROOT

#: A winner below this percentage of its floor has something to gain.
_NEAR: Final = 90.0
_RUN_CHARACTERS: Final = 26
#: After a rung that is tied with the next one.
TIED: Final = " ≈"
#: Columns whose figures sort a row, and which show words instead.
_WORDED: Final = ("floor", "time", "speedup", "peer")


def draw(run: store.Run) -> None:
    data = runs.load(run)
    own = sorted(_lines(runs.chosen_name(), run, frozenset(data.workloads)), key=lambda each: each.workload)
    if "ranks" in run.tables:
        _job(run)
    elif own:
        _recording(run, own)
    elif data.traces:
        _trace(run)
    elif "counters" in run.tables:
        _counters(run)
    else:
        st.info("Nothing was timed in this run; the checks say why, cell by cell.")
        pages.link("trust", "Checks →", **state.link())
    if own:
        _others(run)


def _others(run: store.Run) -> None:
    """The lines of the workloads that the run lacks, which the page shows where they are asked for."""
    context = runs.context()
    if set(runs.load(run).workloads).issuperset(run_index.workloads(context.every, context.device)):
        return
    if not st.toggle(
        f"The other workloads of {plain(context.device)}, each from its newest suitable run",
        # The figures of the first device were computed before the page asked; of another one it takes seconds.
        value=run_index.devices(context.every)[:1] == (context.device,),
        key="other workloads",
    ):
        return
    others = [each for name, source, workloads in _other_sources(run) for each in _lines(name, source, workloads)]
    others.sort(key=lambda each: each.workload)
    if others:
        _table(others, "others")


def _recording(run: store.Run, own: list[Cell]) -> None:
    """The winners, whether to believe them, what moved since the last comparable run, and what to do next."""
    with_versions = runs.has_other_version(run)
    if with_versions:
        st.markdown(f"## {plain(runs.ask_both(run, runs.OtherVersion(run), _against))}")
    elif len(own) == 1 and (words := headline(own[0])):
        st.markdown(f"## {plain(words)}")
    _table(own, "own")
    verdict = runs.ask(run, trust.verdict, ROOT)
    with st.container(gap="xxsmall"):
        _fact("Can I believe it?", verdict.sentence, "trust", "Trust →", **state.link())
        if with_versions:
            _fact("Where, and by how much:", "each cell, its samples and sources.", "compare", "Compare →", **state.link())
        elif before := _before():
            earlier, names = before.run, recordings.names(run)
            # The run may be of a part of what the earlier one has: only what it has a result of can have become wrong.
            found = runs.ask_both(run, earlier, recordings.compared, "", "", Options(partial=True), names)
            told = found if isinstance(found, str) else sentence(found.changes, found.lost)
            words = told or "they have no case in common"
            since = f"Since {label_of(before.run)}, {before.facts.started_at:%Y-%m-%d}:"
            _fact(since, words, "compare", "Compare →", **state.link(**{"with": before.name}))
        worst = min(own, key=lambda each: each.percent_of_floor.value)
        if worst.percent_of_floor.value < _NEAR:
            reached = f"{worst.workload} reaches {format_percent(worst.percent_of_floor.value)} of its floor:"
            link = state.link(workload=worst.workload)
            if runs.load(run).on_gpu and "counters" in run.tables:
                _fact("Next:", f"{reached} see what limits {worst.variant}.", "why.counters", "Counters →", **link)
            elif runs.load(run).on_gpu:  # the header of its source
                words = f"{reached} see what limits {worst.variant}, in its source."
                _fact("Next:", words, "ladder", "Ladder →", **link, variant=worst.variant)
            elif runs.ask(run, roofline.computes, worst.workload):
                _fact("Next:", f"{reached} see what limits {worst.variant}.", "ladder.roofline", "Roofline →", **link)
            else:  # no roof of arithmetic
                _fact("Next:", f"{reached} see each variant's part.", "ladder", "Ladder →", **link)
        of_sizes = (each.workload for each in own)
        if first := next((name for name in of_sizes if len(runs.ask(run, cells.timed_cases, name)) > 1), None):
            words = "the variant for each size, with the code that chooses."
            _fact("Ship:", words, "sizes.ship", "Which to ship →", **state.link(workload=first))


def _against(own: RunData, other: RunData) -> str:
    """The verdict about the file's own version."""
    try:
        found = versions.compare_in_rounds(own, other)
    except NotComparable as error:
        return str(error)
    return f"Against {other.info['label']}: {sentence(found.changes, found.lost)}"


def headline(best: Cell) -> str:
    """`conv2d: v09_loads_first wins with 128 µs (127 µs to 129 µs), 96.1 % of its floor, 1.90× npp`; empty without a winner. Where a peer is
    as fast or faster, no rung wins."""
    if not best.median_ns.known:
        return ""
    won = "wins with" if best.over_peer_verdict in ("", "faster") else "is the fastest rung with"
    won = f"is tied with {best.tied_with}:" if best.tied_with else won
    time = f"{format_duration(best.median_ns.value)} ({format_ends(best.median_ns, format_duration)})"
    parts = [f"{best.workload}: {best.variant} {won} {time}{f' in the mean of {best.cases} cases' if best.cases > 1 else ''}"]
    parts += [f"{format_percent(best.percent_of_floor.value)} of its floor"] if best.percent_of_floor.known else []
    parts += [_over_peer(best)] if best.over_peer.known else []
    return ", ".join(parts)


def _fact(label: str, words: str, where: str, link: str, **choices: str) -> None:
    """A line with the page that has more of it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(label)}** {plain(words)}", width="content")
        pages.link(where, link, **choices)


def _before() -> ListedRun | None:
    """The newest run before the chosen one that can be compared with it."""
    every = runs.context().every
    listed = next((each for each in every if each.name == runs.chosen_name()), None)
    earlier = run_index.comparable(every, listed) if listed else []
    return next((each for each in earlier if runs.opens(each.run)), None)


def _trace(run: store.Run) -> None:
    """Where the time goes, as a picture and as findings that lead to their moments."""
    found, told = runs.ask(run, query.profile).parts, runs.ask(run, query.told)
    if found is None:
        _told(told.headline, told.to_do, told.steps)
    else:
        widgets.show_chart(widgets.drawn(chart.where_time_goes, found, runs.look_of(run, widgets.theme())))
        _told("", told.to_do, found.idle_sentence, told.steps)
        _findings(run)
    leads = {"time": "Time by kernel and operator →", "timeline": "Timeline →"}
    leads |= {"time.transfers": "Copies →"} if "memory_ops" in run.tables else {}
    with st.container(horizontal=True, gap="small"):
        for where, label in leads.items():
            pages.link(where, label, **state.link())


def _findings(run: store.Run) -> None:
    frame = runs.ask(run, query.findings)
    texts = frame.assign(
        time_ns=[format_duration(each) for each in frame["time_ns"]],
        percent=[format_percent(each) for each in frame["percent"]],
        runs=[f"{each:,}" for each in frame["runs"]],
    )
    columns = {name: each for name, each in _FINDINGS.items() if texts[name].str.len().any()}
    values = {name: frame[name].tolist() for name in ("time_ns", "percent", "runs")}
    opened = rows.show("findings", texts, columns, title="What takes the time", values=values)
    words = "Kernels that overlap count each. Click a row for its longest execution on the Timeline."
    _below_table(words, frame, "findings")
    if opened is not None:
        row = frame.iloc[opened]
        lanes = runs.share(run, build)
        begin = lanes.begin_ns if lanes else 0
        margin = max(int(row["end_ns"] - row["begin_ns"]), 1_000)
        first, last = int(row["begin_ns"]) - begin - margin, int(row["end_ns"]) - begin + margin
        pages.go("timeline", **state.link(window=f"{max(first, 0)}-{last}"))


def _below_table(words: str, frame: pd.DataFrame, name: str, help: str | None = None) -> None:
    """Words about a table, and a button that saves it."""
    about, save = st.columns([0.93, 0.07], vertical_alignment="center")
    about.caption(plain(words), help=help)
    with save:
        widgets.save_csv("CSV", frame, f"{name}.csv", f"save {name}")


def _job(run: store.Run) -> None:
    """The stage or the rank that the others wait for, and where the time of each rank goes."""
    told = runs.ask(run, ranks.told)
    first, *further = (*told.findings, told.headline)
    _told(first, told.to_do, *further, told.steps)
    look = runs.look_of(run, widgets.theme())
    widgets.show_chart(widgets.drawn(of_ranks.breakdown, runs.ask(run, ranks.breakdown), look))
    leads = {"ranks": "Who is late, in which steps, and what a change would bring →"}
    leads |= {"ranks.collectives": "How fast the collectives are →"}
    leads |= {"ranks.critical_path": "Which faster kernel would shorten a step →", "timeline": "Timeline of the ranks →"}
    with st.container(horizontal=True, gap="small"):
        for where, label in leads.items():
            pages.link(where, label, **state.link())


def _told(heading: str, to_do: str, *sentences: str) -> None:
    """Sentences below a heading, then what to do first, with a link to the page that shows it."""
    if heading:
        st.markdown(f"## {plain(_capital(heading))}")
    with st.container(gap="xxsmall"):
        for words in filter(None, sentences):
            st.markdown(plain(_capital(words)))
        words, _, page = to_do.partition(IN_APP)
        named, _, cure = page.partition("; ")
        title, _, section = named.partition(IN_PAGE)
        if where := _place(title, section):
            _fact("Next:", "; ".join(filter(None, (words, cure))), where, f"{section or title} →", **state.link())
        else:
            st.markdown(f"**Next:** {plain(to_do)}")


def _place(title: str, section: str) -> str:
    """The folder of a section, or of a page where no section is named; empty where no page has that title."""
    view = next((view for view in VIEWS if view.title == title), None)
    if view is None or not section:
        return view.name if view else ""
    return next(each.where for each in view.sections if each.title == section)


def _capital(words: str) -> str:
    """A sentence with its capital, unless it begins with the name of a kernel."""
    first = words.partition(" ")[0]
    return words if re.search(r"[\d_:<]", first.rstrip(":")) else words[0].upper() + words[1:]


def _counters(run: store.Run) -> None:
    """The limit of each kernel, the longest first."""
    data = runs.load(run)
    for workload in counters.counted_workloads(data):
        case = counters.counted_cases(data, workload)[-1]
        frame = counted.best(data, workload, case, counted.times(data, workload, case)).sort_values("time_ns", ascending=False)
        st.markdown(f"## {plain(counted.answer(frame))}")
        limits = [counted.limit(row) for row in frame.to_dict("records")]
        shown = frame[["variant", "config"]].assign(
            time_ns=frame["time_ns"] / 1e6,
            limit=[counted.limit_words(row) for row in frame.to_dict("records")],
            unit=[each.name for each in limits],
            percent=[each.percent for each in limits],
        )
        columns = [name for name in _LIMITS if name != "config" or frame["config"].any()]
        widgets.table(shown, column_order=columns, column_config=_LIMITS, height=widgets.height(shown))
        if len(frame) > 1:
            pages.link("why", "Why one is faster than another →", **state.link(workload=workload))
        else:
            pages.link("why.counters", "What limits it →", **state.link(workload=workload))


def _other_sources(run: store.Run) -> Iterator[tuple[str, store.Run, frozenset[str]]]:
    """The newest suitable run of each workload of the device that the run lacks, with its workloads in the"""
    context, own = runs.context(), runs.load(run).workloads
    by_name: dict[str, tuple[store.Run, set[str]]] = {}
    for workload in run_index.workloads(context.every, context.device):
        candidates = run_index.suitable(context.every, context.device, workload) if workload not in own else ()
        if listed := next((each for each in candidates if runs.opens(each.run)), None):
            by_name.setdefault(listed.name, (listed.run, set()))[1].add(workload)
    for name, (other, workloads) in by_name.items():
        yield name, other, frozenset(workloads)


def _lines(name: str, run: store.Run, workloads: frozenset[str]) -> list[Cell]:
    """The lines of some workloads of a run, each with the run and its name in the URL."""
    lines = runs.ask(run, overview.lines, ROOT)
    return [Cell(**vars(line), run=run, run_name=name) for line in lines if line.workload in workloads]


def _table(shown: list[Cell], whose: str) -> None:
    """The lines as a table that can be sorted. A click on a line leads to its ladder.

    Args:
        whose: `own`, or `others`, whose table names the run of each line.
    """
    frame = frame_of(shown, [_dated(each.run) for each in shown])
    columns = {name: _COLUMNS[name] for name in _columns(frame) if name != "run" or whose == "others"}
    opened = rows.show(
        f"overview {whose}",
        written(frame, shown),
        columns,
        title=f"Best variant of each {'workload' if whose == 'own' else 'other workload'} and precision",
        values={name: frame[name].tolist() for name in _WORDED},
    )
    if opened is not None:
        _open(shown[opened])
    _below_table(_how(shown), frame, f"overview-{whose}", plain(run_index.RULE))
    named = [(f"{each.workload}, {word(each.precision)}", each) for each in shown]
    if ties := [f"{name}: {each.variant} with {each.tied_with}" for name, each in named if each.tied_with]:
        st.caption(plain(f"{TIED.strip()} tied: {'; '.join(ties)}"))
    for name, each in named:
        if each.doubts:
            st.caption(plain(f"⚠ {name}: {each.doubts}"))
    reasons = {(one.workload, reason): None for one in shown for reason in one.badges}
    if reasons:
        with st.expander(f"Distrusted: {len(reasons)} reasons" if len(reasons) > 1 else "Distrusted: 1 reason"):
            for workload, reason in reasons:
                st.caption(plain(f"{workload}: {reason}"))


def _open(each: Cell) -> None:
    """Go to the ladder of a line, at the case of the line."""
    axes = {f"case.{axis}": value for axis, value in each.params.items()}
    state.set_text(state.RUN, "", each.run_name)
    link = {state.RUN: each.run_name, "workload": each.workload, "case": each.last_case, **axes}
    pages.go("ladder", **link, scope=each.scope, cache=each.cache)


def _columns(frame: pd.DataFrame) -> list[str]:
    """The columns that have a value in some row."""
    empty = {name for name in ("floor", "speedup", "peer") if frame[name].isna().all()}
    empty |= {"checks"} if not frame["checks"].map(len).any() else set()
    empty |= {"sizes"} if frame["sizes"].map(len).max() < 2 else set()
    empty |= {"precision"} if frame["precision"].nunique() == 1 else set()
    return [name for name in _COLUMNS if name not in empty]


def _how(shown: list[Cell]) -> str:
    """How the figures were measured, and the case of each."""
    timings = dict.fromkeys(Timing(each.scope, each.cache) for each in shown)
    on_gpu = runs.load(shown[0].run).on_gpu
    scopes = " or ".join(timing.label(on_gpu=on_gpu) for timing in timings)
    least = min(each.n for each in shown)
    workloads = ", ".join(dict.fromkeys(each.workload for each in shown if each.cases_apart > 1))
    last = f" Of {workloads}, whose cases have different winners, the last one." if workloads else ""
    alone = ", ".join(dict.fromkeys(each.workload for each in shown if each.on))
    last += f" Of {alone}, the times on 1 GPU; the page Devices has those of several." if alone else ""
    averaged = ", ".join(dict.fromkeys(each.workload for each in shown if each.cases > 1 and each.median_ns.known))
    mean = f", the geometric mean over the cases of {averaged}" if averaged else ""
    return (
        f"{scopes}; medians with 95 % intervals, n ≥ {least}; the largest size of each workload{mean}.{last} "
        "Click a row for its ladder."
    )


def _dated(run: store.Run) -> str:
    """The label of a run, or else its date, because the row has its workload."""
    label = label_of(run) if run.info["label"] else f"{run.info['started_at']:%Y-%m-%d %H:%M}"
    return cut(label, _RUN_CHARACTERS)


_COLUMNS: Final = {
    "workload": Column("Workload", 152),
    "precision": Column("Prec.", 66, "The precision of the products.", "short"),
    "sizes": Column("By size", 64, "% of floor of the fastest rung at each size, the smallest first.", "bars"),
    "floor": Column("Of floor", 68, "At the largest size.", "figure"),
    "best": Column("Best rung", 168),
    "time": Column("Time", 116, "Median, and half of its 95 % interval.", "figure"),
    "speedup": Column("Speedup", 76, "Over the baseline of the workload.", "figure"),
    # A name that is too long is cut at its end, and never the figure before it.
    "peer": Column("Over best peer", 146, "The peer's time over that of the best rung."),
    "checks": Column("⚠", 48, "Reasons to distrust the figures of the workload: see below.", "short"),
    "run": Column("Run", 160),
}
_FINDINGS: Final = {
    "what": Column("What takes the time", 262),
    "time_ns": Column("Time", 78, kind="figure"),
    "percent": Column("Share", 70, "Of the time of the GPUs from first to last work.", "figure"),
    "runs": Column("Executions", 92, kind="figure"),
    "operator": Column("Operator or range", 130, "Around the launch of the longest execution."),
    "line": Column("Line", 190, "Of Python, where the profiler recorded it.", "path"),
}
_LIMITS: Final = {
    "variant": st.column_config.TextColumn("Kernel or variant", width=170),
    "config": st.column_config.TextColumn("Config", width=130),
    "time_ns": st.column_config.NumberColumn("Profiled, ms", width=90, help="Time under the profiler.", format="%.4g"),
    "limit": st.column_config.TextColumn("Limit", width=186),
    "unit": st.column_config.TextColumn("Busiest unit", width=96),
    "percent": st.column_config.NumberColumn(
        "Of peak, %", width=84, help="What the busiest unit reaches of its peak.", format="%.3g"
    ),
}


def frame_of(lines: Sequence[Cell], runs: Sequence[str]) -> pd.DataFrame:
    """The figures by which the table is sorted.

    Args:
        runs: name and date of the run of each line. `1 GPU` stands before them where the run has times of several too.

    Returns:
        `workload`, `precision`, `sizes` (percent of floor at each size), `floor` (percent), `best`, `time` (nanoseconds),
        `speedup`, `peer` (its time over the best rung's), `checks` (number of reasons to distrust) and `run`.
    """
    return pd.DataFrame(
        {
            "workload": line.workload,
            "precision": word(line.precision),
            "sizes": list(line.by_size),
            "floor": line.percent_of_floor.value,
            "best": f"{line.variant or NOTHING}{TIED if line.tied_with else ''}",
            "time": line.median_ns.value,
            "speedup": line.speedup.value,
            "peer": line.over_peer.value,
            "checks": f"⚠ {len(line.badges)}" if line.badges else "",
            "run": " · ".join(filter(None, (line.on, run))),
        }
        for line, run in zip(lines, runs, strict=True)
    )


def written(frame: pd.DataFrame, lines: Sequence[Cell]) -> pd.DataFrame:
    """The frame with words in place of figures: units, intervals and names."""
    return frame.assign(**dict(zip(_WORDED, map(list, zip(*map(_words, lines), strict=True)), strict=True)))


def _over_peer(best: Cell) -> str:
    """`1.90× npp`, or `tied with npp`."""
    return f"{'tied with' if best.over_peer_verdict == 'tied' else format_ratio(best.over_peer.value)} {best.peer}"


def _words(best: Cell) -> tuple[str, ...]:
    """The words of each column of `_WORDED`."""
    time = best.median_ns
    is_baseline = bool(best.variant) and best.variant == best.baseline
    speedup = "tied" if best.verdict == "tied" else format_ratio(best.speedup.value)
    return (
        format_percent(best.percent_of_floor.value),
        f"{format_duration(time.value)} {format_half_width(time.value, time.low, time.high)}" if time.known else NOTHING,
        "itself" if is_baseline else speedup,
        _over_peer(best) if best.peer else NOTHING,
    )
