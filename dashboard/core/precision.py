"""Precisions: how a name carries its own, what is compared with what, and what each costs in accuracy."""

from typing import Final

import pandas as pd

FULL: Final = "fp32"
_WORDS: Final = {"tf32": "TF32", "3xtf32": "3xTF32"}
#: Precision of a rung -> that of the peers that it is compared with. No library has 3xTF32, whose error is of the order of fp32's: it
#: stands against fp32, which it replaces.
PEERS_OF: Final = {"fp32": "fp32", "3xtf32": "fp32", "tf32": "tf32", "fp64": "fp64"}


def word(precision: str) -> str:
    """`fp32`, `3xTF32`, `TF32`."""
    return _WORDS.get(precision, precision)


def named(name: str, precision: str) -> str:
    """`v08_toeplitz · TF32`; the bare name where no precision is known, or where it ends with it: `cublas_tf32`."""
    return name if not precision or name.endswith(f"_{precision}") else f"{name} · {word(precision)}"


def is_mixed(variants: pd.DataFrame) -> bool:
    """Whether rungs and peers of several precisions stand beside each other.

    Args:
        variants: with `role` and `precision`, of one workload.
    """
    return variants.loc[variants["role"].isin(["rung", "peer"]), "precision"].nunique() > 1


def precisions(frame: pd.DataFrame) -> list[str]:
    """The precisions in which a winner is chosen: those of the rungs, of all rows where there is no rung; fp32 first.

    Args:
        frame: rows of `cells`.
    """
    rungs = frame[frame["role"] == "rung"]
    found = list(dict.fromkeys((rungs if len(rungs) else frame)["precision"]))
    return sorted(found, key=lambda name: list(PEERS_OF).index(name) if name in PEERS_OF else len(PEERS_OF))


def compared(frame: pd.DataFrame, precision: str) -> pd.DataFrame:
    """The rows of `cells` among which the winner of a precision is chosen: its own, and the peers that it is compared with."""
    return frame[(frame["precision"] == precision) & (frame["role"] != "peer") | is_peer_of(frame, precision)]


def is_peer_of(frame: pd.DataFrame, precision: str) -> "pd.Series[bool]":
    """Which rows of `cells` are peers that a rung of this precision is compared with."""
    return (frame["role"] == "peer") & (frame["precision"] == PEERS_OF.get(precision, precision))
