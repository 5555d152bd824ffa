"""The figures of the pages from the parquet files alone, by the definitions of the documents.

Nothing here imports the project. Sources: `data/README.md` (columns), `docs/words.md`, `docs/measurement.md` (floors, medians,
ratios), `docs/gpus.md`, `docs/import.md`, `docs/why.md`.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq

RECORDED: Final = Path(__file__).resolve().parents[2] / "data" / "recorded"
Floats = npt.NDArray[np.float64]
KEY: Final = ["workload", "variant", "config", "case"]
MIXES: Final = {"device_write": 0.0, "device_1_to_8": 1 / 9, "device_1_to_2": 1 / 3, "device_copy": 0.5,
                "device_2_to_1": 2 / 3, "device_8_to_1": 8 / 9, "device_read": 1.0}  # fmt: skip
HOST_MIXES: Final = {"host_copy": 0.5}
SCOPES: Final = ("device", "operation", "end_to_end")
FEWEST: Final = 6
#: The error in ns of a cold device time between two events, of a run that did not measure it (docs/collectors.md, Device times).
EVENTS_NS: Final = 400.0
#: How far two such times of a run are from their difference, where it was not measured.
SCATTER_NS: Final = 200.0
#: And at least that between two runs.
LEAST_EVENTS_NS: Final = 270.0
#: Resamples of the independent bootstrap, and the percentiles that an end of an interval of 2,000 other resamples lies between but for
#: one in ten thousand: four standard deviations of both from 2.5 %.
RESAMPLES: Final = 4000
_ENDS: Final = ((0.7, 4.4), (95.6, 99.3))


class Between(NamedTuple):
    """A figure that a bootstrap gives: it lies between these two."""

    low: float
    high: float


class Interval(NamedTuple):
    """A figure, and what each end of its interval may be."""

    value: float
    low: Between
    high: Between


UNKNOWN: Final = Interval(math.nan, Between(math.nan, math.nan), Between(math.nan, math.nan))


class Shipped:
    """One shipped run. A table is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name
        self._tables: dict[str, pd.DataFrame] = {}

    def has(self, table: str) -> bool:
        return (self.folder / f"{table}.parquet").exists()

    def table(self, name: str) -> pd.DataFrame:
        if name not in self._tables:
            table = pq.read_table(self.folder / f"{name}.parquet")
            frame = table.to_pandas()
            for column in frame:
                # A float holds no nanoseconds since 1970, and a column of integers with nulls would become one.
                if str(column).endswith("_ns") and table.column(column).null_count:
                    frame[column] = pd.array(table.column(column).to_pylist(), dtype="Int64")
            self._tables[name] = frame
        return self._tables[name]

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return self.table("run").iloc[0].to_dict()

    @cached_property
    def ceilings(self) -> dict[str, float]:
        """The values by name in their units, each of the first device that has it."""
        if not self.has("ceilings"):
            return {}
        return self.table("ceilings").sort_values("device").drop_duplicates("name").set_index("name")["value"].to_dict()

    def variant(self, workload: str, variant: str) -> Mapping[str, Any]:
        return self._variants[workload, variant]

    @cached_property
    def _variants(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(row["workload"], row["variant"]): row for row in self.table("variants").to_dict("records")}

    def case(self, workload: str, case: str) -> Mapping[str, Any]:
        return self._cases[workload, case]

    @cached_property
    def _cases(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {(row["workload"], row["case"]): {"passes": 1, **row} for row in self.table("cases").to_dict("records")}

    def result(self, *key: str) -> Mapping[str, Any]:
        return self._results.get(key, {})

    @cached_property
    def _results(self) -> dict[tuple[str, ...], dict[str, Any]]:
        return {tuple(row[name] for name in KEY): row for row in self.table("results").to_dict("records")}

    @cached_property
    def by_round(self) -> pd.DataFrame:
        """The samples, those of several ranks joined: a round takes as long as its slowest rank."""
        same = [*KEY, "gpus", "cache", "scope", "twin", "round"]
        return self.table("samples").groupby(same, sort=False)["duration_ns"].max().reset_index()

    @cached_property
    def _rounds(self) -> dict[tuple[Any, ...], npt.NDArray[np.int64]]:
        """The rows of `by_round` of each cell, scope, cache and twin."""
        places: dict[tuple[Any, ...], list[int]] = {}
        columns = [self.by_round[name].tolist() for name in (*KEY, "gpus", "cache", "scope", "twin")]
        for place, key in enumerate(zip(*columns, strict=True)):
            places.setdefault(key, []).append(place)
        return {key: np.array(rows) for key, rows in places.items()}

    @cached_property
    def processes(self) -> int:
        """The processes that took the samples."""
        table = self.table("samples")
        return int(table["process"].nunique()) if "process" in table else 1

    @cached_property
    def _most_gpus(self) -> int:
        return int(self.table("samples")["gpus"].max())

    def rounds(self, cell: Sequence[str], gpus: int, scope: str, cache: str, twin: int = 0) -> "pd.Series[float]":
        """Times in ns by round; `cell` is workload, variant, config and case."""
        rows = self._rounds.get((*cell, gpus, cache, scope, twin))
        if rows is None:
            return pd.Series(dtype=float)
        return pd.Series(self._times[1][rows], self._times[0][rows])

    def steady(self, cell: Sequence[str], gpus: int, scope: str, cache: str) -> "pd.Series[float]":
        """The same without what a round did to the other cells of the case: the median of how far they are from their own medians."""
        workload, case = cell[0], cell[3]
        key = (workload, case, scope, cache, max(gpus, 1))
        if key not in self._steady:
            logs = {
                (variant, config, of): np.log(self.rounds((name, variant, config, where), of, scope, cache))
                for name, variant, config, where, of, cache_, scope_, twin in self._rounds
                if (name, where, scope_, cache_, max(of, 1), twin) == (*key, 0)
                and self.result(name, variant, config, where).get("status", "ok") == "ok"
            }
            table = pd.DataFrame(logs)
            apart = table - table.median()
            common = {name: apart.drop(columns=[name]).median(axis=1).fillna(0.0) for name in logs}
            steadier = apart.apply(lambda column: column - common[column.name])
            takes = steadier.abs().median().median() < apart.abs().median().median()
            self._steady[key] = {
                name: np.exp(values - common[name].reindex(values.index) if takes else values) for name, values in logs.items()
            }
        return self._steady[key][cell[1], cell[2], gpus]

    @cached_property
    def _steady(self) -> dict[tuple[Any, ...], dict[tuple[Any, ...], "pd.Series[float]"]]:
        return {}

    def logs(self, cell: Sequence[str], gpus: int, scope: str, cache: str) -> Floats:
        """The logarithm of the median of each process of three samples, of `steady`; of all samples where fewer than three are such."""
        times = self.steady(cell, gpus, scope, cache)
        table = self.table("samples")
        table = table[(table["workload"] == cell[0]) & (table["case"] == cell[3])]
        process = dict(zip(table["round"], table["process"], strict=True)) if "process" in table else {}
        of_process = [each for _, each in times.groupby([process.get(each, 0) for each in times.index]) if len(each) >= 3]
        return np.log([each.median() for each in (of_process if len(of_process) >= 3 else [times])])

    def log(self, cell: Sequence[str], gpus: int, scope: str, cache: str) -> float:
        return float(np.median(self.logs(cell, gpus, scope, cache)))

    @cached_property
    def _times(self) -> tuple[npt.NDArray[np.int64], Floats]:
        return self.by_round["round"].to_numpy(), self.by_round["duration_ns"].to_numpy(dtype=float)

    def gpus_of(self, cell: Sequence[str], scope: str, cache: str) -> list[int]:
        """The numbers of GPUs or processes that a cell was timed on."""
        return [gpus for gpus in range(self._most_gpus + 1) if (*cell, gpus, cache, scope, 0) in self._rounds]

    def timed(self, workload: str, case: str, scope: str, cache: str, twin: int = 0) -> list[tuple[str, str, int]]:
        """Variant, config and GPUs of the cells that one process timed."""
        return self._timed.get((workload, case, scope, cache, twin), [])

    @cached_property
    def _timed(self) -> dict[tuple[Any, ...], list[tuple[str, str, int]]]:
        found: dict[tuple[Any, ...], list[tuple[str, str, int]]] = {}
        for workload, variant, config, case, gpus, cache_, scope, twin in self._rounds:
            if gpus <= 1:
                found.setdefault((workload, case, scope, cache_, twin), []).append((variant, config, gpus))
        return found

    @cached_property
    def workloads(self) -> frozenset[str]:
        """The workloads that have samples."""
        return frozenset(self.table("samples")["workload"].unique()) if self.has("samples") else frozenset()

    @cached_property
    def doubts(self) -> list[dict[str, Any]]:
        """Warnings and errors about cells."""
        if not self.has("diagnostics"):
            return []
        table = self.table("diagnostics")
        table = table[table["severity"].isin(["warning", "error"]) & (table["variant"].notna() | table["case"].notna())]
        return table[["source", *KEY]].to_dict("records")


@cache
def shipped() -> tuple[Shipped, ...]:
    return tuple(Shipped(folder) for folder in sorted(RECORDED.iterdir()) if (folder / "run.parquet").exists())


# -- medians and ratios ----------------------------------------------------------------------------------------------


def ranks(n: int) -> tuple[int, int]:
    """Ranks from 0 of the ends of the median's 95 % interval, from the binomial distribution; below six samples the range."""
    below = 0
    total = 0
    while 40 * (total + math.comb(n, below)) <= 2**n:
        total += math.comb(n, below)
        below += 1
    return max(below - 1, 0), n - 1 - max(below - 1, 0)


def median_interval(values: Iterable[float]) -> tuple[float, float, float]:
    ordered = np.sort(np.asarray(list(values), dtype=float))
    low, high = ranks(len(ordered))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])


def time_interval(run: Shipped, times: "pd.Series[float]", scope: str, cache_: str) -> tuple[float, float, float]:
    """A median with its interval, which for cold device times between two events includes the error of the clock."""
    median, low, high = median_interval(times)
    error = 0.0
    if (run.info["collector"], scope, cache_) == ("cuda_events", "device", "cold"):
        measured = 1000 * run.ceilings.get("event_uncertainty", math.nan)
        error = EVENTS_NS if math.isnan(measured) else max(measured, LEAST_EVENTS_NS)
    return median, max(low - error, min(low, 1.0)), high + error


def ratio(top: "pd.Series[float]", bottom: "pd.Series[float]", *, paired: bool = True) -> Interval:
    """The ratio of two medians. Shared rounds are paired; where they are fewer than half of a side's, all rounds count, unpaired."""
    if top.empty or bottom.empty:
        return UNKNOWN
    shared = sorted(set(top.index) & set(bottom.index))
    paired = paired and 2 * len(shared) >= max(len(top), len(bottom))
    a, b = (top.loc[shared], bottom.loc[shared]) if paired else (top, bottom)
    x, y = a.to_numpy(float), b.to_numpy(float)
    value = float(np.median(x) / np.median(y))
    draw = np.random.default_rng(len(x) * 31 + len(y))
    rows = draw.integers(0, len(x), (RESAMPLES, len(x)))
    columns = rows if paired else draw.integers(0, len(y), (RESAMPLES, len(y)))
    resampled = np.sort(np.median(x[rows], axis=1) / np.median(y[columns], axis=1))
    wider = math.sqrt(n / (n - 1)) if (n := min(len(x), len(y))) > 1 else 1.0
    low, high = (Between(*(value * (float(end) / value) ** wider for end in np.percentile(resampled, ends))) for ends in _ENDS)
    return Interval(value, low, high)


def known(interval: Interval) -> bool:
    return not math.isnan(interval.value)


@cache
def noise(run: Shipped, workload: str, case: str, scope: str, cache: str, host: bool) -> tuple[float, float]:
    """The least and the greatest noise floor of a case: the far end of the baseline's second entry over the first."""
    low = high = 1.0
    for variant, config, gpus in run.timed(workload, case, scope, cache, 1):
        if (run.variant(workload, variant)["kind"] == "host") == host:
            cell = (workload, variant, config, case)
            both = ratio(run.rounds(cell, gpus, scope, cache, 1), run.rounds(cell, gpus, scope, cache))
            low = max(low, both.high.low, 1 / both.low.high)
            high = max(high, both.high.high, 1 / both.low.low)
    return low, high


def clock(run: Shipped, scope: str, cache: str, *times: "pd.Series[float]") -> float:
    """The ratio up to which the clock cannot tell two times: cold device times between events scatter by `event_uncertainty`."""
    if (run.info["collector"], scope, cache) != ("cuda_events", "device", "cold"):
        return 1.0
    measured = 1000 * run.ceilings.get("event_uncertainty", math.nan)
    return 1 + (SCATTER_NS if math.isnan(measured) else measured) / min(each.median() for each in times)


#: Bits of exponent and fraction of the numbers of a precision; three products of TF32 keep about 21 bits.
_BITS: Final = {
    "fp8": (4, 3), "fp16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "3xtf32": (8, 21), "fp32": (8, 23), "fp64": (11, 52),
}  # fmt: skip


def peers_of(precision: str) -> set[str]:
    """The precisions of the peers that a rung is compared with: its own, and those that hold all of its numbers; whole numbers and doubles
    are compared with their own, and what mixes precisions with fp32 too.
    """
    if precision in ("mixed", "fp64") or precision not in _BITS:
        return {precision, "fp32", "fp64"} if precision == "mixed" else {precision}
    return {name for name, bits in _BITS.items() if all(own <= each for own, each in zip(_BITS[precision], bits, strict=True))}


def verdicts(of: Interval, n: int, floor: tuple[float, float]) -> set[str]:
    """The words that a ratio may have, above 1 `faster`; several where an end of its interval is next to a limit."""
    if not known(of):
        return {""}
    if n < FEWEST:
        return {"unknown"}
    found = set()
    for low in of.low:
        for high in of.high:
            for band in floor:
                tied = low <= 1 <= high or abs(math.log(of.value)) <= math.log(band)
                found.add("tied" if tied else "faster" if low > 1 else "slower")
    return found


# -- floors ----------------------------------------------------------------------------------------------------------


def _curve(sizes: Floats, times: Floats, rate: float, nbytes: float, empty: float) -> float:
    """The least time for so many bytes of one mix, from times at some sizes, the empty kernel's and the rate beyond."""
    times = np.array([times[place:].min() for place in range(len(times))])
    if nbytes <= sizes[0]:
        return float(np.interp(nbytes, [0, sizes[0]], [min(empty, times[0]), times[0]]))
    if nbytes >= sizes[-1]:
        return float(times[-1] + rate * (nbytes - sizes[-1]))
    at = int(np.searchsorted(sizes, nbytes)) - 1

    def line(first: int, second: int) -> float:
        return float(times[first] + (times[second] - times[first]) * (nbytes - sizes[first]) / (sizes[second] - sizes[first]))

    between = line(at, at + 1)
    continued = [line(at - 1, at)] if at > 0 else []
    continued += [line(at + 1, at + 2)] if at + 2 < len(sizes) else []
    lower = [each for each in continued if each <= between]
    return max(max(lower, default=between), float(times[at]))


def memory_ns(
    ceilings: Mapping[str, float],
    read: float,
    written: float,
    cache_: str,
    measured: Mapping[str, float] = MIXES,
    passes: int = 1,
) -> float:
    """The least time of the device's memory; with a cache of the times by size, where the run measured them for each of its mixes. A
    pass after the first finds its share of the bytes in a hot cache."""
    total = read + written
    share = read / total if total else 0.5
    mixes = {name: of for name, of in measured.items() if name in ceilings}
    if not mixes:
        return math.nan
    empty = 1000 * ceilings.get("graph_node", 0.0) if measured is MIXES else 0.0
    rates = [1 / ceilings[name] for name in mixes]
    curves: list[dict[int, float]] = [
        {int(name.split("_")[-2]): 1000 * value for name, value in ceilings.items()
         if cache_ and name.startswith(f"{mix}_{cache_}_") and name.endswith("_bytes")} for mix in mixes
    ]  # fmt: skip
    shares = list(mixes.values())
    if not all(curves):
        return float(total * np.interp(share, shares, rates))
    if passes > 1:
        first, again = (memory_ns(ceilings, read / passes, written / passes, each, measured) for each in (cache_, "hot"))
        return first + (passes - 1) * again
    times = [
        _curve(np.array(sorted(curve), float), np.array([curve[size] for size in sorted(curve)]), rate, total, empty)
        for curve, rate in zip(curves, rates, strict=True)
    ]
    return float(np.interp(share, shares, times))


def moved(case: Mapping[str, Any]) -> tuple[float, float]:
    """The bytes of a case that are read and written."""
    inputs, outputs = float(case["h2d_bytes"]), float(case["d2h_bytes"])
    share = inputs / (inputs + outputs) if inputs + outputs else 0.5
    return case["min_bytes"] * share, case["min_bytes"] * (1 - share)


def rate_of(ceilings: Mapping[str, float], kind: str, precision: str) -> float:
    """TFLOP/s of a precision's arithmetic."""
    if precision in ("int", "mixed") or (kind == "host" and precision in ("fp16", "bf16", "fp8", "int8")):
        return math.nan
    if kind == "host":
        return ceilings.get("host_fma", math.nan)
    of = "tf32" if precision == "3xtf32" else precision
    units = ("fma",) if of == "fp32" else ("fma", "mma", "wgmma", "cublas")
    rates = [ceilings[f"{of}_{unit}"] for unit in units if f"{of}_{unit}" in ceilings]
    return max(rates, default=math.nan) / (3 if precision == "3xtf32" else 1)


def host_by_size(ceilings: Mapping[str, float]) -> bool:
    """Whether the processor's copies were timed by size, so that a case that its caches hold has a floor too."""
    return any(name.startswith("host_copy_hot_") for name in ceilings)


def floors(run: Shipped, workload: str, variant: str, case: str, gpus: int, scope: str, cache_: str) -> dict[str, float]:
    """The times in ns below which a cell cannot be, by `memory`, `compute` and `copies`. Several GPUs share bytes and operations."""
    if scope not in SCOPES:
        return {}
    of, about, ceilings = run.variant(workload, variant), run.case(workload, case), run.ceilings
    ranks_ = max(gpus, 1)
    (read, written), passes = (each / ranks_ for each in moved(about)), about["passes"]
    found = {}
    if of["kind"] == "host":
        if host_by_size(ceilings) or about["min_bytes"] / ranks_ >= 1 << 28:
            found["memory"] = memory_ns(ceilings, read, written, "hot", HOST_MIXES, passes)
    elif scope == "end_to_end":
        found["memory"] = min(memory_ns(ceilings, read, written, each, passes=passes) for each in ("cold", "hot"))
        copies = [about[f"{way}_bytes"] / ceilings.get(f"{way}_pinned", math.nan) for way in ("h2d", "d2h")]
        found["copies"] = max(copies)
    else:
        found["memory"] = memory_ns(ceilings, read, written, cache_, passes=passes)
    found["compute"] = about["flops"] / (1000 * rate_of(ceilings, of["kind"], of["precision"])) / ranks_
    return {name: time for name, time in found.items() if time > 0}


def floor(run: Shipped, workload: str, variant: str, case: str, gpus: int, scope: str, cache_: str) -> tuple[str, float]:
    """What bounds a cell, and its floor in ns: the only place that tells which of the times it is. Empty and NaN without one.

    No kernel takes less than an empty one.
    """
    found = floors(run, workload, variant, case, gpus, scope, cache_)
    if scope in SCOPES and run.variant(workload, variant)["kind"] != "host" and "graph_node" in run.ceilings:
        found["launch"] = 1000 * run.ceilings["graph_node"]
    return max(found.items(), key=lambda each: each[1], default=("", math.nan))


# -- trust -----------------------------------------------------------------------------------------------------------


def flags(run: Shipped, workload: str, variant: str, config: str, case: str) -> list[str]:
    """The sources of the warnings and errors about a cell, and `above_ceiling` if it is impossible. A null stands for any value."""
    cell = dict(zip(KEY, (workload, variant, config, case), strict=True))
    about = [doubt for doubt in run.doubts if all(pd.isna(doubt[name]) or doubt[name] == of for name, of in cell.items())]
    beyond = ["above_ceiling"] if impossible(run, workload, variant, config, case) else []
    return list(dict.fromkeys([*(str(doubt["source"]) for doubt in about), *beyond]))


@cache
def impossible(run: Shipped, workload: str, variant: str, config: str, case: str) -> bool:
    """Whether a time of a cell is below a floor by more than its margin (docs/measurement.md, Distrust, and data/limits.py)."""
    kind, about = run.variant(workload, variant)["kind"], run.case(workload, case)
    for scope in SCOPES:
        for cache_ in ("cold", "hot"):
            for gpus in run.gpus_of((workload, variant, config, case), scope, cache_):
                if gpus > 1:
                    continue
                median = float(run.rounds((workload, variant, config, case), gpus, scope, cache_).median())
                found = floors(run, workload, variant, case, gpus, scope, cache_)
                margin = {"compute": 8.0 if kind == "host" else 1.1, "copies": 1.1}
                if scope != "end_to_end":
                    margin["memory"] = 1.1 if cache_ == "cold" else 4.0
                    if kind == "host" and not host_by_size(run.ceilings):
                        margin["memory"] = 20.0
                    if kind != "host":
                        total = float(about["min_bytes"])
                        by_rate = memory_ns(run.ceilings, *moved(about), "")
                        by_size = memory_ns(run.ceilings, *moved(about), cache_)
                        if by_rate == by_size and total:
                            l2, of_pass = float(run.info["l2_bytes"] or 0), total / about["passes"]
                            kept = min(l2, of_pass / 2) + (about["passes"] - 1) * min(l2, of_pass)
                            found["memory"] = by_rate * (1 - kept / total)
                        elif cache_ == "hot":
                            margin["memory"] = 1.25
                if any(time / margin[name] > median for name, time in found.items() if name in margin):
                    return True
    return False


@cache
def trusted(run: Shipped, workload: str, variant: str, config: str, case: str, gpus: int, scope: str, cache_: str) -> bool:
    cell = (workload, variant, config, case)
    return len(run.rounds(cell, gpus, scope, cache_)) >= FEWEST and not flags(run, *cell)


# -- cases and baselines ---------------------------------------------------------------------------------------------


def parameters(run: Shipped, workload: str, case: str) -> dict[str, Any]:
    return dict(json.loads(run.case(workload, case)["params"]))


@cache
def charted(run: Shipped, workload: str) -> list[str]:
    """The cases on the size axis, by size."""
    table = run.table("cases")
    table = table[(table["workload"] == workload) & table["size_rank"].notna()]
    return list(table.sort_values("size_rank", kind="stable")["case"])


@cache
def fastest(run: Shipped, workload: str, case: str, scope: str, cache_: str, variant: str) -> tuple[str, str, int] | None:
    """Variant, config and GPUs of the fastest config that may be called best, or else the fastest one."""
    found = [each for each in run.timed(workload, case, scope, cache_) if each[0] == variant]
    found = [each for each in found if run.result(workload, each[0], each[1], case).get("status", "ok") == "ok"]
    good = [each for each in found if trusted(run, workload, each[0], each[1], case, each[2], scope, cache_)]
    return min(
        good or found,
        key=lambda each: run.rounds((workload, each[0], each[1], case), each[2], scope, cache_).median(),
        default=None,
    )


# -- intervals of time -----------------------------------------------------------------------------------------------


def union_ns(start: Iterable[int], end: Iterable[int]) -> int:
    """Nanoseconds in which at least one interval runs."""
    total, reached = 0, -(1 << 62)
    for first, last in sorted(zip(start, end, strict=True)):
        if last > reached:
            total += last - max(first, reached)
            reached = last
    return total


def covered_ns(first: int, last: int, start: Sequence[int], end: Sequence[int]) -> int:
    """Nanoseconds of one interval in which at least one of others runs."""
    inside = [(max(a, first), min(b, last)) for a, b in zip(start, end, strict=True) if a < last and b > first]
    return union_ns([a for a, _ in inside], [b for _, b in inside])
