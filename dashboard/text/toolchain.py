"""Kernels under two compilers as text: their times, what changed in their machine code, and a sentence for each that says why."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from warpladder.dashboard.compare.between_runs import SMALLEST_EFFECT
from warpladder.dashboard.compare.within_run import CaseTimes, Judgement
from warpladder.dashboard.core import code_changes
from warpladder.dashboard.core.cell import Entry, name_of, records
from warpladder.dashboard.core.cells import cells, select, timings
from warpladder.dashboard.core.code_changes import Change
from warpladder.dashboard.core.machine_code import Kernel, MachineCode
from warpladder.dashboard.core.numbers import NOTHING, format_duration, format_estimate, format_ratio
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text.formats import TableOrJson, json_text
from warpladder.dashboard.text.parts import wrapped
from warpladder.dashboard.ui.text import plain_lines, plain_table
from warpladder.data.naming import CellName
from warpladder.data.words import counted, first_of

_DECIDED: Final = ("slower", "faster")
_MOST_CASES: Final = 3
_MOST_NAMES: Final = 6
_SAME: Final = "the same instructions"


@dataclass(frozen=True)
class Timed:
    """A cell under both compilers.

    Attributes:
        before_ns, after_ns: medians.
        judged: the time before over the time after.
    """

    cell: CellName
    before_ns: float
    after_ns: float
    judged: Judgement


@dataclass
class Pair:
    """A kernel of a variant under both compilers.

    Attributes:
        before, after: of its launches that which loses the most resident blocks.
        times: of the cells that launch it.
    """

    workload: str
    variant: str
    before: Kernel
    after: Kernel
    times: list[Timed] = field(default_factory=list)

    @property
    def crowding(self) -> float:
        """Resident blocks before over those after."""
        before, after = map(code_changes.resident, (self.before, self.after))
        return before.blocks / max(after.blocks, 1) if before and after else 1.0

    @property
    def changes(self) -> tuple[Change, ...]:
        """What changed in its code."""
        return code_changes.changes(self.before, self.after)


def pairs(code: MachineCode, suffix: str, data: RunData | None = None) -> list[Pair]:
    """The kernels of every variant that was compiled twice.

    Args:
        suffix: at the end of the name of a variant as the compiler before compiled it.
        data: the run with their times; None without times.
    """
    found: dict[tuple[str, str, str], Pair] = {}
    for before in code.cells:
        if not before.variant.endswith(suffix):
            continue
        after = before._replace(variant=before.variant.removesuffix(suffix))
        timed = _timed(data, before, after) if data else None
        for one, other in zip(code.kernels(before), code.kernels(after), strict=False):
            launched = Pair(after.workload, after.variant, one, other)
            pair = found.setdefault((after.workload, after.variant, other.name), launched)
            if launched.crowding > pair.crowding:
                pair.before, pair.after = one, other
            pair.times += [timed] if timed else []
    return list(found.values())


def _timed(data: RunData, before: CellName, after: CellName) -> Timed | None:
    """The times of a cell in the first timing of its workload; None where one of them has none. Nothing is known where
    one is distrusted, and the other one is not or for another reason."""
    for timing in timings(data, after.workload)[:1]:
        times = CaseTimes.of(data, after.workload, after.case, timing)
        entries = [next((each for each in times.rounds if _is_of(each, cell)), None) for cell in (before, after)]
        if entries[0] and entries[1]:
            medians = [float(times.rounds[each].median()) for each in entries if each]
            judged = times.judge(entries[1], entries[0])
            every = records(select(cells(data), after.workload, after.case, timing))
            doubts = [{flag for each in every if _is_of(each.entry, cell) for flag in each.flags} for cell in (before, after)]
            if doubts[0] != doubts[1]:
                judged = judged._replace(verdict="unknown")
            is_small = abs(math.log(judged.ratio.ratio)) < math.log1p(SMALLEST_EFFECT) and judged.verdict in _DECIDED
            return Timed(after, medians[0], medians[1], judged._replace(verdict="tied") if is_small else judged)
    return None


def _is_of(entry: Entry, cell: CellName) -> bool:
    return (entry.variant, entry.config, entry.twin) == (cell.variant, cell.config, 0)


# -- text ----------------------------------------------------------------------------------------------------------------------


def render(found: Sequence[Pair], compilers: tuple[str, str], run_id: str, form: TableOrJson) -> str:
    """The comparison as text that ends with a line feed.

    Args:
        compilers: versions of NVRTC before and after.
        run_id: the run with the times; empty without one.
    """
    if form == "json":
        kernels = [_facts(each) for each in found]
        return json_text({"before": compilers[0], "after": compilers[1], "run": run_id or None, "kernels": kernels})
    sentences = wrapped((*filter(None, map(_sentence, found)), *_unchanged(found)))
    architectures = ", ".join(dict.fromkeys(each.after.architecture for each in found))
    title = f"NVRTC {compilers[0]} → {compilers[1]}, {architectures}"
    return plain_lines((title, "", *_of_times(found, compilers), *_of_resources(found), *sentences))


def _of_times(found: Sequence[Pair], compilers: tuple[str, str]) -> Iterator[str]:
    """The cells whose time changed, the slowest first."""
    every = sorted(
        {each.cell: each for pair in found for each in pair.times}.values(), key=lambda each: each.judged.ratio.ratio
    )
    if not every:
        return
    decided = [each for each in every if each.judged.verdict in _DECIDED]
    headings = ("variant", "case", *(f"NVRTC {each}" for each in compilers), "times as fast", "verdict")
    yield from plain_table(headings, [_line(each) for each in decided])
    rest = {word: sum(each.judged.verdict == word for each in every) for word in ("tied", "unknown")}
    counts = ", ".join(f"{counted(count, 'cell')} {word}" for word, count in rest.items() if count)
    yield from ([counts, ""] if counts else [""])


def _line(timed: Timed) -> tuple[str, ...]:
    durations = map(format_duration, (timed.before_ns, timed.after_ns))
    ratio = format_estimate(timed.judged.ratio.estimate, format_ratio)
    return name_of(timed.cell.variant, timed.cell.config), timed.cell.case, *durations, ratio, timed.judged.verdict


_RESOURCES: Final[Mapping[str, str]] = {
    "registers": "registers",
    "spill_bytes": "spills",
    "stack_bytes": "stack",
    "shared_bytes": "shared memory",
}


def _figures(kernel: Kernel) -> dict[str, int | None]:
    resident = code_changes.resident(kernel)
    own = {name: getattr(kernel, name) for name in _RESOURCES}
    return {**own, "instructions": len(kernel.code), "blocks": resident.blocks if resident else None}


def _of_resources(found: Sequence[Pair]) -> Iterator[str]:
    """A row for each kernel whose figures changed."""
    rows = []
    for each in found:
        before, after = _figures(each.before), _figures(each.after)
        if before != after:
            values = (_step(before[name], after[name]) for name in before)
            rows.append((each.variant, each.after.name, *values))
    if rows:
        headings = ("variant", "kernel", *_RESOURCES.values(), "instructions", "blocks a multiprocessor")
        yield from plain_table(headings, rows)
        yield ""


def _step(before: int | None, after: int | None) -> str:
    texts = [NOTHING if each is None else f"{each:,}" for each in (before, after)]
    return " → ".join(dict.fromkeys(texts))


def _sentence(pair: Pair) -> str:
    """What changed in a kernel, and which of it can be why its time did; empty where neither changed."""
    changes, verdicts = pair.changes, _verdicts(pair)
    if not changes and not verdicts:
        return ""
    texts = "; ".join(each.text for each in changes) or _SAME
    name = pair.after.name
    own = f"{pair.variant} {name}" if name else pair.variant
    if not verdicts:
        return f"{own}: {texts}."
    slower = "slower" in verdicts
    reasons = [each.text for each in changes if each.lengthens is slower]
    if not reasons or ("slower" in verdicts and "faster" in verdicts):
        return f"{own}: {' and '.join(verdicts.values())}; its code does not tell why: {texts}."
    others = [each.text for each in changes if each.lengthens is not slower]
    besides = f" (besides: {'; '.join(others)})" if others else ""
    return f"{own}: {' and '.join(verdicts.values())}: {'; '.join(reasons)}{besides}."


def _verdicts(pair: Pair) -> dict[str, str]:
    """`slower` and `faster` -> the same with the cases; none where no time changed."""
    found = {}
    for word in _DECIDED:
        if cases := dict.fromkeys(each.cell.case for each in pair.times if each.judged.verdict == word):
            found[word] = f"{word} at {first_of(cases, _MOST_CASES)}"
    return found


def _unchanged(found: Sequence[Pair]) -> Iterator[str]:
    names = dict.fromkeys(each.variant for each in found if not each.changes and not _verdicts(each))
    if names:
        yield f"{_SAME} in kernels of {first_of(names, _MOST_NAMES)}"


def _facts(pair: Pair) -> dict[str, Any]:
    times = [
        {
            "config": each.cell.config,
            "case": each.cell.case,
            "before_ns": each.before_ns,
            "after_ns": each.after_ns,
            **each.judged.ratio.estimate.columns("speedup"),
            "verdict": each.judged.verdict,
        }
        for each in pair.times
    ]
    return {
        "workload": pair.workload,
        "variant": pair.variant,
        "kernel": pair.after.name,
        "architecture": pair.after.architecture,
        "before": _figures(pair.before),
        "after": _figures(pair.after),
        "changes": [{"text": each.text, "lengthens": each.lengthens} for each in pair.changes],
        "times": times,
    }
