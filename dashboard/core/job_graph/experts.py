"""Rows that ranks send to the experts on other ranks, from the splits of their all-to-alls."""

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import Change, JobGraph
from warpladder.dashboard.core.traces import Job
from warpladder.data.arrays import Floats

#: A rank is hot where it gets more than this many times its equal share.
HOT: Final = 1.05


@dataclass(frozen=True)
class Experts:
    """The rows of all dispatches.

    Attributes:
        ranks: of the group.
        rows: rows from each rank (row) to each rank (column); NaN where neither profile has them.
        hot: the rank that gets the most rows.
        times_share: its rows over the mean of the ranks.
        same: in every iteration it is the same rank.
        missing: ranks without a profile, whose rows to one another are not known.
    """

    ranks: tuple[int, ...]
    rows: Floats
    hot: int
    times_share: float
    same: bool
    missing: tuple[int, ...]

    @property
    def part(self) -> float:
        """The part of all rows that the hot rank gets."""
        received = np.nansum(self.rows, axis=0)
        return float(received.max() / received.sum())


def experts_of(job: Job) -> Experts | None:
    """The rows of a job's dispatches; None without uneven all-to-alls of which splits are known."""
    columns = ("rank", "iteration", "group_ranks", "match", "in_splits", "out_splits")
    frame = job.arrow("collectives", columns).to_pandas()
    frame = frame[frame["in_splits"].notna() & frame["out_splits"].notna()].reset_index(drop=True)
    if frame.empty:
        return None
    group = frame["group_ranks"].astype(str).mode().iat[0]
    frame = frame[frame["group_ranks"].astype(str) == group].reset_index(drop=True)
    sent, received = (lists(frame[name]) for name in ("in_splits", "out_splits"))
    ranks = numbers(group)
    size = len(ranks)
    fine = [len(one) == len(other) == size for one, other in zip(sent, received, strict=True)]
    places = [place for place in dispatches(frame, sent, received) if fine[place]]
    if not places or not size:
        return None
    given, got = (np.array([each[place] for place in places]) for each in (sent, received))
    own = np.array([ranks.index(rank) for rank in frame["rank"].iloc[places]])
    missing = tuple(sorted({*ranks} - {*frame["rank"]}, key=ranks.index))
    unknown = np.array([ranks.index(rank) for rank in missing], np.int64)
    rows = np.full((size, size), np.nan)
    rows[own], rows[unknown[:, None], own] = 0, 0
    np.add.at(rows, own, given)
    np.add.at(rows, (unknown, own[:, None]), got[:, unknown])
    total = np.nansum(rows, axis=0)
    hot = int(np.argmax(total))
    iteration = frame["iteration"].iloc[places].astype(float).to_numpy()
    step = np.where(np.isnan(iteration), -1 - np.arange(len(places)), iteration)
    same = bool((pd.DataFrame(given).groupby(step).sum().to_numpy().argmax(axis=1) == hot).all())
    return Experts(tuple(ranks), rows, ranks[hot], float(total[hot] / max(total.mean(), 1)), same, missing)


def lists(column: "pd.Series[str]") -> list[list[int]]:
    """Lists of numbers; empty where the profiler cut one short."""
    return [numbers(text) if isinstance(text, str) else [] for text in column.astype(object)]


def numbers(text: str) -> list[int]:
    """A list of whole numbers; empty where the text is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [int(each) for each in found] if isinstance(found, list) and all(isinstance(each, int) for each in found) else []


def dispatches(frame: pd.DataFrame, sent: list[list[int]], received: list[list[int]]) -> list[int]:
    """The places of all-to-alls that send rows to experts, and not back: what ranks receive differs more between them than what they send."""
    sums = pd.DataFrame({"match": frame["match"].astype(object), "sent": [*map(sum, sent)], "received": [*map(sum, received)]})
    known = sums["match"].notna()
    groups = sums[known].groupby("match")[["sent", "received"]]
    spread = groups.max() - groups.min()
    goes = set(spread.index[spread["received"] > spread["sent"]])
    alone = len(frame["rank"].unique()) == 1
    # One rank's all-to-alls go and come back in turn.
    turn = pd.Series(np.arange(len(sums)) % 2 == 0, index=sums.index)
    return [int(place) for place in sums.index if sums["match"].iat[place] in goes or (alone and bool(turn.iat[place]))]


def level(graph: JobGraph) -> Change:
    """Each rank gets as many rows as the mean rank: work behind a dispatch, and transfers both ways, change by the same factor."""
    pieces, change = graph.pieces, Change.of(graph)
    sent, received = (lists(pieces[name]) for name in ("in_splits", "out_splits"))
    talks = np.flatnonzero([bool(one and other) for one, other in zip(sent, received, strict=True)])
    sent, received = ([each[place] for place in talks] for each in (sent, received))
    frame = pieces.loc[talks, ["rank", "match"]].reset_index(drop=True)
    frame = frame.assign(place=talks, sent=[*map(sum, sent)], received=[*map(sum, received)], goes=False)
    frame.loc[dispatches(frame, sent, received), "goes"] = True
    frame = frame.dropna(subset="match")
    goes = frame.groupby("match")["goes"].transform("first")
    rows = frame["received"].where(goes, frame["sent"]).astype(float).groupby(frame["match"])
    own, mean = frame["received"].clip(lower=1), rows.transform("mean")
    change.transfer[frame["place"]] = mean / rows.transform("max").clip(lower=1)
    change.compute[frame["place"][goes]] = (mean / own)[goes]
    return change
