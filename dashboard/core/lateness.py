"""The ranks of a job that the others wait for, as the import found them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Source
from warpladder.data.words import named_ranks

#: No rank is late where a lateness of this part of the mean span of a rank would show.
_WOULD_SHOW: Final = 0.01
#: Steps with so much of a lateness are named, where they are no more than this part of all.
_NEARLY_ALL: Final = 0.9
_FEW: Final = 1 / 3


@dataclass(frozen=True)
class Lateness:
    """The late ranks of a job.

    Attributes:
        late: the ranks that the others wait for, the latest first; empty where no rank can be told.
        longer_ns: how much longer the other ranks wait than a late rank does, in the collectives that they share, in sum; in each collective
            the latest rank counts.
        others: how many other ranks there are.
        exposed_ns: the part of it in which nothing else ran on the device of the rank that waits.
        span_ns: the mean span of a rank.
        reasons: why no rank can be told, or how alike they are; empty where a rank is late.
        alike: none is late, and one that is late by a hundredth of the span would show.
        steps: the few steps in which they are late; empty where they are in most of them.
    """

    late: tuple[int, ...]
    longer_ns: int
    exposed_ns: int
    others: int
    span_ns: float
    reasons: tuple[str, ...]
    alike: bool = False
    steps: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """`rank 13 is late: the others wait 300 ms longer, on average, 12.6 % of a rank's 2.38 s, 80.0 ms of it exposed`, `no rank is late`,
        or `no late rank can be told`.
        """
        if not self.late:
            return "no rank is late" if self.alike else "no late rank can be told"
        which = f"{named_ranks(self.late)} {'is' if len(self.late) == 1 else 'are'}"
        others = max(self.others, 1)
        longer, exposed, span = map(format_duration, (self.longer_ns / others, self.exposed_ns / others, self.span_ns))
        share = format_percent(100 * self.longer_ns / others / self.span_ns)
        exposed = "all" if exposed == longer else exposed
        wait = f"the other rank waits {longer} longer" if others == 1 else f"the others wait {longer} longer, on average"
        few = f", nearly all in {named_ranks(self.steps, noun='step')}" if self.steps else ""
        return f"{which} late: {wait}, {share} of a rank's {span}, {exposed} of it exposed{few}"


def lateness(data: RunData) -> Lateness:
    """The late ranks of a job, and how long the others wait for them."""
    stored = ("lateness_ns", "lateness_exposed_ns", "lateness_limit_ns")
    ranks = data.job.frame("ranks", "rank", "status", "span_ns", "wait_ns", "exposed_ns", "late", *stored)
    own, late = ranks[ranks["status"] == "ok"], ranks[ranks["late"].astype(bool)]
    mean, others = float(own["span_ns"].mean()), len(own) - len(late)
    if late.empty:
        limit = ranks["lateness_limit_ns"].astype(float).max()
        found: pd.DataFrame = data.diagnostics  # the import's, about collectives and clocks
        of_collectives = found[found["source"] == Source.COLLECTIVES]
        reasons = tuple(dict.fromkeys(of_collectives["text"]))
        return Lateness((), 0, 0, others, mean, reasons, alike=bool(limit <= _WOULD_SHOW * mean))
    late = late.sort_values(["lateness_ns", "wait_ns"], ascending=[False, True], kind="stable")
    if len(late) > 1:
        sums = _of_several(data, ranks, late["rank"].tolist())
    else:
        sums = int(late["lateness_ns"].iloc[0]), int(late["lateness_exposed_ns"].iloc[0])
    return Lateness(tuple(late["rank"].tolist()), *sums, others, mean, (), steps=_few_steps(data, late["rank"].tolist()))


def _few_steps(data: RunData, late: list[int]) -> tuple[int, ...]:
    """The steps in which the others wait nearly all of the time that they wait longer than the late ranks; empty where these are many."""
    rows, longer = _longer(data, late)
    of_steps = longer.groupby(rows["iteration"]).sum().sort_values(ascending=False)
    reached = of_steps.cumsum() < _NEARLY_ALL * of_steps.sum()
    few = of_steps.index[: int(reached.sum()) + 1].tolist()
    return tuple(sorted(map(int, few))) if len(few) <= _FEW * rows["iteration"].nunique() else ()


def _longer(data: RunData, late: list[int]) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    """The collectives of a job, and how much longer another rank waits in each than the latest of the late ranks."""
    rows = data.job.frame("collectives", "rank", "iteration", "match", "group", "group_ranks", "wait_ns", "sends_to")
    rows = rows[rows["sends_to"].isna()].dropna(subset=["match", "wait_ns"])
    is_late, wait = rows["rank"].isin(late), rows["wait_ns"].astype("int64")
    least = wait[is_late].groupby(rows["match"]).min()
    return rows, (wait - rows["match"].map(least))[~is_late].dropna()


def _of_several(data: RunData, ranks: pd.DataFrame, late: list[int]) -> tuple[int, int]:
    """How much longer the others wait than the latest of the late ranks of each collective, and the exposed part of it.

    A wait in a group counts once, however many late ranks it has; those of different groups are different waits.
    """
    rows, longer = _longer(data, late)
    keys = [rows.loc[longer.index, name].astype(str) for name in ("rank", "group", "group_ranks")]
    sums = longer.groupby(keys).sum().clip(lower=0).groupby("rank").sum()
    exposed = ranks.set_index(ranks["rank"].astype(str))["exposed_ns"].astype("int64")
    more = (exposed - exposed[[str(each) for each in late]].min()).clip(lower=0)
    return int(sums.sum()), int(np.minimum(sums, more.reindex(sums.index)).sum())
