"""Takes one class of work out of a kernel, in a way that leaves the compiler no reason to remove more.

A parameter that the kernel gets besides, `SWITCH`, is 1 where the class is on and 0 where it is off. The compiler cannot know it, so one
machine code serves for both measurements: with 1 the kernel computes what it did before. With 0

- a load from global or shared memory takes one address for all lanes, which the nearest cache has, or one bank gives at once,
- a store, a barrier, an atomic operation or an access of local memory costs an issue slot and nothing else.

The compiler executes arithmetic behind a predicate all the same, and chooses between the results. So a copy of an operand takes
the place of an arithmetic instruction: what follows still depends on what came before. A store that never happens needs the other operands,
so that the compiler goes on computing them.

Addresses stay valid and loops end. Arithmetic whose results choose addresses or branches, such as the division that makes a row and a
column of a number, is done twice, the second time from operands that wait for the first result: the time more is the time that it takes.
Loads of pointers stay. A load from shared memory that an address comes from gives 0. An atomic operation that branches depend on stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from warpladder.collectors.inside.ptx import (
    Function,
    Instruction,
    Module,
    Statement,
    lines,
    registers,
    stem,
    type_of,
    with_parameter,
    with_prologue,
)
from warpladder.data.names import Work

#: The parameter that switches a class on, or has the cycles of a wait.
SWITCH: Final = "warpladder_switch"
#: A number that the parameter never has.
_NO_NUMBER: Final = 0xFFFFFFFF
#: Memory that loads read where they are off, from its middle on, since addresses have offsets; and that stores which never happen write.
_SINK: Final = "warpladder_sink"
_SINK_MIDDLE: Final = 1 << 16
_SINK_DECLARATION: Final = f".visible .global .align 16 .b8 {_SINK}[{2 * _SINK_MIDDLE}];"
#: Bytes of addresses of shared memory that the blocks of a cluster have each: where its own begin, a block may read.
_WINDOW: Final = 1 << 24
_ON: Final = "%wl_on"
_NEVER: Final = "%wl_never"
_BOTH: Final = "%wl_both"
#: Loads and stores with these order other threads' accesses: a program that waits for one would never end without it.
_ORDERED: Final = frozenset({"volatile", "acquire", "release", "relaxed", "mmio", "async"})
_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64", "tf32"})
_INTEGERS: Final = frozenset(f"{sign}{bits}" for sign in "su" for bits in (8, 16, 32, 64))
_SPECIAL: Final = frozenset({"sin", "cos", "ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "div"})
_OF_FP64: Final = frozenset({"add", "sub", "mul", "fma", "div", "rcp", "sqrt", "rsqrt", "min", "max"})
#: What a load that did not happen gives: 1 for a floating-point number, 0 for the rest, which may be an index.
_ONES: Final[Mapping[str, str]] = {"f16": "0x3C00", "f32": "0x3F800000", "f64": "0x3FF0000000000000"}


def work_of(instruction: Instruction) -> Work | None:
    """The class of work that an instruction belongs to; None for one that is never taken out."""
    modifiers = instruction.modifiers
    match instruction.name:
        case "ld" | "ldu" | "st" | "cp" | "ldmatrix" | "stmatrix" | "atom" | "red":
            return _of_memory(instruction)
        case "bar" | "barrier" if modifiers[0] in ("sync", "red") or modifiers[:2] == ("cta", "sync"):
            return Work.BARRIERS
        case "mma" | "wmma" | "wgmma" if {"mma", "mma_async"} & {instruction.name, *modifiers}:
            return Work.TENSOR
        case "cvt":
            return Work.CONVERSIONS if _converts(modifiers) else None
        case name:
            return _of_arithmetic(name, modifiers[-1] if modifiers else "")


def _of_memory(instruction: Instruction) -> Work | None:
    name, modifiers = instruction.name, instruction.modifiers
    space = next((each.partition(":")[0] for each in modifiers if each.startswith(("global", "shared", "local"))), "")
    if name in ("atom", "red"):
        return None if "async" in modifiers else Work.ATOMICS
    if name == "cp":
        return Work.GLOBAL_LOADS if modifiers[:2] in (("async", "ca"), ("async", "cg")) else None
    if _ORDERED & set(modifiers) or {"param", "const"} & {each.partition(":")[0] for each in modifiers}:
        return None
    if name in ("ldmatrix", "stmatrix") or space == "shared":
        return Work.SHARED
    if space == "local":
        return Work.LOCAL
    return Work.GLOBAL_LOADS if name in ("ld", "ldu") else Work.GLOBAL_STORES


def _converts(modifiers: Sequence[str]) -> bool:
    """Whether a conversion is between a floating-point number and another type, or rounds one."""
    types = [each for each in modifiers if each in _FLOATS | _INTEGERS]
    if len(types) != 2 or not _FLOATS & set(types):
        return False
    return "f64" in types or bool(_INTEGERS & set(types)) or types[0] == types[1]


def _of_arithmetic(name: str, kind: str) -> Work | None:
    if kind == "f64" and name in _OF_FP64:
        return Work.FP64
    if name in ("div", "rem") and kind in _INTEGERS:
        return Work.INTEGER_DIVISION
    return Work.SPECIAL if name in _SPECIAL else None


def works(module: Module) -> dict[Work, list[Instruction]]:
    """The classes that can be taken out of a module, and their instructions."""
    found = dict[Work, list[Instruction]]()
    for function in module.functions:
        kept = _kept(function)
        for instruction in function.instructions:
            if (work := work_of(instruction)) is not None and instruction not in kept:
                found.setdefault(work, []).append(instruction)
    return found


def without(module: Module, work: Work) -> Module:
    """The module without a class of arithmetic, or in which another class is done only while the first word of `SWITCH` is not 0.

    Arithmetic that `is_doubled` is done twice.
    """
    change = _switched if is_switched(work) else _doubled if is_doubled(module, work) else _replaced
    return module.altered(lambda function: change(function, work) if function.is_kernel else function, [_SINK_DECLARATION])


def is_doubled(module: Module, work: Work) -> bool:
    """Whether a class of arithmetic is done twice, since its results choose addresses or branches."""
    if is_switched(work) or work is Work.TENSOR:
        return False
    return any(
        steering.intersection(_results(each))
        for function in module.functions
        for steering in [_steering(function)]
        for each in function.instructions
        if work_of(each) is work
    )


def is_switched(work: Work) -> bool:
    """Whether the host switches the class on and off in one machine code."""
    return work not in _ARITHMETIC


def _with_work_by(
    write: Callable[[Instruction], Iterable[Instruction]], function: Function, work: Work
) -> tuple[Statement, ...]:
    """The body of a function, in which each instruction of the class is replaced by what `write` gives for it."""
    return tuple(
        written
        for each in function.body
        for written in (write(each) if isinstance(each, Instruction) and work_of(each) is work else (each,))
    )


def _replaced(function: Function, work: Work) -> Function:
    writer = _Writer(function)
    body = _with_work_by(writer.in_place_of, function, work)
    prologue = lines(f"ld.param.b32 %wl_switch, [{SWITCH}]; setp.eq.u32 {_NEVER}, %wl_switch, {_NO_NUMBER};")
    changed = with_prologue(replace(function, body=body), (f".pred {_NEVER}", ".b32 %wl_switch"), prologue)
    return with_parameter(changed, SWITCH)


def _doubled(function: Function, work: Work) -> Function:
    writer = _Writer(function)
    body = _with_work_by(writer.twice, function, work)
    prologue = lines(f"ld.param.b32 %wl_0b32, [{SWITCH}]; cvt.u64.u32 %wl_0b64, %wl_0b32; cvt.u16.u32 %wl_0b16, %wl_0b32;")
    zeros = (f".{kind} %wl_0{kind}, %wl_z{kind}" for kind in ("b16", "b32", "b64"))
    return with_parameter(with_prologue(replace(function, body=body), (*zeros, *writer.copies), prologue), SWITCH)


def without_register_limit(module: Module) -> Module | None:
    """The module whose kernels may use as many registers as a block can have; None where none has a limit."""

    def freed(function: Function) -> Function:
        words = function.head.split("\n")
        kept = [word for word in words if not word.strip().startswith((".minnctapersm", ".maxnreg"))]
        return replace(function, head="\n".join(kept))

    changed = module.altered(freed)
    return None if str(changed) == str(module) else changed


def _switched(function: Function, work: Work) -> Function:
    writer = _Writer(function)
    body = [each for statement in function.body for each in writer.rewritten(statement, work)]
    prologue = lines(
        f"ld.param.b32 %wl_switch, [{SWITCH}]; setp.ne.u32 {_ON}, %wl_switch, 0;"
        f"mov.u64 %wl_sink, {_SINK}; add.u64 %wl_sink, %wl_sink, {_SINK_MIDDLE};"
    )
    declared = (f".pred {_ON}", f".pred {_BOTH}", ".b32 %wl_switch", ".b64 %wl_sink", *writer.copies)
    return with_parameter(with_prologue(replace(function, body=tuple(body)), declared, prologue), SWITCH)


class _Writer:
    """Writes the instructions of a function behind the predicate.

    Attributes:
        copies: declarations of registers for operands that the instruction overwrites.
    """

    def __init__(self, function: Function) -> None:
        self._types = function.register_types
        self._kept = _kept(function)
        self._steering = _steering(function)
        self.copies: list[str] = []

    def rewritten(self, statement: Statement, work: Work) -> Iterator[Statement]:
        if not isinstance(statement, Instruction) or work_of(statement) is not work or statement in self._kept:
            yield statement
            return
        if redirected := self._redirected(statement, work):
            yield from redirected
            return
        results = _results(statement)
        copied, statement = self._with_copies(statement, results)
        yield from copied
        place = statement.place
        for result in results:
            yield self._constant(statement, result)
        if not statement.predicate:
            yield replace(statement, predicate=_ON)
            return
        guard = statement.predicate
        if guard.startswith("!"):
            yield Instruction("", "not.pred", (_BOTH, guard[1:]), place)
            guard = _BOTH
        yield Instruction("", "and.pred", (_BOTH, guard, _ON), place)
        yield replace(statement, predicate=_BOTH)

    def _redirected(self, statement: Instruction, work: Work) -> tuple[Instruction, ...]:
        """A load whose address the switch chooses; empty for another instruction, or an address that cannot be chosen."""
        base, _, offset = statement.address.partition("+")
        is_load = statement.name in ("ld", "ldu", "ldmatrix") and work in (Work.GLOBAL_LOADS, Work.SHARED)
        least = -_SINK_MIDDLE if work is Work.GLOBAL_LOADS else 0
        # The offset has to stay in the memory that the load is redirected to.
        if not is_load or not base.startswith("%") or not least <= int(offset or 0) < _SINK_MIDDLE - 64:
            return ()
        kind = _bits(type_of(base, self._types))
        copy = self._copy(kind)
        otherwise = "%wl_sink" if work is Work.GLOBAL_LOADS else copy
        choose = [Instruction("", f"selp.{kind}", (copy, base, otherwise, _ON), statement.place)]
        if work is Work.SHARED:
            choose = [Instruction("", f"and.{kind}", (copy, base, f"-{_WINDOW}"), statement.place), *choose]
        first, address, *rest = statement.operands
        steering = [each for each in _results(statement) if work is Work.SHARED and each in self._steering]
        return (
            *choose,
            replace(statement, operands=(first, address.replace(base, copy, 1), *rest)),
            *(
                Instruction(statement.predicate, f"selp.{_bits(type_of(each, self._types))}", (each, each, "0", _ON))
                for each in steering
            ),
        )

    def _copy(self, kind: str) -> str:
        """A further register."""
        self.copies.append(f".{kind} %wl_copy_{len(self.copies)}")
        return f"%wl_copy_{len(self.copies) - 1}"

    def twice(self, statement: Instruction) -> Iterator[Instruction]:
        """The instruction, and again with operands that wait for its result."""
        (result,) = _results(statement)
        of = _bits(type_of(result, self._types))
        first, guard, place = self._copy(of), statement.predicate, statement.place
        yield replace(statement, operands=(first, *statement.operands[1:]))
        yield Instruction(guard, f"and.{of}", (f"%wl_z{of}", first, f"%wl_0{of}"), place)
        operands = list(statement.operands)
        for number, operand in enumerate(operands[1:], start=1):
            if operand.startswith("%"):
                kind = _bits(type_of(operand, self._types))
                if kind != of:
                    yield Instruction(guard, f"cvt.u{kind[1:]}.u{of[1:]}", (f"%wl_z{kind}", f"%wl_z{of}"), place)
                operands[number] = self._copy(kind)
                yield Instruction(guard, f"xor.{kind}", (operands[number], operand, f"%wl_z{kind}"), place)
        yield replace(statement, operands=tuple(operands))

    def _with_copies(self, statement: Instruction, results: Sequence[str]) -> tuple[list[Statement], Instruction]:
        """Copies of the registers that the instruction both reads and writes, and the instruction that reads the copies."""
        first, *rest = statement.operands or ("",)
        both = [each for each in dict.fromkeys(registers(" ".join(rest))) if each in results]
        copies = list[Statement]()
        for register in both:
            kind = type_of(register, self._types)
            copy = self._copy(kind)
            copies.append(Instruction(statement.predicate, f"mov.{_bits(kind)}", (copy, register), statement.place))
            rest = [_renamed(each, register, copy) for each in rest]
        return copies, replace(statement, operands=(first, *rest)) if both else statement

    def _constant(self, statement: Instruction, result: str) -> Instruction:
        """What gives a result a value where the instruction is not executed."""
        kind = type_of(result, self._types)
        if kind == "pred":
            return replace(statement, opcode="setp.eq.u32", operands=(result, "0", "0"))
        of_type = next((each for each in reversed(statement.modifiers) if each[0] in "fbsu" and each[1:].isdigit()), "")
        value = _ONES.get(of_type, "0") if of_type[1:] == kind[1:] else "0"
        return replace(statement, opcode=f"mov.{_bits(kind)}", operands=(result, value))

    def in_place_of(self, statement: Instruction) -> Iterator[Instruction]:
        """Copies in place of arithmetic. The results go on depending on an operand."""
        results = _results(statement)
        sources = [_source(statement, number) for number in range(len(results))]
        for register in dict.fromkeys(registers(" ".join(statement.operands[1:]))):
            kind = _bits(type_of(register, self._types))
            if register not in sources and kind != "pred":
                yield Instruction(_NEVER, f"st.global.{kind}", (f"[{_SINK}]", register), statement.place)
        for result, source in zip(results, sources, strict=True):
            yield (source and self._moved(statement, result, source)) or self._constant(statement, result)

    def _moved(self, statement: Instruction, result: str, source: str) -> Instruction | None:
        to = _bits(type_of(result, self._types))
        if not source.startswith("%"):
            kind = {"0f": "f32", "0d": "f64"}.get(source[:2].lower())
            same = kind is not None and kind[1:] == to[1:]
            value = f"0x{source[2:]}" if same else source
            return replace(statement, opcode=f"mov.{to}", operands=(result, value)) if same else None
        of = _bits(type_of(source, self._types))
        if of == to:
            return replace(statement, opcode=f"mov.{to}", operands=(result, source))
        if (of, to) == ("b32", "b64"):
            return replace(statement, opcode="mov.b64", operands=(result, f"{{{source}, {source}}}"))
        if (of, to) == ("b64", "b32"):
            return replace(statement, opcode="mov.b64", operands=(f"{{_, {result}}}", source))
        return None


_ARITHMETIC: Final = frozenset({Work.CONVERSIONS, Work.SPECIAL, Work.INTEGER_DIVISION, Work.FP64, Work.TENSOR})


def _results(statement: Instruction) -> tuple[str, ...]:
    if statement.name in ("st", "red", "stmatrix", "cp", "wgmma") or statement.opcode.startswith(("bar.sync", "barrier.")):
        return ()
    if statement.name == "bar":
        return statement.results if "red" in statement.modifiers else ()
    return tuple(each for each in statement.results if each != "_")


def _source(statement: Instruction, number: int) -> str:
    """The operand that a result takes its value from: the sum before, else the first operand."""
    operands = statement.operands[1:]
    if statement.name in ("mma", "wmma"):
        sums = registers(operands[-1])
        return sums[number] if number < len(sums) else ""
    return operands[-1] if statement.name == "fma" else operands[0]


def _bits(kind: str) -> str:
    return f"b{kind[1:]}" if kind[1:].isdigit() else kind


def _renamed(operand: str, register: str, copy: str) -> str:
    """The operand with a register replaced. A register whose name begins with the name stays."""
    return re.sub(re.escape(register) + r"(?![\w$])", lambda _: copy, operand)


def _kept(function: Function) -> frozenset[Instruction]:
    """Instructions that stay: loads of pointers, and atomic operations that branches depend on."""
    pointers = _feeding(function, _addresses(function), frozenset({"add", "sub", "mov", "cvta"}))
    guards = _feeding(function, _guards(function))
    return frozenset(
        each
        for each in function.instructions
        if work_of(each) in (Work.GLOBAL_LOADS, Work.ATOMICS)
        and (guards if work_of(each) is Work.ATOMICS else pointers).intersection(_results(each))
    )


def _steering(function: Function) -> frozenset[str]:
    """The registers that addresses and branches depend on."""
    return _feeding(function, _addresses(function) | _guards(function))


def _addresses(function: Function) -> frozenset[str]:
    return frozenset(register for each in function.instructions for register in registers(each.address))


def _guards(function: Function) -> frozenset[str]:
    return frozenset(each.predicate.lstrip("!") for each in function.instructions if each.predicate)


def _feeding(function: Function, ends: frozenset[str], by: frozenset[str] | None = None) -> frozenset[str]:
    """The registers that others are computed from, and these.

    Args:
        by: the instructions that count; None for all.
    """
    sources = dict[str, set[str]]()
    for each in function.instructions:
        if by is None or each.name in by:
            for result in _results(each):
                sources.setdefault(result, set()).update(registers(" ".join(each.operands[1:])))
    return frozenset(_reached(sources, tuple(ends)))


# -- what the text tells of a class --------------------------------------------------------------------------------------------


def chased(function: Function) -> list[Instruction]:
    """The loads from global memory whose address depends on what the same load gave before."""
    feeds = dict[str, set[str]]()  # register -> registers that are computed from it
    for each in function.instructions:
        for source in registers(" ".join(each.operands[1:])):
            feeds.setdefault(source, set()).update(_results(each))
    loads = [each for each in function.instructions if work_of(each) is Work.GLOBAL_LOADS and each.name != "cp"]
    return [each for each in loads if _reached(feeds, each.results) & set(registers(each.address))]


def _reached(feeds: Mapping[str, set[str]], start: Sequence[str]) -> set[str]:
    reached, waiting = set(start), list(start)
    while waiting:
        for after in feeds.get(waiting.pop(), set()) - reached:
            reached.add(after)
            waiting.append(after)
    return reached


def split_accesses(function: Function) -> list[list[Instruction]]:
    """Groups of accesses of 1 or 2 bytes at consecutive addresses, which one wider access could do."""
    groups = dict[tuple[str, str, Work], list[tuple[int, int, Instruction]]]()
    for each in function.instructions:
        work, width = work_of(each), bytes_of(each)
        if work in (Work.GLOBAL_LOADS, Work.GLOBAL_STORES) and width in (1, 2) and (each.address.startswith("%")):
            base, _, offset = each.address.partition("+")
            groups.setdefault((base, stem(base), work), []).append((int(offset or 0), width, each))
    found = list[list[Instruction]]()
    for group in groups.values():
        group.sort(key=lambda each: each[0])
        run = [group[0]]
        for before, after in pairwise(group):
            if after[0] != before[0] + before[1]:
                found += [[each[2] for each in run]]
                run = []
            run.append(after)
        found += [[each[2] for each in run]]
    return [group for group in found if len(group) > 1]


def bytes_of(instruction: Instruction) -> int:
    """Bytes that a lane moves with a load, a store or an atomic operation; 0 for one without a type."""
    kind = next((each for each in reversed(instruction.modifiers) if each.lstrip("bfsux").isdigit() and each[0] in "bfsu"), "")
    vector = next((int(each[1]) for each in instruction.modifiers if each in ("v2", "v4", "v8")), 1)
    return int(kind.lstrip("bfsu").partition("x")[0]) // 8 * vector if kind else 0


# -- what the machine code has of each class -----------------------------------------------------------------------------------

_IN_MACHINE_CODE: Final[Mapping[Work, tuple[str, ...]]] = {
    Work.GLOBAL_LOADS: ("LDG", "LD", "LDGSTS"),
    Work.GLOBAL_STORES: ("STG", "ST"),
    Work.SHARED: ("LDS", "STS", "LDSM", "STSM"),
    Work.LOCAL: ("LDL", "STL"),
    Work.ATOMICS: ("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    Work.BARRIERS: ("BAR",),
    Work.CONVERSIONS: ("F2F", "F2I", "I2F", "FRND"),
    Work.SPECIAL: ("MUFU",),
    Work.FP64: ("DADD", "DMUL", "DFMA", "DSETP"),
    Work.TENSOR: ("HMMA", "HGMMA", "IMMA", "IGMMA", "DMMA", "QGMMA", "BGMMA"),
}
#: Classes that the compiler makes a division of integers of.
_OF_DIVISION: Final = frozenset({Work.CONVERSIONS, Work.SPECIAL})
#: The least part of another class that has to be left.
_LEFT: Final = 0.8


def counts(code: Iterable[str]) -> dict[Work, int]:
    """The instructions of each class in machine code, of which each text may begin with a predicate."""
    words = (each.split() for each in code)
    names = Counter((each[1] if each[0].startswith("@") else each[0]).partition(".")[0] for each in words)
    return {work: sum(names[name] for name in of_work) for work, of_work in _IN_MACHINE_CODE.items()}


def changed_besides(work: Work, before: Mapping[Work, int], after: Mapping[Work, int]) -> str:
    """What else the compiler removed, or repeated in an unrolled loop, as text; empty if nothing."""
    expected = {work} | (_OF_DIVISION if work is Work.INTEGER_DIVISION else frozenset())
    # A store that never happens is one more for each operand but the first. A conversion has one.
    more = work is not Work.CONVERSIONS and after[Work.GLOBAL_STORES] >= before[Work.GLOBAL_STORES]
    others = [each for each in before if each not in expected and not (more and each is Work.GLOBAL_STORES)]
    changed = [each for each in others if after[each] < _LEFT * before[each] or after[each] * _LEFT > before[each]]
    return "; ".join(f"{each} went from {before[each]} to {after[each]} too" for each in changed)
