"""Where each variant stands under the roofs that this device was measured to have (Williams, Waterman and Patterson, Roofline, 2009)."""

import numpy as np
import pandas as pd

from warpladder.dashboard.core import counters
from warpladder.dashboard.core.axes import Timing, charted_cases
from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.floors import COMPUTE, HOST, compute_ceiling
from warpladder.dashboard.core.run_data import VERDICT_CELL, RunData

_ROLES = ("rung", "peer", "host")
_ROOFS = ["name", "kind", "precision", "value", "unit", "share", "method"]


def computes(data: RunData, workload: str) -> bool:
    """Whether a case of the workload counts an operation: without one there is no place for it under a roof."""
    return bool((data.cases.loc[data.cases["workload"] == workload, "flops"] > 0).any())


def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The views in which the roofs are those of the place that computes: device time, cold first; operations where there is no GPU."""
    keys = data.grouped.keys
    scope = "device" if data.on_gpu else "operation"
    chosen = (keys["workload"] == workload) & (keys["scope"] == scope)
    return tuple(Timing(scope, cache) for cache in ("cold", "hot") if (chosen & (keys["cache"] == cache)).any())


def roofs(data: RunData) -> pd.DataFrame:
    """The measured ceilings as roofs, of the GPU, or of the host where there is none.

    Returns:
        One row a roof, the memory's first: `name` of the ceiling, `kind` (`memory` or `compute`), `precision` that a compute roof holds for
        (empty for memory), `value` in GB/s or GFLOP/s, its `unit`, `share` of the ceiling that it is (a third for 3xTF32) and `method`.
    """
    table = data.ceilings[(data.ceilings["device"] != HOST) == data.on_gpu].sort_values("device").drop_duplicates("name")
    known = {row["name"]: row for row in table.to_dict("records")}
    wanted = [("device_copy" if data.on_gpu else "host_copy", "memory", "", 1.0)]
    wanted += (
        [(compute_ceiling(data, precision), "compute", precision, share) for precision, (_, share) in COMPUTE.items()]
        if data.on_gpu
        else [("host_fma", "compute", "fp32", 1.0)]
    )
    rows = [
        (name, kind, precision, known[name]["value"] * share * (1000 if kind == "compute" else 1),
         "GFLOP/s" if kind == "compute" else "GB/s", share, known[name]["method"])
        for name, kind, precision, share in wanted if name in known
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=_ROOFS)


def executed(data: RunData, workload: str) -> pd.DataFrame:
    """What Nsight Compute counted in one execution of each cell.

    Arithmetic of tensor cores is not in these counters, so that a cell that used them is left out.

    Returns:
        `variant`, `config`, `case`, `executed_flop` (fp32 and fp64, a multiply-add counted as two), `dram_bytes` read and written, and
        `source_sha256` of the variant.
    """
    columns = ["variant", "config", "case", "executed_flop", "dram_bytes"]
    frames = []
    for case in counters.counted_cases(data, workload):
        frame = counters.by_config(data, workload, case)
        frame = frame[~(frame["tensor_percent"] > 0)]
        flop = frame[["fp32_flop", "fp64_flop"]].sum(axis=1, min_count=1)
        frames.append(frame.assign(case=case, executed_flop=flop)[columns])
    found = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    found = found[(found["executed_flop"] > 0) & (found["dram_bytes"] > 0)]
    sources = data.variants.loc[data.variants["workload"] == workload, ["variant", "source_sha256"]]
    return found.merge(sources, on="variant", how="inner")


def points(data: RunData, workload: str, view: Timing, counted: pd.DataFrame | None = None) -> pd.DataFrame:
    """Each variant's fastest config at each charted case under its roof, on one device.

    Args:
        counted: `executed` of this run or of another of the same device: intensity and rate are then of the operations executed and the
            bytes that device memory moved, and the cells are those of the same source that it has. When None, of the case's own
            operations and least bytes.

    Returns:
        Rows of `cells` (rungs, peers and host variants; in the order of the variants and cases) with `size`, `size_value`, `series`, and

        - `flop_per_byte`; `gflop_per_s` with `_low` and `_high` over the median and the ends of its interval;
        - `roof_gflop_per_s`: the lower of the memory's roof there and that of the variant's precision; `roof`: the name of its ceiling;
        - `percent_of_roof` with `_low` and `_high`. On paper this is the percent of floor.
    """
    every = cells(data)
    chosen = (every["workload"] == workload) & (every["scope"] == view.scope) & (every["cache"] == view.cache)
    # The roofs are those of one device.
    chosen &= every["role"].isin(_ROLES) & (every["gpus"].fillna(0) <= 1) & (every["flops"] > 0)
    frame = every[chosen].merge(charted_cases(data, workload)[["case", "size", "size_value", "series"]], on="case", how="inner")
    if counted is None:
        frame = frame.assign(flop=frame["flops"].astype(float), bytes=frame["min_bytes"].astype(float))
    else:
        sources = data.variants[["workload", "variant", "source_sha256"]]
        frame = frame.merge(sources, on=["workload", "variant"]).merge(counted, on=[*VERDICT_CELL[1:], "source_sha256"])
        frame = frame.rename(columns={"executed_flop": "flop", "dram_bytes": "bytes"})
    frame = best_config(frame[frame["bytes"] > 0])
    for suffix, time in (("", "median_ns"), ("_low", "high_ns"), ("_high", "low_ns")):
        # One FLOP a nanosecond is one GFLOP/s.
        frame[f"gflop_per_s{suffix}"] = frame["flop"] / frame[time].where(frame[time] > 0)
    frame["flop_per_byte"] = frame["flop"] / frame["bytes"]
    # The host has one roof of arithmetic, as it has one floor.
    return _under_roofs(frame, frame["precision"] if data.on_gpu else "fp32", roofs(data))


def _under_roofs(frame: pd.DataFrame, precision: "pd.Series[str] | str", table: pd.DataFrame) -> pd.DataFrame:
    slope = table.loc[table["kind"] == "memory", ["name", "value"]]
    flat = table[table["kind"] == "compute"].set_index("precision")
    of_row = pd.Series(precision, index=frame.index, dtype=object)
    memory = frame["flop_per_byte"] * (float(slope["value"].iloc[0]) if len(slope) else np.nan)
    compute = of_row.map(flat["value"]).astype(float)
    lower = pd.concat([memory, compute], axis=1).min(axis=1)
    by_compute = compute.notna() & ~(memory <= compute)
    names = of_row.map(flat["name"]).where(by_compute, slope["name"].iloc[0] if len(slope) else "")
    shares = {f"percent_of_roof{end}": 100 * frame[f"gflop_per_s{end}"] / lower for end in ("", "_low", "_high")}
    return frame.assign(roof_gflop_per_s=lower, roof=names, **shares)
