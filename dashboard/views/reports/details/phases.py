"""The phases of the training report's step: kernels by their names, copies, and the rest of the operation."""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.numbers import format_duration, format_percent
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.ranges import parents, range_ns
from warpladder.dashboard.ui.bars import bars_of_shares
from warpladder.dashboard.ui.template import Chart, Look, bold_name, samples, slug, text
from warpladder.data.arrays import Int64s, lookup
from warpladder.data.nesting import nearest

#: The command that records a run with phases.
RECORD: Final = "warpladder record mlp_training --collector nsight_systems"
#: Parts of an operation, in the order in which they are stacked.
PHASES: Final = ("forward", "backward", "update")
OTHER, COPIES, REST = "other kernels", "copies", "host and idle"
PARTS: Final = (*PHASES, OTHER, COPIES, REST)

_PHASE: Final = re.compile(rf"({'|'.join(PHASES)})(?![a-z])")
_CELL: Final = ("case", "variant", "config")
_SCOPE: Final = "operation"


def workloads(data: RunData) -> tuple[str, ...]:
    """The workloads of the run whose traced kernels are named after phases."""
    traces = data.traces
    if not {"ranges", "kernels"} <= set(traces.tables):
        return ()
    is_phase = np.array([*(_PHASE.match(str(name)) is not None for name in traces.texts("kernels", "name").categories), False])
    samples = _sample_of(traces, "kernels")[is_phase[traces.texts("kernels", "name").codes]]
    codes = set(traces.texts("ranges", "workload").codes[samples[samples >= 0]].tolist())
    return tuple(name for name in data.workloads if name in {traces.texts("ranges", "workload").categories[c] for c in codes})


def phases(data: RunData, workload: str) -> pd.DataFrame:
    """The parts of an operation's time, over the traced samples of the scope `operation`.

    A kernel belongs to the phase that its name begins with, such as `forward_gemm` to forward. `REST` is the time of a sample's
    range without kernels and copies: the host computes or launches, and the device waits.

    Returns:
        One row for each (case, variant, part), by size, ladder and `PARTS`, with the config whose operation is shortest.
        Variants without kernels are left out. Empty where no kernel of the workload is named after a phase. The columns are
        `case`, `size_rank`, `variant`, `title`, `config`, `part`, and

        - `mean_ns`: mean time of the part in a sample;
        - `total_ns`: sum of `mean_ns` over all parts;
        - `fraction`: `mean_ns` over `total_ns`;
        - `n`: number of samples.
    """
    columns = ["case", "size_rank", "variant", "title", "config", "part", "mean_ns", "total_ns", "fraction", "n"]
    if workload not in workloads(data):
        return pd.DataFrame(columns=columns)
    traces = data.traces
    samples = _samples(traces, workload)
    charted = data.cases[(data.cases["workload"] == workload) & data.cases["size_rank"].notna()]
    samples = samples.merge(charted[["case", "size_rank"]], on="case")
    sums = samples.groupby(list(_CELL), as_index=False).agg(
        n=("span", "size"), size_rank=("size_rank", "first"), **{part: (part, "mean") for part in PARTS}
    )
    sums = sums[sums[[*PHASES, OTHER]].sum(axis=1) > 0]
    sums["total_ns"] = sums[list(PARTS)].sum(axis=1)
    sums = sums.sort_values("total_ns", kind="stable").drop_duplicates(["case", "variant"])
    ladder = data.variants[data.variants["workload"] == workload].reset_index(names="place")
    sums = sums.merge(ladder[["variant", "title", "place"]], on="variant")
    rows = sums.melt([c for c in sums.columns if c not in PARTS], list(PARTS), "part", "mean_ns")
    rows["fraction"] = rows["mean_ns"] / rows["total_ns"]
    rows["order"] = rows["part"].map(PARTS.index)
    return rows.sort_values(["size_rank", "place", "order"], kind="stable", ignore_index=True)[columns]


def _samples(traces: Traces, workload: str) -> pd.DataFrame:
    """One row for each sample of the scope: its cell, its `span`, and the time of each part."""
    place = np.flatnonzero(_outermost(traces))
    columns = {name: np.asarray(traces.texts("ranges", name))[place] for name in ("workload", "scope", *_CELL)}
    frame = pd.DataFrame({**columns, "span": range_ns(traces)[place], **dict.fromkeys(PARTS, 0.0)}, index=place)
    names = traces.texts("kernels", "name")
    part_of = np.array([_part(str(name)) for name in names.categories], dtype=object)[names.codes]
    _add(frame, _sample_of(traces, "kernels"), part_of, traces.durations("kernels"))
    if "memory_ops" in traces.tables:
        kind = np.asarray(traces.texts("memory_ops", "kind")).astype(str)
        _add(
            frame,
            _sample_of(traces, "memory_ops"),
            np.where(kind == "memset", OTHER, COPIES).astype(object),
            traces.durations("memory_ops"),
        )
    frame = frame[(frame["workload"] == workload) & (frame["scope"] == _SCOPE)].fillna({"config": ""})
    busy = frame[[part for part in PARTS if part != REST]].sum(axis=1)
    return frame.assign(**{REST: (frame["span"] - busy).clip(lower=0)})


def _add(frame: pd.DataFrame, sample: Int64s, part: "np.ndarray[tuple[int], np.dtype[np.object_]]", duration: Int64s) -> None:
    rows = pd.DataFrame({"sample": sample, "part": part, "duration": duration})
    sums = rows[rows["sample"] >= 0].groupby(["sample", "part"])["duration"].sum().unstack(fill_value=0)
    for column in sums.columns:
        frame.loc[sums.index, column] += sums[column]


def _part(kernel: str) -> str:
    match = _PHASE.match(kernel)
    return match[1] if match else OTHER


def _outermost(traces: Traces) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether each range is a sample: it has a round, and the range around it has none."""
    numbered = traces.numbers("ranges", "round") >= 0
    parent = parents(traces)
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]] = numbered & ~((parent >= 0) & numbered[parent])
    return mask


def _sample_of(traces: Traces, table: str) -> Int64s:
    """The place of the sample whose range launched each row of a table; -1 where no sample did."""
    owner = lookup(traces.numbers("ranges", "range_id"), traces.ranges_of_work(table))
    around = nearest(parents(traces), _outermost(traces))
    return np.where(owner >= 0, around[owner], -1)


_LOOKS: Final = dict(
    zip(
        PARTS,
        (("#0072B2", ""), ("#D55E00", "/"), ("#009E73", "\\"), ("#7A5AA6", "x"), ("#E69F00", "-"), ("#8D939C", ".")),
        strict=True,
    )
)


def chart(frame: pd.DataFrame, look: Look, workload: str) -> Chart:
    """Stacked shares of one case, with a bar for each variant. Each label has the time of the whole operation.

    Args:
        frame: `query.phases` of one case, not empty.
    """
    case = str(frame["case"].iloc[0])
    keys = frame.drop_duplicates("variant")
    rows = frame.to_dict("records")
    bars = frame.assign(
        share=frame["fraction"],
        label=[
            f"{text(look.variant_name(workload, row['variant']))}  {text(format_duration(row['total_ns']))}" for row in rows
        ],
        hover=[_hover(row) for row in rows],
    )
    figure = bars_of_shares(look, bars, _LOOKS, 30, "share of an operation")
    outside = frame[frame["part"].isin([COPIES, REST])].groupby("variant", sort=False)["fraction"].sum()
    title = f"At {case}, copies and the host take {format_percent(100 * outside.max())} of {outside.idxmax()}"
    if len(outside) > 1:
        title += f", {format_percent(100 * outside.min())} of {outside.idxmin()}"
    note = (
        f"{look.device}; operation time under a profiler, which makes launches longer; a kernel belongs to the phase that its "
        f"name begins with, and {OTHER} begin with none; means over the traced samples of each variant's fastest "
        f"config; {samples(keys['n'])}."
    )
    return Chart(slug("phases", workload, case), title, figure, frame, note)


def _hover(row: dict[Any, Any]) -> str:
    return (
        f"{bold_name(row['variant'], row['config'])}<br>{text(row['title'])}<br>{row['part']}: "
        f"<b>{text(format_percent(100 * row['fraction']))}</b>, {text(format_duration(row['mean_ns']))}<br>n = {row['n']}"
    )


def charts(data: RunData, look: Look, workload: str) -> Iterator[Chart]:
    frame = phases(data, workload)
    if len(frame):
        yield chart(frame[frame["case"] == frame["case"].iloc[-1]], look, workload)
