"""Why one variant is faster than another: the work that differs, and how much of the time it explains.

The model has two parts.

1. *Work over peaks.* Each unit of the device needs the time of its work at its peak. For DRAM this is the bytes over the bandwidth that
   the device reached in the same run; for the other units it is their share of the peak times the kernel's time. Where the busiest unit
   of the slower variant takes at least `limits.LATENCY_PERCENT` of its time, the unit's work explains the difference of its times.
2. *Latency.* Otherwise the kernel waits. With I issued instructions of a scheduler, W resident warps and L cycles between two
   instructions of a warp, a multiprocessor is active for I L / W cycles. It is active for a part A of the kernel's cycles, which pass
   with the clock f, so the kernel takes I L / (W A f). The logarithm of the ratio of two times is the sum of the logarithms of the five
   ratios, and the largest of them explains its share. (Little's law; Volkov, Understanding Latency Hiding on GPUs, 2016, section 4.)

A cause is then named from what changed with it: bytes, sectors of a request, bank conflicts, spills, instructions, warps, a tail, a wait.
"""

import collections
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counters, inside, limits
from warpladder.dashboard.core.counters import Counter
from warpladder.dashboard.core.in_code import (
    ENOUGH,
    Coded,
    Profile,
    at_lines,
    coded,
    hot_lines,
    of_banks,
    of_local_memory,
    of_sectors,
)
from warpladder.dashboard.core.limits import Unit
from warpladder.dashboard.core.machine_code import MachineCode
from warpladder.dashboard.core.numbers import format_bytes, format_count, format_percent, significant
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import metrics
from warpladder.data.names import Ceiling
from warpladder.data.naming import CellName
from warpladder.data.words import counted

Row = Mapping[Any, Any]

#: Two times under the profiler differ where one is larger by more than this part: it times one execution.
_DIFFERENT_TIME: Final = 0.05
#: A larger ratio of two counts is not written: the counts tell more.
_LARGEST_RATIO: Final = 100.0
#: Kinds of instructions that are shown: those whose numbers differ the most.
_MOST_KINDS: Final = 10
#: Cells whose kernels are kept in memory.
_KEPT: Final = 4
#: From this part on, a difference counts as explained as a whole.
_WHOLE: Final = 0.95
#: A finer cause is named where it makes up this part of a change.
_MOST: Final = 0.5
#: A ratio of sectors to requests that is worse by this factor is a cause.
_WORSE: Final = 1.25
_MOSTLY_READ, _MOSTLY_WRITTEN = 0.9, 0.1
_SECTOR_BYTES: Final = 32
#: Groups of counters that count work, and not the time that it takes.
_OF_WORK: Final = ("memory", "instructions", "occupancy")
#: Counters whose sum is one of the others.
_WAYS: Final = ("read from device memory", "written to device memory")


class Cause(StrEnum):
    """The causes of a difference of two times."""

    BYTES = "bytes"
    COALESCING = "coalescing"
    CONFLICTS = "conflicts"
    SPILLS = "spills"
    INSTRUCTIONS = "instructions"
    UNIT = "unit"
    OCCUPANCY = "occupancy"
    TAIL = "tail"
    LATENCY = "latency"
    CLOCK = "clock"
    RATE = "rate"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Explanation:
    """Why B is faster or slower than A.

    Attributes:
        ratio: the time of A over the time of B, timed where both were timed, else under the profiler.
        timed: whether the ratio is of samples.
        cause: what explains the most.
        explained: its part of the difference, from 0 to 1; NaN where nothing was found.
        because: the words after the verdict, such as `it moves 2.00× fewer bytes of DRAM (252 MB in place of 503 MB)`.
        named: what limits the slower one, in the words that experiments have too; None where the code does not show it.
        work: the quantities of both.
        times: the time that each unit's work takes at its peak, in nanoseconds.
    """

    ratio: float
    timed: bool
    cause: Cause
    explained: float
    because: str
    work: tuple[Counter, ...]
    times: tuple[Counter, ...]
    named: inside.Cause | None = None

    def sentence(self, a: str, b: str) -> str:
        """The explanation in one or two sentences, with the names of the variants."""
        if math.isnan(self.ratio):
            return f"The time of {a} or {b} is not known."
        if self.cause is Cause.NOTHING:
            return f"No difference in work between {b} and {a}: bytes, instructions, conflicts and occupancy are equal."
        alike = abs(math.log(self.ratio)) < math.log1p(counters.DIFFERENT)
        verdict = f"{b} takes the time of {a}"
        if not alike:
            faster = f"{b} is {_times(self.ratio)} as fast as {a}"
            verdict = faster if self.ratio >= 1 else f"{b} takes {_times(1 / self.ratio)} the time of {a}"
        if self.cause is Cause.UNKNOWN:
            return f"{verdict}." if alike else f"{verdict}. The counters do not explain it."
        if self.cause is Cause.RATE:
            return f"{verdict}: {self.because}. The counters do not explain why."
        unexplained = format_percent(100 * (1 - self.explained))
        rest = "" if self.explained >= _WHOLE else f", and {unexplained} is not explained by counters"
        doubt = "" if self.explained >= ENOUGH else "the cause is not known; what goes with it: "
        advice = f" To try in {a if self.ratio >= 1 else b}: {self.named.advice}." if self.named and not doubt else ""
        explained = f"This explains {format_percent(100 * self.explained)} of the difference{rest}."
        return f"{verdict}: {doubt}{self.because}. {explained}{advice}"


def explain(a: Row, b: Row, ceilings: Mapping[str, float], times_ns: tuple[float, float] | None = None) -> Explanation:
    """Explain the difference of two rows of `counters.by_config` of the same case.

    Args:
        ceilings: GB/s by name of the ceiling, of the device; empty where none was measured.
        times_ns: timed medians of both, which the verdict is about; None for the times under the profiler.
    """
    profiled = a["time_ns"] / b["time_ns"] if a["time_ns"] > 0 and b["time_ns"] > 0 else float("nan")
    ratio = times_ns[0] / times_ns[1] if times_ns else profiled
    work, times = counters.side_by_side(a, b), _times_of_units(a, b, ceilings)
    slow, fast = (a, b) if a["time_ns"] >= b["time_ns"] else (b, a)
    finding = None if math.isnan(profiled) else _same(a, b, work)
    if finding is None and _agree(ratio, profiled):
        finding = _by_unit(slow, fast, ceilings) or _at_another_rate(slow, fast, ceilings) or _by_latency(slow, fast)
    if finding is None:
        return Explanation(ratio, times_ns is not None, Cause.UNKNOWN, float("nan"), "", work, times)
    cause, explained, words = finding
    return Explanation(ratio, times_ns is not None, cause, min(1.0, explained), words[slow is not a], work, times)


#: What differs, where B is the faster one, and where it is the slower one.
_Words = tuple[str, str]
#: A cause, the part of the difference that it explains, and its words.
_Finding = tuple[Cause, float, _Words]


def _in_place(text: str, fast: str, slow: str) -> _Words:
    """A text about the own figure and the other one's."""
    return text.format(fast, slow), text.format(slow, fast)


def _same(a: Row, b: Row, work: tuple[Counter, ...]) -> _Finding | None:
    """No difference in work, where every count is equal and the times are."""
    counts = (each for each in work if each.group in _OF_WORK and each.unit != "%" and each.name not in _WAYS)
    if any(each.changed for each in counts) or abs(math.log(a["time_ns"] / b["time_ns"])) > math.log1p(_DIFFERENT_TIME):
        return None
    return Cause.NOTHING, 1.0, ("", "")


def between(
    a: RunData,
    b: RunData,
    workload: str,
    case: str,
    of_a: tuple[str, str],
    of_b: tuple[str, str],
    times_ns: tuple[float, float] | None = None,
) -> Explanation | None:
    """Explain the difference of two cells of a case, of the same run or of two. None where one has no counters.

    Args:
        of_a, of_b: variant and config.
        times_ns: as for `explain`.
    """
    rows = [counters.rows_by_cell(data, workload, case).get(cell) for data, cell in ((a, of_a), (b, of_b))]
    if rows[0] is None or rows[1] is None:
        return None
    of_device = a.ceilings[a.ceilings["device"] != "cpu"]
    explanation = explain(rows[0], rows[1], dict(zip(of_device["name"], of_device["value"], strict=True)), times_ns)
    of_cells = [(data.code, CellName(workload, *cell, case)) for data, cell in ((a, of_a), (b, of_b))]
    by_name = [executed(*each) for each in of_cells]
    if not all(by_name):
        return explanation
    profiles = [profiled(*each) for each in of_cells]
    explanation = _in_code(explanation, (rows[0], rows[1]), (profiles[0], profiles[1]), a.info["sm_count"])
    names = sorted(by_name[0] | by_name[1], key=lambda name: abs(by_name[0][name] - by_name[1][name]), reverse=True)
    kinds = (
        Counter("instructions by kind", name, "", *(float(each[name]) for each in by_name)) for name in names[:_MOST_KINDS]
    )
    return replace(explanation, work=(*explanation.work, *kinds))


@lru_cache(maxsize=_KEPT)  # each rung is compared with the one before it and with the next one
def profiled(code: MachineCode, cell: CellName) -> tuple[Profile, ...]:
    """The kernels of a cell with their counters by instruction."""
    return tuple(
        Profile(kernel.code, found, kernel.count, None if kernel.spill_bytes is None else kernel.spill_bytes > 0)
        for kernel in code.kernels(cell)
        if (found := code.counters(cell, kernel.index))
    )


def _in_code(
    explanation: Explanation,
    rows: tuple[Row, Row],
    profiles: tuple[Sequence[Profile], Sequence[Profile]],
    multiprocessors: float | None,
) -> Explanation:
    """An explanation with what the code shows: its lines, and in place of a symptom the work behind it."""
    less = rows[0]["time_ns"] >= rows[1]["time_ns"]
    if not _agree(explanation.ratio, rows[0]["time_ns"] / rows[1]["time_ns"]):
        return explanation
    slow, fast = rows if less else rows[::-1]
    of_slow, of_fast = profiles if less else profiles[::-1]
    of_code = coded(of_slow, of_fast, (slow["time_ns"], fast["time_ns"]))
    if explanation.cause in _NAMED:
        cause, lines = _NAMED[explanation.cause](of_slow)
        share = max(explanation.explained, of_code.share if of_code and of_code.cause is cause else 0.0)
        return replace(explanation, named=cause, explained=share, because=explanation.because + at_lines(lines, less=less))
    of_launch = _in_launch(slow, fast, multiprocessors)
    is_open = explanation.cause in _SYMPTOMS or explanation.explained < ENOUGH
    found = _likeliest(of_launch, of_code if is_open else None)
    if found is None or found.share < min(np.nan_to_num(explanation.explained), ENOUGH):
        waves = inside.Cause.TAIL if slow["waves"] > 1 else inside.Cause.IMBALANCE
        named = waves if explanation.cause is Cause.TAIL else None
        lines = at_lines(hot_lines(of_slow), less=less) if explanation.cause in _IN_LINES and explanation.because else ""
        return replace(explanation, named=named, because=explanation.because + lines)
    symptom = {Cause.UNKNOWN: Cause.LATENCY, Cause.RATE: Cause.UNIT}.get(explanation.cause, explanation.cause)
    words = found.words(less=less)
    if of_launch and found is not of_launch:
        words += f", and {of_launch.words(less=less)}"
    return replace(explanation, cause=symptom, explained=found.share, because=words, named=found.cause)


def _likeliest(of_launch: Coded | None, of_code: Coded | None) -> Coded | None:
    """The grid where it explains enough, else whichever explains more: where warps wait is seen of all blocks that there are."""
    if of_launch and of_launch.share >= ENOUGH:
        return of_launch
    return max(filter(None, (of_launch, of_code)), key=lambda each: each.share, default=None)


#: Causes that tell what a kernel is busy with or waits for, and not what in its code is behind it.
_SYMPTOMS: Final = (Cause.UNIT, Cause.INSTRUCTIONS, Cause.LATENCY, Cause.RATE, Cause.UNKNOWN)
#: Causes whose lines are those with which warps spend the most time.
_IN_LINES: Final = (*_SYMPTOMS, Cause.BYTES)


#: Causes that counters name -> the same in the words of experiments, and the lines.
_NAMED: Final = {Cause.COALESCING: of_sectors, Cause.CONFLICTS: of_banks, Cause.SPILLS: of_local_memory}


def _in_launch(slow: Row, fast: Row, multiprocessors: float | None) -> Coded | None:
    """Multiprocessors without a block, where the slower one has too few of them."""
    blocks, more = slow["grid_blocks"], fast["grid_blocks"]
    factors = factors_of(slow, fast)
    if factors is None or not multiprocessors or not blocks < min(multiprocessors, more):
        return None
    total = math.log(slow["time_ns"] / fast["time_ns"])
    share = 1 - abs(1 - sum(factors[each] for each in (Cause.TAIL, Cause.OCCUPANCY, Cause.LATENCY)) / total)
    if share < _MOST:
        return None
    text = f"it has {{}} for {multiprocessors:.0f} multiprocessors in place of {{}}"
    less, longer = (
        text.format(counted(round(one), "block"), f"{other:.0f}") for one, other in ((more, blocks), (blocks, more))
    )
    detail = f"{multiprocessors - blocks:.0f} multiprocessors have none in the slower one"
    return Coded(inside.Cause.TOO_FEW_BLOCKS, share, "", less, longer, detail)


@lru_cache(maxsize=_KEPT)
def executed(code: MachineCode, cell: CellName) -> collections.Counter[str]:
    """How often the launches of a cell executed each kind of instruction, by warp; empty where it was not counted. Never change it."""
    counts: collections.Counter[str] = collections.Counter()
    for kernel in profiled(code, cell):
        for place, count in kernel.readings(metrics.EXECUTED).items():
            counts[kernel.code.instructions[place].name] += count * kernel.count
    return counts


def _agree(timed: float, profiled: float) -> bool:
    """Whether two ratios of times are known, on the same side of 1, and the timed one far enough from it to be explained."""
    return not math.isnan(profiled) and (timed > 1) == (profiled > 1) and abs(math.log(timed)) >= math.log1p(counters.DIFFERENT)


# -- work over peaks -----------------------------------------------------------------------------------------------------------


def unit_ns(row: Row, unit: Unit, ceilings: Mapping[str, float]) -> float:
    """The time that the unit's work takes at its peak, in nanoseconds; NaN where it was not counted."""
    if unit is limits.DRAM and (bandwidth := _bandwidth(row, ceilings)):
        return float(row["dram_bytes"]) / bandwidth  # bytes over GB/s are nanoseconds
    return float(row[unit.column]) / 100 * float(row["time_ns"])


def _bandwidth(row: Row, ceilings: Mapping[str, float]) -> float | None:
    """The bandwidth in GB/s that the device reached in about this mix of reads and writes; None without ceilings."""
    read = row["dram_read_bytes"] / row["dram_bytes"] if row["dram_bytes"] > 0 else 0.5
    name = (
        Ceiling.DEVICE_READ if read > _MOSTLY_READ else Ceiling.DEVICE_WRITE if read < _MOSTLY_WRITTEN else Ceiling.DEVICE_COPY
    )
    return ceilings.get(name) if pd.notna(row["dram_bytes"]) else None


def _times_of_units(a: Row, b: Row, ceilings: Mapping[str, float]) -> tuple[Counter, ...]:
    times = (
        Counter("time by unit", unit.name, "ns", *(unit_ns(row, unit, ceilings) for row in (a, b))) for unit in limits.UNITS
    )
    return tuple(each for each in times if not (math.isnan(each.a) or math.isnan(each.b)))


def _by_unit(slow: Row, fast: Row, ceilings: Mapping[str, float]) -> _Finding | None:
    """The work of the slower one's busiest unit, where it takes most of the time and explains the most of the difference."""
    unit, percent = limits.busiest(slow)
    difference = slow["time_ns"] - fast["time_ns"]
    if unit is None or percent < limits.LATENCY_PERCENT or difference <= 0:
        return None
    before, after = (unit_ns(row, unit, ceilings) for row in (slow, fast))
    explained = (before - after) / difference
    if math.isnan(explained) or explained < _MOST:
        return None
    cause, words = _finer(slow, fast, unit) or _of_unit(slow, fast, unit, before / after if after > 0 else math.inf)
    return cause, explained, words


def _of_unit(slow: Row, fast: Row, unit: Unit, busy: float) -> tuple[Cause, _Words]:
    """The cause that is the unit's work itself.

    Args:
        busy: the time of the slower one's work over the time of the other's. Where its count differs much less, it is not the cause.
    """
    columns = {limits.DRAM: "dram_bytes", limits.L2: "l2_sectors", limits.SHARED: "shared_wavefronts", limits.L1: "wavefronts"}
    column = columns.get(unit, "instructions")
    if not fast[column] > 0 or math.log(max(slow[column] / fast[column], 1.0)) < _MOST * math.log(busy):
        times = f"{_times(busy)} less" if busy < _LARGEST_RATIO else "less"
        keeps = f"its work keeps {unit.name} busy for"
        return Cause.UNIT, (f"{keeps} {times} time", f"{keeps} {_times(busy)} the time")
    if unit is limits.DRAM:
        return Cause.BYTES, _compared("moves", "bytes of DRAM", slow["dram_bytes"], fast["dram_bytes"], format_bytes)
    if unit is limits.L2:
        many, few = (_SECTOR_BYTES * row["l2_sectors"] for row in (slow, fast))
        return Cause.BYTES, _compared("moves", "bytes of L2", many, few, format_bytes)
    if unit in (limits.SHARED, limits.L1):
        return Cause.UNIT, _compared("needs", f"passes of {unit.name}", slow[column], fast[column], format_count)
    executes = _compared("executes", "instructions", slow["instructions"], fast["instructions"], format_count)
    limit = f", and {unit.name} {'are' if unit.name.endswith('s') else 'is'} the limit of the slower one"
    return Cause.INSTRUCTIONS, (executes[0] + limit, executes[1] + limit)


def _at_another_rate(slow: Row, fast: Row, ceilings: Mapping[str, float]) -> _Finding | None:
    """The same work of the busiest unit in another time, where both variants keep a unit busy; the counters do not explain it further."""
    unit, percent = limits.busiest(slow)
    if unit is None or min(percent, limits.busiest(fast)[1]) < limits.LATENCY_PERCENT:
        return None
    before, after = (unit_ns(row, unit, ceilings) for row in (slow, fast))
    if not after > 0 or abs(math.log(before / after)) > math.log1p(2 * counters.DIFFERENT):
        return None
    shares = (format_percent(100 * busy / row["time_ns"]) for busy, row in ((after, fast), (before, slow)))
    return (
        Cause.RATE,
        0.0,
        _in_place(f"it keeps {unit.name} busy for {{}} of its time in place of {{}}, with equal work", *shares),
    )


def _finer(slow: Row, fast: Row, unit: Unit | None = None) -> tuple[Cause, _Words] | None:
    """Spills, uncoalesced access or bank conflicts, where one of them makes up most of the change of memory work."""
    of_memory = unit is None or unit in (limits.DRAM, limits.L2, limits.L1, limits.SHARED) or unit.column == "lsu_percent"
    if not of_memory:
        return None
    local = [row["local_loads"] + row["local_stores"] for row in (slow, fast)]
    accesses = [each + row["load_requests"] + row["store_requests"] for each, row in zip(local, (slow, fast), strict=True)]
    if _most_of(local, accesses):
        makes = "it makes {} loads and stores of local memory (spilled registers) in place of {}"
        return Cause.SPILLS, _in_place(makes, *map(format_count, local[::-1]))
    conflicts = [row["load_conflicts"] + row["store_conflicts"] for row in (slow, fast)]
    if unit not in (limits.DRAM, limits.L2) and _most_of(conflicts, [row["shared_wavefronts"] for row in (slow, fast)]):
        return Cause.CONFLICTS, _compared(
            "needs", "passes of shared memory for bank conflicts", conflicts[0], conflicts[1], format_count
        )
    worse = {way: _worse(slow, fast, way) for way in ("load", "store")}
    worst = max(worse, key=worse.__getitem__)
    if unit is not limits.SHARED and worse[worst] > _WORSE:
        access = "load or store" if min(worse.values()) > _WORSE else worst
        touches = f"a {access} of a warp touches {{}} sectors of 32 bytes in place of {{}} (coalesced access)"
        return Cause.COALESCING, _in_place(touches, *(significant(row[f"{worst}_sectors_per_request"]) for row in (fast, slow)))
    return None


def _most_of(part: Sequence[float], whole: Sequence[float]) -> bool:
    """Whether a part makes up most of a change of the whole, each of the slower and the faster one."""
    return part[0] - part[1] > _MOST * max(whole[0] - whole[1], counters.DIFFERENT * whole[0])


def _worse(slow: Row, fast: Row, way: str) -> float:
    """How much more sectors a request of the slower one touches, where it makes about as many requests or more."""
    ratio = slow[f"{way}_sectors_per_request"] / fast[f"{way}_sectors_per_request"]
    total = slow[f"{way}_sectors"] / fast[f"{way}_sectors"] if fast[f"{way}_sectors"] else float("nan")
    # Wider loads have more sectors each, and fewer requests: then the sectors in all are the same.
    return 0.0 if math.isnan(ratio) or math.isnan(total) else float(min(ratio, total))


# -- latency -------------------------------------------------------------------------------------------------------------------


def _by_latency(slow: Row, fast: Row) -> _Finding | None:
    """The largest factor of the identity in the module's docstring, or where it does not suffice the largest and one more."""
    factors = factors_of(slow, fast)
    total = math.log(slow["time_ns"] / fast["time_ns"])
    if factors is None or total <= 0:
        return None

    def explained(*causes: Cause) -> float:
        """The part of the difference that these factors explain together. Too much counts like too little."""
        return 1 - abs(total - sum(factors[cause] for cause in causes)) / total

    cause = max(factors, key=factors.__getitem__)
    if explained(cause) >= _MOST:
        named, words = (_finer(slow, fast) if cause is Cause.LATENCY else None) or (
            cause,
            _words_of(cause, slow, fast, waits=True),
        )
        return named, explained(cause), words
    second = max((each for each in factors if each is not cause), key=lambda each: explained(cause, each))
    if explained(cause, second) < _MOST:
        return None
    joined = "and" if factors[second] > 0 else "while"
    less, more = (
        f"{one}, {joined} {other}"
        for one, other in zip(*(_words_of(each, slow, fast) for each in (cause, second)), strict=True)
    )
    return cause, explained(cause, second), (less, more)


def _words_of(cause: Cause, slow: Row, fast: Row, *, waits: bool = False) -> _Words:
    """A factor of the identity in both variants.

    Args:
        waits: the cycles of a warp with the state that changes the most.
    """

    def both(text: str, of: Callable[[Row], str]) -> _Words:
        return _in_place(text, of(fast), of(slow))

    match cause:
        case Cause.INSTRUCTIONS:
            return both("it executes {} instructions in place of {}", lambda row: format_count(row["instructions"]))
        case Cause.LATENCY:
            most = _most_stalled(slow, fast) if waits else ""
            return both(f"a warp takes {{}} cycles from one instruction to the next in place of {{}}{most}", _cycles)
        case Cause.OCCUPANCY:
            limiter = slow["limiter"] if slow["warps"] < fast["warps"] else ""
            why = f" ({limiter} limit{'' if limiter.endswith('s') else 's'} the slower one)" if limiter else ""
            return both(f"a scheduler holds {{}} warps in place of {{}}{why}", lambda row: significant(row["warps"]))
        case Cause.TAIL:
            text = "its multiprocessors have work for {} of the time in place of {}"
            less, more = both(text, lambda row: format_percent(100 * row["active_cycles"] / row["sm_cycles"]))
            if pd.isna(slow["waves"]) or pd.isna(fast["waves"]):
                return less, more
            of_fast, of_slow = both(", with {} waves of blocks in place of {}", lambda row: significant(row["waves"]))
            return less + of_fast, more + of_slow
    return "the clock was higher", "the clock was lower"


def factors_of(slow: Row, fast: Row) -> dict[Cause, float] | None:
    """The logarithm of each factor of the ratio of the times; None where one was not counted."""
    needed = ("instructions", "warps", "active_cycles", "sm_cycles")
    if any(not row[name] > 0 for row in (slow, fast) for name in needed):
        return None

    def ratio(of: Callable[[Row], float]) -> float:
        return math.log(of(slow) / of(fast))

    return {
        Cause.INSTRUCTIONS: ratio(lambda row: row["instructions"]),
        Cause.OCCUPANCY: -ratio(lambda row: row["warps"]),
        Cause.LATENCY: ratio(lambda row: row["active_cycles"] * row["warps"] / row["instructions"]),
        Cause.TAIL: -ratio(lambda row: row["active_cycles"] / row["sm_cycles"]),
        Cause.CLOCK: -ratio(lambda row: row["sm_cycles"] / row["time_ns"]),
    }


def _most_stalled(slow: Row, fast: Row) -> str:
    """The state of a warp whose cycles change the most."""
    changes = {
        reason: change
        for reason in metrics.STALLS
        if pd.notna(change := slow[f"stall_{reason}"] - fast[f"stall_{reason}"]) and reason not in metrics.ISSUING
    }
    reason = max(changes, key=changes.__getitem__, default="")
    return f"; most of the change are cycles in which a warp {metrics.STALLS[reason]}" if reason and changes[reason] > 0 else ""


def _cycles(row: Row) -> str:
    """Cycles of a warp from one instruction to the next."""
    return significant(float(sum(row[f"stall_{reason}"] for reason in metrics.STALLS if pd.notna(row[f"stall_{reason}"]))))


# -- words ---------------------------------------------------------------------------------------------------------------------


def _times(ratio: float) -> str:
    return f"{significant(ratio)}×"


def _compared(verb: str, what: str, slow: float, fast: float, write: Callable[[float], str]) -> _Words:
    if not fast > 0 or slow / fast > _LARGEST_RATIO:
        return _in_place(f"it {verb} {{}} {what} in place of {{}}", write(fast), write(slow))
    ratio = _times(slow / fast)
    fewer, as_many = (f"it {verb} {ratio} {how} {what}" for how in ("fewer", "as many"))
    return f"{fewer} ({write(fast)} in place of {write(slow)})", f"{as_many} ({write(slow)} in place of {write(fast)})"
