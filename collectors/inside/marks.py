"""Marks in a kernel, between which its stages lie, and what is done at a mark: read the clock, or wait.

A mark is at each barrier, at each loop head, and where the source has `WARPLADDER_MARK("load")`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpladder.collectors.inside.ablation import SWITCH, bytes_of, work_of
from warpladder.collectors.inside.ptx import (
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Place,
    Statement,
    lines,
    loop_heads,
    numbered,
    with_parameter,
    with_prologue,
)
from warpladder.data.arrays import union_lengths
from warpladder.data.names import Work

#: Put before the source of a kernel that has marks.
MACRO: Final = '#define WARPLADDER_MARK(name) asm volatile(".pragma \\"warpladder mark " name "\\";" ::: "memory")\n'
_PRAGMA: Final = '.pragma "warpladder mark '
#: Marks of a kernel at most: each takes two registers.
MOST: Final = 12
#: Blocks and warps whose times are kept at most.
MOST_RECORDS: Final = 1 << 20
RECORDS: Final = "warpladder_records"


@dataclass(frozen=True)
class Mark:
    """A mark.

    Attributes:
        at: the number of the statement of the kernel that it stands at.
        kind: `barrier`, `loop` or `named`.
        name: of a named mark; else empty.
    """

    at: int
    kind: str
    name: str
    place: Place | None

    @property
    def text(self) -> str:
        """Such as `barrier at line 12`."""
        return (self.name or self.kind) + (f" at line {self.place[1]}" if self.place else "")


def marks(function: Function) -> list[Mark]:
    """The marks of a kernel in the order of its code: the named ones if it has any, else its barriers and loops."""
    heads, found = set(loop_heads(function)), list[Mark]()
    for at, each in enumerate(function.body):
        if isinstance(each, Directive) and each.text.startswith(_PRAGMA):
            name = each.text.removeprefix(_PRAGMA).partition('"')[0]
            found.append(Mark(at, "named", name, _place_after(function, at)))
        elif isinstance(each, Label) and each.name in heads:
            found.append(Mark(at, "loop", "", _place_after(function, at)))
        elif isinstance(each, Instruction) and work_of(each) is Work.BARRIERS:
            found.append(Mark(at, "barrier", "", each.place))
    named = [each for each in found if each.kind == "named"]
    return (named or found)[:MOST]


def _place_after(function: Function, at: int) -> Place | None:
    after = (each for each in function.body[at:] if isinstance(each, Instruction))
    return next((each.place for each in after), None)


def _with_code(
    function: Function, code: Callable[[int, Statement], tuple[Sequence[Statement], Sequence[Statement]]]
) -> Function:
    """The function with code before and after its statements."""
    body = list[Statement]()
    for at, each in enumerate(function.body):
        before, after = code(at, each)
        body += [*before, each, *after]
    return replace(function, body=tuple(body))


# -- delays --------------------------------------------------------------------------------------------------------------------


def delayed(module: Module, kernel: str, mark: Mark) -> Module:
    """The module whose kernel waits at a mark for as many cycles as the parameter `SWITCH` has."""
    names = numbered()

    def change(function: Function) -> Function:
        if not function.is_kernel:
            return function
        if function.name != kernel:
            return with_parameter(function, SWITCH)
        spin, done = next(names), next(names)
        wait = lines(
            f"@!%wl_waits bra {done}; mov.u32 %wl_from, %clock; {spin}: mov.u32 %wl_now, %clock; sub.u32 %wl_now, %wl_now, %wl_from;"
            f"setp.lt.u32 %wl_goes_on, %wl_now, %wl_cycles; @%wl_goes_on bra {spin}; {done}:"
        )
        after = isinstance(function.body[mark.at], Label)
        changed = _with_code(function, lambda at, _: (((), wait) if after else (wait, ())) if at == mark.at else ((), ()))
        prologue = lines(f"ld.param.b32 %wl_cycles, [{SWITCH}]; setp.ne.u32 %wl_waits, %wl_cycles, 0;")
        declared = (".pred %wl_waits, %wl_goes_on", ".b32 %wl_cycles, %wl_from, %wl_now")
        return with_parameter(with_prologue(changed, declared, prologue), SWITCH)

    return module.altered(change)


# -- probes --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probes:
    """A module whose kernel writes when each of its warps begins and ends, and its time in each stage.

    Attributes:
        module: the altered module.
        stages: the stage before each mark, the wait at each barrier, and the rest, in the order of the columns.
        warps: warps of a block that write.
        records: places for warps.
    """

    module: Module
    stages: tuple[str, ...]
    warps: int
    records: int

    @property
    def dtype(self) -> np.dtype[np.void]:
        """A record. Times are of the whole GPU, in ns; cycles of the multiprocessor."""
        stages = len(self.stages)
        return np.dtype(
            [
                ("start_ns", "u8"),
                ("end_ns", "u8"),
                ("sm", "u4"),
                ("cycles", "u4"),
                *[("spent", "u4", (stages,)), ("passed", "u4", (stages,))],
            ]
        )


def probed(module: Module, kernel: str, blocks: int, warps_of_block: int) -> Probes:
    """The module with probes in one kernel.

    Args:
        kernel: its symbol.
        blocks: of the largest grid.
        warps_of_block: warps of a block.
    """
    function = next(each for each in module.functions if each.name == kernel)
    found = marks(function)
    stages = [stage for mark in found for stage in _stages(mark)] + ["to the end"]
    warps = warps_of_block if blocks * warps_of_block <= MOST_RECORDS else 1
    records = min(blocks * warps, MOST_RECORDS)
    probes = Probes(module, tuple(stages), warps, records)
    declaration = f".visible .global .align 8 .b8 {RECORDS}[{records * probes.dtype.itemsize}];"
    changed = module.altered(lambda each: _with_probes(each, found, probes) if each.name == kernel else each, [declaration])
    return replace(probes, module=changed)


def _stages(mark: Mark) -> list[str]:
    return [f"up to the {mark.text}"] + [f"waiting at the {mark.text}"] * (mark.kind == "barrier")


def _with_probes(function: Function, found: Sequence[Mark], probes: Probes) -> Function:
    first, number = dict[int, int](), 0
    for mark in found:
        first[mark.at] = number
        number += len(_stages(mark))
    names = numbered()

    def code(at: int, statement: Statement) -> tuple[Sequence[Statement], Sequence[Statement]]:
        if at in first:
            before, after = _passed(first[at]), _passed(first[at] + 1)
            barrier = isinstance(statement, Instruction)
            return (before, after) if barrier else ((), before)
        if isinstance(statement, Instruction) and statement.opcode in ("ret", "exit"):
            return _written(statement, probes, next(names), next(names)), ()
        return (), ()

    count = len(probes.stages)
    zeros = "".join(f"mov.b32 %wl_spent{n}, 0; mov.b32 %wl_passed{n}, 0;" for n in range(count))
    prologue = lines(f"mov.u64 %wl_start, %globaltimer; mov.u32 %wl_first, %clock; mov.b32 %wl_last, %wl_first; {zeros}")
    declared = (
        f".b32 %wl_first, %wl_last, %wl_now, %wl_took, %wl_a, %wl_b, %wl_spent<{count}>, %wl_passed<{count}>",
        ".b64 %wl_start, %wl_end, %wl_at, %wl_wide",
        ".pred %wl_q",
    )
    return with_prologue(_with_code(function, code), declared, prologue)


def _passed(stage: int) -> tuple[Statement, ...]:
    return lines(
        "mov.u32 %wl_now, %clock; sub.u32 %wl_took, %wl_now, %wl_last; mov.b32 %wl_last, %wl_now;"
        f"add.u32 %wl_spent{stage}, %wl_spent{stage}, %wl_took; add.u32 %wl_passed{stage}, %wl_passed{stage}, 1;"
    )


def _written(end: Instruction, probes: Probes, skip: str, stay: str) -> tuple[Statement, ...]:
    """What the first lane of a warp writes at its end. A lane that goes on has jumped behind it."""
    dtype, last = probes.dtype, len(probes.stages) - 1
    guard = f"@{end.predicate[1:]} bra {skip};" if end.predicate.startswith("!") else f"@!{end.predicate} bra {skip};"
    fields = dtype.fields
    assert fields
    columns = "".join(
        f"st.global.b32 [%wl_at+{fields[column][1] + 4 * stage}], %wl_{column}{stage};"
        for column in ("spent", "passed")
        for stage in range(last + 1)
    )
    return (
        *(lines(guard) if end.predicate else ()),
        *_passed(last),
        *lines(
            "activemask.b32 %wl_a; mov.u32 %wl_b, %lanemask_lt; and.b32 %wl_a, %wl_a, %wl_b; setp.ne.u32 %wl_q, %wl_a, 0;"
            f"@%wl_q bra {skip if not end.predicate else stay};"
            "mov.u64 %wl_end, %globaltimer;"
            "mov.u32 %wl_a, %tid.z; mov.u32 %wl_b, %ntid.y; mul.lo.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %tid.y;"
            "add.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %ntid.x; mul.lo.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %tid.x;"
            f"add.u32 %wl_a, %wl_a, %wl_b; shr.u32 %wl_a, %wl_a, 5; setp.ge.u32 %wl_q, %wl_a, {probes.warps};"
            f"@%wl_q bra {skip if not end.predicate else stay};"
            "cvt.u64.u32 %wl_at, %wl_a;"
            "mov.u32 %wl_a, %ctaid.z; mov.u32 %wl_b, %nctaid.y; mul.lo.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %ctaid.y;"
            "add.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %nctaid.x; mul.lo.u32 %wl_a, %wl_a, %wl_b; mov.u32 %wl_b, %ctaid.x;"
            f"add.u32 %wl_a, %wl_a, %wl_b; mul.wide.u32 %wl_wide, %wl_a, {probes.warps}; add.u64 %wl_at, %wl_at, %wl_wide;"
            f"setp.ge.u64 %wl_q, %wl_at, {probes.records};"
            f"@%wl_q bra {skip if not end.predicate else stay};"
            f"mul.lo.u64 %wl_at, %wl_at, {dtype.itemsize}; mov.u64 %wl_wide, {RECORDS}; add.u64 %wl_at, %wl_at, %wl_wide;"
            "mov.u32 %wl_a, %smid; sub.u32 %wl_b, %wl_last, %wl_first;"
            "st.global.u64 [%wl_at], %wl_start; red.global.max.u64 [%wl_at+8], %wl_end;"
            f"st.global.b32 [%wl_at+16], %wl_a; st.global.b32 [%wl_at+20], %wl_b; {columns}"
        ),
        *([Label(stay), end, Label(skip)] if end.predicate else [Label(skip)]),
    )


def busy_ns(records: np.ndarray) -> float:
    """The time in which each multiprocessor has a warp, of all multiprocessors together."""
    sms, sm = np.unique(records["sm"], return_inverse=True)
    start, end = (records[each].astype(np.int64) for each in ("start_ns", "end_ns"))
    return float(union_lengths(sm, start, end, len(sms)).sum())


def in_sequence(records: np.ndarray) -> float:
    """Blocks, one after another, in the place of one: the time with a block over the time of a block."""
    ns = float((records["end_ns"] - records["start_ns"]).mean())
    return max(1.0, busy_ns(records) / len(np.unique(records["sm"])) / ns)


def passes(records: np.ndarray) -> np.ndarray:
    """How often a warp passes each mark, the mean of the warps that do: those of a kernel may have different tasks."""
    passed = records["passed"]
    means: np.ndarray = passed.sum(axis=0) / np.maximum((passed > 0).sum(axis=0), 1)
    return means


def until(records: np.ndarray, ns: float) -> np.ndarray:
    """The records up to a time after the first, cut there."""
    limit = np.uint64(int(records["start_ns"].min()) + int(ns))
    cut = records[records["start_ns"] < limit].copy()
    cut["end_ns"] = np.minimum(cut["end_ns"], limit)
    return cut


#: Blocks whose times are kept at most, and rows of them.
_MOST_BLOCKS: Final = 2048
_MOST_ROWS: Final = 8192


def blocks_of(ran: np.ndarray, probes: Probes) -> Iterator[dict[str, int | str]]:
    """The blocks of some multiprocessors, with their time in each stage: all where they are few.

    Args:
        ran: the records of all warps that ran; all warps of a block write, or the first alone.
    """
    number = np.flatnonzero(ran["end_ns"] > 0) // probes.warps
    ran = ran[ran["end_ns"] > 0]
    first = int(ran["start_ns"].min())
    chosen = np.isin(ran["sm"], _chosen_multiprocessors(ran, number, len(probes.stages)))
    ns_a_cycle = (ran["end_ns"] - ran["start_ns"]) / np.maximum(ran["cycles"], 1)
    for block in np.unique(number[chosen]):
        warps = number == block
        of_block = ran[warps]
        about = {
            "multiprocessor": int(of_block["sm"][0]),
            "block": int(block),
            "start_ns": int(of_block["start_ns"].min()) - first,
            "end_ns": int(of_block["end_ns"].max()) - first,
        }
        spent = dict[str, float]()  # stages of unrolled code may have one name
        for stage, ns in zip(probes.stages, (of_block["spent"] * ns_a_cycle[warps, None]).mean(axis=0), strict=True):
            spent[stage] = spent.get(stage, 0.0) + float(ns)
        for stage, ns in spent.items():
            yield {**about, "stage": stage, "stage_ns": round(ns)}


def _chosen_multiprocessors(ran: np.ndarray, number: np.ndarray, stages: int) -> np.ndarray:
    """Multiprocessors evenly along the order in which they end, the first and the last among them."""
    sms = np.unique(ran["sm"])
    ends = np.array([ran["end_ns"][ran["sm"] == sm].max() for sm in sms])
    most = min(_MOST_BLOCKS, _MOST_ROWS // stages)
    blocks_of_sm = len(np.unique(number)) / len(sms)
    count = max(2, min(len(sms), int(most / blocks_of_sm)))
    chosen: np.ndarray = sms[np.argsort(ends, kind="stable")][np.linspace(0, len(sms) - 1, count).round().astype(int)]
    return chosen


# -- lanes and addresses -------------------------------------------------------------------------------------------------------

COUNTS: Final = "warpladder_counts"


@dataclass(frozen=True)
class Counter:
    """What is counted at a place of a kernel: executions by warps, active lanes, and for an access two numbers more.

    Attributes:
        instructions: of the block of instructions that begins here; 0 for an access.
        access: the access; None for a block.
    """

    instructions: int
    access: Instruction | None


def counted(module: Module, kernel: str) -> tuple[Module, list[Counter]]:
    """The module whose kernel counts at each block of instructions and each access, four words of 8 bytes at each.

    The words: executions by warps, active lanes; of an access of global memory sectors and addresses, of shared memory the
    passes that bank conflicts make, and addresses. It is slow, and is executed once.
    """
    counters = list[Counter]()
    module = module.altered(lambda each: _counting(each, counters) if each.name == kernel else each)
    declaration = f".visible .global .align 8 .u64 {COUNTS}[{4 * max(len(counters), 1)}];"
    return module.altered(lambda each: each, [declaration]), counters


def _counting(function: Function, counters: list[Counter]) -> Function:
    body, open_block = list[Statement](), False
    for at, each in enumerate(function.body):
        if isinstance(each, Label):
            open_block = False
        if isinstance(each, Instruction):
            if not open_block:
                body += _count(len(counters), "")
                counters.append(Counter(_length(function, at), None))
                open_block = True
            if address := _address(each):
                skip = f"$warpladder_{len(counters)}"
                guard = each.predicate
                jump = f"@{guard[1:] if guard.startswith('!') else f'!{guard}'} bra {skip};" if guard else ""
                body += [*lines(jump), *_count(len(counters), address, shared=work_of(each) is Work.SHARED, access=each)]
                body += [Label(skip)] if guard else []
                counters.append(Counter(0, each))
            open_block = each.name not in ("bra", "ret", "exit", "call", "brx")
        body.append(each)
    declared = (
        ".b32 %wl_mask, %wl_lanes, %wl_low, %wl_b, %wl_key, %wl_x, %wl_y",
        ".b64 %wl_address, %wl_part, %wl_sum",
        ".pred %wl_first, %wl_leads",
    )
    return with_prologue(replace(function, body=tuple(body)), declared, ())


def _length(function: Function, at: int) -> int:
    """Instructions from here to the end of the block."""
    length = 0
    for each in function.body[at:]:
        if isinstance(each, Label):
            break
        if isinstance(each, Instruction):
            length += 1
            if each.name in ("bra", "ret", "exit", "call", "brx"):
                break
    return length


def _address(instruction: Instruction) -> str:
    work = work_of(instruction)
    of_memory = work in (Work.GLOBAL_LOADS, Work.GLOBAL_STORES, Work.ATOMICS, Work.SHARED)
    is_known = instruction.name in ("ld", "ldu", "st", "atom", "red") and instruction.address.startswith("%")
    return instruction.address if of_memory and is_known else ""


def _count(number: int, address: str, *, shared: bool = False, access: Instruction | None = None) -> tuple[Statement, ...]:
    at = f"{COUNTS}+{32 * number}"
    text = [
        "activemask.b32 %wl_mask; popc.b32 %wl_lanes, %wl_mask; mov.u32 %wl_low, %lanemask_lt;"
        "and.b32 %wl_b, %wl_low, %wl_mask; setp.eq.u32 %wl_first, %wl_b, 0;"
        f"@%wl_first red.global.add.u64 [{at}], 1; cvt.u64.u32 %wl_sum, %wl_lanes; @%wl_first red.global.add.u64 [{at}+8], %wl_sum;"
    ]
    if access is not None:
        base, _, offset = address.partition("+")
        if base.startswith("%r") and not base.startswith("%rd"):
            text.append(f"cvt.u64.u32 %wl_address, {base};")
            base = "%wl_address"
        text.append(f"add.s64 %wl_address, {base}, {offset or 0};")
        text += _distinct("%wl_address", f"{at}+24")
        text += (
            _bank_passes(access, f"{at}+16")
            if shared
            else ["shr.u64 %wl_part, %wl_address, 5;", *_distinct("%wl_part", f"{at}+16")]
        )
    return lines("".join(text).replace("]+", "+"))


def _distinct(value: str, at: str) -> Iterator[str]:
    """Adds the number of different values among the active lanes."""
    yield f"match.any.sync.b64 %wl_x, {value}, %wl_mask; and.b32 %wl_x, %wl_x, %wl_low; setp.eq.u32 %wl_leads, %wl_x, 0;"
    yield "vote.sync.ballot.b32 %wl_b, %wl_leads, %wl_mask; popc.b32 %wl_x, %wl_b; cvt.u64.u32 %wl_sum, %wl_x;"
    yield f"@%wl_first red.global.add.u64 [{at}], %wl_sum;"


def _bank_passes(access: Instruction, at: str) -> Iterator[str]:
    """Adds the most words that one bank has to give at once. Lanes with wide accesses take turns."""
    turn = {8: 4, 16: 3}.get(bytes_of(access), 5)
    yield "shr.u64 %wl_part, %wl_address, 2;"
    yield "mov.u32 %wl_y, %laneid;"
    yield f"shr.u32 %wl_x, %wl_y, {turn}; shl.b32 %wl_x, %wl_x, 5; cvt.u32.u64 %wl_key, %wl_part; and.b32 %wl_key, %wl_key, 31;"
    yield "add.u32 %wl_key, %wl_key, %wl_x; add.u32 %wl_y, %wl_y, 4096;"
    yield "match.any.sync.b64 %wl_x, %wl_part, %wl_mask; and.b32 %wl_x, %wl_x, %wl_low; setp.eq.u32 %wl_leads, %wl_x, 0;"
    yield "selp.b32 %wl_key, %wl_key, %wl_y, %wl_leads;"
    yield "match.any.sync.b32 %wl_x, %wl_key, %wl_mask; popc.b32 %wl_x, %wl_x;"
    yield "redux.sync.max.u32 %wl_x, %wl_x, %wl_mask; cvt.u64.u32 %wl_sum, %wl_x;"
    yield f"@%wl_first red.global.add.u64 [{at}], %wl_sum;"
