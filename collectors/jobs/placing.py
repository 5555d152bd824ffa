"""Puts the collectives and messages of all ranks on one clock."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from warpladder.collectors.jobs import clocks, matching, messages
from warpladder.collectors.jobs.clocks import Clocks, Notes, Waits
from warpladder.data.arrays import Bools, Int64s, integers, least_of_groups, most_of_groups

_NOBODY: Mapping[int, int] = MappingProxyType({})


class Placed(NamedTuple):
    """Collectives and messages on the job's clock.

    Attributes:
        collectives: the rows, with the columns `match` to `transfer_ns`.
        clocks: of the ranks.
        waits: times of the rows; None where the clocks are refused.
        known: rows whose wait is known.
        notes: severity and text of each finding.
    """

    collectives: pa.Table
    clocks: Clocks
    waits: Waits | None
    known: Bools
    notes: Notes


def place(collectives: pa.Table, clock_of: Mapping[int, int] = _NOBODY, host_of: Mapping[int, int] = _NOBODY) -> Placed:
    """Match rows of `job_tables.COLLECTIVES` of all ranks, fit the clocks, and fill the columns `match` to `transfer_ns`.

    If the clocks are refused, nothing is filled, since what was matched are not the same collectives.

    Args:
        clock_of: number of the clock of ranks that share one for sure; see `clocks.fit`.
        host_of: number of the host of ranks; see `messages.join`.
    """
    talks = messages.is_message(collectives)
    rank, start, end = (integers(collectives[name]) for name in ("rank", "start_ns", "end_ns"))
    match = np.full(len(rank), matching.UNMATCHED)
    match[~talks], found = matching.match(collectives.filter(pa.array(~talks)))
    sent = messages.match(collectives)
    fitted = clocks.fit(rank, match, start, end, clock_of)
    if fitted.refused and _is_one_clock(rank, match, start, end, host_of):
        fitted = clocks.common(rank, match, end)
    if len(sent.sent) and not fitted.contradicted:
        fitted = messages.join(fitted, collectives, sent, host_of)
    notes = [*found, *sent.notes, *fitted.notes, *clocks.far(fitted)]
    if fitted.refused:
        return Placed(collectives, fitted, None, np.zeros(len(rank), bool), notes)
    waits = clocks.waits(fitted, rank, match, start, end)
    known = match >= 0
    if len(sent.sent):
        number, of_messages = messages.times(fitted, collectives, sent, int(match.max()) + 1)
        ours = np.isin(np.arange(len(match)), np.concatenate((sent.sent, sent.received)))
        waits = Waits(**{name: np.where(ours, own, vars(waits)[name]) for name, own in vars(of_messages).items()})
        known, match = known | ours, np.where(ours, number, match)
    columns: dict[str, tuple[Int64s, Bools]] = {
        "match": (match, match < 0),
        "arrival_ns": (waits.arrival_ns, ~known),
        "finish_ns": (waits.finish_ns, ~known),
        "wait_ns": (waits.wait_ns, ~known),
        "transfer_ns": (waits.transfer_ns, ~known),
    }
    for name, (values, unknown) in columns.items():
        at = collectives.schema.get_field_index(name)
        collectives = collectives.set_column(at, collectives.schema.field(name), pa.array(values, pa.int64(), mask=unknown))
    return Placed(collectives, fitted, waits, known, notes)


def _is_one_clock(rank: Int64s, match: Int64s, start: Int64s, end: Int64s, host_of: Mapping[int, int]) -> bool:
    """Whether all ranks are on one host, and no collective ends on one rank before it starts on another."""
    known = match >= 0
    if not known.any() or len({host_of.get(each, -1 - each) for each in np.unique(rank).tolist()}) != 1:
        return False
    size = int(match.max()) + 1
    last, first = most_of_groups(match[known], start[known], size), least_of_groups(match[known], end[known], size)
    return bool((last <= first).all())
