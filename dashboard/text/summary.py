"""A run as text: the best variant of each workload against floor, baseline and best peer; what failed; and what was distrusted."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare.overview import overview
from warpladder.dashboard.compare.versions import own_version
from warpladder.dashboard.compare.within_run import word
from warpladder.dashboard.core.cell import Estimate, name_of
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_ends,
    format_estimate,
    format_half_width,
    format_percent,
    format_ratio,
)
from warpladder.dashboard.core.processes import of_one_process
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import by_size, further
from warpladder.dashboard.text.formats import Form, json_text
from warpladder.dashboard.ui.tables import csv, markdown_table
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data import store
from warpladder.data.names import NOT_DONE, Source

_FIGURES: Final = [
    "workload", "precision", "case", "cases", "scope", "cache", "best", "best_config", "tied_with", "best_ns", "best_ns_low", "best_ns_high",
    "percent_of_floor", "baseline", "baseline_config", "speedup", "speedup_low", "speedup_high", "speedup_verdict",
    "peer", "peer_config", "over_peer", "over_peer_low", "over_peer_high", "over_peer_verdict", "on",
]  # fmt: skip
#: The most rows that a recording prints.
_MOST_ROWS: Final = 16
#: The most doubts below them, on a narrow terminal.
_MOST_DOUBTS: Final = 3
HEADINGS: Final = (
    "workload",
    "precision",
    "case",
    "best",
    "time",
    "of the floor",
    "over the baseline",
    "over the best peer",
    "distrust",
)


def figures(data: RunData, root: Path | None = None, *, every_size: bool = False) -> pd.DataFrame:
    """A row for each workload and precision, as in `compare.overview`, with `run_id` and `distrust` (text).

    `distrust` has the faster cells that were passed over, then the reasons to distrust figures of the workload. A run with energy also has
    that of the best, in the columns of `energy.energies`.

    Args:
        root, every_size: as in `compare.overview.overview`.
    """
    data = own_version(data)
    frame = overview(data, root, every_size=every_size)
    rows = frame[_FIGURES].copy()
    rows.insert(0, "run_id", str(data.info["run_id"]))
    distrust = zip(frame["doubts"], frame["badges"], strict=True)
    rows["distrust"] = ["; ".join(filter(None, (doubts, *badges))) for doubts, badges in distrust]
    return further.with_energy(rows, data)


def render(rows: pd.DataFrame, form: Form) -> str:
    """The rows of `figures` as text that ends with a line feed; without rows empty, except in JSON."""
    if form == "json":
        return json_text(rows)
    if rows.empty:
        return ""
    if form == "csv":
        return csv(rows)
    return plain_lines(markdown_table(HEADINGS, texts(rows)) if form == "markdown" else table(rows))


def texts(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `figures` as texts under `HEADINGS`."""
    return [_line(row) for row in rows.to_dict("records")]


def _line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    best_ns = Estimate.of(row, "best_ns")
    time = format_estimate(best_ns, format_duration) if best_ns.known else NOTHING
    return (
        ", ".join(filter(None, (str(row["workload"]), row["on"]))),
        word(str(row["precision"])),
        _case(row),
        _best(row, ", tied with {}"),
        time,
        format_percent(row["percent_of_floor"]),
        ITSELF if row["best"] == row["baseline"] and isinstance(row["best"], str) else _over(row, "speedup", "baseline"),
        _over(row, "over_peer", "peer", with_ends=True),
        str(row["distrust"]),
    )


def _case(row: Mapping[Any, Any]) -> str:
    """The case, or the size with the number of its cases of which the figures are geometric means."""
    if row["cases"] > 1 and pd.notna(row["best"]):
        return ", ".join(filter(None, (str(row["case"]), f"mean of {row['cases']}")))
    return str(row["case"])


def _over(row: Mapping[Any, Any], name: str, other: str, *, with_ends: bool = False) -> str:
    """A ratio, or `tied with` and the ends of the interval, and the variant that it is over."""
    verdict = row[f"{name}_verdict"]
    if verdict == "unknown":
        return "unknown"
    if pd.isna(row[name]):
        return NOTHING
    words = f"{'tied with' if verdict == 'tied' else format_ratio(row[name])} {_variant(row, other)}"
    return f"{words} ({format_ends(Estimate.of(row, name), format_ratio)})" if with_ends or verdict == "tied" else words


def _variant(row: Mapping[Any, Any], name: str) -> str:
    config = row[f"{name}_config"]
    return name_of(str(row[name]), config if isinstance(config, str) else "")


def _best(row: Mapping[Any, Any], tied: str) -> str:
    """The best variant, and a text about the next one where the two are tied."""
    if pd.isna(row["best"]):
        return NOTHING
    return _variant(row, "best") + (tied.format(row["tied_with"]) if isinstance(row["tied_with"], str) else "")


def terminal(data: RunData, width: int, *, sizes: bool, every: bool) -> str:
    """The answer as text that ends with a line feed, as a recording prints it.

    Args:
        width: columns of the terminal; 0 where the lines may have any length.
        sizes: whether it starts with the times of every variant at every size.
        every: whether no row is left out, and each size has its own.
    """
    data = own_version(data)
    rows = figures(data, every_size=every)
    lines = by_size.lines(data, width) if sizes else []
    shown = rows if every else rows.head(_MOST_ROWS)
    answered = table(shown, width, every=every)
    lines += ["", *answered] if lines and answered else answered
    if more := len(rows) - len(shown):
        lines.append(f"and {more} more rows: warpladder summary RUN --all")
    for told in (further.several_ranks, further.energy, further.limits):
        lines += ["", *more_lines] if (more_lines := told(data, every=every)) else []
    return plain_lines(lines)


def table(rows: pd.DataFrame, width: int = 0, *, every: bool = True) -> list[str]:
    """The lines of the table of `figures`, without columns that have no figure.

    A table wider than the terminal has the variants without what they are compared with, and cells of several lines.

    Args:
        width: columns of the terminal; 0 where the lines may have any length.
        every: whether all doubts stand below a narrow table.
    """
    lines = plain_table(*with_figures(HEADINGS, texts(rows)))
    if not width or max(map(len, lines), default=0) <= width:
        return lines
    records = rows.to_dict("records")
    distrust = (f"{row['workload']}: {doubt}" for row in records for doubt in str(row["distrust"]).split("; ") if doubt)
    doubts = list(dict.fromkeys(distrust))
    if not every and len(doubts) > _MOST_DOUBTS:
        doubts[_MOST_DOUBTS - 1 :] = [f"and {len(doubts) - _MOST_DOUBTS + 1} more doubts: warpladder summary RUN --all"]
    texts_of = [_narrow(row) for row in records]
    for left_out in ((), *_LEFT_OUT):
        columns = [place for place, heading in enumerate(_NARROW) if heading not in left_out]
        narrow = with_figures([_NARROW[place] for place in columns], [[row[place] for place in columns] for row in texts_of])
        if max(map(len, plain_table(*narrow))) <= width:
            break
    return [*plain_table(*narrow, width), *doubts]


_NARROW: Final = ("workload", "case", "best", "time", "", "floor", "baseline", "best peer")
#: Headings of the columns that a terminal has no room for, the first choice first.
_LEFT_OUT: Final = (("",), ("", "floor"), ("", "floor", "case"))


def _narrow(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The texts under `_NARROW`."""
    best_ns = Estimate.of(row, "best_ns")
    workload = str(row["workload"]) if row["precision"] == "fp32" else f"{row['workload']} {word(str(row['precision']))}"
    ratios = [
        {"unknown": "unknown", "tied": "tied"}.get(row[f"{name}_verdict"], format_ratio(row[name]))
        for name in ("speedup", "over_peer")
    ]
    if isinstance(row["best"], str) and (row["best"], row["best_config"]) == (row["baseline"], row["baseline_config"]):
        ratios[0] = "itself"
    width = format_half_width(best_ns.value, best_ns.low, best_ns.high) if best_ns.known else ""
    return (
        workload,
        _case(row),
        _best(row, " (tied)"),
        format_duration(best_ns.value),
        width,
        format_percent(row["percent_of_floor"]),
        *ratios,
    )


def with_figures(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that have no figure in any row."""
    columns = [place for place in range(len(headings)) if any(row[place] not in ("", NOTHING) for row in rows)]
    return [headings[place] for place in columns], [[row[place] for place in columns] for row in rows]


#: Roles of the variants that have to be right unasked. A caught specimen is right, and a peer may lack what it needs.
_OWN: Final = ("rung", "host")
#: The order of the severities of findings.
_SEVERITIES: Final = ("error", "warning", "info")
_LEAST_SPENT_NS: Final = 50_000_000
#: How many reasons for skipped cells are named.
_MOST_REASONS: Final = 3


def findings(
    run: store.Run, *, every: bool = False, told: Container[tuple[Any, Any]] = (), counts: bool = True
) -> Iterator[str]:
    """The statuses and diagnostics of a run, line by line.

    Findings of one kind take one line, with their count and the first of them. So do all specimens, which are variants that the checks
    have to catch.

    Args:
        every: whether each finding has a line of its own, those about specimens too; then the lines of `spent` follow, as they do where
            the recording was interrupted.
        told: workload and variant of failures that have a line elsewhere.
        counts: whether the numbers of cells, and what else the machine did, have a line.
    """
    variants = run.table("variants").to_dict("records")
    specimens = {(row["workload"], row["variant"]) for row in variants if row["role"] == "specimen"}
    results = run.table("results").to_dict("records")
    told_of = (Source.NOT_REACHED, *((Source.FEWER_PROCESSES, Source.LOAD) if counts else ()))
    every_row = run.table("diagnostics")
    diagnostics = every_row[(every_row["severity"] != "info") | every_row["source"].isin(told_of)].to_dict("records")
    aside = set() if every else specimens
    is_interrupted = any(row["source"] == Source.INTERRUPTED for row in diagnostics)
    if counts and (results or run.info["kind"] == "recording"):
        yield _counts([row for row in results if _key(row) not in aside])
        yield from _of_one_process(run, every_row)
    if every:
        failed = ((row, f"{_cell(row)}: {row['status']}: {row['detail']}") for row in results)
        yield from (line for row, line in failed if row["status"] not in ("ok", "skipped"))
        yield from map(_finding, diagnostics)
        yield from spent(run)
        return
    yield from spent(run) if is_interrupted else ()
    if caught := _caught(results, diagnostics, specimens):
        yield caught
    untold = [row for row in results if _key(row) not in told]
    lines = [*_failures(untold, specimens), *_kinds([row for row in diagnostics if _key(row) not in specimens])]
    yield from (line for line, _ in lines)
    if any(shortened for _, shortened in lines):
        yield "each of them: warpladder summary RUN --all"


def spent(run: store.Run) -> list[str]:
    """Where the time of a recording went, the longest phase first. Nothing where the run does not know it."""
    rows = run.table("phases")
    if rows.empty:
        return []
    names = (rows["phase"] + " " + rows["scope"] + " " + rows["cache"]).str.strip().str.replace("_", " ")
    sums = rows["duration_ns"].groupby(names, sort=False).sum().sort_values(ascending=False)
    whole = sums.sum()
    lines = [
        [str(name), f"{ns / 1e9:.1f} s", format_percent(100 * ns / whole)] for name, ns in sums.items() if ns >= _LEAST_SPENT_NS
    ]
    return [f"where the {whole / 1e9:.1f} s of the recording went:", *plain_table(["phase", "time", "share"], lines)]


def _key(row: Mapping[Any, Any]) -> tuple[Any, Any]:
    return row["workload"], row["variant"]


def _counts(results: Sequence[Mapping[Any, Any]]) -> str:
    """`9 ok, 98 skipped (94: needs an NVIDIA GPU; 4: …)`, the right ones first."""
    counts = Counter(row["status"] for row in results)
    order = sorted(counts, key=lambda status: (status != "ok", status == "skipped", -counts[status]))
    reasons = Counter(row["detail"] for row in results if row["status"] == "skipped").most_common()
    texts = [f"{count}: {reason}" if len(reasons) > 1 else str(reason) for reason, count in reasons[:_MOST_REASONS]]
    texts += [f"{len(reasons) - _MOST_REASONS} more reasons on Trust"] if len(reasons) > _MOST_REASONS else []
    counted = ", ".join(f"{counts[status]} {status}" for status in order)
    return f"{counted} ({'; '.join(texts)})" if texts else counted


def _of_one_process(run: store.Run, diagnostics: pd.DataFrame) -> Iterator[str]:
    """The remark about samples of one process, unless a finding has it."""
    if "samples" not in run.tables or (diagnostics["source"] == Source.FEWER_PROCESSES).any():
        return
    if remark := of_one_process(run.info, run.arrow("samples", ["process"])["process"]):
        yield remark


def _caught(results: Sequence[Mapping[Any, Any]], findings: Sequence[Mapping[Any, Any]], specimens: Container[Any]) -> str:
    """How many cells of specimens were caught; empty where none was measured."""
    measured = [row for row in results if _key(row) in specimens and row["status"] != "skipped"]
    doubted = [row for row in findings if row["source"] in NOT_DONE and _key(row) in specimens]
    caught = [row for row in measured if row["status"] != "ok" or any(_is_about(each, row) for each in doubted)]
    if not measured:
        return ""
    names = ", ".join(dict.fromkeys(str(row["variant"]) for row in measured))
    told = f"{len(caught)} caught: {names}"
    if missed := [_cell(row) for row in measured if row not in caught]:
        more = f", and {len(missed) - _MOST_REASONS} more" if len(missed) > _MOST_REASONS else ""
        told = f"{len(caught)} of {len(measured)} cells caught; not caught, because a case is too small to tell or a check fails: {', '.join(missed[:_MOST_REASONS])}{more}"
    return f"specimens (known pitfalls, which the checks have to catch): {told}"


def _failures(results: Sequence[Mapping[Any, Any]], specimens: Container[Any]) -> Iterator[tuple[str, bool]]:
    """A line for each status of each variant that failed, and whether it stands for several cells."""
    failed = [row for row in results if row["status"] not in ("ok", "skipped") and _key(row) not in specimens]
    for first, *others in _grouped(failed, lambda row: (*_key(row), row["status"])).values():
        if others:
            yield (
                f"{first['workload']}/{first['variant']}: {first['status']} in {len(others) + 1} cells, the first {_cell(first)}: {first['detail']}",
                True,
            )
        else:
            yield f"{_cell(first)}: {first['status']}: {first['detail']}", False


def _grouped(rows: Iterable[Mapping[Any, Any]], key: Callable[[Mapping[Any, Any]], Any]) -> dict[Any, list[Mapping[Any, Any]]]:
    groups: dict[Any, list[Mapping[Any, Any]]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _kinds(findings: Sequence[Mapping[Any, Any]]) -> Iterator[tuple[str, bool]]:
    """A line for each kind of finding, and whether it stands for several. What the time limit left out is told in full."""
    left_out = (Source.NOT_REACHED, Source.FEWER_PROCESSES)
    kinds = _grouped(findings, lambda row: (row["severity"], row["source"], row["text"] if row["source"] in left_out else ""))
    for (severity, source, _), rows in sorted(kinds.items(), key=lambda kind: _SEVERITIES.index(kind[0][0])):
        if len(rows) == 1:
            yield (rows[0]["text"] if source in left_out else _finding(rows[0])), False
        else:
            yield f"{severity}: {source} in {len(rows)} places, the first {_about(rows[0])}{rows[0]['text']}", True


def _finding(row: Mapping[Any, Any]) -> str:
    return f"{row['severity']}: {_about(row)}{row['source']}: {row['text']}"


def _about(row: Mapping[Any, Any]) -> str:
    """`conv2d/v01_copy/n=512 ` where a row of `diagnostics` is about a cell; empty where it is about the run."""
    about = "/".join(row[name] for name in ("workload", "variant", "case") if isinstance(row[name], str))
    return f"{about} " if about else ""


def _is_about(diagnostic: Mapping[Any, Any], row: Mapping[Any, Any]) -> bool:
    """Whether a diagnostic is about a cell. A null stands for any value, in a diagnostic that names a variant."""
    named = [column for column in ("workload", "variant", "config", "case") if isinstance(diagnostic[column], str)]
    return "variant" in named and all(diagnostic[column] == row[column] for column in named)


def _cell(row: Mapping[Any, Any]) -> str:
    """`conv2d/v01_copy[block=16]/n=512`."""
    return f"{row['workload']}/{name_of(row['variant'], row['config'])}/{row['case']}"


def not_right(run: store.Run, counted_variants: Collection[str] = (), beside: str = "") -> str:
    """A line that names the first cell that is not right, and how many there are; empty where all are right.

    Rungs, host variants and named variants count, but no specimens. What was skipped is not wrong. A cell whose work was not done, or not
    waited for, is not right.

    Args:
        counted_variants: variants that the user named.
        beside: the end of the names of variants that do not count, such as those of another version.
    """
    roles = {_key(row): row["role"] for row in run.table("variants").to_dict("records")}
    counted = [
        row
        for row in run.table("results").to_dict("records")
        if not (beside and row["variant"].endswith(beside))
        and ((role := roles[_key(row)]) in _OWN or (role != "specimen" and row["variant"] in counted_variants))
    ]
    not_done = [row for row in run.records("diagnostics") if row["source"] in NOT_DONE and row["severity"] != "info"]
    wrong = [(_cell(row), f"{row['status']}: {row['detail']}") for row in counted if row["status"] not in ("ok", "skipped")]
    wrong += [
        (_cell(row), f"{diagnostic['source']}: {diagnostic['text']}")
        for row in counted
        if (diagnostic := next((each for each in not_done if _is_about(each, row)), None))
    ]
    if not wrong:
        return ""
    (first, why), share = wrong[0], f"{len(wrong)} of {len(counted)} cells, {'first ' if len(wrong) > 1 else ''}"
    return f"not right: {share}{first}: {why}"
