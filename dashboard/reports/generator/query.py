"""The parts of a generation of images (copies in, kernels, copies out), and the longest part of an overlapped generation."""

from typing import Final

import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.reports.generator.names import COMPUTE, IN, OUT, OVERLAPPED, PARTS, PINNED, REST, WORKLOAD
from warpladder.dashboard.reports.generator.published import images_in
from warpladder.data.names import Phase

_SCOPES: Final = {IN: Phase.H2D, COMPUTE: Phase.COMPUTE, OUT: Phase.D2H}
_CACHE: Final = "hot"
#: The scopes that these queries read.
SCOPES: Final = ("end_to_end", "device", *_SCOPES.values())
_COLUMNS: Final = [
    "case",
    "size_rank",
    "images",
    "variant",
    "title",
    "precision",
    "config",
    "transfer",
    "n",
    "flags",
    "interval_kind",
    "median_ns",
    "low_ns",
    "high_ns",
    *PARTS,
    "longest",
    "longest_ns",
    "ratio",
]


def generations(data: RunData) -> pd.DataFrame:
    """The end-to-end time of a generation and its parts, by number of images.

    A generation with phases copies in, computes and copies out, one after another. Its median less the medians of the phases is
    the time of launches and of the host's waiting.

    An overlapped generation has no phases, so its parts come from other measurements. Its kernels are those of the scope
    `device` with a hot L2. Its copies are the fastest copies of pinned memory, without overlap, at the same number of images.
    The longest of the three parts is the least time that the generation can take.

    Returns:
        One row for each (case, variant) on the device, by size and ladder, with the fastest config. Empty where no generation
        was timed end to end. The columns are `case`, `size_rank`, `images`, `variant`, `title`, `precision`, `config`, `n`,
        `interval_kind`, and

        - `transfer`: `pageable`, `pinned` or `overlapped`; null where the run does not record it;
        - `median_ns`, `low_ns`, `high_ns`: the whole generation, and the ends of its interval;
        - the columns of `PARTS`: medians in nanoseconds; null where not known, and `REST` also for overlapped generations;
        - `longest`, `longest_ns`, `ratio`: for overlapped generations, the longest part, its time, and the whole over it; null
          where a part is not known.
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
    # Older runs lack the column `transfer`. In these, a generation without phases was overlapped.
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
    frame["images"] = frame["case"].map(images_in)
    ladder = data.variants[data.variants["workload"] == WORKLOAD].reset_index(names="place")
    frame = frame.merge(ladder[["variant", "place"]], on="variant")
    return frame.sort_values(["size_rank", "place"], kind="stable", ignore_index=True)[_COLUMNS]


def of_report(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `generations` of the report's network, whose case names only a number of images."""
    return frame[frame["case"] == "images=" + frame["images"].astype(str)].reset_index(drop=True)


def case_to_show(frame: pd.DataFrame) -> str:
    """The largest of the cases of `generations`, not empty, that have the most variants."""
    variants = frame.groupby(["size_rank", "case"])["variant"].nunique()
    return str(variants[variants == variants.max()].index[-1][1])
