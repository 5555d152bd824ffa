"""A cell's kernels as lists of instructions with their counters, their mix, their loops, and what differs between two kernels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.machine_code import Kernel
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.sass import ARITHMETIC, INSTRUCTION_BYTES, Code, Loop, Unit, difference
from warpladder.data.naming import CellName
from warpladder.data.words import counted

_EXECUTED: Final = "inst_executed"
_SAMPLES: Final = "smsp__pcsamp_sample_count"
_REASON: Final = "smsp__pcsamp_warps_issue_stalled_"
#: Metric of a column -> its short name, what it counts, and the metric of the ideal count.
_COLUMNS: Final[Mapping[str, tuple[str, str, str]]] = {
    _EXECUTED: ("executed", "times that warps executed the instruction", ""),
    _SAMPLES: ("samples", "samples of warps at the instruction", ""),
    "memory_l2_theoretical_sectors_global": (
        "sectors",
        "sectors of 32 bytes of global memory",
        "memory_l2_theoretical_sectors_global_ideal",
    ),
    "memory_l1_wavefronts_shared": ("shared", "wavefronts of shared memory", "memory_l1_wavefronts_shared_ideal"),
}
#: The largest changes of counts that a sentence names.
_MOST_NAMES: Final = 3


class Family(StrEnum):
    """What the colour of an instruction says."""

    MEMORY = "memory"
    ARITHMETIC = "floating point and tensor"
    CONTROL = "control and synchronisation"
    OTHER = "other"


_FAMILIES: Final[Mapping[Unit, Family]] = {
    **dict.fromkeys(ARITHMETIC, Family.ARITHMETIC),
    **dict.fromkeys((Unit.GLOBAL, Unit.SHARED, Unit.LOCAL, Unit.CONSTANT, Unit.TEXTURE), Family.MEMORY),
    **dict.fromkeys((Unit.CONTROL, Unit.SYNC), Family.CONTROL),
}


def family(unit: Unit) -> Family:
    """The family of a unit's instructions."""
    return _FAMILIES.get(unit, Family.OTHER)


def cases(data: RunData, workload: str) -> list[str]:
    """The charted cases of a workload with launches, by size."""
    known = data.code.cases(workload)
    return [case for case in cells.charted_cases(data, workload)["case"] if case in known]


def variants(data: RunData, workload: str, case: str) -> dict[str, list[str]]:
    """Variant -> its configs with launches, both in the order of the run."""
    configs: dict[str, list[str]] = {}
    for cell in data.code.cells:
        if (cell.workload, cell.case) == (workload, case):
            configs.setdefault(cell.variant, []).append(cell.config)
    ordered = data.variants.loc[data.variants["workload"] == workload, "variant"]
    return {name: configs[name] for name in ordered if name in configs}


def times(data: RunData, workload: str, case: str) -> dict[tuple[str, str], float]:
    """Variant and config -> median in nanoseconds, in the first timing of the workload; empty without samples."""
    for timing in cells.timings(data, workload)[:1]:
        rounds = data.rounds(workload, case, timing.scope, timing.cache)
        return {(entry.variant, entry.config): float(rounds[entry].median()) for entry in rounds if not entry.twin}
    return {}


def first_variant(data: RunData, workload: str, case: str) -> str:
    """The fastest rung with code; without times the last rung with code, and without one the last variant."""
    every, timed = variants(data, workload, case), times(data, workload, case)
    of_workload = data.variants[data.variants["workload"] == workload]
    roles = dict(zip(of_workload["variant"].tolist(), of_workload["role"].tolist(), strict=True))
    cells = {name: [CellName(workload, name, config, case) for config in configs] for name, configs in every.items()}
    names = [name for name in every if any(each.code_id for cell in cells[name] for each in data.code.kernels(cell))]
    names = names or list(every)
    rungs = [name for name in names if roles[name] == "rung"] or names
    fastest = min(((ns, name) for (name, _), ns in timed.items() if name in rungs), default=None)
    return fastest[1] if fastest else rungs[-1]


def first_config(data: RunData, workload: str, case: str, variant: str) -> str:
    """The fastest config of a variant; the first one without times."""
    configs = variants(data, workload, case)[variant]
    timed = times(data, workload, case)
    return min(configs, key=lambda config: timed.get((variant, config), float("inf")))


def main_launch(data: RunData, cell: CellName) -> int:
    """The place of the launch that executes the most instructions; without counts, of the one with the longest code."""
    kernels = data.code.kernels(cell)
    executed = [sum(_executed(data, cell, kernel).values()) for kernel in kernels]
    return max(range(len(kernels)), key=lambda place: (executed[place], len(kernels[place].code)), default=0)


def _executed(data: RunData, cell: CellName, kernel: Kernel) -> Mapping[int, int]:
    return data.code.counters(cell, kernel.index).get(_EXECUTED, {})


def heats(data: RunData, cell: CellName, kernel: Kernel) -> list[dict[str, Any]]:
    """The counters of a launch by instruction; none where they were not recorded.

    Returns:
        Of each counter its `name`, heading of its column; its `meaning`, what it counts; and lists of places with `values` above 0, with
        `ideal`, the least that the access of an instruction needs, and of samples with `reasons`, the largest first.
    """
    counters = data.code.counters(cell, kernel.index)
    reasons: dict[int, list[tuple[str, int]]] = {}
    for metric, values in counters.items():
        if metric.startswith(_REASON) and not metric.endswith("_not_issued"):
            for place, value in values.items():
                reasons.setdefault(place, []).append((metric.removeprefix(_REASON).replace("_", " "), value))
    ordered = {place: sorted(each, key=lambda pair: (-pair[1], pair[0])) for place, each in reasons.items()}
    found = []
    for metric, (name, meaning, ideal) in _COLUMNS.items():
        if metric in counters:
            reasons_of = ordered if metric == _SAMPLES else {}
            by_place = ("values", counters[metric]), ("ideal", counters.get(ideal, {})), ("reasons", reasons_of)
            lists = {key: [*map(list, values.items())] for key, values in by_place}
            found.append({"name": name, "meaning": meaning, **lists})
    return found


def hot_loop(data: RunData, cell: CellName, kernel: Kernel) -> Loop | None:
    """The loop that is executed most often; None where the kernel has no loop."""
    return kernel.code.hot_loop(_executed(data, cell, kernel))


def mix(data: RunData, cell: CellName, kernel: Kernel) -> pd.DataFrame:
    """A row for each unit and name: `unit`, `name`, `hot`, `all`, and `executed` where the run counted it.

    `hot` is the number of instructions in the hot loop, and `all` the number in the kernel. Rows come by unit, in the order of
    `hot` and `all`.
    """
    code, executed = kernel.code, _executed(data, cell, kernel)
    loop = hot_loop(data, cell, kernel)
    hot = code.mix(loop) if loop else Counter[tuple[Unit, str]]()
    by_name: Counter[tuple[Unit, str]] = Counter()
    for place, count in executed.items():
        if place < len(code):
            by_name[code.instructions[place].unit, code.instructions[place].name] += count
    rows = [(str(unit), name, hot[unit, name], count, by_name[unit, name]) for (unit, name), count in code.mix().items()]
    frame = pd.DataFrame(rows, columns=["unit", "name", "hot", "all", "executed"])
    of_unit = frame.groupby("unit")[["hot", "all"]].transform("sum")
    order = frame.assign(unit_hot=of_unit["hot"], unit_all=of_unit["all"])
    keys = ["unit_hot", "unit_all", "unit", "hot", "all", "name"]
    order = order.sort_values(keys, ascending=[False, False, True, False, False, True])
    return frame.loc[order.index].drop(columns=[] if executed else ["executed"]).reset_index(drop=True)


def loops(data: RunData, cell: CellName, kernel: Kernel) -> pd.DataFrame:
    """A row for each loop: `first` and `last` offset, source `lines`, `depth`, `instructions`, `arithmetic_percent`, `hot`.

    `instructions` and `arithmetic_percent` are about the loop's own instructions, without loops inside it.
    """
    code, hot = kernel.code, hot_loop(data, cell, kernel)
    rows = [
        (
            offset(loop.first),
            offset(loop.last),
            lines_of(code, code.of_loop(loop)),
            loop.depth,
            len(code.of_loop(loop)),
            100 * code.arithmetic_share(loop),
            loop == hot,
        )
        for loop in code.loops
    ]
    return pd.DataFrame(rows, columns=["first", "last", "lines", "depth", "instructions", "arithmetic_percent", "hot"])


def offset(place: int) -> str:
    """The offset of an instruction from the first one, as branches write it: `0x0a40`."""
    return f"0x{INSTRUCTION_BYTES * place:04x}"


def lines_of(code: Code, places: Sequence[int]) -> str:
    """`40 to 52`; empty where no instruction has a source line."""
    numbers = [code.instructions[place].line for place in places if code.instructions[place].line]
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def answer(data: RunData, cell: CellName, kernel: Kernel) -> str:
    """A sentence on the hot loop: its length, its lines, its share of arithmetic, and the spills of the kernel."""
    code, loop = kernel.code, hot_loop(data, cell, kernel)
    places = code.of_loop(loop) if loop else range(len(code))
    numbers = lines_of(code, places)
    word = "lines" if " to " in numbers else "line"
    lines = f" ({word} {numbers})" if numbers else ""
    tensor = any(code.instructions[place].unit is Unit.TENSOR for place in places)
    kind = "floating-point and tensor arithmetic" if tensor else "floating-point arithmetic"
    share = f"{100 * code.arithmetic_share(loop):.0f} % {kind}"
    start = f"The hot loop of {counted(len(places), 'instruction')}{lines} is {share}"
    if loop is None:
        start = f"The kernel of {counted(len(places), 'instruction')}{lines} has no loop and is {share}"
    return f"{start}{_part_of_kernel(code, places)}; {_spills(code, loop)}."


def _part_of_kernel(code: Code, places: Sequence[int]) -> str:
    """How much of the kernel's arithmetic the loop has, where most of it stands outside; else empty."""
    within, every = (sum(code.instructions[place].unit in ARITHMETIC for place in each) for each in (places, range(len(code))))
    return f", with {within:,} of the kernel's {every:,} such instructions" if 2 * within < every else ""


def _spills(code: Code, loop: Loop | None) -> str:
    """Loads from and stores to local memory, where spilled registers are."""
    local = [place for place, each in enumerate(code.instructions) if each.unit is Unit.LOCAL]
    loads = sum(code.instructions[place].name.startswith("LDL") for place in local)
    stores = sum(code.instructions[place].name.startswith("STL") for place in local)
    if not loads + stores:
        return "no local loads or stores"
    text = f"{counted(loads, 'local load')} and {counted(stores, 'local store')}"
    if loop is None:
        return text
    within = len(set(code.of_loop(loop)) & set(local))
    return f"{text}, {within or 'none'} of them in the hot loop"


class Kind(StrEnum):
    """What a row of a comparison says of its instructions."""

    SAME = "same"
    CHANGED = "changed"
    ONLY_A = "only a"
    ONLY_B = "only b"


@dataclass(frozen=True)
class Row:
    """Instructions that stand side by side: their places in both kernels; -1 where a side has none."""

    kind: Kind
    a: int
    b: int


def rows(a: Code, b: Code) -> tuple[Row, ...]:
    """Two kernels side by side. Of instructions that differ, those of one name stand beside each other."""
    result: list[Row] = []
    for piece in difference(a, b):
        left, right = range(piece.a_first, piece.a_end), range(piece.b_first, piece.b_end)
        if piece.same:
            result += [Row(Kind.SAME, one, other) for one, other in zip(left, right, strict=True)]
        else:
            result += _changed(a, b, left, right)
    return tuple(result)


def _changed(a: Code, b: Code, left: range, right: range) -> Iterator[Row]:
    """Rows of two parts that differ. Between two rows of a name, the instructions of A come before the instructions of B."""
    from rapidfuzz.distance import Indel

    names = ([code.instructions[place].name for place in places] for code, places in ((a, left), (b, right)))
    only_b: list[Row] = []
    for each in Indel.opcodes(*names):
        one, other = left[each.src_start : each.src_end], right[each.dest_start : each.dest_end]
        if each.tag == "equal":
            yield from only_b
            only_b = []
            yield from (Row(Kind.CHANGED, *pair) for pair in zip(one, other, strict=True))
        else:
            yield from (Row(Kind.ONLY_A, place, -1) for place in one)
            only_b += [Row(Kind.ONLY_B, -1, place) for place in other]
    yield from only_b


def changes(a: Code, b: Code) -> pd.DataFrame:
    """A row for each unit and name whose count differs: `unit`, `name`, `a`, `b`, `change`; the largest changes first."""
    of_a, of_b = a.mix(), b.mix()
    counts = [(str(unit), name, of_a[unit, name], of_b[unit, name]) for unit, name in {**of_a, **of_b}]
    frame = pd.DataFrame(counts, columns=["unit", "name", "a", "b"])
    frame["change"] = frame["b"] - frame["a"]
    order = frame.assign(size=frame["change"].abs()).sort_values(["size", "name"], ascending=[False, True]).index
    frame = frame.loc[order]
    return frame[frame["change"] != 0].reset_index(drop=True)


def difference_sentence(compared: Sequence[Row], changed: pd.DataFrame) -> str:
    """How many instructions are equal, changed or on one side alone, and the largest changes of counts."""
    counts = Counter(row.kind for row in compared)
    if set(counts) <= {Kind.SAME}:
        return "The machine code is the same, apart from register numbers and addresses."
    parts = [f"{counted(counts[Kind.SAME], 'instruction')} equal", f"{counts[Kind.CHANGED]:,} changed"]
    parts += [f"{counts[kind]:,} only in {side}" for kind, side in ((Kind.ONLY_A, "A"), (Kind.ONLY_B, "B")) if counts[kind]]
    names = [
        f"{row.name} {row.a:,} → {row.b:,}" for row in changed.head(_MOST_NAMES)[["name", "a", "b"]].itertuples(index=False)
    ]
    text = ", ".join(parts)
    return f"{text}; {', '.join(names)}." if names else f"{text}; the counts by name are the same."
