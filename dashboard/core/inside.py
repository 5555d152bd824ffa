"""What limits a kernel, from experiments inside it: the causes that explain the most of its time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration
from warpladder.data import store
from warpladder.data.kernel_names import function_name
from warpladder.data.names import BROKE, DONE_TWICE, Experiment, Fact, Work
from warpladder.data.naming import CellName

Row = Mapping[str, Any]

#: A cause that explains less than this share of the time is not named.
LEAST: Final = 0.1
#: What a share counts, where the alteration changed more than the class.
_DOUBTED: Final = 0.5
#: A lane's part of different addresses, up to which the lanes of a warp share addresses.
_SHARED: Final = 0.25
#: Sectors or passes over the least, from which accesses are scattered or conflict.
_SCATTERED: Final = 1.5
_CONFLICTS: Final = 1.5


#: What an experiment takes away beside a class of work.
_REGISTERS: Final = "the limit of registers"
#: What the experiments that are known here take away.
_TAKEN: Final = (*map(str, Work), _REGISTERS)


class Cause(StrEnum):
    """What limits a kernel, each with what to try (`advice`)."""

    advice: str

    def __new__(cls, value: str, advice: str = "") -> "Cause":
        cause = str.__new__(cls, value)
        cause._value_, cause.advice = value, advice
        return cause

    SPILLS = "spills", "raise the limit of __launch_bounds__, or keep fewer values at once"
    BANK_CONFLICTS = "bank conflicts", "pad each row of the array by one access"
    SHARED = "accesses of shared memory", "keep values in registers, or read several words at once"
    LOCAL_ARRAYS = "local arrays", "unroll the loop, so that the compiler knows each index, or use shared memory"
    POINTER_CHASING = "loads that wait for one another", "compute the addresses, or give each thread several chains"
    SPLIT_VECTORS = "narrow accesses", "align the data, and read vectors of up to 16 bytes"
    SCATTERED_LOADS = "scattered loads", "let neighbouring lanes read neighbouring addresses"
    LOADS = "loads from global memory", "read less, read it once, or have more loads in flight"
    SAME_ADDRESS_STORES = "stores to the same addresses", "let one lane store"
    SCATTERED_STORES = "scattered stores", "let neighbouring lanes write neighbouring addresses"
    STORES = "stores to global memory", "write less, or write it once"
    ATOMICS = "atomic operations", "add up within the warp or the block first"
    BARRIERS = "barriers", "have fewer barriers, or smaller groups that wait"
    DIVERGENCE = "divergence", "sort the work, so that the lanes of a warp go one way"
    CONVERSIONS = "conversions between number types", "keep one type: write constants as 0.5f"
    SPECIAL = "special functions and divisions", "use the fast functions, or compute a reciprocal once"
    INTEGER_DIVISION = "integer divisions", "divide by a constant or a power of two, or count along"
    FP64 = "double-precision arithmetic", "compute in single precision where that is enough"
    TENSOR = "tensor-core products", "a lower precision, or larger tiles, make the products faster"
    TAIL = "a last wave with few blocks", "choose a size of blocks whose number fills the last wave, or a persistent grid"
    TOO_FEW_BLOCKS = "too few blocks", "split the work into at least as many blocks as there are multiprocessors"
    IMBALANCE = "multiprocessors without work", "split the work into more and equal blocks"


@dataclass(frozen=True)
class Finding:
    """A cause.

    Attributes:
        share: of the kernel's time that it explains, from 0 to 1.
        without_ns: the time without the work, with its interval; None for a cause that no ablation shows.
        lines: of the source, such as `12,40`.
        detail: how it shows, such as `a bank gives 32 words in turn`.
        doubt: what else the alteration changed; empty if nothing.
    """

    cause: Cause
    share: float
    without_ns: tuple[float, float, float] | None
    lines: str
    detail: str
    doubt: str = ""


class Experiments:
    """The tables `experiments` and `experiment_blocks` of a run."""

    def __init__(self, run: store.Run | None = None) -> None:
        self._run = run

    @cached_property
    def _rows(self) -> Mapping[CellName, list[Row]]:
        rows = dict[CellName, list[Row]]()
        for row in self._run.records("experiments") if self._run is not None else ():
            rows.setdefault(CellName(*(row[name] for name in CellName._fields)), []).append(row)
        return rows

    @cached_property
    def cells(self) -> tuple[CellName, ...]:
        """The cells whose kernel was timed altered or has stages, in the order of the run."""
        every = ((cell, Inside(rows)) for cell, rows in self._rows.items())
        return tuple(cell for cell, inside in every if inside.was_altered or inside.of(Experiment.STAGE))

    def of(self, cell: CellName) -> "Inside":
        """What the experiments on a cell showed."""
        return Inside(self._rows[cell])

    def blocks(self, cell: CellName) -> pd.DataFrame:
        """The rows of table `experiment_blocks` of a cell."""
        assert self._run is not None
        frame = self._run.table("experiment_blocks")
        is_of_cell = (frame[list(CellName._fields)] == list(cell)).all(axis=1)
        return frame[is_of_cell].reset_index(drop=True)


class Inside:
    """The rows of table `experiments` of one cell. What was not measured in rounds is its own interval."""

    def __init__(self, rows: Sequence[Row]) -> None:
        known = [{**row, "value": math.nan if row["value"] is None else row["value"]} for row in rows]
        self._rows = [
            {**row, **{end: row["value"] if row[end] is None else row[end] for end in ("low", "high")}} for row in known
        ]

    def of(self, experiment: Experiment, what: str = "", note: str = "") -> list[Row]:
        """The rows of an experiment."""
        return [
            row
            for row in self._rows
            if row["experiment"] == experiment and (not what or row["what"] == what) and (not note or row["note"] == note)
        ]

    def fact(self, what: Fact) -> float | None:
        """A fact; None where it is not known."""
        rows = self.of(Experiment.FACT, what)
        return float(rows[0]["value"]) if rows else None

    @property
    def kernel(self) -> str:
        """The kernel that was looked into, by its function where it is a symbol of C++ or Numba."""
        name = str(self._rows[0]["kernel"])
        return function_name(name) if name.startswith("_Z") else name

    @property
    def part(self) -> float:
        """The kernel's part of the time of all launches; 0 where they are several that could not be timed, so that it explains nothing."""
        part = self.fact(Fact.PART)
        return float(self._launches == 1) if part is None else part

    @property
    def _launches(self) -> int:
        return round(self.fact(Fact.LAUNCHES) or 1)

    @property
    def about(self) -> str:
        """The kernel that was looked into, and its part of the time where there are more launches than one."""
        if self._launches == 1:
            return self.kernel
        part = f"{self.part:.0%} of the time of" if self.part else "of"
        return f"{self.kernel} ({part} {self._launches} launches)"

    @property
    def was_altered(self) -> bool:
        """Whether altered copies of the kernel were timed beside it. A trace of another tool has stages and blocks only."""
        return bool(self.of(Experiment.TIME, "original"))

    @property
    def original_ns(self) -> float:
        """The time of the operation."""
        return float(self.of(Experiment.TIME, "original")[0]["value"])

    @property
    def assembled_over_original(self) -> float | None:
        """The time of the unaltered PTX, assembled like the altered one, over the time of the kernel; None where it was not made."""
        rows = self.of(Experiment.TIME, "assembled")
        return float(rows[0]["value"]) / self.original_ns if rows else None

    @property
    def broken(self) -> list[str]:
        """The classes of work that could not be taken out, because the altered kernel broke its process."""
        return [str(row["what"]) for row in self.of(Experiment.WITHOUT) if math.isnan(row["value"])]

    def delays(self) -> list[Row]:
        """What a microsecond less at each mark saves, the most first. Of marks with one name, such as the copies of an unrolled loop, it is
        the one that saves the most."""
        found = []
        for each in _by_name(self.of(Experiment.DELAY)):
            first = max(each, key=lambda row: float(row["value"]))
            copies = f", the largest of {len(each)} copies" if len(each) > 1 else ""
            found.append({**first, "what": first["what"] + copies})
        return sorted(found, key=lambda row: -float(row["value"]))

    def stages(self) -> list[Row]:
        """The parts of a warp's time, the largest first; those with one name together."""
        found = [{**each[0], "value": sum(float(row["value"]) for row in each)} for each in _by_name(self.of(Experiment.STAGE))]
        return sorted(found, key=lambda row: -float(row["value"]))

    def findings(self) -> list[Finding]:
        """The causes, the one that explains the most first. One that is in doubt counts half."""
        taken = (row for row in self.of(Experiment.WITHOUT) if row["what"] in _TAKEN and math.isfinite(row["value"]))
        rows = [self._of_row(row) for row in taken]
        found = [*rows, *self._of_launch()]
        rest = 1 - max((each.share for each in found), default=0.0)
        found += self._of_lanes(rest)
        return sorted(
            (each for each in found if each.share >= LEAST), key=lambda each: -each.share * (_DOUBTED if each.doubt else 1)
        )

    # -- work that was taken out -------------------------------------------------------------------------------------------

    def _of_row(self, row: Row) -> Finding:
        times = float(row["value"]), float(row["low"]), float(row["high"])
        share = 1 - times[0] / self.original_ns
        if row["what"] == _REGISTERS:
            detail = (
                f"the compiler spills {self.fact(Fact.SPILL_BYTES) or 0:.0f} bytes a thread, for it may not use more registers"
            )
            return Finding(Cause.SPILLS, share, times, row["lines"], detail, row["note"])
        work = Work(row["what"])
        cause, lines, detail = self._cause(work)
        return Finding(cause, share, times, lines or row["lines"], detail, "" if row["note"] == DONE_TWICE else row["note"])

    def _cause(self, work: Work) -> tuple[Cause, str, str]:
        """The cause behind a class of work, the lines that show it, and how."""
        match work:
            case Work.SHARED:
                return self._of_banks()
            case Work.GLOBAL_LOADS:
                return self._of_loads()
            case Work.GLOBAL_STORES:
                return self._of_stores()
            case Work.ATOMICS:
                row = self._worst(Fact.ADDRESSES, work, largest=False)
                lanes = round(1 / row["value"]) if row and row["value"] else 1
                detail = f"{lanes} lanes of a warp share an address" if lanes > 1 else ""
                return Cause.ATOMICS, row["lines"] if row else "", detail
            case Work.LOCAL:
                return Cause.LOCAL_ARRAYS, "", "an array with an index that is known at run time lies in local memory"
            case _:
                return Cause(str(work)), "", ""

    def _worst(self, what: Fact, work: Work, *, largest: bool = True) -> Row | None:
        """The access of a class with the largest value, among those that make a tenth of its accesses or more."""
        rows, times = self.of(Experiment.ACCESS, what, str(work)), self.of(Experiment.ACCESS, Fact.TIMES, str(work))
        total = sum(float(row["value"]) for row in times)
        frequent = [row for row, count in zip(rows, times, strict=True) if float(count["value"]) >= total / 10]
        return (max if largest else min)(frequent, key=lambda row: float(row["value"]), default=None)

    def _of_banks(self) -> tuple[Cause, str, str]:
        row = self._worst(Fact.BANK_PASSES, Work.SHARED)
        if row and row["value"] >= _CONFLICTS:
            return Cause.BANK_CONFLICTS, row["lines"], f"a bank gives {row['value']:.3g} words one after another for one access"
        return Cause.SHARED, "", ""

    def _of_loads(self) -> tuple[Cause, str, str]:
        if split := self._split(Work.GLOBAL_LOADS):
            return split
        if chased := self.of(Experiment.FACT, Fact.CHASED):
            return Cause.POINTER_CHASING, chased[0]["lines"], "the address of a load comes from the load before"
        row = self._worst(Fact.SECTORS, Work.GLOBAL_LOADS)
        if row and row["value"] >= _SCATTERED:
            return Cause.SCATTERED_LOADS, row["lines"], f"a load reads {row['value']:.3g} times the sectors that its bytes need"
        return Cause.LOADS, "", ""

    def _split(self, work: Work) -> tuple[Cause, str, str] | None:
        groups = self.of(Experiment.FACT, Fact.SPLIT, str(work))
        if not groups:
            return None
        most = max(groups, key=lambda row: float(row["value"]))
        detail = f"{most['value']:.0f} narrow accesses of consecutive addresses, where a wide one does"
        return Cause.SPLIT_VECTORS, most["lines"], detail

    def _of_stores(self) -> tuple[Cause, str, str]:
        row = self._worst(Fact.ADDRESSES, Work.GLOBAL_STORES, largest=False)
        if row and row["value"] <= _SHARED:
            return Cause.SAME_ADDRESS_STORES, row["lines"], f"{1 / row['value']:.3g} lanes of a warp store to one address"
        if split := self._split(Work.GLOBAL_STORES):
            return split
        row = self._worst(Fact.SECTORS, Work.GLOBAL_STORES)
        if row and row["value"] >= _SCATTERED:
            detail = f"a store writes {row['value']:.3g} times the sectors that its bytes need"
            return Cause.SCATTERED_STORES, row["lines"], detail
        return Cause.STORES, "", ""

    # -- multiprocessors and lanes -----------------------------------------------------------------------------------------

    def _of_launch(self) -> Iterator[Finding]:
        busy, blocks, sms = self.fact(Fact.BUSY), self.fact(Fact.BLOCKS), self.fact(Fact.MULTIPROCESSORS)
        if busy is None or blocks is None or sms is None:
            return
        share = self.part * (1 - busy)
        if blocks < sms:
            yield Finding(Cause.TOO_FEW_BLOCKS, share, None, "", f"{blocks:.0f} blocks for {sms:.0f} multiprocessors")
            return
        places = (self.fact(Fact.RESIDENT_BLOCKS) or 1) * sms
        of_last = blocks % places
        if of_last and blocks > places:
            detail = f"{of_last:.0f} blocks run in the last wave, which has room for {places:.0f}"
            yield Finding(Cause.TAIL, share, None, "", detail)
        else:
            yield Finding(Cause.IMBALANCE, share, None, "", f"a multiprocessor has a block for {busy:.0%} of the time")

    def _of_lanes(self, rest: float) -> Iterator[Finding]:
        """Lanes that do nothing, in the part of the time that nothing else explains."""
        lanes = self.fact(Fact.LANES)
        if lanes is not None:
            detail = f"{lanes:.3g} of 32 lanes are active in an instruction"
            yield Finding(Cause.DIVERGENCE, min(rest, self.part) * (1 - lanes / 32), None, "", detail)


def _by_name(rows: Sequence[Row]) -> Iterator[list[Row]]:
    names = dict.fromkeys(row["what"] for row in rows)
    return ([row for row in rows if row["what"] == name] for name in names)


def sentence(inside: Inside) -> str:
    """The cause, how much it explains, and what to try."""
    found = inside.findings()
    if not found and inside.broken:
        return f"What limits it is not known: without {' and without '.join(inside.broken)}, {BROKE}."
    if not found:
        return (
            f"No class of work explains {LEAST:.0%} of the time: others take its place as soon as one is out, "
            "or the kernel issues instructions all the time."
        )
    first = found[0]
    where = f" (line{'s' if ',' in first.lines else ''} {few(first.lines)})" if first.lines else ""
    detail = f": {first.detail}" if first.detail else ""
    also = [each for each in found[1:] if each.share >= first.share / 2]
    more = f" {also[0].cause.capitalize()} would save {also[0].share:.0%}: they overlap." if also else ""
    return f"{_saved(first, inside.original_ns, where)}{detail}.{more} Try this: {first.cause.advice}."


def _saved(finding: Finding, original_ns: float, where: str) -> str:
    name = finding.cause.capitalize()
    if finding.without_ns is None:
        is_one = not finding.cause.endswith("s") or finding.cause.startswith("a ")
        return f"{name}{where} explain{'s' if is_one else ''} {finding.share:.0%} of the time"
    value, low, high = finding.without_ns
    return (
        f"{name}{where}: if they were free, {format_duration(value)} ({format_duration(low)} to {format_duration(high)}) in place of "
        f"{format_duration(original_ns)}"
    )


def few(lines_of_source: str) -> str:
    """The first lines, and how many more there are."""
    each = lines_of_source.split(",")
    return lines_of_source if len(each) <= 4 else f"{', '.join(each[:4])} and {len(each) - 4} more"
