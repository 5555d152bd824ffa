"""The ranks of a job that the others wait for, as the import found them."""

from dataclasses import dataclass

import pandas as pd

from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Source


@dataclass(frozen=True)
class Lateness:
    """The late ranks of a job.

    Attributes:
        late: the ranks that the others wait for, by their total wait; empty where no rank can be told.
        longer_ns: how much longer the other ranks wait than the late rank does, in sum.
        exposed_ns: the part of it in which nothing else ran on the device of the rank that waits.
        span_ns: the spans of all ranks, in sum.
        reasons: why no rank can be told; empty where one can.
    """

    late: tuple[int, ...]
    longer_ns: int
    exposed_ns: int
    span_ns: int
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """`rank 13 is late: the others wait 4.50 s of 38.0 s longer, 1.20 s of it exposed`, or `no late rank can be told`."""
        if not self.late:
            return "no late rank can be told"
        which = f"rank {self.late[0]} is" if len(self.late) == 1 else f"ranks {_listed(self.late)} are"
        longer, span, exposed = map(format_duration, (self.longer_ns, self.span_ns, self.exposed_ns))
        return f"{which} late: the others wait {longer} of {span} longer, {exposed} of it exposed"


def lateness(data: RunData) -> Lateness:
    """The late ranks of a job, and how long the others wait for them."""
    ranks = data.job.frame("ranks", "rank", "status", "span_ns", "wait_ns", "exposed_ns", "late")
    known = ranks[ranks["wait_ns"].notna()].astype({"wait_ns": "int64"}).sort_values("wait_ns", kind="stable")
    late = known[known["late"].astype(bool)]
    span_ns = int(ranks["span_ns"].sum())
    if late.empty:
        return Lateness((), 0, 0, span_ns, _reasons(data))
    others, times = known[~known["late"].astype(bool)], ["wait_ns", "exposed_ns"]
    longer = (others[times] - late[times].iloc[0]).clip(lower=0)
    sums = int(longer["wait_ns"].sum()), int(longer.min(axis=1).sum())
    return Lateness(tuple(late["rank"].tolist()), *sums, span_ns, ())


def _reasons(data: RunData) -> tuple[str, ...]:
    """What the import told about collectives and clocks, each finding once."""
    found: pd.DataFrame = data.diagnostics
    return tuple(dict.fromkeys(found.loc[found["source"] == Source.COLLECTIVES, "text"]))


def _listed(ranks: tuple[int, ...], most: int = 4) -> str:
    """`3, 5 and 7`, or `3, 5, 7, 8 and 12 more`."""
    if len(ranks) > most:
        return f"{', '.join(map(str, ranks[:most]))} and {len(ranks) - most} more"
    return f"{', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
