"""What another compiler made of a kernel: what changed in its resources, its loops and its instructions, in words.

A change is named with its effect where it can have only one: fewer resident blocks, more spills or more instructions for the same work
lengthen a kernel, and the reverse shortens it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.numbers import significant
from warpladder.dashboard.core.sass import ARITHMETIC, Code, Loop, Unit
from warpladder.data.occupancy import Occupancy, limits_of, occupancy
from warpladder.data.words import counted

#: The largest changes of counts that a sentence names.
_MOST_NAMES: Final = 4
#: The part of the instructions of a loop, or of a kernel without one, that can lengthen it, and of the instructions outside of loops.
_LEAST: Final = 0.01
_LEAST_OUTSIDE: Final = 0.1
#: The loops that are described: that with the most arithmetic, and one that changed by more than a few instructions.
_MOST_LOOPS: Final = 2
_SEVERAL: Final = 8
#: The part of their lines that two loops share at least, to be the same loop of the source.
_SHARED_LINES: Final = 0.5

_Mix = Counter[tuple[Unit, str]]


@dataclass(frozen=True)
class Change:
    """A change of a kernel.

    Attributes:
        text: what changed.
        lengthens: whether it can only make the kernel slower; False where it can only make it faster, None where it can do either.
    """

    text: str
    lengthens: bool | None = None


def changes(a: Kernel, b: Kernel) -> tuple[Change, ...]:
    """What changed from `a` to `b`: resources first, then each loop, then the rest of the code; empty for equal instructions."""
    of_code = [*_of_loops(a.code, b.code)] or [*_of_all(a.code, b.code)] or [*_of_order(a.code, b.code)]
    return (*_of_resources(a, b), *of_code)


def resident(kernel: Kernel) -> Occupancy | None:
    """The blocks of a kernel on a multiprocessor; None for an architecture whose limits are not known."""
    limits = limits_of(kernel.architecture)
    if limits is None or kernel.registers is None:
        return None
    return occupancy(limits, kernel.threads, kernel.registers, kernel.shared_bytes)


def _of_resources(a: Kernel, b: Kernel) -> Iterator[Change]:
    before, after = resident(a), resident(b)
    blocks, fewer = "", None
    if before and after and before.blocks != after.blocks:
        blocks, fewer = (
            f": {counted(after.blocks, 'block')} in place of {before.blocks} on a multiprocessor",
            after.blocks < before.blocks,
        )
    elif after:
        blocks = f", and as many blocks ({after.blocks}) on a multiprocessor"
    shared = _changed("static shared memory", a.static_shared_bytes, b.static_shared_bytes, " bytes")
    registers = _changed("registers", a.registers, b.registers)
    if registers or shared:
        yield Change(" and ".join(filter(None, (registers, shared))) + blocks, fewer)
    for name, of_a, of_b in (("spills", a.spill_bytes, b.spill_bytes), ("stack", a.stack_bytes, b.stack_bytes)):
        if text := _changed(name, of_a, of_b, " bytes"):
            yield Change(text, (of_b or 0) > (of_a or 0))


def _changed(name: str, a: int | None, b: int | None, unit: str = "") -> str:
    """`registers 64 → 72`; empty where they are equal or one is not known."""
    return f"{name} {a:,} → {b:,}{unit}" if a is not None and b is not None and a != b else ""


# -- instructions --------------------------------------------------------------------------------------------------------------


def _of_loops(a: Code, b: Code) -> Iterator[Change]:
    """The change of the loop with the most arithmetic, and of the other loop that changed the most."""
    pairs, hot = _paired(a, b), a.hot_loop()
    found = {one: each for one, other in pairs.items() if (each := _of_loop(_name_of(b, other), a.mix(one), b.mix(other)))}
    order = sorted(found, key=lambda one: (one != hot, -abs(len(b.of_loop(pairs[one])) - len(a.of_loop(one)))))
    for place, one in enumerate(order[:_MOST_LOOPS]):
        if place == 0 or (found[one].lengthens is not None and len(a.of_loop(one)) >= _SEVERAL):
            yield found.pop(one)
    if found:
        yield Change(f"{counted(len(found), 'other loop')} changed less")
    if len(a.loops) != len(b.loops):
        yield Change(f"{counted(len(b.loops), 'loop')} in place of {len(a.loops)}")


def _of_all(a: Code, b: Code) -> Iterator[Change]:
    where, least = ("the kernel, outside of its loops,", _LEAST_OUTSIDE) if b.loops else ("the kernel", _LEAST)
    if change := _of_counts(where, a.mix(), b.mix(), least):
        yield change


def _of_order(a: Code, b: Code) -> Iterator[Change]:
    """What differs between instructions of the same names."""
    texts = [[each.normal for each in code.instructions] for code in (a, b)]
    if texts[0] != texts[1]:
        same = Counter(texts[0]) == Counter(texts[1])
        yield Change(
            "the same instructions in another order" if same else "as many instructions of each name, with other operands"
        )
    elif [each.text for each in a.instructions] != [each.text for each in b.instructions]:
        yield Change("the same instructions with other numbers of registers")


def _paired(a: Code, b: Code) -> Mapping[Loop, Loop]:
    """The loops of `a` with those of `b` that have most of their lines; without lines, and of several with the same ones, in order."""
    found: dict[Loop, Loop] = {}
    for loop in a.loops:
        lines = _lines(a, loop)
        free = [each for each in b.loops if each not in found.values()]
        near = max(free, key=lambda each: _overlap(lines, _lines(b, each)), default=None)
        if near and _overlap(lines, _lines(b, near)) >= _SHARED_LINES:
            found[loop] = near
    return found


def _overlap(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _lines(code: Code, loop: Loop) -> frozenset[int]:
    return frozenset(line for place in code.of_loop(loop) if (line := code.instructions[place].line))


def _name_of(code: Code, loop: Loop) -> str:
    lines = _lines(code, loop)
    if not lines:
        return f"the loop at instruction {loop.first}"
    first, last = min(lines), max(lines)
    return f"the loop at line {first}" if first == last else f"the loop at lines {first} to {last}"


def _of_counts(part: str, a: _Mix, b: _Mix, least: float = _LEAST) -> Change | None:
    """The change of how many instructions of each name a part of the code has; None where there is none."""
    changed = {key: b[key] - a[key] for key in {**a, **b} if a[key] != b[key]}
    if not changed:
        return None
    largest = sorted(changed, key=lambda key: (-abs(changed[key]), key[1]))
    named = [f"{changed[key]:+,} {key[1]}".replace("-", "−") for key in largest[:_MOST_NAMES]]
    named[0] += f" ({largest[0][0]})"
    rest = f" and {counted(len(largest) - _MOST_NAMES, 'more name')}" if len(largest) > _MOST_NAMES else ""
    before, after = a.total(), b.total()
    in_place = f"{after:,} instructions in place of {before:,}" if before != after else f"as many instructions ({after:,})"
    is_effect = abs(after - before) >= least * before
    return Change(f"{part} has {in_place}: {', '.join(named)}{rest}", after > before if is_effect else None)


def _of_loop(part: str, a: _Mix, b: _Mix) -> Change | None:
    """The change of a loop. If a pass does several times the arithmetic, or a part of it, it is unrolled otherwise."""
    work = [sum(count for (unit, _), count in mix.items() if unit in ARITHMETIC) for mix in (a, b)]
    if not min(work) or max(work) < 2 * min(work) or max(work) % min(work):
        return _of_counts(part, a, b)
    before, after = (mix.total() / own for mix, own in zip((a, b), work, strict=True))
    each = f"{significant(after)} instructions for each in place of {significant(before)}"
    text = f"a pass of {part} has {work[1]:,} floating-point and tensor instructions in place of {work[0]:,}, with {each}"
    return Change(text, after > before if after != before else None)
