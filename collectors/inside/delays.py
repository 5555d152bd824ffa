"""Puts random delays into kernels, and what else the memory model allows to happen, so that races show in the outputs.

Every altered kernel computes what the kernel does, unless threads race: an instruction waits, the lanes of a warp run one part of the code
one after another, or a store becomes visible after the atomic operation behind it. Only instructions are added that change no register and no
predicate of the kernel. The lanes of a warp that are together wait together, so that wgmma, barriers and setmaxnreg find whole warps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from warpladder.collectors.core.demangle import short_name
from warpladder.collectors.inside.ptx import (
    OURS,
    Directive,
    Function,
    Instruction,
    Label,
    Module,
    Place,
    Statement,
    lines,
    numbered,
    registers,
    with_prologue,
)

#: Constant memory that the host writes before a run: the run's seed, the sites that are on, a bit each, and the longest delay, in ns.
NUMBERS: Final = f"{OURS}_numbers"
_DECLARATION: Final = f".visible .const .align 4 .b32 {NUMBERS}[3];"
#: Bits of the word: sites that share one are on together.
MOST: Final = 31
#: A warp waits no more after so many cycles, about a millisecond: it may pass a site a million times.
_MOST_CYCLES: Final = 1 << 21
_ODD: Final = 0x9E3779B1
_KINDS: Final = {
    **dict.fromkeys(("bar", "barrier", "mbarrier", "griddepcontrol"), "barrier"),
    **dict.fromkeys(("fence", "membar"), "fence"),
    **dict.fromkeys(("atom", "red"), "atomic operation"),
    "cp": "asynchronous copy",
}
_STORE: Final = "store of shared memory"
_LOAD: Final = "load of shared memory"
_APART: Final = "lanes"
_LATE: Final = "late"
#: Instructions for which all lanes have to be at one place, or that ask which are there.
_TOGETHER: Final = frozenset(
    {"activemask", "bar", "barrier", "call", "brx", "ret", "exit", "elect", "griddepcontrol", "setmaxnreg"}
)
#: What keeps a store in order with what is behind it, or leads elsewhere.
_ENDS: Final = _TOGETHER | {"bra", "fence", "membar", "cp", "mbarrier", "wgmma"}
#: The longest part of the code that lanes run one after another: it is written twice.
_LONGEST: Final = 1500
_FLOATS: Final = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})


@dataclass(frozen=True)
class Site:
    """A place where something happens at random.

    Attributes:
        kernel: its symbol.
        at: the number of the statement of the kernel.
        kind: what is at the place.
        end: of a part of the code, the statement after it; of a store, what it becomes visible after.
        bit: of the sites that are on together.
    """

    kernel: str
    at: int
    kind: str
    place: Place | None
    end: int = 0
    bit: int = 0

    def __str__(self) -> str:
        where = _where(self.place) or f"statement {self.at} of {self.kernel}"
        if self.kind == _APART:
            return f"lanes of a warp one after another, with the store at {where}"
        if self.kind == _LATE:
            return f"the store at {where} visible after the atomic operation or flag behind it"
        place = f"before the {self.kind} at {where}" if self.kind else f"at the start of {short_name(self.kernel)}"
        return f"a delay {place}"


def _where(place: Place | None) -> str:
    return f"{place[0]}:{place[1]}" if place else ""


def adds_floats(module: Module) -> str:
    """Where kernels add numbers of floating point by atomic operations, whose order changes the last bits; empty where they do not."""
    for function in module.functions:
        for each in function.instructions:
            is_atomic = each.name in ("atom", "red") or "reduce" in each.modifiers
            if is_atomic and "add" in each.modifiers and _FLOATS.intersection(each.modifiers):
                return _where(each.place) or each.opcode
    return ""


def stressed(module: Module) -> tuple[Module, list[Site]]:
    """The module with what happens at random, and its sites. Nothing happens where `NUMBERS` are 0."""
    found = [site for function in module.functions if function.is_kernel for site in _sites(function)]
    found = [replace(site, bit=number * min(len(found), MOST) // len(found)) for number, site in enumerate(found)]
    writer = _Writer(found)
    return module.altered(lambda each: writer.altered(each) if each.is_kernel else each, [_DECLARATION]), found


# -- where ---------------------------------------------------------------------------------------------------------------------


def _sites(function: Function) -> Iterator[Site]:
    """The sites of a kernel: of accesses of one kind that nothing else parts, the first."""
    first = next((at for at, each in enumerate(function.body) if isinstance(each, Instruction)), None)
    parts, before = dict(_apart(function)), ""
    for at, each in enumerate(function.body):
        if at in parts:
            stores = (each for each in function.body[at : parts[at]] if isinstance(each, Instruction) and _kind(each) == _STORE)
            yield Site(function.name, at, _APART, next(stores).place, parts[at])
        if isinstance(each, Label):
            before = ""
        if not isinstance(each, Instruction):
            continue
        kind = _kind(each)
        if at == first or (kind and (kind != before or kind == "barrier")):
            yield Site(function.name, at, kind if at != first else "", each.place)
        if end := _flag_behind(function, at, each):
            yield Site(function.name, at, _LATE, each.place, end)
        before = "" if each.name == "bra" else kind or before


def _kind(instruction: Instruction) -> str:
    """What an instruction waits for or reaches; empty for arithmetic, parameters and local memory."""
    name = instruction.name
    if kind := _KINDS.get(name):
        return kind
    if name == "wgmma":
        return "product of a warpgroup" if "fence" in instruction.modifiers else ""
    if name not in ("ld", "ldu", "st", "ldmatrix", "stmatrix") or {"param", "const", "local"} & _spaces(instruction):
        return ""
    shared = name in ("ldmatrix", "stmatrix") or "shared" in _spaces(instruction)
    return f"{'store' if name.startswith('st') else 'load'} of {'shared' if shared else 'global'} memory"


def _spaces(instruction: Instruction) -> set[str]:
    return {each.partition(":")[0] for each in instruction.modifiers}


def _apart(function: Function) -> Iterator[tuple[int, int]]:
    """Parts of the code that lanes may run one after another: those that store into shared memory and load from it."""
    start, depth = 0, 0
    if any(each.name in ("wgmma", "setmaxnreg") for each in function.instructions):
        return  # they need whole warpgroups
    for at, each in enumerate((*function.body, Directive("}"))):
        if depth or _needs_all(each):
            if not depth:
                yield from _closed(function, start, at)
            depth += {"{": 1, "}": -1}.get(each.text, 0) if isinstance(each, Directive) else 0
            start = at + 1


def _needs_all(statement: Statement) -> bool:
    if not isinstance(statement, Instruction):
        return isinstance(statement, Directive) and not statement.text.startswith(".pragma")
    return statement.name in _TOGETHER or bool({"sync", "aligned", "bulk"} & set(statement.modifiers))


def _closed(function: Function, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts between two statements that no branch enters, or leaves but at their end."""
    body = function.body
    while {_STORE, _LOAD} <= {_kind(each) for each in body[start:end] if isinstance(each, Instruction)}:
        inside = {each.name for each in body[start : end + 1] if isinstance(each, Label)}
        entered = {each.operands[0] for each in (*body[:start], *body[end:]) if _is_branch(each)}
        crossing = (
            at
            for at, each in enumerate(body[start:end], start)
            if (each.operands[0] not in inside if _is_branch(each) else isinstance(each, Label) and each.name in entered)
        )
        at = next(crossing, end)
        if at == end:
            if end - start <= _LONGEST:
                yield start, end
            return
        yield from _closed(function, start, at)
        start = at + 1


def _is_branch(statement: Statement) -> TypeGuard[Instruction]:
    return isinstance(statement, Instruction) and statement.name == "bra"


def _flag_behind(function: Function, at: int, store: Instruction) -> int:
    """The atomic operation or flag behind a store that nothing keeps in order with it; 0 where there is none."""
    if store.name != "st" or store.predicate or _kind(store) != "store of global memory" or not _is_weak(store):
        return 0
    used = set(registers(" ".join(store.operands)))
    for number, each in enumerate(function.body[at + 1 :], at + 1):
        if (
            not isinstance(each, Instruction)
            or each.name in _ENDS
            or (each.name not in ("st", "red") and used & set(each.results))
        ):
            return 0
        kind = _kind(each)
        if "global" in kind or each.name in ("atom", "red"):
            is_flag = each.name in ("atom", "red") or (each.name == "st" and not _is_weak(each))
            return number if is_flag and not {"release", "acq_rel", "async", "shared"} & _spaces(each) else 0
    return 0


def _is_weak(access: Instruction) -> bool:
    return not {"volatile", "relaxed", "release", "acquire", "mmio", "async"} & set(access.modifiers)


# -- what is written -----------------------------------------------------------------------------------------------------------

#: The seed of a warp, of those of the run, the block and the warp; a number of each lane; and when the warp began.
_PROLOGUE: Final = (
    f"ld.const.b32 %wl_seed, [{NUMBERS}]; ld.const.b32 %wl_mask, [{NUMBERS}+4]; ld.const.b32 %wl_longest, [{NUMBERS}+8];"
    "mov.u32 %wl_lane, %tid.z; mov.u32 %wl_t, %ntid.y; mul.lo.u32 %wl_lane, %wl_lane, %wl_t; mov.u32 %wl_t, %tid.y;"
    "add.u32 %wl_lane, %wl_lane, %wl_t; mov.u32 %wl_t, %ntid.x; mul.lo.u32 %wl_lane, %wl_lane, %wl_t; mov.u32 %wl_t, %tid.x;"
    f"add.u32 %wl_lane, %wl_lane, %wl_t; shr.u32 %wl_t, %wl_lane, 5; mad.lo.u32 %wl_seed, %wl_seed, {_ODD}, %wl_t;"
    + "".join(f"mov.u32 %wl_t, %ctaid.{axis}; mad.lo.u32 %wl_seed, %wl_seed, {_ODD}, %wl_t;" for axis in "zyx")
    + f"mul.lo.u32 %wl_lane, %wl_lane, {_ODD}; mov.u32 %wl_start, %clock;"
)


def _on(site: Site) -> str:
    """Sets the predicate where a site is on."""
    return f"and.b32 %wl_t, %wl_mask, {1 << site.bit}; setp.ne.u32 %wl_p, %wl_t, 0;"


def _drawn(by: str) -> str:
    """Draws a number. The lanes of a warp that are together read one clock, so that all of them wait or none does."""
    return f"xor.b32 %wl_t, %wl_t, {by}; mul.lo.u32 %wl_t, %wl_t, {_ODD}; shr.u32 %wl_h, %wl_t, 15;" + (
        f"xor.b32 %wl_t, %wl_t, %wl_h; mul.lo.u32 %wl_t, %wl_t, {_ODD};"
    )


def _delay(site: Site) -> tuple[Statement, ...]:
    """A wait, of one warp in four. The others wait for 0 ns: without a branch, the lanes of a warp stay together."""
    return lines(
        f"{_on(site)} mov.u32 %wl_t, %clock; sub.u32 %wl_h, %wl_t, %wl_start; setp.lt.and.u32 %wl_p, %wl_h, {_MOST_CYCLES}, %wl_p;"
        f"{_drawn('%wl_seed')} setp.lt.and.u32 %wl_p, %wl_t, {1 << 30}, %wl_p; shr.u32 %wl_t, %wl_t, 15;"
        "and.b32 %wl_t, %wl_t, %wl_longest; selp.b32 %wl_t, %wl_t, 0, %wl_p; nanosleep.u32 %wl_t;"
    )


class _Writer:
    """Writes what happens at the sites of a module."""

    def __init__(self, found: Sequence[Site]) -> None:
        self._found = found
        self._names = numbered()

    def altered(self, function: Function) -> Function:
        self._of = {
            kind: {each.at: each for each in self._found if each.kernel == function.name and (each.kind == kind)}
            for kind in (_APART, _LATE)
        }
        self._late = {each.end: each for each in self._of[_LATE].values()}
        self._delays = {each.at: each for each in self._found if each.kernel == function.name and each.kind not in self._of}
        parts, body, at = self._of[_APART], list[Statement](), 0
        while at < len(function.body):
            end = parts[at].end if at in parts else at + 1
            code = [written for place in range(at, end) for written in self._at(function.body, place)]
            body += self._one_after_another(parts[at], code) if at in parts else code
            at = end
        declared = (
            ".b32 %wl_seed, %wl_mask, %wl_longest, %wl_start, %wl_lane, %wl_h, %wl_t",
            ".b64 %wl_d, %wl_e",
            ".pred %wl_p, %wl_late",
        )
        return with_prologue(replace(function, body=tuple(body)), declared, lines(_PROLOGUE))

    def _at(self, body: Sequence[Statement], at: int) -> Iterator[Statement]:
        """A statement, and what happens at it."""
        each = body[at]
        if at in self._delays:
            yield from _delay(self._delays[at])
        if store := self._of[_LATE].get(at):
            assert isinstance(each, Instruction)
            yield from lines(
                f"{_on(store)} mov.u32 %wl_t, %clock; {_drawn('%wl_seed')} setp.lt.and.u32 %wl_late, %wl_t, {1 << 31}, %wl_p;"
            )
            yield replace(each, predicate="!%wl_late")
        elif flag := self._late.get(at):
            assert isinstance(each, Instruction)
            late = body[flag.at]
            assert isinstance(late, Instruction)
            # A store to where the flag is stays before it.
            (this, by), (other, other_by) = (
                (base, int(offset or 0)) for base, _, offset in (each.address.partition("+"), late.address.partition("+"))
            )
            yield from lines(
                f"mov.b64 %wl_d, {other}; mov.b64 %wl_e, {this}; sub.s64 %wl_d, %wl_d, %wl_e; add.s64 %wl_d, %wl_d, {other_by - by + 32};"
                "setp.lt.and.u64 %wl_p, %wl_d, 64, %wl_late; setp.ge.and.u64 %wl_late, %wl_d, 64, %wl_late;"
            )
            yield replace(late, predicate="%wl_p")
            yield each
            yield from lines("selp.b32 %wl_t, %wl_longest, 0, %wl_late; nanosleep.u32 %wl_t;")
            yield replace(late, predicate="%wl_late")
        else:
            yield each

    def _one_after_another(self, part: Site, code: Sequence[Statement]) -> Iterator[Statement]:
        """Code that some lanes of a warp run first, and the others after them."""
        second, end = next(self._names), next(self._names)
        again = {each.name: next(self._names) for each in code if isinstance(each, Label)}
        yield from lines(
            f"{_on(part)} mov.u32 %wl_t, %clock; xor.b32 %wl_t, %wl_t, %wl_lane; {_drawn('%wl_seed')}"
            f"setp.lt.and.u32 %wl_p, %wl_t, {1 << 31}, %wl_p; @%wl_p bra {second};"
        )
        yield from code
        yield from lines(f"bra {end}; {second}: nanosleep.u32 100;")
        for each in code:
            if isinstance(each, Label):
                yield Label(again[each.name])
            elif _is_branch(each):
                yield replace(each, operands=tuple(again.get(operand, operand) for operand in each.operands))
            else:
                yield each
        yield Label(end)
