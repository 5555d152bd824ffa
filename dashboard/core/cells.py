"""A row for each cell of a run: medians, rates, floor, flags; the fastest config of a variant, and the baseline of a case."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Baseline, Timing, name_of
from warpladder.dashboard.core.intervals import (
    MIN_SAMPLES,
    error_ns,
    grouped_median_intervals,
    interval_kind,
    is_single,
    widened,
)
from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData, once
from warpladder.data import limits
from warpladder.data.arrays import NONE
from warpladder.data.limits import (
    HOST_COPY_BYTES,
    Memory,
    arithmetic_ns,
    copies_ns,
    device_memory,
    empty_kernel_ns,
    host_memory,
    reads_and_writes,
)
from warpladder.data.names import PHASE, Ceiling, Source
from warpladder.data.words import counted

#: The columns that `with_doubts` adds.
DOUBTED: Final = ("doubted", "doubted_ns", "doubt")


def is_trusted(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Which rows of `cells` may be called best."""
    return (frame["n"] >= MIN_SAMPLES) & (frame["flags"].map(len) == 0)


def doubt(n: int, flags: tuple[str, ...]) -> str:
    """Why a cell may not be called best: `distrusted: above_ceiling`, or `of only 5 samples`; empty where it may."""
    if flags:
        return f"distrusted: {', '.join(flags)}"
    return "" if n >= MIN_SAMPLES else f"of only {counted(n, 'sample')}"


def fastest_trusted(frame: pd.DataFrame, same: list[str]) -> pd.DataFrame:
    """The fastest row of each group that may be called best, or the fastest row of a group without one.

    Args:
        frame: rows of `cells` with samples.
        same: the columns that make a group.

    Returns:
        The rows with the columns `doubted` (variant and config), `doubted_ns` and `doubt` of the fastest row of the group that may
        not be called best and is at least as fast; null without such a cell.
    """
    ordered = frame.sort_values("median_ns", kind="stable")
    trusted = is_trusted(ordered)
    trusted_first = [ordered[trusted], ordered[~trusted]]
    best = pd.concat(trusted_first).drop_duplicates(same).sort_index()
    if trusted.all():
        return best.assign(doubted=None, doubted_ns=np.nan, doubt=None)
    passed = ordered[~trusted].drop_duplicates(same)
    names = [name_of(*row) for row in passed[["variant", "config"]].itertuples(index=False, name=None)]
    doubts = [doubt(*row) for row in passed[["n", "flags"]].itertuples(index=False, name=None)]
    passed = passed[same].assign(doubted=names, doubted_ns=passed["median_ns"], doubt=doubts)
    joined = best.reset_index().merge(passed, on=same, how="left").set_index("index")
    slower = ~(joined["doubted_ns"] <= joined["median_ns"])
    joined.loc[slower, list(DOUBTED)] = [None, np.nan, None]
    return joined.rename_axis(None)


def passed_over(frame: pd.DataFrame, best: pd.DataFrame) -> str:
    """The words about the fastest cell of a contest that may not be called best, among those that are faster than the best of their case.

    `v09_x is faster (1.20 µs) but distrusted: above_ceiling`; without a best one `no winner: v09_x (1.20 µs) is …`; empty without such a
    cell.

    Args:
        frame: rows of `cells.best_config` among which the best was chosen.
        best: the best of each case; every doubtful cell of a case without one counts.
    """
    frame = frame[frame["doubted_ns"].notna()]
    if frame.empty:
        return ""
    than = frame["case"].map(best.set_index("case")["median_ns"].groupby(level=0).min()).fillna(np.inf)
    faster = frame[frame["doubted_ns"] < than.astype(float)].sort_values("doubted_ns", kind="stable")
    if faster.empty:
        return ""
    name, doubted_ns, why = faster[list(DOUBTED)].iloc[0]
    time, others = format_duration(float(doubted_ns)), faster["doubted"].nunique() - 1
    more = f"; {others} more like it" if others else ""
    return f"{name} is faster ({time}) but {why}{more}" if len(best) else f"no winner: {name} ({time}) is {why}{more}"


def sentence(words: str) -> str:
    """The words as a sentence of a note; empty for none."""
    return f"{words.replace('no ', 'No ', 1) if words.startswith('no ') else words}." if words else ""


HOST: Final = "cpu"
#: Times in ns of rows, and the names of the ceilings that they come from.
_Times = tuple[np.ndarray, np.ndarray]


def ceiling(data: RunData, name: str, *, on_gpu: bool) -> float:
    """The value of a ceiling in its unit, on the first GPU that was measured; NaN where it was not measured."""
    return float(measured(data, on_gpu=on_gpu).get(name, float("nan")))


@once
def measured(data: RunData, *, on_gpu: bool | None = None) -> Mapping[str, float]:
    """The values of ceilings by name in their units, each of the first device that has it: of the GPUs, of the processor, or of all."""
    table = data.ceilings if on_gpu is None else data.ceilings[(data.ceilings["device"] != HOST) == on_gpu]
    rows = table.sort_values("device").drop_duplicates("name")
    return dict(zip(rows["name"], rows["value"], strict=True))


def memory_of(data: RunData, *, on_gpu: bool, cache: str = "") -> Memory:
    """The GPU's memory or the processor's, as it was measured; `cache` is passed to `bandwidths.device_memory`."""
    values = measured(data, on_gpu=on_gpu)
    return device_memory(values, cache) if on_gpu else host_memory(values)


def add_floors(frame: pd.DataFrame, data: RunData) -> pd.DataFrame:
    """Add `floor_ns`, `floor_bound` and `floor_ceiling` to rows of cells.

    The floor is the largest of these times. GPUs that worked together share bytes and operations evenly.

    - memory: the least time for the bytes of the case in their mix of reads and writes, at their size and with the L2 of the row; see
      `bandwidths.Memory`. In `end_to_end` the copies leave the L2 as they like, so that the shorter of both times counts. A run
      without times by size, and a row without a cache, has a rate for each mix; a run that measured only `device_copy` has one rate.
      Without times by size the host's rate bounds only cases of at least `HOST_COPY_BYTES`, which its caches do not hold;
    - launch: on a GPU, the time of an empty kernel, the ceiling `graph_node`;
    - compute: see `limits.arithmetic_ns`. Where a case counts operations and no ceiling of the precision was measured, the cell has no
      floor: memory alone would be too low a bound;
    - copies, for the scope `end_to_end` of a GPU: the longer of h2d_bytes over `h2d_pinned` and d2h_bytes over `d2h_pinned`,
      since the two directions can overlap.

    Args:
        frame: with `kind`, `precision`, `gpus`, `scope`, `cache`, `flops`, `min_bytes`, `passes`, `h2d_bytes`, `d2h_bytes`.

    Returns:
        The frame with `floor_ns` (null without a ceiling, for a phase, and for a cell without samples), `floor_bound`
        (`memory`, `compute`, `copies`, `launch`, or null), and `floor_ceiling`, the names of the ceilings that the floor comes from.
    """
    on_gpu = (frame["kind"] != "host").to_numpy()
    end_to_end = on_gpu & (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    bounds = {"memory": _by_memory(frame, data, on_gpu), "compute": arithmetic_ns(frame, measured(data))}
    copies, directions = copies_ns(frame, measured(data))
    bounds["copies"] = np.where(end_to_end, copies, np.nan), directions
    empty = np.where(on_gpu, empty_kernel_ns(measured(data)) or np.nan, np.nan)
    bounds["launch"] = empty, np.full(len(frame), Ceiling.GRAPH_NODE, dtype=object)
    times, names = (np.array(each) for each in zip(*bounds.values(), strict=True))
    timed = frame["scope"].isin(["device", "operation", "end_to_end"]).to_numpy()
    longest = np.where(np.isnan(times), -1.0, times).argmax(axis=0)
    rows = np.arange(len(frame))
    has_floor = timed & (times[longest, rows] > 0) & ~np.isnan(times[[*bounds].index("compute")])
    columns = {
        "floor_ns": np.where(has_floor, times[longest, rows], np.nan),
        "floor_bound": np.where(has_floor, np.array(list(bounds), dtype=object)[longest], None),
        "floor_ceiling": np.where(has_floor, names[longest, rows], None),
    }
    return frame.assign(**{name: pd.Series(values, index=frame.index) for name, values in columns.items()})


def _by_memory(frame: pd.DataFrame, data: RunData, on_gpu: np.ndarray) -> _Times:
    gpus = np.maximum(frame["gpus"].fillna(0).to_numpy(dtype=float), 1)
    read, written = (part / gpus for part in reads_and_writes(frame))
    passes = frame["passes"].to_numpy(dtype=float)

    def by(memory: Memory) -> _Times:
        return memory.time_ns(read, written, passes), memory.ceiling_names(read, written)

    memory = memory_of(data, on_gpu=False)
    host = by(memory)
    if not memory.curves:
        host = np.where(read + written >= HOST_COPY_BYTES, host[0], np.nan), host[1]
    rate, cold, hot = (by(memory_of(data, on_gpu=True, cache=cache)) for cache in ("", "cold", "hot"))
    end_to_end = (frame["scope"] == "end_to_end").to_numpy(dtype=bool)
    caches = [(frame["cache"] == cache).to_numpy(dtype=bool) & ~end_to_end for cache in ("cold", "hot")]
    chosen = [~on_gpu, caches[0] | (end_to_end & (cold[0] < hot[0])), caches[1] | end_to_end]
    times, names = (np.select(chosen, values, last) for *values, last in zip(host, cold, hot, rate, strict=True))
    return times, names


_OF_VARIANT: Final = ["role", "kind", "precision", "title", "rung", "transfer"]
_OF_CASE: Final = ["size_rank", "params", "flops", "min_bytes", "passes", "h2d_bytes", "d2h_bytes"]


@once
def cells(data: RunData) -> pd.DataFrame:
    """Every cell of a run, also those without samples.

    Returns:
        One row for each (workload, variant, config, case, gpus, cache, scope), in the order of the variants and cases. A cell
        without samples failed, was skipped, or was only verified. It has one row, with null in `gpus`, `cache`, `scope` and all
        figures. The columns after the key are:

        - `n`: number of samples, without the samples of the baseline's second copy;
        - `median_ns`, `low_ns`, `high_ns`, `interval_kind`: their median, the ends of its interval with the error of the clock
          (see `intervals`), and the kind of the interval;
        - `role`, `kind`, `precision`, `title`, `rung`, `transfer`: columns of the variant;
        - `size_rank`, `params`, `flops`, `min_bytes`, `passes`, `h2d_bytes`, `d2h_bytes`: columns of the case;
        - `gb_per_s`, `gflop_per_s`: `min_bytes` and `flops` over the median; null for a phase, and where the count is 0; of a
          ceiling, `gflop_per_s` is null, since it computes nothing;
        - `floor_ns`, `floor_bound`, `floor_ceiling`: see `floors.add_floors`;
        - `percent_of_floor`: the floor over the median, in percent;
        - `_low` and `_high` of `gb_per_s`, `gflop_per_s` and `percent_of_floor`: the ends of their intervals;
        - `status`, `detail`, `rel_l2_error`: how the cell ended, and the error against float64; null where it was not verified;
        - `flags`: a tuple with the sources of the warnings and errors about the cell, and `above_ceiling` where a time of it is below
          a floor by more than the margin of `data.limits`.
    """
    groups = data.grouped
    intervals = grouped_median_intervals(groups.durations, groups.keys["n"].to_numpy())
    timed = groups.keys.assign(**{f"{end}_ns": figures for end, figures in intervals.items()})
    single = [is_single(*each) for each in zip(timed["scope"], timed["cache"], strict=True)]
    error = error_ns(data.info["collector"], measured(data))
    low, high = widened(timed["low_ns"].to_numpy(), timed["high_ns"].to_numpy(), error, np.array(single, dtype=bool))
    timed = timed.assign(low_ns=low, high_ns=high)
    timed = timed[timed["twin"] == 0].drop(columns="twin")
    if data.hidden:
        timed = timed[~pd.MultiIndex.from_frame(timed[["workload", "variant"]]).isin(data.hidden)]
    frame = timed.merge(data.results[[*STATUS_KEY, "status", "detail", "rel_l2_error"]], on=STATUS_KEY, how="outer")
    frame["status"] = frame["status"].fillna("ok")
    frame["detail"] = frame["detail"].fillna("")
    frame["rel_l2_error"] = frame["rel_l2_error"].astype(float)
    frame["n"] = frame["n"].fillna(0).astype(int)
    frame["gpus"] = frame["gpus"].astype("Int64")
    frame["interval_kind"] = [interval_kind(n) if n else "" for n in frame["n"]]
    variants = data.variants[["workload", "variant", *_OF_VARIANT]].reset_index(names="variant_place")
    cases = data.cases[["workload", "case", *_OF_CASE]].reset_index(names="case_place")
    frame = frame.merge(variants, on=["workload", "variant"], how="left").merge(cases, on=["workload", "case"], how="left")
    frame = add_floors(frame, data)
    frame = _add_rates(frame)
    frame["flags"] = _flags(frame, data)
    places = ["variant_place", "config", "case_place", "gpus", "scope", "cache"]
    return frame.sort_values(places, kind="stable").drop(columns=["variant_place", "case_place"]).reset_index(drop=True)


def best_config(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `cells` of each variant's fastest config, for each (workload, variant, case, gpus, cache, scope).

    A config that may be called best goes before others; see `trusted.fastest_trusted` for the further columns. Cells without samples
    and cells with a wrong result are left out.
    """
    usable = frame[(frame["n"] > 0) & (frame["status"] == "ok")]
    return fastest_trusted(usable, ["workload", "variant", "case", "gpus", "cache", "scope"]).reset_index(drop=True)


@once
def best_of_charted(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """The rows of `best_config` of the charted cases in one timing, with the columns `size`, `series` and `size_value`."""
    cases = charted_cases(data, workload)[["case", "size", "series", "size_value"]]
    return best_config(in_timing(cells(data), workload, timing)).merge(cases, on="case", how="inner")


def in_timing(frame: pd.DataFrame, workload: str, timing: Timing) -> pd.DataFrame:
    chosen = (frame["workload"] == workload) & (frame["scope"] == timing.scope) & (frame["cache"] == timing.cache)
    return frame[chosen]


def select(frame: pd.DataFrame, workload: str, case: str, timing: Timing) -> pd.DataFrame:
    """The rows of `cells` of one case in one timing."""
    chosen = in_timing(frame, workload, timing)
    return chosen[chosen["case"] == case].reset_index(drop=True)


def _add_rates(frame: pd.DataFrame) -> pd.DataFrame:
    phase = frame["scope"].str.startswith(PHASE, na=False).to_numpy(dtype=bool)
    # A ceiling, such as a copy, moves the bytes of the case and does none of its operations.
    ceiling = (frame["role"] == "ceiling").to_numpy(dtype=bool)
    # One byte a nanosecond is one GB/s, and one FLOP a nanosecond is one GFLOP/s.
    scales = {"gb_per_s": ("min_bytes", 1.0), "gflop_per_s": ("flops", 1.0), "percent_of_floor": ("floor_ns", 100.0)}
    rates = {}
    for name, (column, scale) in scales.items():
        amount = pd.to_numeric(frame[column]).to_numpy(dtype=float, na_value=np.nan)
        left_out = phase | ceiling if column == "flops" else phase
        counted = np.where(~left_out & (amount > 0), amount, np.nan) * scale
        for suffix, time in (("", "median_ns"), ("_low", "high_ns"), ("_high", "low_ns")):
            times = frame[time].to_numpy(dtype=float)
            rates[name + suffix] = counted / np.where(times == 0, np.nan, times)
    return frame.assign(**rates)


def _flags(frame: pd.DataFrame, data: RunData) -> list[tuple[str, ...]]:
    """The sources of the warnings and errors about each cell, and what the limits of today find in a run of any age.

    A null in a diagnostic stands for any value. A diagnostic without a variant and without a case is about the run, not its
    cells.
    """
    diagnostics = data.diagnostics
    flags: list[list[str]] = [[] for _ in range(len(frame))]
    serious = diagnostics[diagnostics["severity"].isin(["warning", "error"])]
    serious = serious[serious["variant"].notna() | serious["case"].notna()]
    # Numbers in place of texts, which take a hundred times as long to compare: there may be hundreds of findings about thousands of cells.
    numbers = [pd.factorize(pd.concat([serious[name], frame[name]], ignore_index=True))[0] for name in STATUS_KEY]
    findings, rows = np.split(np.stack(numbers), [len(serious)], axis=1)
    for source, finding in zip(serious["source"], findings.T, strict=True):
        told = finding != NONE
        for row in np.flatnonzero((rows[told] == finding[told, None]).all(axis=0)):
            if source not in flags[row]:
                flags[row].append(str(source))
    beyond = np.any(list(limits.beyond(frame, measured(data), data.info["l2_bytes"] or 0).values()), axis=0)
    if beyond.any():
        cells_beyond = pd.MultiIndex.from_frame(frame.loc[beyond, STATUS_KEY])
        for row in np.flatnonzero(pd.MultiIndex.from_frame(frame[STATUS_KEY]).isin(cells_beyond)):
            if Source.ABOVE_CEILING not in flags[row]:
                flags[row].append(Source.ABOVE_CEILING)
    return [tuple(sources) for sources in flags]


@once
def baselines(data: RunData, workload: str, timing: Timing, cases: frozenset[str]) -> Mapping[str, Baseline]:
    """The baseline of each case: the variant of `baseline_variant` over these cases, with its fastest config of the case.

    The config is the one of `cells.best_config`, so that every speedup is over the cell that the ladder shows. A case without a right
    time of the variant has none.
    """
    if data.selected_from:
        return baselines(data.selected_from, workload, timing, cases)
    variant = baseline_variant(data, workload, timing, cases=cases)
    return _baselines_among(data, workload, timing, dict.fromkeys(cases, variant))


@once
def baselines_case_by_case(data: RunData, workload: str, timing: Timing) -> Mapping[str, Baseline]:
    """What `baselines` gives for each case by itself: the variant is another one where the usual one failed, as on the ladder."""
    if data.selected_from:
        return baselines_case_by_case(data.selected_from, workload, timing)
    ordered = _by_fitness(data, workload, _copies(data, workload, timing), ["case"])
    first = ordered.drop_duplicates("case")
    return _baselines_among(data, workload, timing, dict(zip(first["case"], first["variant"], strict=True)))


def _baselines_among(data: RunData, workload: str, timing: Timing, variant_of: Mapping[str, str]) -> Mapping[str, Baseline]:
    timed = in_timing(cells(data), workload, timing)
    timed = timed[timed["variant"] == timed["case"].map(variant_of)]
    # Where a variant ran on several numbers of GPUs, the fewest are the baseline.
    rows = best_config(timed).sort_values("gpus", kind="stable").drop_duplicates("case")
    columns = [rows[name] for name in ("case", "variant", "config", "gpus", "n", "flags")]
    return {
        case: Baseline(variant, config, int(gpus), doubt(int(n), flags))
        for case, variant, config, gpus, n, flags in zip(*columns, strict=True)
    }


def baseline_variant(
    data: RunData,
    workload: str,
    timing: Timing,
    *,
    on_host: bool = False,
    preferred: str = "",
    cases: Iterable[str] | None = None,
) -> str:
    """The variant that speedups of a workload are counted from in a timing: the one that was sampled twice (A/A).

    Where a variant on the GPU and one on the host were both sampled twice, the one on the GPU is the baseline. Where none was,
    the lowest rung with samples is, or else the first variant with samples. Empty where the timing has no sample.

    Args:
        on_host: consider the variants on the host alone, as on a machine without a GPU.
        preferred: the variant to take before others that were not sampled twice and are no rung.
        cases: consider these cases alone, since the usual baseline may have failed in all of them; None for all cases.
    """
    copies = _copies(data, workload, timing)
    if on_host:
        copies = copies[copies["gpus"] == 0]
    if cases is not None:
        copies = copies[copies["case"].isin(list(cases))]
    return "" if copies.empty else str(_by_fitness(data, workload, copies, [], preferred)["variant"].iloc[0])


def _copies(data: RunData, workload: str, timing: Timing) -> pd.DataFrame:
    """Each group of samples of a workload in a timing."""
    return in_timing(data.grouped.keys, workload, timing)[["variant", "config", "case", "gpus", "twin"]]


def _by_fitness(data: RunData, workload: str, copies: pd.DataFrame, same: list[str], preferred: str = "") -> pd.DataFrame:
    """The candidates for a baseline, the fittest first: each variant, config and number of GPUs of each group of `same`."""
    # A case whose baseline failed has a second copy of another variant. The baseline has one in the most cases.
    candidates = copies.groupby([*same, "variant", "config", "gpus"], as_index=False, sort=False)["twin"].sum()
    variants = data.variants[data.variants["workload"] == workload].reset_index(names="place")
    candidates = candidates.merge(variants[["variant", "role", "rung", "place"]], on="variant", how="left")
    order = candidates.assign(
        single=candidates["twin"] == 0,
        off_gpu=candidates["gpus"] == 0,
        twins=-candidates["twin"],
        rung=candidates["rung"].astype(float).where(candidates["role"] == "rung"),
        not_preferred=candidates["variant"] != preferred,
    )
    keys = ["single", "off_gpu", "twins", "rung", "not_preferred", "place"]
    ordered: pd.DataFrame = order.sort_values(keys, na_position="last", kind="stable")
    return ordered


@once
def timings(data: RunData, workload: str) -> tuple[Timing, ...]:
    """The ways in which the workload was timed: `device` (cold before hot), `operation`, `end_to_end`, then phases.

    A page shows the first one at first.
    """
    keys = data.grouped.keys
    of_workload = keys[keys["workload"] == workload][["scope", "cache"]].drop_duplicates()
    return in_order(Timing(scope, cache) for scope, cache in of_workload.itertuples(index=False))


def in_order(timings: Iterable[Timing]) -> tuple[Timing, ...]:
    """Timings in the order of `timings`."""
    order = ("device", "operation", "end_to_end")
    return tuple(
        sorted(
            timings,
            key=lambda timing: (order.index(timing.scope) if timing.scope in order else len(order), timing.scope, timing.cache),
        )
    )


@once
def charted_cases(data: RunData, workload: str) -> pd.DataFrame:
    """The workload's cases on the size axis, by size_rank.

    Returns:
        The columns of `cases`, and:

        - `size`: text of the axes that change only with size_rank, such as `n=512`; of those that do not change where there is one
          size_rank;
        - `size_value`: the number of that axis, where it is one axis of numbers; else size_rank + 1, since a logarithmic axis
          has no 0;
        - `series`: text of the other axes, such as `perm=210`; empty where the workload has none.
    """
    cases = data.cases[(data.cases["workload"] == workload) & data.cases["size_rank"].notna()].copy()
    params: list[dict[str, Any]] = [json.loads(text) for text in cases["params"]]
    ranks = cases["size_rank"].tolist()
    axes = _in_case_order(cases["case"].tolist(), params)
    sized = [axis for axis in axes if _follows_rank(axis, params, ranks)]
    if not sized:
        shared = [axis for axis in axes if len({str(point.get(axis)) for point in params}) == 1]
        sized = shared if len(set(ranks)) == 1 and shared else axes
    cases["size"] = [_text(point, sized) for point in params]
    cases["series"] = [_text(point, [axis for axis in axes if axis not in sized]) for point in params]
    values = [point.get(sized[0]) if len(sized) == 1 else None for point in params]
    numeric = bool(values) and all(isinstance(value, int | float) and value > 0 for value in values)
    sizes = values if numeric else [rank + 1 for rank in ranks]
    cases["size_value"] = pd.Series(sizes, index=cases.index, dtype=float)
    return cases.sort_values("size_rank", kind="stable").reset_index(drop=True)


def timed_cases(data: RunData, workload: str) -> frozenset[str]:
    """The workload's cases that have samples. An interrupted run lacks samples of its last cases."""
    keys = data.grouped.keys
    return frozenset(keys.loc[keys["workload"] == workload, "case"])


def series(data: RunData, workload: str) -> tuple[str, ...]:
    """The workload's series, such as `("perm=012", "perm=021", …)`; `("",)` where size is its only axis."""
    return tuple(charted_cases(data, workload)["series"].unique())


def _in_case_order(names: list[str], params: list[dict[str, Any]]) -> list[str]:
    """Names of the axes in the order of the case names. The JSON of `params` is sorted by name."""
    axes = dict.fromkeys(axis for point in params for axis in point)
    written = [part.split("=", 1)[0] for name in names[:1] for part in name.split(",")]
    return sorted(axes, key=lambda axis: written.index(axis) if axis in written else len(written))


def _follows_rank(axis: str, params: list[dict[str, Any]], ranks: list[int]) -> bool:
    """Whether the axis has one value at each rank, and not the same at all ranks."""
    values: dict[int, set[str]] = {}
    for point, rank in zip(params, ranks, strict=True):
        values.setdefault(rank, set()).add(str(point.get(axis)))
    return all(len(of_rank) == 1 for of_rank in values.values()) and len(set.union(*values.values())) > 1


def _text(params: dict[str, Any], axes: list[str]) -> str:
    return ",".join(f"{axis}={params[axis]}" for axis in axes if axis in params)


def scaled_workloads(data: RunData) -> tuple[str, ...]:
    """The workloads that several ranks measured together, in the order of the run."""
    scaled = set(data.together["workload"].unique())
    return tuple(name for name in data.workloads if name in scaled)
