"""The definitions of the pages Ranks and Stragglers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Rule, Rules, Written

Row = Mapping[str, Any]
_PARTS: Final = ("compute_ns", "graph_ns", "exposed_ns", "copies_ns", "host_wait_ns", "kernel_wait_ns", "other_idle_ns")
_WORDS: Final = ("compute", "CUDA graphs", "exposed communication", "copies alone", "host wait", "kernel wait", "other idle")


def _ranks(run: Shipped) -> pd.DataFrame:
    ranks = run.table("ranks")
    ranks = ranks[ranks["status"] == "ok"]
    copies = ranks["busy_ns"] - ranks["compute_ns"] - ranks["graph_ns"] - ranks["exposed_ns"]
    return ranks.assign(copies_ns=copies).set_index("rank")


def _of_rank(column: str) -> Rule:
    return lambda run, row, shown: _ranks(run).loc[row["rank"], column]


def _of_iteration(column: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Any:
        return run.table("iterations").set_index(["rank", "iteration"]).loc[(row["rank"], row["iteration"]), column]

    return rule


def _distances(run: Shipped, rank: int) -> "pd.Series[float]":
    """The distance of a rank from the median rank in each part of its span."""
    ranks = _ranks(run)
    least = np.median(ranks["span_ns"].tolist()) / 1000
    found = {}
    for part, words in zip(_PARTS, _WORDS, strict=True):
        values = np.array(ranks[part].tolist(), dtype=float)
        middle = np.median(values)
        spread = 1.4826 * np.median([abs(value - middle) for value in values])
        found[words] = (float(ranks.loc[rank, part]) - middle) / max(spread, least)
    return pd.Series(found)


def _farthest(run: Shipped, row: Row, shown: Shown) -> set[str]:
    """The parts in which a rank is farthest, of at least three spreads; compute and communication may be equally far."""
    distances = _distances(run, row["rank"]).abs()
    if distances.max() < 3:
        return {""}
    return set(distances[distances >= distances.max() * (1 - 1e-9)].index)


CELLS: Final[Rules] = {
    "rank": None,
    "iteration": None,
    "span_ns": _of_iteration("span_ns"),
    "exposed_ns": _of_iteration("exposed_ns"),
    "percent_of_span": lambda run, row, shown: (
        100 * _of_iteration("exposed_ns")(run, row, shown) / _of_iteration("span_ns")(run, row, shown)  # type: ignore[operator]
    ),
}
RANKS: Final[Rules] = {
    "rank": None,
    "distance": lambda run, row, shown: max(_distances(run, row["rank"]), key=abs),
    "differs_in": _farthest,
    **{name: _of_rank(name) for name in ("host", "span_ns", *_PARTS, "communication_ns", "wait_ns", "last", "late", "cause")},
}
RULES: Final[Mapping[str, Rules]] = {
    "ranks-over-iterations": CELLS,
    "ranks-breakdown": RANKS,
}


def sentence(run: Shipped, shown: Shown) -> Iterator[tuple[str, Written]]:
    """The share of exposed communication, and how much longer the others wait than the late rank."""
    iterations, ranks = run.table("iterations"), _ranks(run)
    title = shown.title
    if " of the step is exposed" in title:
        share = 100 * iterations["exposed_ns"].sum() / iterations["span_ns"].sum()
        yield title.split(" %")[0], Written(share)
    if "the others wait " in title:
        told = title.split("the others wait ")[1]
        longer, of = told.split(" longer")[0], told.split("a rank's ")[1].split(",")[0]
        late, others = ranks[ranks["late"]].iloc[0], ranks[~ranks["late"]]
        waits = [int(wait) - int(late["wait_ns"]) for wait in others["wait_ns"]]
        exposed = [int(time) - int(late["exposed_ns"]) for time in others["exposed_ns"]]
        yield longer, Written(sum(waits) / len(waits))
        yield of, Written(float(ranks["span_ns"].mean()))
        share = 100 * sum(waits) / len(waits) / float(ranks["span_ns"].mean())
        yield told.split(" longer, on average, ")[1].split(" %")[0], Written(share)
        of_it = told.split(of)[1].removeprefix(", ").split(" of it")[0]
        hidden = Written(sum(max(0, min(pair)) for pair in zip(waits, exposed, strict=True)) / len(waits))
        yield longer if of_it == "all" else of_it, hidden
