"""The classes of precision: how a name carries its own, and which variants are compared with which."""

from typing import Final

import pandas as pd

from dashboard.queries.axes import View
from dashboard.queries.cells import best_config, cells, select
from dashboard.queries.run_data import VERDICT_CELL, RunData

FULL: Final = "fp32"
#: What stands behind the name of a variant of another precision than `FULL`.
WORDS: Final = {"tf32": "TF32", "3xtf32": "3xTF32", "fp64": "FP64"}
#: Precision of a rung -> that of the peers that it is compared with, and of the class in which winners are chosen. No library has 3xTF32,
#: and its error is of the order of fp32's, so that it stands against fp32.
PEERS_OF: Final = {"fp32": "fp32", "3xtf32": "fp32", "tf32": "tf32", "fp64": "fp64"}


def named(name: str, precision: str) -> str:
    """`v08_toeplitz · TF32`; the bare name in fp32."""
    return f"{name} · {WORDS[precision]}" if precision in WORDS else name


def word(precision: str) -> str:
    """`fp32`, `3xTF32`, `TF32`."""
    return WORDS.get(precision, precision)


def first_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one precision: fp32 where there is any, else the first of `PEERS_OF` that there is.

    Args:
        frame: rows of `cells`.
    """
    for precision in PEERS_OF:
        rows = frame[frame["precision"] == precision]
        if len(rows):
            return rows
    return frame


def classes(frame: pd.DataFrame) -> "pd.Series[str]":
    """The class in which each row of `cells` is compared."""
    return frame["precision"].map(PEERS_OF).fillna(FULL)


def peers_of(frame: pd.DataFrame, precision: str) -> pd.DataFrame:
    """The rows of peers that a rung of this precision is compared with.

    Args:
        frame: rows of `cells`.
    """
    return frame[(frame["role"] == "peer") & (frame["precision"] == PEERS_OF.get(precision, FULL))]


def error_and_time(data: RunData, workload: str, case: str, view: View) -> pd.DataFrame:
    """Each variant's fastest config of a case with its measured error against float64.

    Returns:
        Rows of `cells` of rungs and peers (host variants where the case has no others in this view) with `rel_l2_error` and `on_front`: no
        other is at once no slower and no less exact, and better in one of the two. By time; variants without a measured error are left
        out.
    """
    best = best_config(select(cells(data), workload, case, view.scope, view.cache))
    on_device = best[best["role"].isin(["rung", "peer"])]
    best = on_device if len(on_device) else best[best["role"] == "host"]
    errors = data.results[[*VERDICT_CELL, "rel_l2_error"]]
    frame = best.merge(errors, on=VERDICT_CELL, how="left")
    frame = frame[frame["rel_l2_error"].notna()].sort_values(["median_ns", "rel_l2_error"], kind="stable")
    # In the order of time, one is on the front where it is more exact than all before it.
    before = frame["rel_l2_error"].cummin().shift()
    return frame.assign(on_front=(before.isna() | (frame["rel_l2_error"] < before)).astype(bool)).reset_index(drop=True)
