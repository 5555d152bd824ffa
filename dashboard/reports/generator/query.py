"""A generation of images by its parts: copies in, kernels, copies out; and what of them an overlapped one hides."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import figures

WORKLOAD: Final = "gan_tconv"
PINNED, OVERLAPPED = "pinned", "overlapped"
IN, COMPUTE, OUT, REST = "copies in", "kernels", "copies out", "launches and waiting"
#: Parts of a generation, in the order in which they are stacked.
PARTS: Final = (IN, COMPUTE, OUT, REST)
#: How much longer than its longest part an overlapped generation may take, by the project's aim.
AIM: Final = 1.25

_SCOPES: Final = {IN: "phase:h2d", COMPUTE: "phase:compute", OUT: "phase:d2h"}
_CACHE: Final = "hot"
#: The scopes that a generation is told by.
SCOPES: Final = ("end_to_end", "device", *_SCOPES.values())
_COLUMNS: Final = [
    "case", "size_rank", "images", "variant", "title", "precision", "config", "transfer", "n", "interval_kind", "median_ns", "low_ns", "high_ns",
    *PARTS, "longest", "longest_ns", "ratio",
]  # fmt: skip


def generations(data: RunData) -> pd.DataFrame:
    """Where the time of a generation goes, end to end, by number of images.

    A generation with phases copies in, computes and copies out, one after another: what its median has beyond those of the phases is the
    launches and the host's waiting. An overlapped one has no phases. Its kernels are those of the scope `device` with a hot L2, its
    copies the fastest ones of pinned memory that follow one another at the same number of images, and the longest of the three is what it cannot beat.

    Returns:
        One row a (case, variant) on the device by size and ladder, of each the config whose generation is the fastest: `case`,
        `size_rank`, `images`, `variant`, `title`, `precision`, `config`, `transfer` (`pageable`, `pinned`, `overlapped`; null where the run does not tell), `n`,
        `interval_kind`, `median_ns` with `low_ns` and `high_ns` of the whole, and the medians of `PARTS` in nanoseconds (null where not
        known, and `REST` of overlapped ones). Of overlapped ones besides `longest` (which part), `longest_ns` and `ratio`, the whole over it; null
        where a part is not known. Empty where no generation was timed end to end.
    """
    every = cells(data)
    every = every[
        (every["workload"] == WORKLOAD) & (every["gpus"] > 0) & every["size_rank"].notna() & (every["kind"] == "cuda")
    ]
    every = every[every["cache"] == _CACHE]
    frame = best_config(every[every["scope"] == "end_to_end"])
    if frame.empty:
        return pd.DataFrame(columns=_COLUMNS)
    key = ["case", "variant", "config"]
    for part, scope in (*_SCOPES.items(), ("device", "device")):
        frame = frame.merge(
            every.loc[every["scope"] == scope, [*key, "median_ns"]].rename(columns={"median_ns": part}), "left", key
        )
    parts = [IN, COMPUTE, OUT]
    # Runs from before the column `transfer`: what has no phases was overlapped.
    frame["transfer"] = frame["transfer"].mask(frame["transfer"].isna() & frame[parts].isna().all(axis=1), OVERLAPPED)
    overlapped = frame["transfer"] == OVERLAPPED
    frame[REST] = (frame["median_ns"] - frame[parts].sum(axis=1)).clip(lower=0).where(~overlapped)
    copies = frame[frame["transfer"] == PINNED].groupby("case")[[IN, OUT]].min()
    for part in (IN, OUT):
        frame[part] = frame[part].where(~overlapped, frame["case"].map(copies[part]))
    frame[COMPUTE] = frame[COMPUTE].where(~overlapped, frame["device"])
    known = overlapped & frame[parts].notna().all(axis=1)
    frame["longest"] = pd.Series(None, index=frame.index, dtype=object)
    frame.loc[known, "longest"] = frame.loc[known, parts].idxmax(axis=1)
    frame["longest_ns"] = frame[parts].max(axis=1).where(known)
    frame["ratio"] = frame["median_ns"] / frame["longest_ns"]
    frame["images"] = frame["case"].map(_images)
    ladder = data.variants[data.variants["workload"] == WORKLOAD].reset_index(names="place")
    frame = frame.merge(ladder[["variant", "place"]], on="variant")
    return frame.sort_values(["size_rank", "place"], kind="stable", ignore_index=True)[_COLUMNS]


def published() -> pd.DataFrame:
    """The report's table 4: `variant` (as printed, e.g. `1 GPU a node`), `images`, `seconds`, `hardware`, `note`, in its order."""
    rows = figures.read(WORKLOAD)
    rows = rows[(rows["table"] == "4") & (rows["quantity"] == "time")].rename(columns={"value": "seconds"})
    rows["images"] = rows["case"].map(_images)
    return rows[["variant", "images", "seconds", "hardware", "note"]].reset_index(drop=True)


def of_report(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `generations` of the report's network: those whose case names nothing but a number of images."""
    return frame[frame["case"] == "images=" + frame["images"].astype(str)].reset_index(drop=True)


def case_to_show(frame: pd.DataFrame) -> str:
    """The largest case of `generations`, not empty, that the most variants were timed at."""
    variants = frame.groupby(["size_rank", "case"])["variant"].nunique()
    return str(variants[variants == variants.max()].index[-1][1])


def _images(case: str) -> int:
    axes = dict(axis.split("=", 1) for axis in case.split(","))
    return int(axes["images"])
