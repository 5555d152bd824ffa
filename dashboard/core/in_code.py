"""The code behind a difference of two times: the work whose instructions warps wait for, with their lines.

The profiler samples what the next instruction of a warp waits for. A sample counts for the instruction that is waited for: the load, the
special function or the barrier before, else the instruction itself. The share of the samples times the kernel's time is the time of that
work; the work whose time differs the most is behind the difference. (Zhou et al., GPA: A GPU Performance Advisor, CGO 2021.)
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final

from warpladder.dashboard.core.inside import Cause
from warpladder.dashboard.core.numbers import format_count, format_duration, significant
from warpladder.dashboard.core.sass import Code, Instruction, Loop, Unit
from warpladder.data import metrics
from warpladder.data.names import Work

#: Work of instructions of no other class.
OTHER: Final = "other instructions"
_OF_UNIT: Final[Mapping[Unit, Work]] = {
    Unit.SHARED: Work.SHARED,
    Unit.LOCAL: Work.LOCAL,
    Unit.FP64: Work.FP64,
    Unit.TENSOR: Work.TENSOR,
}
_ATOMICS: Final = ("ATOM", "RED")
_STORES: Final = ("ST", "UTMAST", "UBLKRED")
#: States of a warp that wait for an earlier instruction -> the units of that instruction.
_PRODUCERS: Final[Mapping[str, Collection[Unit]]] = {
    "long_scoreboard": {Unit.GLOBAL, Unit.LOCAL, Unit.TEXTURE},
    "short_scoreboard": {Unit.SHARED, Unit.SPECIAL, Unit.WARP, Unit.MOVE, Unit.FP64},
}
_REGISTERS: Final = re.compile(r"\bR(\d+)((?:\.64|\.128)?)")
_WIDE: Final = {"64": 2, "F64": 2, "128": 4, "WIDE": 2}
#: Instructions with at least this part of the samples are traced to what they wait for.
_LEAST: Final = 1e-3
#: A place with at least this part of the most of all is among the lines.
_OF_MOST: Final = 0.15
_MOST_LINES: Final = 4
#: Sectors or passes over the least; lanes that share an address; loads that are narrower; a difference of lanes.
_WORSE: Final = 1.5
_NARROWER: Final = 2.0
_FEWER_LANES: Final = 0.75
_LANES: Final = 32
_SECTOR_BYTES: Final = 32


@dataclass(frozen=True)
class Coded:
    """What the code shows of a difference.

    Attributes:
        cause: what limits the slower one.
        share: of the difference of the times; from 0 to 1.
        lines: of the slower one's source, such as `12, 40`; empty where no line has it.
        less, more: what the faster one and the slower one do.
        detail: how it shows in the slower one.
    """

    cause: Cause
    share: float
    lines: str
    less: str
    more: str
    detail: str

    def words(self, *, less: bool) -> str:
        """What the faster one (`less`) or the slower one does."""
        detail = f" ({self.detail})" if self.detail else ""
        return (self.less if less else self.more) + at_lines(self.lines, less=less) + detail


def at_lines(lines: str, *, less: bool) -> str:
    """`, at lines 12, 40 of the slower one`; empty without lines.

    Args:
        less: whether the words are about the faster one.
    """
    return f", at line{'s' if ',' in lines else ''} {lines}{' of the slower one' if less else ''}" if lines else ""


@dataclass
class Profile:
    """A kernel with its counters by instruction.

    Attributes:
        code: its instructions.
        counters: metric -> place of the instruction -> reading.
        count: launches that are alike.
        spills: whether the compiler keeps registers in local memory; None where it is not known.
    """

    code: Code
    counters: Mapping[str, Mapping[int, int]]
    count: int = 1
    spills: bool | None = None

    def of(self, metric: str, place: int) -> int:
        """A reading."""
        return self.counters.get(metric, {}).get(place, 0)

    @cached_property
    def samples(self) -> Mapping[int, int]:
        """Samples by place."""
        return self.counters.get(metrics.SAMPLED, {})

    @cached_property
    def _divisions(self) -> Collection[int]:
        """Lines that divide integers: they round a conversion up and take a reciprocal."""
        return {each.line for each in self.code.instructions if each.opcode.startswith("I2F") and ".RP" in each.opcode}

    def work(self, place: int) -> str:
        """The class of work of an instruction."""
        if place not in self._works:
            self._works[place] = self._work(self.code.instructions[place])
        return self._works[place]

    @cached_property
    def _works(self) -> dict[int, str]:
        return {}

    def _work(self, each: Instruction) -> str:
        name = each.opcode.split(".")[0]
        if name.startswith(_ATOMICS):
            return Work.ATOMICS
        if each.unit is Unit.GLOBAL:
            return Work.GLOBAL_STORES if name.startswith(_STORES) else Work.GLOBAL_LOADS
        if each.unit is Unit.SPECIAL:
            if each.line in self._divisions and each.line:
                return Work.INTEGER_DIVISION
            return Work.SPECIAL if name == "MUFU" else Work.CONVERSIONS
        if each.unit is Unit.SYNC:
            return Work.TENSOR if name.startswith("WARPGROUP") else Work.BARRIERS
        return _OF_UNIT.get(each.unit, OTHER)

    @cached_property
    def waited_for(self) -> Counter[int]:
        """Samples by the place of the instruction that is waited for."""
        total, found = sum(self.samples.values()), Counter[int]()
        for place, samples in self.samples.items():
            if place >= len(self.code):
                continue
            rest = samples
            for reason in (*_PRODUCERS, "barrier", "drain") if samples >= _LEAST * total else ():
                waiting = min(rest, self.of(metrics.SAMPLED_IN + reason, place))
                if waiting:
                    found[self._producer(place, reason)] += waiting
                    rest -= waiting
            found[place] += rest
        return found

    def _producer(self, place: int, reason: str) -> int:
        if reason in _PRODUCERS:
            units = _PRODUCERS[reason]
            at_branch = not _operands(self.code.instructions[place])
            return next(self._in_block(place, units) if at_branch else self._written_before(place, units), place)
        wanted = {Work.BARRIERS} if reason == "barrier" else {Work.GLOBAL_STORES, Work.ATOMICS}
        return next((at for at in self._before(place) if self.work(at) in wanted), place)

    def _in_block(self, place: int, units: Collection[Unit]) -> Iterator[int]:
        """The instructions of these units before a branch, which waits for all that is on its way, up to the branch or barrier before."""
        for at in range(place - 1, -1, -1):
            each = self.code.instructions[at]
            if each.unit is Unit.SYNC or not _operands(each):
                return
            if each.unit in units:
                yield at

    def _before(self, place: int) -> Iterator[int]:
        """The places before one: up to the head of its loop, then from the end of the loop, then further up."""
        loop = self._loop(place)
        if loop:
            yield from range(place - 1, loop.first - 1, -1)
            yield from range(loop.last, place - 1, -1)
        yield from range((loop.first if loop else place) - 1, -1, -1)

    def _loop(self, place: int) -> Loop | None:
        """The innermost loop around a place."""
        return min((each for each in self.code.loops if each.first <= place <= each.last), key=len, default=None)

    def _written_before(self, place: int, units: Collection[Unit]) -> Iterator[int]:
        """The instructions of these units that write a register of the one at a place, each register's last one."""
        each = self.code.instructions[place]
        open_registers = _read(each) | _written(each)
        for at in self._before(place):
            written = open_registers & _written(self.code.instructions[at])
            if written and self.code.instructions[at].unit in units:
                yield at
            open_registers -= written
            if not open_registers:
                return

    @cached_property
    def by_work(self) -> Mapping[str, float]:
        """The part of the samples by class of work."""
        total, found = max(sum(self.waited_for.values()), 1), defaultdict[str, float](float)
        for place, samples in self.waited_for.items():
            found[self.work(place)] += samples / total
        return found

    def by_line(self, weights: Mapping[int, float]) -> Mapping[int, float]:
        """Weights of places by line, those of places without a line left out."""
        found = defaultdict[int, float](float)
        for place, weight in weights.items():
            if place < len(self.code) and (line := self.code.instructions[place].line):
                found[line] += weight
        return found

    def readings(self, metric: str, work: str = "") -> Mapping[int, int]:
        """The readings of a metric by place, or those of a class of work."""
        every = self.counters.get(metric, {}).items()
        return {at: value for at, value in every if at < len(self.code) and (not work or self.work(at) == work)}

    @cached_property
    def is_chased(self) -> bool:
        """Whether a load in a loop takes its address from a load of the pass before."""
        return any(_is_load(self.code.instructions[at]) and self._chases(at) for at in self.readings(metrics.EXECUTED))

    def _chases(self, place: int) -> bool:
        loop = self._loop(place)
        if loop is None or len(loop) > _MOST_STEPS:
            return False
        wanted = _read(self.code.instructions[place])
        for at in islice(self._before(place), len(loop)):
            each = self.code.instructions[at]
            if not wanted & _written(each):
                continue
            if _is_load(each):
                return bool(at >= place)
            wanted = (wanted - _written(each)) | _read(each)
        return False


_MOST_STEPS: Final = 400


def _is_load(each: Instruction) -> bool:
    return each.opcode.split(".")[0] in ("LDG", "LD")


def _width(each: Instruction) -> int:
    parts = each.opcode.split(".")
    return max([_WIDE.get(part, 1) for part in parts[1:]] + [2 if each.unit is Unit.FP64 else 1])


def _operands(each: Instruction) -> list[tuple[int, int]]:
    """The registers of an instruction in order, each with how many of them there are at least."""
    return [(int(number), 2 if wide == ".64" else 1) for number, wide in _REGISTERS.findall(each.text)]


def _writes(each: Instruction) -> bool:
    name = each.opcode.split(".")[0]
    return not name.startswith((*_STORES, "RED", "BAR", "BRA", "EXIT")) and "SETP" not in name


@lru_cache(maxsize=1 << 14)
def _written(each: Instruction) -> frozenset[int]:
    operands = _operands(each)
    return frozenset(range(operands[0][0], operands[0][0] + _width(each)) if operands and _writes(each) else ())


def _read(each: Instruction) -> set[int]:
    operands = _operands(each)[1 if _writes(each) else 0 :]
    name, *parts = each.opcode.split(".")
    is_wide = each.unit is Unit.FP64 or "F64" in parts
    ends_wide = "WIDE" in parts or name.startswith(_STORES)
    found = set[int]()
    for place, (number, wide) in enumerate(operands):
        is_last = place == len(operands) - 1
        found |= set(range(number, number + max(wide, _width(each) if is_wide or (ends_wide and is_last) else 1)))
    return found


# -- two cells -----------------------------------------------------------------------------------------------------------------


def coded(slow: Sequence[Profile], fast: Sequence[Profile], times_ns: tuple[float, float]) -> Coded | None:
    """The work of the code whose time differs the most; None where it makes up less than half of the difference.

    Args:
        slow, fast: the kernels of both, with counters by instruction.
        times_ns: of the slower and of the faster one, under the profiler.
    """
    difference = times_ns[0] - times_ns[1]
    if difference <= 0 or not (_sampled(slow) and _sampled(fast)):
        return None
    if found := _of_lanes(slow, fast, times_ns):
        return found
    spent = [_spent(profiles, time) for profiles, time in zip((slow, fast), times_ns, strict=True)]
    changes: Mapping[str, float] = {work: spent[0].get(work, 0.0) - spent[1].get(work, 0.0) for work in spent[0]}
    share, works = _explaining(changes, difference)
    others = ""
    is_more = bool(works) and not _is_no_more(works[0], slow, fast)
    if (share < ENOUGH or not is_more) and (held_up := _held_up(changes, slow, fast)):
        changes, others = held_up, ", with all that waits behind them,"
        share, works = _explaining(changes, difference)
    if not works:
        return None
    samples = [sum(sum(each.samples.values()) for each in profiles) for profiles in (slow, fast)]
    of_first = zip((each.get(works[0], 0.0) for each in spent), times_ns, samples, strict=True)
    if changes[works[0]] < _ERRORS * math.sqrt(sum(own * time / number for own, time, number in of_first)):
        return None
    cause, detail = _named(Work(works[0]), slow, fast)
    lines = lines_of(slow, lambda each: {at: n for at, n in each.waited_for.items() if each.work(at) == works[0]})
    takes = []
    for work in works:
        named, least = f"{_named(Work(work), slow, fast)[0]}{others}", spent[1].get(work, 0.0)
        short, long = format_duration(least), format_duration(least + changes[work])
        takes.append((f"{named} take {short} in place of {long}", f"{named} take {long} in place of {short}"))
    less, more = (" and ".join(words) for words in zip(*takes, strict=True))
    return Coded(cause, share, lines, less, more, detail)


def _held_up(changes: Mapping[str, float], slow: Sequence[Profile], fast: Sequence[Profile]) -> Mapping[str, float] | None:
    """The changes where one kind of access holds up all others, so that warps wait at instructions that are no more than before. It gets the
    time of work that is no more, and of the instructions at its own lines that are executed as often as it.

    None unless lanes do exactly one of `_HOLDING_UP` much more often.
    """
    grown = [work for work in _HOLDING_UP if _lanes_of(work, slow) > _MUCH_MORE * _lanes_of(work, fast)]
    if len(grown) != 1:
        return None
    (culprit,) = grown
    found = dict(changes)
    for work, change in changes.items():
        if work == culprit or change <= 0:
            continue
        moved = change if _is_no_more(work, slow, fast) else change * _part_at_lines(slow, work, culprit)
        found[work] -= moved
        found[culprit] = found.get(culprit, 0.0) + moved
    return found


def _is_no_more(work: str, slow: Sequence[Profile], fast: Sequence[Profile]) -> bool:
    """Whether the slower one executes a class of work no more often, nor moves more sectors with it."""
    pairs = ([_of_work(work, each, metric) for each in (slow, fast)] for metric in (metrics.EXECUTED, metrics.SECTORS))
    return all(of_slow <= _NO_MORE * of_fast for of_slow, of_fast in pairs)


#: Accesses that fill the queue in which all accesses to memory wait.
_HOLDING_UP: Final = (Work.ATOMICS, Work.GLOBAL_STORES)
#: Counts of the slower one over those of the faster one: from the first on, much more; up to the second, no more.
_MUCH_MORE: Final = 8.0
_NO_MORE: Final = 1.1


def _lanes_of(work: Work, profiles: Sequence[Profile]) -> float:
    """Lanes that do a class of work in global memory, where atomic operations on shared memory do not count."""
    return sum(
        each.count * count
        for each in profiles
        for at, count in each.readings(metrics.THREADS_EXECUTED, work).items()
        if not each.code.instructions[at].opcode.startswith("ATOMS")
    )


def _part_at_lines(profiles: Sequence[Profile], work: str, culprit: Work) -> float:
    """The part of the time of a class of work that instructions have at the lines of another one, executed as often as that."""
    part, whole = 0.0, 0.0
    for each in profiles:
        lines = {(each.code.instructions[at].line, count) for at, count in each.readings(metrics.EXECUTED, culprit).items()}
        for at, samples in each.waited_for.items():
            if each.work(at) == work:
                whole += each.count * samples
                if (each.code.instructions[at].line, each.of(metrics.EXECUTED, at)) in lines:
                    part += each.count * samples
    return part / whole if whole else 0.0


def _explaining(changes: Mapping[str, float], difference: float) -> tuple[float, Sequence[str]]:
    """The part of a difference that the first class of work makes up, or the first two, and which; none where it is less than half."""
    first, *others = sorted(changes, key=changes.__getitem__, reverse=True)
    share, second = 1 - abs(1 - changes[first] / difference), next(iter(others), OTHER)
    if first == OTHER or share < _HALF:
        return 0.0, ()
    more = sum(change for change in changes.values() if change > 0)
    if share >= ENOUGH or more > _MOST_OVER * difference:
        return share, (first,)
    if second == OTHER or changes[second] < _LEAST_PART * difference:
        return max(share, changes[first] / more), (first,)
    return max(share, (changes[first] + changes[second]) / more), (first, second)


_HALF: Final = 0.5
#: A second class of work makes up this part of the difference, or more.
_LEAST_PART: Final = 0.1
#: Standard errors of the number of samples that a difference is larger than.
_ERRORS: Final = 2.0
#: From this part on, a cause counts as known.
ENOUGH: Final = 0.75
#: The slower one's additional times may be more than the difference by this factor: the rest of the work takes more time where nothing waits.
_MOST_OVER: Final = 1.5


def _sampled(profiles: Sequence[Profile]) -> bool:
    return any(each.samples for each in profiles)


def _spent(profiles: Sequence[Profile], time_ns: float) -> Mapping[str, float]:
    """The time by class of work, of all kernels together: each takes the time of its samples."""
    found = defaultdict[str, float](float)
    samples = [each.count * sum(each.samples.values()) for each in profiles]
    for each, number in zip(profiles, samples, strict=True):
        for work, part in each.by_work.items():
            found[work] += part * time_ns * number / max(sum(samples), 1)
    return found


def lanes(profiles: Sequence[Profile]) -> float:
    """Active lanes of an instruction, the mean; NaN where it was not counted."""
    threads, warps = (
        sum(each.count * sum(each.counters.get(name, {}).values()) for each in profiles)
        for name in (metrics.THREADS_EXECUTED, metrics.EXECUTED)
    )
    return threads / warps if warps else float("nan")


def lines_of(profiles: Sequence[Profile], weights: Callable[[Profile], Mapping[int, float]]) -> str:
    """The lines with the most weight, in order."""
    found = defaultdict[int, float](float)
    for each in profiles:
        for line, weight in each.by_line(weights(each)).items():
            found[line] += each.count * weight
    most = sorted(found, key=lambda line: -found[line])[:_MOST_LINES]
    return ", ".join(map(str, sorted(line for line in most if found[line] >= _OF_MOST * max(found.values()))))


def _of_lanes(slow: Sequence[Profile], fast: Sequence[Profile], times_ns: tuple[float, float]) -> Coded | None:
    """Divergence: fewer lanes of an instruction are active, and more instructions are executed for it."""
    active = lanes(slow), lanes(fast)
    if not active[0] < _FEWER_LANES * active[1]:
        return None
    share = _explained_by(
        active[1] / active[0], _of_work("", slow, metrics.EXECUTED) / _of_work("", fast, metrics.EXECUTED), times_ns
    )
    if share < _HALF:
        return None

    def idle(each: Profile) -> dict[int, float]:
        executed = each.counters.get(metrics.EXECUTED, {})
        return {at: max(0.0, n - each.of(metrics.THREADS_EXECUTED, at) / _LANES) for at, n in executed.items()}

    few, many = map(significant, active)
    less, more = (
        f"{one} of {_LANES} lanes are active in an instruction in place of {other}" for one, other in ((many, few), (few, many))
    )
    return Coded(Cause.DIVERGENCE, share, lines_of(slow, idle), less, more, "the lanes of a warp go different ways")


def _explained_by(fewer_lanes: float, more_instructions: float, times_ns: tuple[float, float]) -> float:
    """The part of a difference that idle lanes explain. Where they are behind all additional instructions, what these take less than their
    number is because the slower one issues them faster: nothing of it is left to explain."""
    part = math.log(fewer_lanes) / math.log(times_ns[0] / times_ns[1])
    is_behind = more_instructions > 1 and abs(math.log(fewer_lanes) / math.log(more_instructions) - 1) < 1 - ENOUGH
    return min(part, 1.0) if is_behind else 1 - abs(1 - part)


def _named(work: Work, slow: Sequence[Profile], fast: Sequence[Profile]) -> tuple[Cause, str]:
    """The cause behind a class of work, and how it shows in the slower one."""
    match work:
        case Work.LOCAL:
            spills = any(each.spills or each.spills is None for each in slow)
            return (Cause.SPILLS if spills else Cause.LOCAL_ARRAYS), _executed(work, slow)
        case Work.SHARED:
            passes = _over(slow, metrics.PASSES, metrics.PASSES_IDEAL, work)
            if passes >= _WORSE * _over(fast, metrics.PASSES, metrics.PASSES_IDEAL, work):
                return Cause.BANK_CONFLICTS, f"{significant(passes)} times the passes of accesses without conflicts"
            return Cause.SHARED, _executed(work, slow)
        case Work.GLOBAL_LOADS | Work.GLOBAL_STORES:
            return _of_accesses(work, slow, fast)
        case Work.ATOMICS:
            few = _lanes_of_an_address(work, slow)
            return Cause.ATOMICS, f"at least {few:.0f} lanes of a warp share an address" if few >= 2 else _executed(work, slow)
        case _:
            return Cause(str(work)), _executed(work, slow)


def _of_accesses(work: Work, slow: Sequence[Profile], fast: Sequence[Profile]) -> tuple[Cause, str]:
    is_load = work is Work.GLOBAL_LOADS
    if is_load and any(each.is_chased for each in slow) and not any(each.is_chased for each in fast):
        return Cause.POINTER_CHASING, "the address of a load comes from the load before"
    if not is_load and (few := _lanes_of_an_address(work, slow)) >= 2:
        return Cause.SAME_ADDRESS_STORES, f"at least {few:.0f} lanes of a warp store to one address"
    bits = _bits(work, slow), _bits(work, fast)
    over, of_fast = (_over(each, metrics.SECTORS, metrics.SECTORS_IDEAL, work) for each in (slow, fast))
    # The parts of a vector that are read one by one touch its sectors once each: more often than that they are scattered.
    if bits[0] and bits[1] >= _NARROWER * bits[0] and over * bits[0] <= _WORSE * of_fast * bits[1]:
        return Cause.SPLIT_VECTORS, f"{significant(bits[0])} bits of a lane at a time in place of {significant(bits[1])}"
    if over >= _WORSE * of_fast:
        scattered = Cause.SCATTERED_LOADS if is_load else Cause.SCATTERED_STORES
        return scattered, f"{significant(over)} times the sectors that the bytes need"
    return (Cause.LOADS if is_load else Cause.STORES), _executed(work, slow)


def _executed(work: Work, profiles: Sequence[Profile]) -> str:
    """`134 M executions by warp, most of F2F`."""
    names = Counter[str]()
    for each in profiles:
        for at, count in each.readings(metrics.EXECUTED, work).items():
            names[each.code.instructions[at].name] += each.count * count
    return f"{format_count(names.total())} instructions, most of them {names.most_common(1)[0][0]}" if names else ""


def _of_work(work: str, profiles: Sequence[Profile], metric: str) -> float:
    return sum(each.count * sum(each.readings(metric, work).values()) for each in profiles)


def _over(profiles: Sequence[Profile], metric: str, ideal: str, work: Work) -> float:
    least = _of_work(work, profiles, ideal)
    return _of_work(work, profiles, metric) / least if least else 1.0


def _bits(work: Work, profiles: Sequence[Profile]) -> float:
    """Bits of a lane in an access, the mean."""
    bits = sum(
        each.count * count * each.code.instructions[at].bits
        for each in profiles
        for at, count in each.readings(metrics.EXECUTED, work).items()
    )
    executed = _of_work(work, profiles, metrics.EXECUTED)
    return bits / executed if executed else 0.0


def _lanes_of_an_address(work: Work, profiles: Sequence[Profile]) -> float:
    """How many lanes share an address at least: their bytes over those of the sectors that they touch."""
    sectors = _of_work(work, profiles, metrics.SECTORS)
    lanes_bytes = _of_work(work, profiles, metrics.THREADS_EXECUTED) * _bits(work, profiles) / 8
    return lanes_bytes / (sectors * _SECTOR_BYTES) if sectors else 1.0


def of_sectors(profiles: Sequence[Profile]) -> tuple[Cause, str]:
    """Scattered loads or stores, whichever touch more sectors beyond the least; and the lines."""
    loads, stores = (
        _of_work(work, profiles, metrics.SECTORS) - _of_work(work, profiles, metrics.SECTORS_IDEAL)
        for work in (Work.GLOBAL_LOADS, Work.GLOBAL_STORES)
    )
    cause = Cause.SCATTERED_STORES if stores > loads else Cause.SCATTERED_LOADS
    return cause, _lines_over(profiles, metrics.SECTORS, metrics.SECTORS_IDEAL)


def of_banks(profiles: Sequence[Profile]) -> tuple[Cause, str]:
    """Bank conflicts, and the lines."""
    return Cause.BANK_CONFLICTS, _lines_over(profiles, metrics.PASSES, metrics.PASSES_IDEAL)


def _lines_over(profiles: Sequence[Profile], metric: str, ideal: str) -> str:
    """The lines whose accesses take the most beyond the least."""
    return lines_of(profiles, lambda each: {at: n - each.of(ideal, at) for at, n in each.counters.get(metric, {}).items()})


def of_local_memory(profiles: Sequence[Profile]) -> tuple[Cause, str]:
    """Spills, or arrays where the compiler spills nothing; and the lines of the accesses."""
    lines = lines_of(profiles, lambda each: each.readings(metrics.EXECUTED, Work.LOCAL))
    return _named(Work.LOCAL, profiles, ())[0], lines


def hot_lines(profiles: Sequence[Profile]) -> str:
    """The lines whose instructions warps spend the most time with."""
    return lines_of(profiles, lambda each: each.waited_for)
