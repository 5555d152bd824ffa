"""The numbers in the sentences above charts, each with its figure by definition. A sentence in other words gives none."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.recomputed import cells, counts, traces
from tests.recomputed import definitions as of
from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Written

Row = Mapping[str, Any]
Found = Iterator[tuple[str, Written]]
_VARIANT: Final = r"(?P<variant>[\w.]+)(?: · \w+)?"

_FASTEST: Final = rf"^{_VARIANT}(?:, the fastest(?: with counters)?,|, with the least time under the profiler,)?"


def _rows(shown: Shown, **wanted: Any) -> list[Row]:
    found = shown.frame
    for column, value in wanted.items():
        found = found[found[column] == value]
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def _value(rule: Any, run: Shipped, row: Row, shown: Shown) -> Written:
    found = rule(run, row, shown)
    return Written(float(getattr(found, "value", found)))


def _ladder(run: Shipped, shown: Shown) -> Found:
    for match in re.finditer(
        rf"{_VARIANT} reaches (?P<percent>[\d.]+) % of the \w+ floor(?:, (?P<over>[\d.,]+)× )?", shown.title
    ):
        for row in _rows(shown, variant=match["variant"])[:1]:
            yield match["percent"], _value(cells.CELL["percent_of_floor"], run, row, shown)
            if match["over"]:
                yield match["over"], _value(cells.LADDER["speedup"], run, row, shown)


_METRICS: Final = {"s": "median_ns", "B/s": "gb_per_s", "FLOP/s": "gflop_per_s", "×": "speedup", "%": "percent_of_floor"}


def _sizes(run: Shipped, shown: Shown) -> Found:
    size = re.search(r": at (\S+), first", shown.title)
    for match in (
        re.finditer(rf"(?: is | are |; ){_VARIANT}(?:, tied with [^,]+,)? with (?P<text>[\d.]+(?: [^\s;,]+|×))", shown.title)
        if size
        else ()
    ):
        metric = next(
            name for unit, name in sorted(_METRICS.items(), key=lambda each: -len(each[0])) if match["text"].endswith(unit)
        )
        for row in _rows(shown, variant=match["variant"], size=size[1] if size else "")[:1]:
            yield match["text"].rstrip("×%"), _value(cells.SIZES[metric], run, row, shown)
    if match := re.search(rf": at (?P<size>\S+), first is {_VARIANT}, (?P<over>[\d.,]+)× ", shown.title):
        for row in _rows(shown, variant=match["variant"], size=match["size"])[:1]:
            yield match["over"], _value(cells.SIZES["speedup"], run, row, shown)


def _roofline(run: Shipped, shown: Shown) -> Found:
    if match := re.search(rf"{_VARIANT} is nearest to its roof, at (?P<percent>[\d.]+) %", shown.title):
        yield match["percent"], _value(cells.ROOFLINE["percent_of_roof"], run, _rows(shown, variant=match["variant"])[0], shown)


def _trust(run: Shipped, shown: Shown) -> Found:
    if match := re.search(r"median ([\d.]+ \S+), half-width ([\d.]+) %", shown.title):
        row = _rows(shown, twin=0)[0]
        median, low, high = of.median_interval(run.rounds(cells.cell_of(row), row["gpus"], row["scope"], row["cache"]))
        yield match[1], Written(median)
        yield match[2], Written(50 * (high - low) / median)


def _calls(run: Shipped, shown: Shown) -> Found:
    if match := re.match(
        r"(?P<few>\d+) of (?P<all>\d+) .* makes? up (?P<percent>[\d.]+) %: .*?(?: (?P<first>[\d.]+) %)?$", shown.title
    ):
        sums = traces._durations(run, *shown.where[:2]).groupby("name")["ns"].sum().sort_values(ascending=False)
        yield match["all"], Written(len(sums))
        yield match["percent"], Written(100 * sums.iloc[: int(match["few"])].sum() / sums.sum())
        if match["first"]:
            yield match["first"], Written(100 * sums.iloc[0] / sums.sum())


def _transfers(run: Shipped, shown: Shown) -> Found:
    if match := re.search(r": ([\d.]+ \wB) at ([\d.]+ \wB/s)$", shown.title):
        row = max(_rows(shown), key=lambda each: traces._copied_ns(run, each))
        yield match[1], _value(traces.COPIES["bytes"], run, row, shown)
        yield match[2], _value(traces.COPIES["gb_per_s"], run, row, shown)
    for stage, name in (
        ("kernel", "kernel_ns"),
        ("+ launch", "with_launch_ns"),
        ("+ copies", "with_copies_ns"),
        ("end to end", "end_to_end_ns"),
    ):
        if match := re.search(
            rf", (\S+): {_VARIANT} over .*(?<![\d.])(?P<over>[\d.]+)× {re.escape(stage)}(?:,|$)", shown.title
        ):
            row = _rows(shown, variant=match["variant"], case=match[1])
            if len(row) == 1:
                yield match["over"], _value(traces._faster(name), run, row[0], shown)


def _gpus(run: Shipped, shown: Shown) -> Found:
    if match := re.search(
        rf"(?P<ranks>\d+) (?:GPUs|processes) take {_VARIANT} to (?P<over>[\d.]+)× .*?, (?P<ideal>[\d.]+) % of ideal",
        shown.title,
    ):
        row = _rows(shown, variant=match["variant"], ranks=int(match["ranks"]))[0]
        yield match["over"], _value(counts.GPUS["speedup"], run, row, shown)
        yield match["ideal"], _value(counts.GPUS["efficiency"], run, row, shown)


_OF_UNITS: Final = {
    "DRAM": "dram_percent",
    "L2": "l2_percent",
    "L1 and shared memory": "l1_percent",
    "multiprocessors": "compute_percent",
    "shared memory": "shared_percent",
    "L1": "l1_data_percent",
    "tensor cores": "tensor_elapsed_percent",
    "FMA": "fma_percent",
    "ALU": "alu_percent",
    "FP64": "fp64_percent",
    "XU": "xu_percent",
    "LSU": "lsu_percent",
    "issue slots": "issued_percent",
}


def _counters(run: Shipped, shown: Shown) -> Found:
    patterns = (
        (
            rf"{_VARIANT} has the largest gap: (?P<one>[\d.]+) % achieved of (?P<two>[\d.]+) %",
            "occupancy_percent",
            "theoretical_percent",
        ),
        (rf"{_VARIANT} moves the most DRAM bytes: (?P<one>[\d.]+)×", "dram_over_min", ""),
        (rf"{_FASTEST} is at its floor: at (?P<one>[\d.]+) % of it", "percent_of_floor", ""),
        *(
            (
                rf"{_FASTEST} (?:runs at (?P<one>[\d.]+) % of the peak of {name}[,:;]|keeps .*, {name} the most with (?P<two>[\d.]+) %)",
                column,
                column,
            )
            for name, column in _OF_UNITS.items()
        ),
        (rf"{_FASTEST} .*; (?P<one>[\d.]+) % of its time a warp", "top_stall_percent", ""),
        (rf"The longest wait: (?P<one>[\d.]+) cycles .* a warp of {_VARIANT} ", "cycles", ""),
    )
    for pattern, *columns in patterns:
        if match := re.search(pattern, shown.title):
            rows = _rows(shown, variant=match["variant"])
            row = max(rows, key=lambda each: each.get("cycles", 0.0))
            for column, group in zip(filter(None, columns), ("one", "two"), strict=False):
                if match[group] is None:
                    continue
                yield match[group], _value(counts.COUNTERS[column], run, row, shown)


_OF: Final[Mapping[str, Callable[[Shipped, Shown], Found]]] = {
    "ladder": _ladder, "sizes": _sizes, "roofline": _roofline, "trust": _trust,
    "calls": _calls, "transfers": _transfers, "gpus": _gpus, "counters": _counters,
}  # fmt: skip


def numbers(run: Shipped, shown: Shown) -> list[tuple[str, Written]]:
    """The numbers of the sentence above a chart, each with its figure by definition."""
    return list(_OF[shown.page](run, shown)) if shown.page in _OF and shown.title else []
