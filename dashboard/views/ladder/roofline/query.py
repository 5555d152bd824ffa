"""Variants under the measured roofs of their device (Williams, Waterman and Patterson, Roofline, 2009)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counters
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import HOST, best_config, cells, charted_cases, in_timing, measured, memory_of
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData
from warpladder.data.limits import BY_SIZE, COMPUTE, DEVICE_MIXES, HOST_MIXES, compute_ceiling, reads_and_writes
from warpladder.data.names import Ceiling

_ROLES = ("rung", "peer", "host")
#: Roofs of memory whose rates differ by no more than this ratio are one line.
_ONE_LINE = 1.01


@dataclass(frozen=True)
class Roof:
    """A measured ceiling as a roof.

    Attributes:
        kind: `memory` or `compute`.
        precision: that a compute roof holds for; empty for memory.
        value: in GB/s or GFLOP/s.
        share: the part of the ceiling that the roof is, a third for 3xTF32.
    """

    name: str
    kind: str
    precision: str
    value: float
    unit: str
    share: float
    method: str


def computes(data: RunData, workload: str) -> bool:
    """Whether a case of the workload counts operations. Without operations it has no place under a roof."""
    return bool((data.cases.loc[data.cases["workload"] == workload, "flops"] > 0).any())


def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The timings that a roofline is drawn for: device time, cold before hot, or operation time where there is no GPU."""
    keys = data.grouped.keys
    scope = "device" if data.on_gpu else "operation"
    chosen = (keys["workload"] == workload) & (keys["scope"] == scope)
    return tuple(Timing(scope, cache) for cache in ("cold", "hot") if (chosen & (keys["cache"] == cache)).any())


def roofs(data: RunData) -> list[Roof]:
    """The measured ceilings of the GPU as roofs, or of the host where there is no GPU. Those of memory are the first.

    Memory has a ceiling for each measured mix of reads and writes. `slopes` has the roofs of given points.
    """
    table = data.ceilings[(data.ceilings["device"] != HOST) == data.on_gpu].sort_values("device").drop_duplicates("name")
    ceilings = {row["name"]: row for row in table.to_dict("records")}
    kinds = [(name, "memory", "", 1.0) for name in (DEVICE_MIXES if data.on_gpu else HOST_MIXES)]
    kinds += (
        [(compute_ceiling(measured(data), precision), "compute", precision, share) for precision, (_, share) in COMPUTE.items()]
        if data.on_gpu
        else [(Ceiling.HOST_FMA, "compute", "fp32", 1.0)]
    )
    units = {"memory": ("GB/s", 1), "compute": ("GFLOP/s", 1000)}
    result = []
    for name, kind, precision, share in kinds:
        if name in ceilings:
            unit, scale = units[kind]
            value = float(ceilings[name]["value"]) * share * scale
            result.append(Roof(name, kind, precision, value, unit, share, str(ceilings[name]["method"])))
    return result


def slopes(frame: pd.DataFrame, every: Sequence[Roof]) -> list[Roof]:
    """The roofs of memory above rows of `points`: one, or the lowest and the highest where mixes of reads and writes differ.

    Args:
        every: `roofs`; they say how the ceilings were measured.
    """
    with_rate = frame[frame["memory_gb_per_s"] > 0].sort_values("memory_gb_per_s")
    methods = {roof.name: roof.method for roof in every}
    ends = [
        Roof(
            str(names),
            "memory",
            "",
            float(rate),
            "GB/s",
            1.0,
            "; ".join(methods.get(name, "") for name in names.split(" and ")),
        )
        for names, rate in with_rate[["memory_roof", "memory_gb_per_s"]].iloc[[0, -1] if len(with_rate) else []].to_numpy()
    ]
    return ends[:1] if len(ends) == 2 and ends[1].value <= _ONE_LINE * ends[0].value else ends


def has_floor_by_size(frame: pd.DataFrame) -> bool:
    """Whether a floor of rows of `points` is a time of memory by size, which no roof has."""
    return bool(frame["floor_ceiling"].str.contains(BY_SIZE, regex=False, na=False).any())


def executed(data: RunData, workload: str) -> pd.DataFrame:
    """The operations and bytes that Nsight Compute counted in one execution of each cell.

    These counters leave out the arithmetic of tensor cores. A cell that used tensor cores has no row.

    Returns:
        `variant`, `config`, `case`, `source_sha256` of the variant, and

        - `executed_flop`: fp32 and fp64 operations; a multiply-add counts as two;
        - `dram_bytes`, `dram_read_bytes`: bytes of device memory read and written, and those read.
    """
    columns = ["variant", "config", "case", "executed_flop", "dram_bytes", "dram_read_bytes"]
    frames = []
    for case in counters.counted_cases(data, workload):
        frame = counters.by_config(data, workload, case)
        frame = frame[~(frame["tensor_percent"] > 0)]
        flop = frame[["fp32_flop", "fp64_flop"]].sum(axis=1, min_count=1)
        frames.append(frame.assign(case=case, executed_flop=flop)[columns])
    joined = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    joined = joined[(joined["executed_flop"] > 0) & (joined["dram_bytes"] > 0)]
    sources = data.variants[data.variants["workload"] == workload][["variant", "source_sha256"]]
    return joined.merge(sources, on="variant", how="inner")


def points(data: RunData, workload: str, timing: Timing, counted: pd.DataFrame | None = None) -> pd.DataFrame:
    """Each variant's fastest config at each charted case under its roof, on one device.

    Args:
        counted: `executed` of this run, or of another run on the same device. Intensity and rate are then computed from the
            counted operations and bytes, for cells with the same source. When None, they are computed from the case's
            operations and least bytes.

    Returns:
        Rows of `cells` (rungs, peers and host variants, in the order of the variants and cases) with `size`, `series` and `size_value` of
        `axes.charted_cases`. `gflop_per_s` and its interval are computed from the chosen operations. Further columns are:

        - `flop_per_byte`: the intensity;
        - `memory_roof`, `memory_gb_per_s`: the names of the ceilings that bound the point's reads and writes, and their rate. It is that
          of their mix at a large size, where the floor follows from the case's size and L2;
        - `roof`, `roof_gflop_per_s`: the names of the ceilings of the roof, and the lower one of the memory's roof at this intensity and
          the roof of the variant's precision;
        - `percent_of_roof`: an estimate, the rate over the roof; on paper this is the percent of floor where the run has no times by size.
    """
    every, memory = in_timing(cells(data), workload, timing), memory_of(data, on_gpu=data.on_gpu)
    # The roofs belong to one device.
    chosen = every["role"].isin(_ROLES) & (every["gpus"].fillna(0) <= 1) & (every["flops"] > 0)
    frame = every[chosen].merge(charted_cases(data, workload)[["case", "size", "size_value", "series"]], on="case", how="inner")
    if counted is None:
        moved = reads_and_writes(frame)
        frame = frame.assign(flop=frame["flops"].astype(float), bytes=frame["min_bytes"].astype(float))
    else:
        sources = data.variants[["workload", "variant", "source_sha256"]]
        frame = frame.merge(sources, on=["workload", "variant"]).merge(counted, on=[*STATUS_KEY[1:], "source_sha256"])
        frame = frame.rename(columns={"executed_flop": "flop", "dram_bytes": "bytes"})
        read = frame["dram_read_bytes"].to_numpy(dtype=float)
        moved = read, frame["bytes"].to_numpy(dtype=float) - read
    rates = frame["bytes"].astype(float) / memory.time_ns(*moved, frame["passes"].to_numpy(dtype=float))
    frame = frame.assign(memory_roof=memory.ceiling_names(*moved), memory_gb_per_s=np.where(np.isfinite(rates), rates, np.nan))
    frame = best_config(frame[frame["bytes"] > 0])
    for suffix, time in (("", "median_ns"), ("_low", "high_ns"), ("_high", "low_ns")):
        # One FLOP a nanosecond is one GFLOP/s.
        frame[f"gflop_per_s{suffix}"] = frame["flop"] / frame[time].where(frame[time] > 0)
    frame["flop_per_byte"] = frame["flop"] / frame["bytes"]
    # The host has one roof of arithmetic, as it has one floor.
    return _under_roofs(frame, frame["precision"] if data.on_gpu else "fp32", roofs(data))


def _under_roofs(frame: pd.DataFrame, precision: "pd.Series[str] | str", every: list[Roof]) -> pd.DataFrame:
    flats = {roof.precision: roof for roof in every if roof.kind == "compute"}
    of_row = pd.Series(precision, index=frame.index, dtype=object)
    memory = frame["flop_per_byte"] * frame["memory_gb_per_s"]
    compute = of_row.map({name: roof.value for name, roof in flats.items()}).astype(float)
    lower = pd.concat([memory, compute], axis=1).min(axis=1)
    by_compute = compute.notna() & ~(memory <= compute)
    names = of_row.map({name: roof.name for name, roof in flats.items()}).where(by_compute, frame["memory_roof"])
    shares = {f"percent_of_roof{end}": 100 * frame[f"gflop_per_s{end}"] / lower for end in ("", "_low", "_high")}
    return frame.assign(roof_gflop_per_s=lower, roof=names, **shares)
