"""The variants that two devices have in common, with the winners of each case on both; and the names of the devices."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.compare import levels
from warpladder.dashboard.compare.within_run import CaseTimes, compared, precisions
from warpladder.dashboard.core.cell import ASIDE, ROLE_ORDER, Cell, Estimate, Timing, records
from warpladder.dashboard.core.cells import best_of_charted, cells, doubt, in_order
from warpladder.dashboard.core.numbers import format_percent
from warpladder.dashboard.core.run_data import RunData

#: What follows the model in the name of a device: memory, cores, and the word for a processor.
_AFTER_MODEL: Final = re.compile(r"\s+(\d+\s?GB\b|\d+-Core\b|CPU\b|Processor\b|@).*")
_MARK: Final = re.compile(r"\((R|TM)\)")
_LABEL: Final = 8


@dataclass(frozen=True)
class Pair:
    """A variant of a case on both devices, on each with its own fastest config.

    Attributes:
        ratio: time on B over the time on A. The runs are separate; see `levels.ratio`.
        same_source: whether both runs measured the same source.
        wins: `both`, `A` or `B`, where no rival is faster beyond the noise of the case; else empty.
    """

    a: Cell
    b: Cell
    ratio: Estimate
    same_source: bool
    wins: str

    @property
    def of_floors(self) -> float:
        """The floor on B over the floor on A, the ratio of a variant that is equally far from both; NaN where there is none to compare."""
        return nan if self.unlike_floors else self.b.floor_ns / self.a.floor_ns

    @property
    def unlike_floors(self) -> bool:
        """Whether the floors come from different ceilings, since one run measured fewer or another bound is the longer one."""
        return self.a.floor_ceiling != self.b.floor_ceiling


@dataclass(frozen=True)
class Outcome:
    """The result of a contest on one device.

    Attributes:
        winner: the fastest variant.
        ties: the other variants that are not known to be slower, by time.
        behind: of each other variant, its time over the time of the winner.
    """

    winner: str
    ties: tuple[str, ...]
    behind: Mapping[str, Estimate]

    @property
    def winners(self) -> tuple[str, ...]:
        return (self.winner, *self.ties)


@dataclass(frozen=True)
class Contest:
    """The variants of a case in one precision, on both devices.

    Attributes:
        rivals: how many variants compete.
        of_rungs: whether they are the rungs, and peers do not compete.
        both: the variant that wins on both devices, the fastest one of several; empty where the winners differ beyond the noise.
    """

    case: str
    precision: str
    rivals: int
    of_rungs: bool
    a: Outcome
    b: Outcome
    both: str


@dataclass(frozen=True)
class SideBySide:
    """The common part of two runs of a workload in one timing.

    Attributes:
        pairs: by case in the order of the sizes, then rungs, then peers; host variants where no other is in both.
        contests: by case, fp32 first. A case without a variant that may be called best on both has none.
        doubted: case and name of the variants that take part in no contest, because one device's time may not be called best.
        alone: names of the variants that A has alone, and of those that B has alone, in the common cases.
        processes: how many processes of each run took samples.
    """

    pairs: tuple[Pair, ...]
    contests: tuple[Contest, ...]
    doubted: frozenset[tuple[str, str]]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    processes: tuple[int, int]

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.a.case for pair in self.pairs))

    def of_case(self, case: str) -> "SideBySide":
        """The same with the pairs and the contests of one case alone."""
        pairs = tuple(pair for pair in self.pairs if pair.a.case == case)
        return replace(self, pairs=pairs, contests=tuple(each for each in self.contests if each.case == case))

    @property
    def on_host(self) -> bool:
        """Whether the variants run on the processors."""
        return all(pair.a.role == "host" for pair in self.pairs)

    @property
    def changed_sources(self) -> tuple[str, ...]:
        """The variants whose sources differ."""
        return tuple(dict.fromkeys(pair.a.variant for pair in self.pairs if not pair.same_source))


def timings(a: RunData, b: RunData, workload: str) -> tuple[Timing, ...]:
    """The timings in which both runs have a variant of a case in common."""
    found = []
    for data in (a, b):
        frame = cells(data)
        frame = frame[
            (frame["workload"] == workload) & (frame["n"] > 0) & (frame["status"] == "ok") & frame["size_rank"].notna()
        ]
        compared = frame[~frame["role"].isin(ASIDE)]
        found.append(set(compared[["scope", "cache", "case", "variant"]].itertuples(index=False, name=None)))
    return in_order(Timing(scope, cache) for scope, cache in {key[:2] for key in found[0] & found[1]})


def side_by_side(a: RunData, b: RunData, workload: str, timing: Timing) -> SideBySide:
    """Compare two runs in a timing: their common cells, with the winners of each case."""
    common = _common(a, b, workload, timing)
    contests: list[Contest] = []
    for case in dict.fromkeys(one.case for one, _ in common):
        of_case = [both for both in common if both[0].case == case and all(map(_good, both))]
        contests += _contests(a, b, timing, of_case)
    # A peer can be in the contests of two precisions; the first one, its own, counts.
    wins = {(each.case, name): on for each in reversed(contests) for name, on in _wins(each)}
    before, after = levels.reading(a), levels.reading(b)
    pairs = tuple(
        Pair(
            one,
            other,
            ratio(a, b, one, other),
            before.source(one) == after.source(other),
            wins.get((one.case, one.variant), ""),
        )
        for one, other in common
    )
    doubted = frozenset((one.case, one.variant) for one, other in common if not (_good(one) and _good(other)))
    processes = (len(np.unique(a.grouped.processes)), len(np.unique(b.grouped.processes)))
    return SideBySide(pairs, tuple(contests), doubted, _alone(a, b, timing, common), processes)


def _good(cell: Cell) -> bool:
    return not doubt(cell.n, cell.flags)


@lru_cache(maxsize=16)
def _timed(data: RunData, workload: str, timing: Timing) -> Mapping[tuple[str, str], Cell]:
    """The cells of a run by case and variant, each on the fewest GPUs, without ceilings and specimens. The order is that of the ladder."""
    frame = best_of_charted(data, workload, timing)
    frame = frame[~frame["role"].isin(ASIDE)].assign(place=frame["role"].map(ROLE_ORDER.index))
    frame = frame.sort_values(["size_rank", "case", "place", "rung", "gpus"], kind="stable").drop_duplicates(
        ["case", "variant"]
    )
    return {(cell.case, cell.variant): cell for cell in records(frame)}


def _common(a: RunData, b: RunData, workload: str, timing: Timing) -> list[tuple[Cell, Cell]]:
    """The cells that both runs have. Variants of the host are left out where there are others."""
    of_a, of_b = (_timed(data, workload, timing) for data in (a, b))
    common = [(cell, of_b[key]) for key, cell in of_a.items() if key in of_b]
    return [both for both in common if both[0].role != "host"] or common


def _alone(
    a: RunData, b: RunData, timing: Timing, common: Sequence[tuple[Cell, Cell]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The variants that one run has alone in the common cases, on the host where the common ones are."""
    if not common:
        return (), ()
    cases, on_host = {one.case for one, _ in common}, common[0][0].role == "host"
    of_a, of_b = (
        dict.fromkeys(
            cell.variant
            for cell in _timed(data, common[0][0].workload, timing).values()
            if cell.case in cases and (cell.role == "host") == on_host
        )
        for data in (a, b)
    )
    return tuple(each for each in of_a if each not in of_b), tuple(each for each in of_b if each not in of_a)


def _contests(a: RunData, b: RunData, timing: Timing, good: Sequence[tuple[Cell, Cell]]) -> Iterator[Contest]:
    """The contests of one case: of its rungs in a precision, or where there is one rung or none, of all variants compared in it.

    Args:
        good: the cells of the case, all of which may be called best.
    """
    if not good:
        return
    case, columns = good[0][0].case, ["variant", "role", "precision"]
    frame = pd.DataFrame([[getattr(one, name) for name in columns] for one, _ in good], columns=columns)
    for precision in precisions(frame):
        rivals = compared(frame, precision)
        rungs = rivals[rivals["role"] == "rung"]
        names = (rungs if len(rungs) > 1 else rivals)["variant"].tolist()
        pairs = [both for both in good if both[0].variant in names]
        of_a, of_b = (_outcome(data, timing, cells) for data, cells in zip((a, b), zip(*pairs, strict=True), strict=True))
        times = {one.variant: one.median_ns.value * other.median_ns.value for one, other in pairs}
        shared = [name for name in names if name in of_a.winners and name in of_b.winners]
        yield Contest(case, precision, len(names), len(rungs) > 1, of_a, of_b, min(shared, key=times.__getitem__, default=""))


def _outcome(data: RunData, timing: Timing, cells: Sequence[Cell]) -> Outcome:
    winner, *others = sorted(cells, key=lambda cell: cell.median_ns.value)
    times = CaseTimes.of(data, winner.workload, winner.case, timing)
    behind = {other.variant: times.judge(winner.entry, other.entry) for other in others}
    # The winner is `faster` than a variant that is slower beyond the noise.
    ties = tuple(name for name, each in behind.items() if each.verdict != "faster")
    return Outcome(winner.variant, ties, {name: each.ratio.estimate for name, each in behind.items()})


def _wins(contest: Contest) -> Iterator[tuple[str, str]]:
    """The variants that win, each with the devices on which it does."""
    for name in dict.fromkeys((*contest.a.winners, *contest.b.winners)):
        on_a, on_b = name in contest.a.winners, name in contest.b.winners
        yield name, "both" if on_a and on_b else "A" if on_a else "B"


def ratio(a: RunData, b: RunData, one: Cell, other: Cell) -> Estimate:
    """The time of a cell on B over that on A."""
    return levels.ratio(levels.reading(a).level(one), levels.reading(b).level(other))


def devices_of(a: RunData, b: RunData, found: SideBySide) -> tuple[str, str]:
    """The names of what the variants ran on: the devices of both runs, or for variants of the host the processors.

    Equal processors are told apart by the GPUs beside them, which did not take part.
    """
    if not found.on_host:
        return a.device, b.device
    processors = str(a.info["cpu_name"]), str(b.info["cpu_name"])
    if processors[0] != processors[1]:
        return processors
    one, other = (
        name if each.device == name else f"{name}, beside {each.device}" for name, each in zip(processors, (a, b), strict=True)
    )
    return one, other


def short_names(a: str, b: str) -> tuple[str, str]:
    """`H100` and `H200` for `NVIDIA H100 80GB HBM3` and `NVIDIA H200`; the whole names where the short ones are equal."""
    one, other = (_AFTER_MODEL.sub("", _MARK.sub("", name).removeprefix("NVIDIA ")) for name in (a, b))
    return (one, other) if one != other else (a, b)


def labels(devices: tuple[str, str]) -> tuple[str, str]:
    """The short names where there is little room; `A` and `B` where one is long."""
    return devices if max(map(len, devices)) <= _LABEL else ("A", "B")


def slower(behind: Estimate) -> str:
    """`7.10 %` for a ratio of 1.071."""
    return format_percent(100 * (behind.value - 1))


@dataclass(frozen=True)
class OneSided:
    """A variant that wins on one device and loses on the other.

    Attributes:
        wins: `A` or `B`.
        behind: its time over the time of the winner, on the other device.
        to: the winner there.
        same_source: whether both runs measured the same source of the variant.
    """

    case: str
    precision: str
    variant: str
    wins: str
    behind: Estimate
    to: str
    same_source: bool


def one_sided(found: SideBySide) -> list[OneSided]:
    """The variants that win on one device and lose on the other, the largest loss first."""
    sided = []
    for each in found.contests:
        for name, on in _wins(each):
            if on != "both":
                there = each.b if on == "A" else each.a
                same = name not in found.changed_sources
                sided.append(OneSided(each.case, each.precision, name, on, there.behind[name], there.winner, same))
    return sorted(sided, key=lambda each: -each.behind.value)


def losers(found: Sequence[OneSided], devices: tuple[str, str]) -> str:
    """`v14 is first or tied on the H200 and 0.972 % slower than v12 on the H100, n=4096`; of several, their number and the largest loss."""
    if not found:
        return f"No variant is first or tied on one of the {devices[0]} and the {devices[1]} and slower on the other"
    loss = _loss(found[0], devices, f", {found[0].case}")
    return (
        loss
        if len(found) == 1
        else f"{len(found)} that are first or tied on one device are slower on the other; the most: {loss}"
    )


def _loss(lost: OneSided, devices: tuple[str, str], where: str = "") -> str:
    won_on, lost_on = devices if lost.wins == "A" else reversed(devices)
    source = "" if lost.same_source else ", with another source"
    slow = f"{slower(lost.behind)} slower than {lost.to} on the {lost_on}"
    return f"{lost.variant} is first or tied on the {won_on} and {slow}{where}{source}"
