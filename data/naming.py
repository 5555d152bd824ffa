"""NVTX ranges taken as measurements: which text stands for which variant of which case, and the rows that follow."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warpladder.data import schema
from warpladder.data.arrays import Int64s
from warpladder.errors import Error

#: Scopes of the samples that a range gives, in the order of their numbers in `samples`.
SCOPES: Final = ("device", "operation")
#: Columns of `samples` with the same value for every sample; columns whose values a range does not give.
SAME: Final = {"rank": 0, "cache": "hot", "twin": 0, "process": 0, "position": 0}
UNKNOWN: Final = ("sm_clock_mhz", "held_clock_mhz", "temperature_c", "power_w", "throttle_reasons")
#: Diagnostics of the source `variant-from`. `{}` is the number of ranges.
RANGES_AS_SAMPLES: Final = (
    "{} NVTX ranges are taken as samples: scope device is the time in which work launched inside the range, or attributed to it by time, ran on the device, "
    "operation the range's own duration on the host. Results were not verified, precision is not known and stands as fp32, caches "
    "are as the program left them and stand as hot, and no floor is known"
)
ENDED_EARLY: Final = (
    "{} of the named ranges end before the work that they launched: their operation time is that of launching; synchronise "
    "inside the range"
)
#: The reason why a cell is not ranked. `{}` is a share in percent.
NOT_RANKED: Final = (
    "not ranked: {:.0f} % of the device time launched while its ranges were open is attributed to no range, as threads without a range "
    "launched it; open a range on these threads"
)
MOST_CHARACTERS: Final = 1_000
_GROUPS: Final = ("workload", "variant", "config", "case")
#: What stands before a group without a name: an escape, a set of characters, or nothing.
_UNNAMED: Final = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\((?!\?)", re.DOTALL)
_SOURCE: Final = "nvtx:"
_EXAMPLE: Final = "write for example --variant-from 'nvtx:(?P<variant>gemm_\\w+) n=(?P<case>\\d+)'"


class NamingError(Error):
    """A pattern that cannot be used. Its message says what is wrong and what to do, in one line."""


class CellName(NamedTuple):
    """The cell that a text names."""

    workload: str
    variant: str
    config: str
    case: str


@dataclass(frozen=True)
class Naming:
    """Ranges whose text the expression finds are measurements, named by its groups."""

    expression: str

    @staticmethod
    def parse(text: str) -> "Naming":
        """From `nvtx:REGEX` with a group `variant`, and perhaps `workload`, `config` and `case`. Raises NamingError: it
        is not of that form, or longer than `MOST_CHARACTERS`."""
        where = f"--variant-from {text if len(text) <= MOST_CHARACTERS else text[:40] + '…'}"
        expression = text.removeprefix(_SOURCE)
        if not text.startswith(_SOURCE) or not expression:
            raise NamingError(f"{where}: has to start with nvtx: and go on with a regular expression; {_EXAMPLE}")
        if len(expression) > MOST_CHARACTERS:
            raise NamingError(f"{where}: has {len(expression)} characters, and may have {MOST_CHARACTERS}; {_EXAMPLE}")
        try:
            groups = set(re.compile(expression).groupindex)
        except (re.error, RecursionError, OverflowError) as error:
            raise NamingError(f"{where}: not a regular expression ({error}); {_EXAMPLE}") from error
        if "variant" not in groups or groups - set(_GROUPS):
            raise NamingError(
                f"{where}: has the named groups {sorted(groups) or 'none'}; variant has to be one, "
                f"workload, config and case may be; {_EXAMPLE}"
            )
        try:
            find(expression, [""])
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            raise NamingError(
                f"{where}: not a regular expression of RE2, which has no look-ahead ({reason}); {_EXAMPLE}"
            ) from error
        return Naming(expression)

    def name(self, texts: Sequence[str], default_workload: str) -> list[CellName | None]:
        """The cell that each text names; None if the expression does not match, or its group `variant` is empty.

        Args:
            texts: distinct texts of ranges.
            default_workload: the workload for texts in which the expression finds none.
        """
        defaults = {"workload": default_workload, "config": "", "case": "all"}
        return [
            CellName(**{**defaults, **{name: value for name, value in groups.items() if value}})
            if groups and groups["variant"]
            else None
            for groups in find(self.expression, texts)
        ]


def find(expression: str, texts: Sequence[str]) -> list[dict[str, str] | None]:
    """The named groups of the first match in each text, empty for a group without a match; None for a text without a match.

    RE2 takes a time that grows with the texts, for every expression. Python's `re` can take minutes for some, and cannot be stopped.
    """
    pattern = _UNNAMED.sub(lambda match: match[1] or "(?:", expression)
    matches: list[dict[str, str] | None] = pc.extract_regex(pa.array(texts, pa.string()), pattern=pattern).to_pylist()
    return matches


def distinct(names: Sequence[CellName | None]) -> tuple[list[CellName], Int64s]:
    """The distinct cells, sorted, and for each name the number of its cell; -1 for None."""
    cells = sorted({name for name in names if name is not None})
    numbers = {cell: number for number, cell in enumerate(cells)}
    return cells, np.array([-1 if name is None else numbers[name] for name in names], dtype=np.int64)


class LooseWork:
    """Device work that was launched by threads without a range and is attributed to no range.

    Args:
        process: process of each piece of work. `launched_ns` is the start of its launch, `duration_ns` its time on the device.
    """

    def __init__(self, process: Int64s, launched_ns: Int64s, duration_ns: Int64s) -> None:
        order = np.lexsort((launched_ns, process))
        self._process, self._launched = process[order], launched_ns[order]
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(duration_ns[order])))

    def within(self, process: Int64s, start_ns: Int64s, end_ns: Int64s) -> Int64s:
        """For each range, the total duration, in ns, of the work that its process launched while the range was open."""
        durations = np.zeros(len(process), np.int64)
        for process_id in np.unique(process):
            rows = process == process_id
            first, last = np.searchsorted(self._process, process_id), np.searchsorted(self._process, process_id, side="right")
            launched = self._launched[first:last]
            begin, stop = (first + np.searchsorted(launched, time[rows]) for time in (start_ns, end_ns))
            durations[rows] = self._before[stop] - self._before[begin]
        return durations


def unranked(cell: Int64s, busy_ns: Int64s, loose_ns: Int64s) -> dict[int, float]:
    """Cells most of whose device time is attributed to no range, so that their own device time says little.

    Args:
        cell: of each range, the number of its cell.
        busy_ns: device time of each range; negative where it launched nothing.
        loose_ns: of each range, as of `LooseWork.within`.

    Returns:
        By number of the cell: the share of loose work in the device time, in percent. It is more than 50.
    """
    own, loose = np.bincount(cell, np.maximum(busy_ns, 0)), np.bincount(cell, loose_ns)
    return {int(number): 100 * float(loose[number] / (own + loose)[number]) for number in np.flatnonzero(loose > own)}


def samples(cell: Int64s, start_ns: Int64s, host_ns: Int64s, busy_ns: Int64s) -> dict[str, Int64s]:
    """Two samples of each range that is a measurement: `device`, the time in which its work ran, and `operation`, its
    duration on the host. Returns columns of equal length: `cell`, `scope` (place in `SCOPES`), `round` and
    `duration_ns`.

    Args:
        cell: of each range, the number of its cell.
        start_ns: its start; rounds are counted within a cell in this order.
        host_ns: its duration on the host; negative if unknown. Only a positive one gives a sample of scope `operation`, because
            a coarse clock reads 0, which cannot be compared.
        busy_ns: `gpu_busy_ns`, with the work attributed by time; negative where it launched nothing. Only a positive one gives a sample of scope `device`.
    """
    order = np.lexsort((start_ns, cell))
    cell, host_ns, busy_ns = cell[order], host_ns[order], busy_ns[order]
    counts = np.bincount(cell)
    first = (np.cumsum(counts) - counts)[cell] if len(cell) else cell
    round_number = np.arange(len(cell)) - first
    ran, timed = np.flatnonzero(busy_ns > 0), np.flatnonzero(host_ns > 0)
    return {
        "cell": np.concatenate([cell[ran], cell[timed]]),
        "scope": np.repeat(np.arange(2), [len(ran), len(timed)]),
        "round": np.concatenate([round_number[ran], round_number[timed]]),
        "duration_ns": np.concatenate([busy_ns[ran], host_ns[timed]]),
    }


def variant_rows(cells: Sequence[CellName]) -> list[dict[str, Any]]:
    """Rows of `variants`. Fields that a range does not give are empty. The ladder is in the order of the names."""
    rows, rungs = [], dict[str, int]()
    for workload, variant in sorted({(cell.workload, cell.variant) for cell in cells}):
        rungs[workload] = rungs.get(workload, -1) + 1
        rows.append(
            {
                **schema.VARIANTS.blank_row(),
                "workload": workload,
                "variant": variant,
                "rung": rungs[workload],
                "kind": "cuda",
                "role": "rung",
                "precision": "fp32",
                "title": variant,
                "source": "NVTX ranges of an imported report",
            }
        )
    return rows


def case_rows(cells: Sequence[CellName]) -> list[dict[str, Any]]:
    """Rows of `cases`, in the order of the numbers in their names. Their work is unknown and stands as 0."""

    def by_numbers(case: tuple[str, str]) -> tuple[str, list[int], str]:
        return case[0], [int(digits[:18]) for digits in re.findall(r"\d+", case[1])], case[1]

    rows, ranks = [], dict[str, int]()
    for workload, case in sorted({(cell.workload, cell.case) for cell in cells}, key=by_numbers):
        ranks[workload] = ranks.get(workload, -1) + 1
        rows.append(
            {
                **schema.CASES.blank_row(),
                "workload": workload,
                "case": case,
                "size_rank": ranks[workload],
                "params": _params(case),
                "passes": 1,
            }
        )
    return rows


def _params(case: str) -> str:
    """The axes of a name such as `n=8,m=4`; a name of another form has the one axis `case`."""
    parts = [part.split("=", 1) for part in re.split(r"[,; ]+", case)]
    if all(len(part) == 2 and part[0] for part in parts) and len({part[0] for part in parts}) == len(parts):
        axes = {name: _number(value) for name, value in parts}
    else:
        axes = {"case": _number(case)}
    return json.dumps(axes, sort_keys=True, separators=(",", ":"))


def _number(value: str) -> int | str:
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else value


def result_rows(cells: Sequence[CellName], shares: Mapping[int, float] = MappingProxyType({})) -> list[dict[str, Any]]:
    """Rows of `results`: the status is `ok`, or `skipped` for a cell that is not ranked.

    Args:
        cells: of the run.
        shares: as of `unranked`.
    """
    ok = ("ok", "imported; its output was not verified here")
    statuses = [("skipped", NOT_RANKED.format(shares[number])) if number in shares else ok for number in range(len(cells))]
    return [
        {**schema.RESULTS.blank_row(), **cell._asdict(), "status": status, "detail": detail}
        for cell, (status, detail) in zip(cells, statuses, strict=True)
    ]
