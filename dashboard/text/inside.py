"""What experiments inside kernels showed, as text: a table a cell, and a sentence about its cause."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from warpladder.dashboard.core.inside import Inside, Row, few, sentence
from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.data.names import BROKE, Experiment

#: Stages and delays that are shown of a kernel, the largest first.
_MOST: Final = 6
#: The PTX that is assembled here may make other machine code than the compiler: from this difference of the times on, that is told.
_FAR: Final = 0.03
_CELL: Final = ("workload", "variant", "config", "case")


def lines(rows: Sequence[Row]) -> str:
    """The text about every cell."""
    return "".join(f"{line}\n" for cell in _cells(rows) for line in _of_cell(cell))


def facts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The findings of every cell, for programs, the one that explains the most first."""
    return [
        {
            **{name: cell[0][name] for name in _CELL},
            "cause": str(each.cause),
            "share": each.share,
            "without_ns": list(each.without_ns) if each.without_ns else None,
            "lines": each.lines,
            "detail": each.detail,
            "advice": each.cause.advice,
        }
        for cell in _cells(rows)
        for each in Inside(cell).findings()
    ]


def _cells(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for _, cell in groupby(rows, lambda row: [row[name] for name in _CELL]):
        yield list(cell)


def _of_cell(rows: Sequence[Row]) -> Iterator[str]:
    first, inside = rows[0], Inside(rows)
    config = f"[{first['config']}]" if first["config"] else ""
    yield f"{first['workload']} {first['case']}  {first['variant']}{config}  {inside.about}"
    if not inside.was_altered:
        yield "  no experiment could be made: `warpladder summary RUN` has the reason"
        return
    yield f"  {sentence(inside)}"
    yield ""
    yield f"  {'what is left out':<44} {'time':>9}   95 % interval        lines"
    yield f"  {'nothing':<44} {format_duration(inside.original_ns):>9}   {_ends(inside.of(Experiment.TIME, 'original')[0])}"
    if (longer := inside.assembled_over_original) is not None and abs(longer - 1) > _FAR:
        yield f"  {'nothing, the PTX assembled as the rest':<44} {longer - 1:>+8.0%}   the rest is compared with it"
    known = [row for row in inside.of(Experiment.WITHOUT) if row["what"] not in inside.broken]
    for row in sorted(known, key=lambda row: float(row["value"])):
        note = f"  ({row['note']})" if row["note"] else ""
        yield f"  {row['what']:<44} {format_duration(row['value']):>9}   {_ends(row):<20} {few(row['lines'])}{note}".rstrip()
    for name in inside.broken:
        yield f"  {name:<44} {NOTHING:>9}   {BROKE}"
    yield from _of_marks(inside)


def _of_marks(inside: Inside) -> Iterator[str]:
    if delays := inside.delays():
        yield ""
        yield "  1 us less at a mark saves"
        for row in delays[:_MOST]:
            yield f"    {row['what']:<42} {row['value']:>6.2f} us   {row['low']:.2f} to {row['high']:.2f}"
    if stages := [row for row in inside.stages() if row["value"] >= 0.01]:
        yield ""
        yield "  a warp spends its time"
        for row in stages[:_MOST]:
            yield f"    {row['what']:<42} {row['value']:>6.1%}   {row['note']}"
    if probes := inside.of(Experiment.TIME, "probes"):
        longer = probes[0]["value"] / inside.original_ns - 1
        refused = "; too much, so its stages are left out" if not inside.of(Experiment.STAGE) else ""
        yield f"  with the probes, the kernel takes {longer:+.1%}{refused}"


def _ends(row: Mapping[str, Any]) -> str:
    return f"{format_duration(row['low'])} to {format_duration(row['high'])}"
