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
        caused_ns: how much longer the other ranks wait than the late rank does, in sum.
        span_ns: the spans of all ranks, in sum.
        reasons: why no rank can be told; empty where one can.
    """

    late: tuple[int, ...]
    caused_ns: int
    span_ns: int
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """`rank 13 makes the others wait 4.50 s of 38.0 s`, or `no late rank can be told`."""
        if not self.late:
            return "no late rank can be told"
        which = f"rank {self.late[0]} makes" if len(self.late) == 1 else f"ranks {_listed(self.late)} make"
        return f"{which} the others wait {format_duration(self.caused_ns)} of {format_duration(self.span_ns)}"


def lateness(data: RunData) -> Lateness:
    """The late ranks of a job, and how long the others wait for them."""
    ranks = data.job.frame("ranks", "rank", "status", "span_ns", "wait_ns", "late")
    known = ranks[ranks["wait_ns"].notna()].astype({"wait_ns": "int64"}).sort_values("wait_ns", kind="stable")
    late = known[known["late"].astype(bool)]
    span_ns = int(ranks["span_ns"].sum())
    if late.empty:
        return Lateness((), 0, span_ns, _reasons(data))
    others = known[~known["late"].astype(bool)]["wait_ns"]
    caused_ns = int((others - late["wait_ns"].iloc[0]).clip(lower=0).sum())
    return Lateness(tuple(late["rank"].tolist()), caused_ns, span_ns, ())


def _reasons(data: RunData) -> tuple[str, ...]:
    """What the import told about collectives and clocks, each finding once."""
    found: pd.DataFrame = data.diagnostics
    return tuple(dict.fromkeys(found.loc[found["source"] == Source.COLLECTIVES, "text"]))


def _listed(ranks: tuple[int, ...], most: int = 4) -> str:
    """`3, 5 and 7`, or `3, 5, 7, 8 and 12 more`."""
    if len(ranks) > most:
        return f"{', '.join(map(str, ranks[:most]))} and {len(ranks) - most} more"
    return f"{', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
