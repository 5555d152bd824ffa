"""The generator's report: the parts of a generation, and the executions of figures 2 to 6."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.ranges import nearest, parents
from warpladder.data.arrays import NONE, Int64s, Intervals, lookup
from warpladder.data.names import Phase

WORKLOAD: Final = "gan_tconv"
PINNED, OVERLAPPED = "pinned", "overlapped"
IN, COMPUTE, OUT, REST = "copies in", "kernels", "copies out", "launches and waiting"
#: Parts of a generation, in the order in which they are stacked.
PARTS: Final = (IN, COMPUTE, OUT, REST)
#: The project's aim: an overlapped generation takes at most this many times as long as its longest part.
AIM: Final = 1.25

#: Variants of the report's figures: one mixes two methods, and one overlaps its copies.
MIXED_VARIANT, OVERLAPPED_VARIANT = "v05_mixed", "v07_overlapped"
#: (variant, config) -> figure or section of the report, in the order of the chart's rows.
FIGURES: Final[Mapping[tuple[str, str], str]] = {
    (MIXED_VARIANT, "products=2"): "figure 2",
    (MIXED_VARIANT, "products=3"): "figure 3",
    (MIXED_VARIANT, "products=4"): "figure 4",
    ("v06_pinned", ""): "section 2.5.1",
    (OVERLAPPED_VARIANT, ""): "figure 6",
}
#: The case of the report's figure 6.
FIGURE_6_CASE: Final = "images=1000"

PRODUCTS, OPERANDS, DIRECT = "layer products", "expansions", "direct convolutions"
NORMS, DENSE, LAST, OTHER = "batch norm, ReLU", "dense layer", "tanh", "other"
COPIES: Final = (IN, OUT)
#: Kinds of kernels, then kinds of copies.
KINDS: Final = (PRODUCTS, OPERANDS, DIRECT, NORMS, DENSE, LAST, OTHER, *COPIES)
#: Name of a kernel or memory operation -> kind.
KIND_OF: Final[Mapping[str, str]] = {
    "multiply": PRODUCTS,
    "expand": OPERANDS,
    "flip_weights": OPERANDS,
    "tconv": DIRECT,
    "batch_norm": NORMS,
    "relu": NORMS,
    "dense": DENSE,
    "tanh_layer": LAST,
    "h2d": IN,
    "d2h": OUT,
}


def images_in(case: str) -> int:
    axes = dict(axis.split("=", 1) for axis in case.split(","))
    return int(axes["images"])


_SCOPES: Final = {IN: Phase.H2D, COMPUTE: Phase.COMPUTE, OUT: Phase.D2H}
_CACHE: Final = "hot"
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

    An overlapped generation has no phases, so its parts come from other measurements. Its kernels come from the scope
    `device` with a hot L2. Its copies are the fastest copies of pinned memory, without overlap, at the same number of images.
    The longest of the three parts is the least time that the generation can take.

    Returns:
        One row for each (case, variant) on the device, by size and ladder, with the fastest config. Empty where no generation
        was timed end to end. The columns are `case`, `size_rank`, `images`, `variant`, `title`, `precision`, `config`, `n`,
        `interval_kind`, and

        - `transfer`: `pageable`, `pinned` or `overlapped`;
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
    overlapped = frame["transfer"] == OVERLAPPED
    frame[REST] = (frame["median_ns"] - frame[parts].sum(axis=1)).clip(lower=0).where(~overlapped)
    copies = frame[frame["transfer"] == PINNED].groupby("case")[[IN, OUT]].min()
    for part in (IN, OUT):
        frame[part] = frame[part].where(~overlapped, frame["case"].map(copies[part]))
    frame[COMPUTE] = frame[COMPUTE].where(~overlapped, frame["device"])
    has_parts = overlapped & frame[parts].notna().all(axis=1)
    frame["longest"] = pd.Series(None, index=frame.index, dtype=object)
    frame.loc[has_parts, "longest"] = frame.loc[has_parts, parts].idxmax(axis=1)
    frame["longest_ns"] = frame[parts].max(axis=1).where(has_parts)
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


_SCOPE: Final = "end_to_end"
_NAMES: Final = {"kernels": ("name",), "memory_ops": ("kind", "bytes")}
_EXECUTION_COLUMNS: Final = [
    "figure",
    "variant",
    "config",
    "n",
    "trace_ns",
    "span_ns",
    "kind",
    "name",
    "start_ns",
    "end_ns",
    "bytes",
    "hidden_ns",
]


def executions(data: RunData, case: str) -> pd.DataFrame:
    """The device work of one end-to-end execution for each traced entry of `FIGURES`: the execution of median duration.

    An execution lasts from the start of its first device work to the end of its last. For an even number of executions, the
    shorter of the two middle ones is taken.

    Returns:
        One row for each kernel or memory operation, in the order of `FIGURES` and then by start. Empty where no such execution
        was traced. The columns are `figure`, `variant`, `config`, `name`, and

        - `n`: number of traced executions;
        - `trace_ns`: start of the execution, from the start of the trace;
        - `span_ns`: duration of the execution;
        - `kind`: one of `KINDS`;
        - `start_ns`, `end_ns`: from the start of the execution;
        - `bytes`, `hidden_ns`: bytes of a memory operation, and the part of its time in which a kernel of the execution ran;
          null for kernels.
    """
    traces = data.traces
    nothing = pd.DataFrame(columns=_EXECUTION_COLUMNS)
    if not {"ranges", "kernels"} <= set(traces.tables):
        return nothing
    chosen = _median_executions(traces, case)
    if chosen.empty:
        return nothing
    ids, parent = traces.numbers("ranges", "range_id"), parents(traces)
    owner = nearest(parent, np.isin(np.arange(len(parent)), chosen["place"]))
    work = pd.concat([_work(traces, table, ids, owner) for table in _NAMES if table in traces.tables])
    frame = work.merge(chosen, on="place")
    frame["kind"] = frame["name"].map(KIND_OF).fillna(OTHER)
    # The Timeline counts from the first event of the trace.
    first_ns = min(int(start.min()) for table in traces.tables for (start,) in traces.scan(table, "start_ns") if len(start))
    frame["trace_ns"] = frame["begin_ns"] - first_ns
    frame["hidden_ns"] = np.nan
    for _, rows in frame.groupby("place"):
        kernels, copies = rows[rows["bytes"].isna()], rows[rows["bytes"].notna()]
        busy = Intervals(kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy())
        frame.loc[copies.index, "hidden_ns"] = busy.within(copies["start_ns"].to_numpy(), copies["end_ns"].to_numpy())
    for column in ("start_ns", "end_ns"):
        frame[column] -= frame["begin_ns"]
    return frame.sort_values(["order", "start_ns", "end_ns"], kind="stable", ignore_index=True)[_EXECUTION_COLUMNS]


def _median_executions(traces: Traces, case: str) -> pd.DataFrame:
    """One row for each execution: `place` of its range, `order`, `figure`, `variant`, `config`, `begin_ns`, `span_ns`, `n`."""
    traces.read("ranges", "workload", "variant", "config", "case", "scope", "round", "gpu_start_ns", "gpu_end_ns")
    # Warm-ups have no round.
    mask = (traces.numbers("ranges", "round") >= 0) & (traces.numbers("ranges", "gpu_start_ns") >= 0)
    for column, value in (("workload", WORKLOAD), ("case", case), ("scope", _SCOPE)):
        mask &= np.asarray(traces.texts("ranges", column) == value)
    place = np.flatnonzero(mask)
    names = {
        name: pd.Series(np.asarray(traces.texts("ranges", name)[place]), dtype="str").fillna("")
        for name in ("variant", "config")
    }
    begin, end = (traces.numbers("ranges", f"gpu_{side}_ns")[place] for side in ("start", "end"))
    frame = pd.DataFrame({"place": place, **names, "begin_ns": begin, "span_ns": end - begin})
    order = {key: number for number, key in enumerate(FIGURES)}
    frame["order"] = [order.get(key, NONE) for key in zip(frame["variant"], frame["config"], strict=True)]
    frame = frame[frame["order"] >= 0].sort_values("span_ns", kind="stable")
    groups = frame.groupby("order")
    frame["n"] = groups["place"].transform("size")
    frame = frame[groups.cumcount() == (frame["n"] - 1) // 2]
    return frame.assign(figure=[list(FIGURES.values())[number] for number in frame["order"]])


def _work(traces: Traces, table: str, ids: Int64s, owner: Int64s) -> pd.DataFrame:
    """The rows of a table that were launched in the executions.

    The columns are `place` (of the execution's range), `name`, `start_ns`, `end_ns` and `bytes`.

    Args:
        ids: the ids of the ranges.
        owner: for each range, the place of the execution that it is or is in; `NONE` where it is in none.
    """
    column, *numbers = _NAMES[table]
    rows, range_id, *columns = traces.find(table, "range_id", ids[owner >= 0], "start_ns", "end_ns", *numbers)
    at = lookup(ids, range_id)
    texts = traces.texts(table, column)
    names = np.asarray(texts.categories, dtype=object)[texts.codes[rows]]
    values = dict(zip(("start_ns", "end_ns", *numbers), columns, strict=True))
    frame = pd.DataFrame({"place": np.where(at >= 0, owner[at], NONE), "name": names, "bytes": np.nan, **values})
    return frame[frame["place"] >= 0]
