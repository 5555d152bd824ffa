"""The definitions of the pages of traces: Timeline, and of Time the sections API & kernels, Transfers."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import definitions as of
from tests.recomputed.definitions import Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import UNTOLD, Expected, Rule, Rules

Row = Mapping[str, Any]
TABLES: Final = ("ranges", "kernels", "memory_ops", "api_calls")
OPERATIONS: Final = {"h2d": "[CUDA memcpy Host-to-Device]", "d2h": "[CUDA memcpy Device-to-Host]",
                     "d2d": "[CUDA memcpy Device-to-Device]", "memset": "[CUDA memset]"}  # fmt: skip
_KEPT: dict[tuple[str, str], Any] = {}


def begin_ns(run: Shipped) -> int:
    """The start of the first event of the trace, from which pages count."""
    return min(int(run.table(table)["start_ns"].min()) for table in TABLES if run.has(table))


def end_ns(run: Shipped) -> int:
    return max(int(run.table(table)["end_ns"].max()) for table in TABLES if run.has(table))


def work(run: Shipped) -> pd.DataFrame:
    """Kernels and memory operations together."""
    if (run.id, "work") not in _KEPT:
        columns = ["process", "device", "stream", "start_ns", "end_ns"]
        parts = [run.table(table)[columns].assign(table=table) for table in ("kernels", "memory_ops")]
        _KEPT[run.id, "work"] = pd.concat(parts, ignore_index=True)
    return _KEPT[run.id, "work"]


# -- Timeline --------------------------------------------------------------------------------------------------------


def _lane(run: Shipped, row: Row) -> pd.DataFrame:
    """The events of a lane; of a stream those of all its layers."""
    name = str(row["lane"])
    process = re.match(r"process (\d+) · ", name)
    name = name[process.end() :] if process else name
    if name.startswith("GPU"):
        device, stream = map(int, re.findall(r"GPU (\d+) · stream (\d+)", name)[0])
        found = work(run)
        found = found[(found["device"] == device) & (found["stream"] == stream)]
    elif "NVTX" in name:
        thread, depth = map(int, re.findall(r"thread (\d+) · NVTX depth (\d+)", name)[0])
        found = run.table("ranges")
        found = found[(found["thread"] == thread) & (found["depth"] == depth)]
    else:
        found = run.table("api_calls")
        found = found[found["thread"] == int(re.findall(r"thread (\d+)", name)[0])]
    return found[found["process"] == int(process[1])] if process else found


def _events(run: Shipped, row: Row, shown: Shown) -> pd.DataFrame:
    """The events of a lane's row, a bar or an event that is drawn alone; a bar has those alone that are not drawn beside it."""
    found, begin = _lane(run, row), begin_ns(run)
    first, last = begin + row["start_ns"], begin + row["end_ns"]
    found = found[(found["start_ns"] < last) & (found["end_ns"] > first)]
    others = shown.frame[shown.frame["lane"] == row["lane"]]
    drawn = set(zip(others["start_ns"] + begin, others["end_ns"] + begin, strict=True)) - {(first, last)}
    return found[[each not in drawn for each in zip(found["start_ns"], found["end_ns"], strict=True)]]


def _alone(run: Shipped, row: Row, shown: Shown) -> bool:
    """Streams whose work overlaps have a lane for each layer, in which a bar's events are not told."""
    names = set(shown.frame["lane"])
    return re.search(r" \(\d+\)$", row["lane"]) is None and f"{row['lane']} (2)" not in names


def _busy(run: Shipped, row: Row, shown: Shown) -> Expected:
    if not _alone(run, row, shown):
        return UNTOLD
    found = _events(run, row, shown)
    return of.union_ns(
        found["start_ns"].clip(lower=begin_ns(run) + row["start_ns"]), found["end_ns"].clip(upper=begin_ns(run) + row["end_ns"])
    )


def _count(run: Shipped, row: Row, shown: Shown) -> Expected:
    return len(_events(run, row, shown)) if _alone(run, row, shown) else UNTOLD


def _is_event(column: str) -> Rule:
    """An event that is drawn alone is an event of the lane."""

    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        if row["count"] != 1 or not row["name"]:
            return UNTOLD
        found = _lane(run, row)
        near = found.iloc[(found[column] - begin_ns(run) - row[column]).abs().argmin()]
        return float(near[column] - begin_ns(run))

    return rule


TIMELINE: Final[Rules] = {
    "lane": None,
    "name": None,
    "color": None,
    "start_ns": _is_event("start_ns"),
    "end_ns": _is_event("end_ns"),
    "busy_ns": _busy,
    "count": _count,
}


def _window(shown: Shown) -> tuple[int, int]:
    first, last = map(int, shown.name.split("-")[1:])
    return first, last


def _of_gpu(run: Shipped, row: Row, shown: Shown, tables: tuple[str, ...]) -> float:
    first, last = _window(shown)
    found = work(run)
    process = re.search(r"process (\d+)", row["gpu"])
    found = found[(found["device"] == int(re.findall(r"GPU (\d+)", row["gpu"])[0])) & found["table"].isin(tables)]
    found = found[found["process"] == int(process[1])] if process else found
    found = found[(found["start_ns"] < last) & (found["end_ns"] > first)]
    return of.union_ns(found["start_ns"].clip(lower=first), found["end_ns"].clip(upper=last))


def _gpu_share(tables: tuple[str, ...], *, rest: bool = False) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        first, last = _window(shown)
        share = _of_gpu(run, row, shown, tables) / (last - first)
        return 1 - share if rest else share

    return rule


GPUS: Final[Rules] = {
    "gpu": None,
    "busy_ns": lambda run, row, shown: _of_gpu(run, row, shown, ("kernels", "memory_ops")),
    "busy": _gpu_share(("kernels", "memory_ops")),
    "idle": _gpu_share(("kernels", "memory_ops"), rest=True),
    "kernels": _gpu_share(("kernels",)),
    "copies": _gpu_share(("memory_ops",)),
}


def _kernels(run: Shipped, row: Row, shown: Shown) -> "pd.Series[int]":
    """The times within the window of the kernels of a name."""
    first, last = _window(shown)
    found = run.table("kernels")
    found = found[(found["full_name"] == row["full_name"]) & (found["start_ns"] < last) & (found["end_ns"] > first)]
    return found["end_ns"].clip(upper=last) - found["start_ns"].clip(lower=first)


KERNELS: Final[Rules] = {
    "kernel": None,
    "full_name": None,
    "count": lambda run, row, shown: len(_kernels(run, row, shown)),
    "total_ns": lambda run, row, shown: int(_kernels(run, row, shown).sum()),
    "mean_ns": lambda run, row, shown: round(float(_kernels(run, row, shown).mean())),
    "share": lambda run, row, shown: float(_kernels(run, row, shown).sum() / (_window(shown)[1] - _window(shown)[0])),
}


# -- API & kernels ---------------------------------------------------------------------------------------------------


def samples_of(run: Shipped) -> pd.DataFrame:
    """Every range with the range of the sample around it, and whether launches in it are the sample's own.

    The columns are `range_id`, `sample` (the id of the outermost range with a round around it, or -1) and `own` (in a sample of device
    time, the launches of its executions; in others all).
    """
    if (run.id, "samples") in _KEPT:
        return _KEPT[run.id, "samples"]
    table = run.table("ranges")
    rows = {
        row[0]: row[1:]
        for row in table[["range_id", "parent_id", "round", "scope", "text", "domain"]].itertuples(index=False, name=None)
    }
    found: dict[int, tuple[int, bool]] = {}
    for range_id in rows:
        sample, executions, at = -1, False, range_id
        while not pd.isna(at):
            parent, number, _, text, domain = rows[at]
            if domain == "warpladder" and str(text).startswith("executions="):
                executions = True
            if not pd.isna(number):
                sample = at
            at = parent
        found[range_id] = sample, sample >= 0 and (rows[sample][2] != "device" or executions)
    _KEPT[run.id, "samples"] = pd.DataFrame(
        [(key, *value) for key, value in found.items()], columns=["range_id", "sample", "own"]
    )
    return _KEPT[run.id, "samples"]


def _durations(run: Shipped, table: str, extent: str) -> pd.DataFrame:
    key = (run.id, f"{table} {extent}")
    if key not in _KEPT:
        frame = run.table(table)
        if extent == "samples":
            own = samples_of(run)
            frame = frame[frame["range_id"].isin(own.loc[own["own"], "range_id"])]
        if table == "kernels":
            frame = frame[frame["name"] != "[CUDA graph]"]
        names = (
            frame["full_name"]
            if table == "kernels"
            else frame["kind"].map(OPERATIONS)
            if table == "memory_ops"
            else frame["name"]
        )
        _KEPT[key] = pd.DataFrame({"name": names, "ns": frame["end_ns"] - frame["start_ns"], "bytes": frame.get("bytes", 0)})
    return _KEPT[key]


def _named(run: Shipped, row: Row, shown: Shown) -> "pd.Series[int]":
    table, extent = shown.where[:2]
    found = _durations(run, table, extent)
    name = row.get("Name", row.get("Operation"))
    return found.loc[found["name"] == name, "bytes" if "MB" in "".join(row) else "ns"]


def _tenth(value: float) -> float:
    """With one decimal, halves away from zero."""
    return math.floor(value * 10 + 0.5) / 10


def _total(run: Shipped, row: Row, shown: Shown) -> float:
    return float(_durations(run, *shown.where[:2])["ns"].sum())


def _cumulative(run: Shipped, row: Row, shown: Shown) -> Expected:
    sums = _durations(run, *shown.where[:2]).groupby("name")["ns"].sum()
    own = sums[row.get("Name", row.get("Operation"))]
    return float(100 * sums[sums >= own].sum() / sums.sum())


def _number(run: Shipped, row: Row, shown: Shown) -> Expected:
    return len(_named(run, row, shown))


def _spread(run: Shipped, row: Row, shown: Shown) -> float:
    found = _named(run, row, shown)
    return float(found.std(ddof=1)) if len(found) > 1 else 0.0


SUMS: Final[Rules] = {
    "Name": None,
    "Operation": None,
    "Time (%)": lambda run, row, shown: _tenth(100 * _named(run, row, shown).sum() / _total(run, row, shown)),
    "Total Time (ns)": lambda run, row, shown: int(_named(run, row, shown).sum()),
    **dict.fromkeys(("Instances", "Num Calls", "Count"), _number),
    "Avg (ns)": lambda run, row, shown: _tenth(_named(run, row, shown).mean()),
    "Med (ns)": lambda run, row, shown: _tenth(_named(run, row, shown).median()),
    "Min (ns)": lambda run, row, shown: int(_named(run, row, shown).min()),
    "Max (ns)": lambda run, row, shown: int(_named(run, row, shown).max()),
    "StdDev (ns)": lambda run, row, shown: _tenth(_spread(run, row, shown)),
    "cumulative_percent": _cumulative,
    "Total (MB)": lambda run, row, shown: round(_named(run, row, shown).sum() / 1e6, 3),
    "Avg (MB)": lambda run, row, shown: round(_named(run, row, shown).mean() / 1e6, 3),
    "Med (MB)": lambda run, row, shown: round(_named(run, row, shown).median() / 1e6, 3),
    "Min (MB)": lambda run, row, shown: round(_named(run, row, shown).min() / 1e6, 3),
    "Max (MB)": lambda run, row, shown: round(_named(run, row, shown).max() / 1e6, 3),
    "StdDev (MB)": lambda run, row, shown: round(_spread(run, row, shown) / 1e6, 3),
}


def _ranges(run: Shipped, row: Row, shown: Shown) -> pd.DataFrame:
    """The ranges of a name; those without device work are left out of the projection to the GPU."""
    table = run.table("ranges")
    label = table["domain"].fillna("") + ":" + table["text"].fillna("")
    found = table[label.str.removeprefix(":") == row["Range"]]
    return found[found["gpu_start_ns"].notna()] if shown.name == "nvtx_gpu_proj_sum" else found


def _lasted(run: Shipped, row: Row, shown: Shown) -> "pd.Series[float]":
    found = _ranges(run, row, shown)
    return found["end_ns"].fillna(run.table("ranges")["end_ns"].max()) - found["start_ns"]


def _projected(run: Shipped, row: Row, shown: Shown) -> "pd.Series[float]":
    found = _ranges(run, row, shown)
    return (found["gpu_end_ns"] - found["gpu_start_ns"]).astype(float)


def _deviation(values: "pd.Series[float]") -> float:
    return _tenth(float(values.std(ddof=1))) if len(values) > 1 else 0.0


def _all_ranges(run: Shipped) -> float:
    table = run.table("ranges")
    return float((table["end_ns"].fillna(table["end_ns"].max()) - table["start_ns"]).sum())


def _statistics(prefix: str, times: Callable[[Shipped, Row, Shown], "pd.Series[float]"]) -> Rules:
    """Mean, median, ends and deviation of times; `prefix` begins the names of the columns."""
    return {
        f"{prefix}Avg (ns)": lambda run, row, shown: _tenth(times(run, row, shown).mean()),
        f"{prefix}Med (ns)": lambda run, row, shown: _tenth(times(run, row, shown).median()),
        f"{prefix}Min (ns)": lambda run, row, shown: float(times(run, row, shown).min()),
        f"{prefix}Max (ns)": lambda run, row, shown: float(times(run, row, shown).max()),
        f"{prefix}StdDev (ns)": lambda run, row, shown: _deviation(times(run, row, shown)),
    }


NVTX: Final[Rules] = {
    "Range": None,
    "Style": None,
    "Time (%)": lambda run, row, shown: _tenth(100 * _lasted(run, row, shown).sum() / _all_ranges(run)),
    "Total Time (ns)": lambda run, row, shown: float(_lasted(run, row, shown).sum()),
    "Instances": lambda run, row, shown: len(_ranges(run, row, shown)),
    **_statistics("", _lasted),
    "Total Proj Time (ns)": lambda run, row, shown: float(_projected(run, row, shown).sum()),
    "Total Range Time (ns)": lambda run, row, shown: float(_lasted(run, row, shown).sum()),
    "Range Instances": lambda run, row, shown: len(_ranges(run, row, shown)),
    **_statistics("Proj ", _projected),
    "Total GPU Ops": None,
    "Avg GPU Ops": None,
}


# -- Transfers -------------------------------------------------------------------------------------------------------


def _copies(run: Shipped, row: Row) -> pd.DataFrame:
    table = run.table("memory_ops")
    side = table["dst_memory"] if row["kind"] == "d2h" else table["src_memory"]
    host = side.fillna("unknown") if row["kind"] in ("h2d", "d2h") else ""
    return table[(table["kind"] == row["kind"]) & (host == row["host_memory"])]


def _copied_ns(run: Shipped, row: Row) -> int:
    found = _copies(run, row)
    return int((found["end_ns"] - found["start_ns"]).sum())


def _overlap_ns(run: Shipped, row: Row) -> int:
    """Nanoseconds of the copies in which a kernel ran on the same device."""
    total = 0
    for device, found in _copies(run, row).groupby("device"):
        kernels = run.table("kernels")
        kernels = kernels[kernels["device"] == device].sort_values("start_ns")
        starts, ends = kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy()
        reached = np.maximum.accumulate(ends)
        for first, last in zip(found["start_ns"], found["end_ns"], strict=True):
            near = slice(int(np.searchsorted(reached, first, "right")), int(np.searchsorted(starts, last)))
            total += of.covered_ns(first, last, starts[near].tolist(), ends[near].tolist())
    return total


def span_ns(run: Shipped) -> int:
    """From the first call or device work to the end of the last."""
    tables = [table for table in ("kernels", "memory_ops", "api_calls") if run.has(table)]
    return max(int(run.table(t)["end_ns"].max()) for t in tables) - min(int(run.table(t)["start_ns"].min()) for t in tables)


COPIES: Final[Rules] = {
    "kind": None,
    "host_memory": None,
    "n": lambda run, row, shown: len(_copies(run, row)),
    "bytes": lambda run, row, shown: int(_copies(run, row)["bytes"].sum()),
    "unknown": lambda run, row, shown: int(_copies(run, row)["bytes"].isna().sum()),
    "time_ns": lambda run, row, shown: _copied_ns(run, row),
    "gb_per_s": lambda run, row, shown: _copies(run, row)["bytes"].sum() / _copied_ns(run, row),
    "percent_of_run": lambda run, row, shown: (
        100 * of.union_ns(*(_copies(run, row)[end] for end in ("start_ns", "end_ns"))) / span_ns(run)
    ),
    "overlap_ns": lambda run, row, shown: _overlap_ns(run, row),
    "overlap_percent": lambda run, row, shown: 100 * _overlap_ns(run, row) / _copied_ns(run, row),
}
STAGES: Final = ("kernel_ns", "with_launch_ns", "with_copies_ns", "end_to_end_ns")


def executions(run: Shipped) -> pd.DataFrame:
    """The work of each execution: a range with a scope, the work of ranges inside included. Those with a kernel and a copy count."""
    if (run.id, "executions") in _KEPT:
        return _KEPT[run.id, "executions"]
    table = run.table("ranges").set_index("range_id")
    parents, scoped = table["parent_id"].to_dict(), table["scope"].notna().to_dict()
    owner: dict[int, int] = {}
    for range_id in parents:
        at: Any = range_id
        while not pd.isna(at) and not scoped[at]:
            at = parents[at]
        if not pd.isna(at):
            owner[range_id] = int(at)
    found = table[table["scope"].notna()][["workload", "variant", "config", "case", "start_ns", "end_ns"]].copy()
    found["end_to_end_ns"] = found["end_ns"] - found["start_ns"]

    def summed(name: str, values: "pd.Series[Any]") -> None:
        work = run.table(name)
        at = (work["time_range_id"].fillna(work["range_id"]) if "time_range_id" in work else work["range_id"]).map(owner)
        found[values.name] = values.astype(float).groupby(at).sum().reindex(found.index).fillna(0.0)

    kernels, copies = run.table("kernels"), run.table("memory_ops")
    summed("kernels", (kernels["end_ns"] - kernels["start_ns"]).rename("kernel_ns"))
    calls = (kernels["launch_end_ns"] - kernels["launch_start_ns"]).where(~kernels[["process", "correlation"]].duplicated(), 0)
    summed("kernels", calls.fillna(0).rename("launch_ns"))
    moved = (copies["end_ns"] - copies["start_ns"]).where(copies["kind"] != "memset", 0)
    summed("memory_ops", moved.rename("copies_ns"))
    found["with_launch_ns"] = found["kernel_ns"] + found["launch_ns"]
    found["with_copies_ns"] = found["with_launch_ns"] + found["copies_ns"]
    found = found[(found["kernel_ns"] > 0) & (found["copies_ns"] > 0)].fillna({"config": ""})
    _KEPT[run.id, "executions"] = found
    return found


def _executed(run: Shipped, row: Row) -> pd.DataFrame:
    found = executions(run)
    for name in ("workload", "variant", "config", "case"):
        found = found[found[name] == row[name]]
    return found


def _stage(name: str) -> Rule:
    return lambda run, row, shown: float(_executed(run, row)[name].median())


def _first(run: Shipped, row: Row, shown: Shown) -> Row:
    """The first variant of the case, ceilings and specimens passed over."""
    same = shown.frame[(shown.frame["workload"] == row["workload"]) & (shown.frame["case"] == row["case"])]
    order = {name: place for place, name in enumerate(run.table("variants")["variant"])}
    rows = sorted(
        same.to_dict("records"),
        key=lambda each: (
            run.variant(each["workload"], each["variant"])["role"] in ("ceiling", "specimen"),
            order[each["variant"]],
        ),
    )
    return {str(name): value for name, value in rows[0].items()}


def _faster(name: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        return float(_executed(run, _first(run, row, shown))[name].median() / _executed(run, row)[name].median())

    return rule


PAID: Final[Rules] = {
    **dict.fromkeys(("workload", "variant", "config", "case")),
    "role": lambda run, row, shown: run.variant(row["workload"], row["variant"])["role"],
    **{name: _stage(name) for name in (*STAGES, "copies_ns")},
    "n": lambda run, row, shown: len(_executed(run, row)),
    **{f"speedup_{name.removesuffix('_ns')}": _faster(name) for name in STAGES},
}
