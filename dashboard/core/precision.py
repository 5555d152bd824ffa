"""Precisions: how names show them, and which variants are compared in each."""

from typing import Final

import pandas as pd

FULL: Final = "fp32"
_WORDS: Final = {"tf32": "TF32", "3xtf32": "3xTF32"}
#: Precision of a rung -> precision of the peers that it is compared with. No library has 3xTF32. It is compared with fp32,
#: which it replaces with about the same error.
PEERS_OF: Final = {
    "fp32": "fp32",
    "3xtf32": "fp32",
    "tf32": "tf32",
    "fp64": "fp64",
    **{name: name for name in ("fp16", "bf16", "fp8", "int", "mixed")},
}


def word(precision: str) -> str:
    """`fp32`, `3xTF32`, `TF32`."""
    return _WORDS.get(precision, precision)


def named(name: str, precision: str) -> str:
    """`v08_toeplitz · TF32`; the name alone where no precision is given, or where the name ends with it, as `cublas_tf32`."""
    return name if not precision or name.endswith(f"_{precision}") else f"{name} · {word(precision)}"


def is_mixed(variants: pd.DataFrame) -> bool:
    """Whether the rungs and peers have several precisions.

    Args:
        variants: with `role` and `precision`, of one workload.
    """
    return variants.loc[variants["role"].isin(["rung", "peer"]), "precision"].nunique() > 1


def precisions(frame: pd.DataFrame) -> list[str]:
    """The precisions in which a winner is chosen, fp32 first: those of the rungs, or of all rows where there is no rung.

    Args:
        frame: rows of `cells`.
    """
    rungs = frame[frame["role"] == "rung"]
    found = list(dict.fromkeys((rungs if len(rungs) else frame)["precision"]))
    return sorted(found, key=lambda name: list(PEERS_OF).index(name) if name in PEERS_OF else len(PEERS_OF))


def compared(frame: pd.DataFrame, precision: str) -> pd.DataFrame:
    """The rows of `cells` among which the winner of a precision is chosen: its own rows, and the peers it is compared with."""
    return frame[(frame["precision"] == precision) & (frame["role"] != "peer") | is_peer_of(frame, precision)]


def is_peer_of(frame: pd.DataFrame, precision: str) -> "pd.Series[bool]":
    """Which rows of `cells` are peers that a rung of this precision is compared with."""
    return (frame["role"] == "peer") & (frame["precision"] == PEERS_OF.get(precision, precision))
