"""Which ranges are measurements of a cell: ours by their domain, anybody's by `--variant-from nvtx:REGEX`."""

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors.measure import result_row
from collectors.nvtx_ranges import DOMAIN
from collectors.plan import Cell
from collectors.trace.attribution import NONE, Int64s, parents
from collectors.trace.nvtx_table import Ranges
from collectors.trace.report import ReportError

COLUMNS: Final = ("workload", "variant", "config", "case", "scope", "round")
_GROUPS: Final = {"workload", "variant", "config", "case"}
_ROUND: Final = re.compile(r"(?P<scope>[^.#]+(?::[^.#]+)?)\.(?:cold|hot)#(?P<round>\d{1,9})")
_VARIANT: Final = re.compile(r"(?P<variant>[^\[]+)(?:\[(?P<config>.*)\])?")


@dataclass(frozen=True)
class Naming:
    """`--variant-from`: ranges whose text the pattern finds are measurements, named by its groups."""

    pattern: re.Pattern[str]

    @staticmethod
    def parse(text: str) -> "Naming":
        """From `nvtx:REGEX` with a group `variant`, and perhaps `workload`, `config` and `case`.

        Raises:
            ReportError: it is not of that form.
        """
        example = "write for example --variant-from 'nvtx:(?P<variant>gemm_\\w+) n=(?P<case>\\d+)'"
        source, _, expression = text.partition(":")
        if source != "nvtx" or not expression:
            raise ReportError(f"--variant-from {text}: has to start with nvtx: and go on with a regular expression; {example}")
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise ReportError(f"--variant-from {text}: not a regular expression ({error}); {example}") from error
        groups = set(pattern.groupindex)
        if "variant" not in groups or groups - _GROUPS:
            raise ReportError(
                f"--variant-from {text}: has the named groups {sorted(groups) or 'none'}; variant has to be one, "
                f"workload, config and case may be; {example}"
            )
        return Naming(pattern)


class Cells:
    """Cell columns of every range. An index into `names` per range and column; `NONE` where null."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._codes = {name: np.full(len(ranges), NONE) for name in COLUMNS[:-1]}
        self._names: dict[str, list[str]] = {name: [] for name in self._codes}
        self._round = np.full(len(ranges), NONE)
        self._matched = np.empty(0, np.int64)
        self._fill_ours()

    def columns(self) -> dict[str, pa.Array]:
        """Columns of table `ranges`."""
        named: dict[str, pa.Array] = {
            name: pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self._names[name], pa.string()))
            for name, codes in self._codes.items()
        }
        return {**named, "round": pa.array(self._round.astype(np.int32), mask=self._round < 0)}

    def _fill_ours(self) -> None:
        ranges = self._ranges
        if DOMAIN not in ranges.domains:
            return
        ours = np.flatnonzero(np.array([name == DOMAIN for name in ranges.domains])[ranges.domain])
        above = parents(ranges.thread[ours], ranges.end[ours])
        line = np.stack([np.arange(len(ours))] + [np.full(len(ours), NONE)] * 3)  # the range itself and what encloses it
        for step in range(1, 4):
            line[step] = np.where(line[step - 1] >= 0, above[line[step - 1]], NONE)
        depth = (line >= 0).sum(axis=0) - 1
        for column, level in (("workload", 0), ("case", 1), ("variant", 2), ("config", 2), ("scope", 3), ("round", 3)):
            inside = np.flatnonzero(depth >= level)
            holder = line[depth[inside] - level, inside]
            self._fill(column, ours[inside], ranges.text[ours[holder]])

    def _fill(self, column: str, at: Int64s, text: Int64s) -> None:
        used, place = np.unique(text, return_inverse=True)
        read = [_read(column, self._ranges.texts[index]) for index in used.tolist()]
        if column == "round":
            self._round[at] = np.array([NONE if value is None else int(value) for value in read], np.int64)[place]
        else:
            self._set(column, at, read, place)

    def _set(self, column: str, at: Int64s, values: list[str | None], place: Int64s) -> None:
        names = self._names[column]
        numbers = {name: index for index, name in enumerate(names)}
        codes = [NONE if value is None else numbers.setdefault(value, len(numbers)) for value in values]
        names[:] = list(numbers)
        self._codes[column][at] = np.array(codes, np.int64)[place]

    def name(self, naming: Naming, default_workload: str) -> int:
        """Fill the cells of the ranges that the pattern finds.

        Returns:
            how many ranges it found.
        """
        found = [naming.pattern.search(text) for text in self._ranges.texts]
        hit = np.array([match is not None and bool(match["variant"]) for match in found], bool)
        self._matched = np.flatnonzero(hit[self._ranges.text]) if len(found) else np.empty(0, np.int64)
        used, place = np.unique(self._ranges.text[self._matched], return_inverse=True)
        defaults = {"workload": default_workload, "variant": "", "config": "", "case": "all"}
        for column, default in defaults.items():
            values = []
            for index in used.tolist():
                match = found[index]
                assert match is not None
                values.append(match.groupdict().get(column) or default)
            self._set(column, self._matched, values, place)
        return len(self._matched)

    def ended_before_their_work(self, gpu_end: pa.Array) -> int:
        """How many named ranges end on the host before the last work that they launched, for want of a synchronisation.

        Args:
            gpu_end: column gpu_end_ns of all ranges.
        """
        at = self._matched[self._ranges.closed[self._matched]]
        return int(pc.sum(pc.greater(gpu_end.take(pa.array(at)), pa.array(self._ranges.end[at]))).as_py() or 0)

    def tables(self, gpu_busy: pa.Array, device_count: int) -> dict[str, pa.Table | list[dict[str, Any]]]:
        """Tables variants, cases, results and samples of the named ranges: scope `device` is the busy time, and
        `operation` the duration of the range on the host.

        Args:
            gpu_busy: column gpu_busy_ns of all ranges.
            device_count: GPUs that the report's program used.
        """
        at = self._matched[self._ranges.closed[self._matched]]
        at = at[np.argsort(self._ranges.start[at], kind="stable")]
        columns = ("workload", "variant", "config", "case")
        cells, place = np.unique(np.stack([self._codes[name][at] for name in columns]), axis=1, return_inverse=True)
        place = place.reshape(-1)
        in_cell = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=cells.shape[1])
        round_number = np.empty(len(at), np.int64)
        round_number[in_cell] = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        busy = np.asarray(gpu_busy.fill_null(-1).to_numpy(zero_copy_only=False))[at]
        durations = {"device": busy, "operation": (self._ranges.end - self._ranges.start)[at]}
        samples = [
            self._samples(at[kept], scope, duration[kept], round_number[kept], device_count)
            for scope, duration in durations.items()
            for kept in [np.flatnonzero(duration >= 0)]
        ]
        named = [[self._names[name][code] for name, code in zip(columns, cell, strict=True)] for cell in cells.T.tolist()]
        return {
            "variants": variant_rows([(workload, variant) for workload, variant, _, _ in named]),
            "cases": case_rows([(workload, case) for workload, _, _, case in named]),
            "results": [result_row(Cell(*cell), "ok", "imported; its output was not verified here") for cell in named],
            "samples": pa.concat_tables(samples),
        }

    def _samples(self, at: Int64s, scope: str, duration: Int64s, round_number: Int64s, device_count: int) -> pa.Table:
        count = len(at)
        cell = {name: self.columns()[name].take(pa.array(at)) for name in ("workload", "variant", "config", "case")}
        same = {"gpus": device_count, "rank": 0, "cache": "hot", "scope": scope, "twin": 0, "position": 0}
        unknown = ("sm_clock_mhz", "temperature_c", "power_w", "throttle_reasons")
        return pa.table(
            {
                **cell,
                **{name: pa.repeat(value, count) for name, value in same.items()},
                "round": round_number,
                "duration_ns": duration,
                **{name: pa.nulls(count) for name in unknown},
            }
        )


def variant_rows(named: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Rows of `variants`; what a report does not know is empty, and the ladder's order is that of the names."""
    unknown = ("idea", "bottleneck", "next", "source_path", "source_text", "source_sha256", "min_compute_capability")
    rows, rungs = [], dict[str, int]()
    for workload, variant in sorted(set(named)):
        rungs[workload] = rungs.get(workload, -1) + 1
        rows.append(
            {
                "workload": workload,
                "variant": variant,
                "rung": rungs[workload],
                "kind": "cuda",
                "role": "rung",
                "precision": "fp32",
                "title": variant,
                "source": "NVTX ranges of an imported report",
                **dict.fromkeys(unknown, ""),
                **dict.fromkeys(("registers", "shared_bytes", "spill_bytes")),
            }
        )
    return rows


def case_rows(named: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Rows of `cases`, in the order of the numbers in their names; their work is not known and counted as 0."""

    def by_numbers(cell: tuple[str, str]) -> tuple[str, list[int], str]:
        return cell[0], [int(digits[:18]) for digits in re.findall(r"\d+", cell[1])], cell[1]

    work = dict.fromkeys(("flops", "min_bytes", "h2d_bytes", "d2h_bytes"), 0)
    rows, ranks = [], dict[str, int]()
    for workload, case in sorted(set(named), key=by_numbers):
        ranks[workload] = ranks.get(workload, -1) + 1
        rows.append({"workload": workload, "case": case, "size_rank": ranks[workload], "params": "{}", **work})
    return rows


def _read(column: str, text: str) -> str | None:
    """A column's value in the text of one of our ranges."""
    if column in ("workload", "case"):
        return text
    match = (_VARIANT if column in ("variant", "config") else _ROUND).fullmatch(text)
    if match is None:
        return None
    return match[column] or ""
