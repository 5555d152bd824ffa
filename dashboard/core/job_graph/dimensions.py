"""The dimensions of the grid of a job's ranks (data, tensor, pipeline, expert), and the communication along each."""

import re
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.job_graph.graph import JobGraph
from warpladder.data.arrays import Bools

_NAMED: Final = {
    "tensor": r"\b(tp|tensor|mp|model)",
    "data": r"\b(dp|data|fsdp|replicat|shard)",
    "pipeline": r"\b(pp|pipe)",
    "expert": r"\b(ep|expert)",
}
_NUMBER: Final = re.compile(r"\d+")
#: The row of `times` for communication that goes on from the iteration before.
BEFORE: Final = "begun in the step before"


def pieces_by_dimension(graph: JobGraph) -> dict[str, Bools]:
    """The pieces of each dimension of the grid of ranks: by the program's own names of groups, else by what they do and which ranks they have."""
    pieces = graph.pieces
    groups = pieces["group_ranks"].fillna("").astype(str)
    of_pieces = pieces.groupby(
        [
            pieces["group_title"].fillna(""),
            groups,
            pieces["sends_to"].notna() | pieces["receives_from"].notna(),
            pieces["collective"].fillna(""),
        ]
    )
    every, chosen = set(groups.unique()), dict[str, Bools]()
    for (title, ranks, message, kind), own in of_pieces:
        if kind or message:
            name = _dimension(str(title), str(ranks), bool(message), str(kind), every)
            chosen.setdefault(name, np.zeros(len(pieces), np.bool_))[own.index] = True
    return dict(sorted(chosen.items()))


def _dimension(title: str, ranks: str, message: bool, kind: str, every: set[str]) -> str:
    plain = title.replace("_", " ").lower()
    for name, words in _NAMED.items():
        if title not in ("", "default_pg", "undefined") and re.search(words, plain):
            return name
    if message:
        return "pipeline"
    if kind in ("alltoall", "dispatch", "combine"):
        return "expert"
    numbers = [int(each) for each in _NUMBER.findall(ranks)[:2]]  # the profiler shortens long lists
    several = len({each for each in every if each}) > 1
    if several and len(numbers) > 1:
        return "tensor" if numbers[1] - numbers[0] == 1 else "data"
    return "collective"


def times(graph: JobGraph) -> pd.DataFrame:
    """Exposed communication by dimension, in sum over ranks and iterations.

    Exposed communication belongs to the collective or message of the rank that began last. Of it, a rank waits for others at most as long as it
    waits for them in that collective or message; the rest is transfer.

    Returns:
        One row for each dimension, the most exposed first: `dimension`, `count` (collectives and messages of all ranks), `exposed_ns` = `wait_ns` +
        `transfer_ns`, and `percent` of the time of all ranks. The row `BEFORE` is left
        out where it is 0. The rows add up to the exposed communication of the iterations.
    """
    pieces = graph.pieces
    wait = np.minimum(pieces["wait_ns"].astype(float).fillna(0), pieces["exposed_ns"]).astype("int64")
    name = pd.Series(BEFORE, index=pieces.index)
    for dimension, chosen in pieces_by_dimension(graph).items():
        name[chosen] = dimension
    frame = pd.DataFrame({"count": 1, "exposed_ns": pieces["exposed_ns"], "wait_ns": wait})
    found = frame.groupby(name.rename("dimension")).sum()
    found["transfer_ns"] = found["exposed_ns"] - found["wait_ns"]
    found["percent"] = 100 * found["exposed_ns"] / pieces["duration_ns"].sum()
    found = found[(found.index != BEFORE) | (found["exposed_ns"] != 0)]
    return found.sort_values("exposed_ns", ascending=False).reset_index()
