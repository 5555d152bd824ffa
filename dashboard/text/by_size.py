"""The time of every variant at every size as text: what a recording of a file prints."""

from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd
from rich.cells import cell_len

from warpladder.dashboard.compare.winners import best_per_case
from warpladder.dashboard.compare.within_run import UNDECIDED, CaseTimes, compared, with_precision
from warpladder.dashboard.core.cell import ASIDE, Cell, Timing, name_on, records
from warpladder.dashboard.core.cells import best_config, cells, charted_cases, doubt, in_timing, is_trusted, timings
from warpladder.dashboard.core.numbers import NOTHING, format_duration
from warpladder.dashboard.core.run_data import RunData

_FASTEST, _TIED, _DOUBTED = "*", "=", "?"
_LEGEND: Final = {_FASTEST: "the fastest", _TIED: "tied with it", _DOUBTED: "not compared: distrusted, or too few samples"}
#: What the legend adds where winners of several precisions are marked; a rung in TF32 that is slower than a library in fp32 is no winner.
_OF_PRECISION: Final = " of its precision, also against libraries of a higher one"

#: Spaces between two columns.
_GAP: Final = 2
#: A variant, and the number of its GPUs or processes.
_VariantOn = tuple[str, int]
#: The time of each variant in each case with its mark, or how it failed; and the config of the time.
_Texts = Mapping[tuple[_VariantOn, str], tuple[str, str]]


def lines(data: RunData, width: int = 0) -> list[str]:
    """A table for each workload, in its first timing: the time of each variant by its fastest config, with the fastest marked.

    The cases are the rows, or the variants if there are more of them. Specimens are left out, and so are variants and cases without a
    verdict. A config that differs from size to size is left out where the terminal is too narrow.

    Args:
        width: columns of the terminal, to which a wider table is divided; 0 where the lines may have any length.
    """
    result: list[str] = []
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            result += [*([""] if result else []), *_of_workload(data, workload, timing, width)]
    return result


def _of_workload(data: RunData, workload: str, timing: Timing, width: int) -> list[str]:
    every = cells(data)
    every = every[(every["workload"] == workload) & (every["role"] != "specimen")]
    winners = best_per_case(data, workload, timing)
    texts, legend = _texts(data, every, timing, winners), _legend(winners)
    names_of_cases = data.cases.loc[data.cases["workload"] == workload, "case"]
    by_size = dict.fromkeys([*charted_cases(data, workload)["case"], *names_of_cases])  # then those without a size
    cases = [case for case in by_size if any(at == case for _, at in texts)]
    place = {name: number for number, name in enumerate(every["variant"].drop_duplicates())}
    variants = sorted({variant for variant, _ in texts}, key=lambda variant: (place[variant[0]], variant[1]))
    shared, sizes = _labels(cases)
    names = _names(variants, texts, every)
    by_variant = len(variants) > len(cases)
    headings = ["", *(f"{label}  " for label in (sizes if by_variant else names.values()))]

    def rows_with(*, configs: bool) -> list[list[str]]:
        grid = [[_shown(texts.get((each, case)), names[each], configs=configs) for case in cases] for each in variants]
        labels, down = (names.values(), grid) if by_variant else (sizes, zip(*grid, strict=True))
        return [[label, *cells] for label, cells in zip(labels, down, strict=True)]

    rows = rows_with(configs=True)
    if width and sum(_widths(headings, rows)) > width + _GAP:
        rows = rows_with(configs=False)
    title = ", ".join([f"{workload}: median {timing.label(on_gpu=bool((every['kind'] != 'host').any()))}", *shared])
    shown = _divided(headings, rows, width)
    marks = [f"{mark} {words}" for mark, words in legend.items() if any(f" {mark}" in text for row in rows for text in row)]
    return [title, *shown, *(["   ".join(marks)] if marks else [])]


def _legend(winners: pd.DataFrame) -> dict[str, str]:
    """The words of each mark.

    Args:
        winners: of `best_per_case`.
    """
    apart = set(winners["compared_in"])
    return _LEGEND | {_FASTEST: _LEGEND[_FASTEST] + _OF_PRECISION * (len(apart) > 1)}


def _texts(data: RunData, every: pd.DataFrame, timing: Timing, winners: pd.DataFrame) -> _Texts:
    """The text of each variant in each case in which its status is not `skipped`."""
    workload = str(every["workload"].iloc[0])
    times = best_config(in_timing(every, workload, timing))
    texts: dict[tuple[_VariantOn, str], tuple[str, str]] = {}
    marks = _marks(data, workload, timing, winners)
    for cell in records(times):
        mark = _DOUBTED if doubt(cell.n, cell.flags) else marks.get((_variant_on(cell), cell.case), " ")
        texts[_variant_on(cell), cell.case] = f"{format_duration(cell.median_ns.value)} {mark}", cell.config
    timed = {(variant, case) for (variant, _), case in texts}
    for cell in records(every[~every["status"].isin(["ok", "skipped"])]):
        if (cell.variant, cell.case) not in timed:
            texts.setdefault((_variant_on(cell), cell.case), (f"{cell.status}  ", ""))
    return texts


def _variant_on(cell: Cell) -> _VariantOn:
    return cell.variant, max(cell.gpus, 1)


def _marks(data: RunData, workload: str, timing: Timing, winners: pd.DataFrame) -> dict[tuple[_VariantOn, str], str]:
    """The mark of the fastest of each case and precision, and of those that it is not known to be faster than.

    A peer is marked where its own precision is compared, and not where it is beside another one that it replaces.
    """
    every = best_config(in_timing(cells(data), workload, timing))
    every = every[is_trusted(every) & ~every["role"].isin(ASIDE)].sort_values("median_ns", kind="stable")
    apart = set(winners["compared_in"])
    marks: dict[tuple[_VariantOn, str], str] = {}
    for first in records(winners):
        times = CaseTimes.of(data, workload, first.case, timing)
        rivals = compared(every[every["case"] == first.case], first.compared_in)
        for cell in records(rivals[(rivals["precision"] == first.compared_in) | ~rivals["precision"].isin(apart)]):
            if _variant_on(cell) == _variant_on(first):
                marks[_variant_on(cell), cell.case] = _FASTEST
            elif times.judge(first.entry, cell.entry).verdict in UNDECIDED:
                marks.setdefault((_variant_on(cell), cell.case), _TIED)
    return marks


def _labels(cases: Sequence[str]) -> tuple[list[str], list[str]]:
    """The axes that all cases share, and what is left of the name of each case."""
    parts = [case.split(",") for case in cases]
    shared = [part for part in parts[0] if all(part in others for others in parts)] if len(cases) > 1 else []
    return shared, [",".join(part for part in own if part not in shared) for own in parts]


def _names(variants: Sequence[_VariantOn], texts: _Texts, every: pd.DataFrame) -> dict[_VariantOn, str]:
    """The name of each variant, with its precision where there are several, and with its config where it is the same in all cases."""
    of_variants = every.drop_duplicates("variant").set_index("variant")
    precisions = of_variants["precision"]
    several = precisions[[variant for variant, _ in variants]].nunique() > 1
    names = {}
    for key in variants:
        configs = {config for (each, _), (_, config) in texts.items() if each == key and config}
        config, on_host = next(iter(configs)) if len(configs) == 1 else "", of_variants.loc[key[0], "kind"] == "host"
        name = name_on(key[0], config, key[1], on_host=bool(on_host))
        precision = precisions[key[0]]
        names[key] = with_precision(name, precision) if several and precision != "fp32" else name
    return names


def _shown(cell: tuple[str, str] | None, name: str, *, configs: bool) -> str:
    """The text of a variant in a case, with the config where it is not the same in all cases."""
    text, config = cell or (f"{NOTHING}  ", "")
    return f"{text.rstrip()} [{config}]" if configs and config and f"[{config}]" not in name else text


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The characters of each column, with the gap after it."""
    return [max(map(cell_len, column)) + _GAP for column in zip(headings, *rows, strict=True)]


def _divided(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The lines of a table, whose columns are divided among several tables where the terminal is too narrow."""
    widths = _widths(headings, rows)
    blocks: list[list[int]] = [[]]
    for place in range(1, len(headings)):
        if width and blocks[-1] and widths[0] + sum(widths[each] for each in [*blocks[-1], place]) > width + _GAP:
            blocks.append([])
        blocks[-1].append(place)
    lines = []
    for block in blocks:
        for row in (headings, *rows):
            first = row[0] + " " * (widths[0] - _GAP - cell_len(row[0]))
            # The others flush right, with their marks below one another.
            lines.append("".join([first, *(" " * (widths[each] - cell_len(row[each])) + row[each] for each in block)]).rstrip())
    return lines
