"""The definitions of the pages GPUs, Counters, and Runs & checks."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd

from tests.recomputed import cells, traces
from tests.recomputed import definitions as of
from tests.recomputed.definitions import UNKNOWN, Interval, Shipped
from tests.recomputed.displayed import Shown
from tests.recomputed.figures import Expected, Rule, Rules, estimate

Row = Mapping[str, Any]
PARTS: Final = {"copies in": "phase:h2d", "copies out": "phase:d2h", "communication": "phase:allreduce"}
_KEPT: dict[tuple[str, str], pd.DataFrame] = {}


# -- GPUs ------------------------------------------------------------------------------------------------------------


def _ranked(run: Shipped, row: Row, ranks: int, case: str = "") -> tuple[str, int] | None:
    """Config and GPUs of a variant's fastest config on a number of ranks; one process on the host counts as one rank."""
    case = case or row["case"]
    found = []
    for gpus in {0, 1} if ranks == 1 else {ranks}:
        for config in {
            key[2] for key in run._rounds if key[0] == row["workload"] and key[1] == row["variant"] and key[3] == case
        }:
            cell = (row["workload"], row["variant"], config, case)
            times = run.rounds(cell, gpus, row["scope"], row["cache"])
            if len(times) and run.result(*cell).get("status", "ok") == "ok":
                good = of.trusted(run, *cell, gpus, row["scope"], row["cache"])
                found.append((not good, times.median(), config, gpus))
    return min(found)[2:] if found else None


def _times(run: Shipped, row: Row, ranks: int, case: str = "") -> "pd.Series[float]":
    found = _ranked(run, row, ranks, case)
    cell = (row["workload"], row["variant"], found[0] if found else "", case or row["case"])
    return run.rounds(cell, found[1], row["scope"], row["cache"]) if found else pd.Series(dtype=float)


def _median(place: int) -> Rule:
    return lambda run, row, shown: of.time_interval(run, _times(run, row, row["ranks"]), row["scope"], row["cache"])[place]


def _scaled(run: Shipped, row: Row, shown: Shown) -> Interval:
    """The time of one rank over that of these ranks; their rounds are other rounds."""
    return of.ratio(_times(run, row, 1), _times(run, row, row["ranks"]), paired=False)


def _times_of(found: Interval, factor: float) -> Interval:
    return Interval(found.value * factor, *(of.Between(*(end * factor for end in each)) for each in found[1:]))


def _exactly_one(rule: Any, value: float) -> Any:
    """One rank over itself has no noise."""
    one = of.Between(value, value)
    return lambda run, row, shown: Interval(value, one, one) if row["ranks"] == 1 else rule(run, row, shown)


def _raw(run: Shipped, row: Row, scope: str) -> pd.DataFrame:
    key = (run.id, f"{row['workload']} {row['variant']} {row['case']}")
    if key not in _KEPT:
        table = run.table("samples")
        chosen = (table["workload"] == row["workload"]) & (table["variant"] == row["variant"]) & (table["case"] == row["case"])
        _KEPT[key] = table[chosen & (table["twin"] == 0)]
    found = _KEPT[key]
    gpus = row["gpus"] if "gpus" in row else (_ranked(run, row, row["ranks"]) or ("", 0))[1]
    config = row["config"]
    return found[
        (found["gpus"] == gpus) & (found["config"] == config) & (found["scope"] == scope) & (found["cache"] == row["cache"])
    ]


def _weak(run: Shipped, row: Row, shown: Shown) -> Interval:
    """The time of one rank at the case with as much for it, over that of these ranks, in percent."""
    one = next(
        each
        for each in of.charted(run, row["workload"])
        if of.parameters(run, row["workload"], each).get(row["axis"]) == row["per_rank"]
    )
    return _times_of(of.ratio(_times(run, row, 1, one), _times(run, row, row["ranks"]), paired=False), 100)


def _best_ranks(run: Shipped, row: Row, shown: Shown) -> int | None:
    """The number of ranks that is fastest at the case, among those whose times may be called best; None where no time may."""
    found = {}
    for ranks in sorted(set(shown.frame["ranks"])):
        entry = _ranked(run, row, ranks)
        if entry and of.trusted(
            run, row["workload"], row["variant"], entry[0], row["case"], entry[1], row["scope"], row["cache"]
        ):
            found[ranks] = _times(run, row, ranks).median()
    return min(found, key=found.__getitem__, default=None)


def _over_best(run: Shipped, row: Row, shown: Shown) -> Interval | None:
    best = _best_ranks(run, row, shown)
    if best is None:
        return None
    if best == row["ranks"]:
        return Interval(1.0, of.Between(1.0, 1.0), of.Between(1.0, 1.0))
    return of.ratio(_times(run, row, row["ranks"]), _times(run, row, best), paired=False)


def _shares(run: Shipped, row: Row) -> "pd.Series[float]":
    """The part of the slowest rank's time that its phase takes, by round."""
    whole = _raw(run, row, row["scope"]).sort_values(["duration_ns", "rank"]).drop_duplicates("round", keep="last")
    part = _raw(run, row, PARTS[row["part"]])
    both = whole.merge(part, on=["round", "rank"], suffixes=("", "_of"))
    return 100 * both["duration_ns_of"] / both["duration_ns"]


def _share(place: int) -> Rule:
    return lambda run, row, shown: of.median_interval(_shares(run, row))[place]


def _least(run: Shipped, row: Row, shown: Shown) -> Expected:
    if row["part"] != "communication":
        return math.nan
    return float(_raw(run, row, "phase:allreduce").groupby("round")["duration_ns"].min().median())


def _alone(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The ceiling of NCCL alone for the bytes of the case's outputs on as many GPUs."""
    if row["part"] != "communication":
        return math.nan
    table, nbytes = run.table("ceilings"), run.case(row["workload"], row["case"])["d2h_bytes"]
    found = table[(table["name"] == f"nccl_allreduce_{nbytes}_bytes") & (table["device"] == f"{row['ranks']} GPUs")]
    return 1000 * float(found["value"].iloc[0]) if len(found) else math.nan


_SCALED_NAMES: Final = [
    "workload",
    "variant",
    "case",
    "scope",
    "cache",
    "size",
    "series",
    "flags",
    "interval_kind",
    "ranks",
    "part",
    "axis",
    "place",
]
GPUS: Final[Rules] = {
    **dict.fromkeys(_SCALED_NAMES),
    **{name: cells.CELL[name] for name in ("title", "role", "kind", "rung", "precision", "flops", "size_rank")},
    "config": lambda run, row, shown: (_ranked(run, row, row["ranks"]) or (None,))[0],
    "gpus": lambda run, row, shown: (_ranked(run, row, row["ranks"]) or (None, None))[1],
    "n": lambda run, row, shown: len(_times(run, row, row["ranks"])),
    "median_ns": _median(0),
    "low_ns": _median(1),
    "high_ns": _median(2),
    "size_value": cells.SIZES["size_value"],
    **estimate("speedup", _exactly_one(_scaled, 1.0)),
    **estimate(
        "efficiency", lambda run, row, shown: _times_of(_exactly_one(_scaled, 1.0)(run, row, shown), 100 / row["ranks"])
    ),
    **estimate("over_best", _over_best),
    "per_rank": lambda run, row, shown: of.parameters(run, row["workload"], row["case"])[row["axis"]] / row["ranks"],
    **estimate("weak_efficiency", _exactly_one(_weak, 100.0)),
}
SHARES: Final[Rules] = {
    **GPUS,
    "share": _share(0),
    "share_low": _share(1),
    "share_high": _share(2),
    "least_ns": _least,
    "alone_ns": _alone,
    "n": lambda run, row, shown: len(_shares(run, row)),
}


# -- Counters --------------------------------------------------------------------------------------------------------

_PEAK: Final = "avg.pct_of_peak_sustained"
#: Column -> metric of Nsight Compute, and how the launches of an execution are joined.
COUNTED: Final = {
    "time_ns": ("gpu__time_duration.sum", "sum"),
    "compute_percent": (f"sm__throughput.{_PEAK}_elapsed", "mean"),
    "memory_percent": (f"gpu__compute_memory_throughput.{_PEAK}_elapsed", "mean"),
    "dram_percent": (f"gpu__dram_throughput.{_PEAK}_elapsed", "mean"),
    "l2_percent": (f"lts__throughput.{_PEAK}_elapsed", "mean"),
    "l1_percent": (f"l1tex__throughput.{_PEAK}_active", "mean"),
    "tensor_percent": (f"sm__pipe_tensor_cycles_active.{_PEAK}_active", "mean"),
    "issue_percent": (f"smsp__issue_active.{_PEAK}_active", "mean"),
    "dram_read_bytes": ("dram__bytes_read.sum", "sum"),
    "dram_write_bytes": ("dram__bytes_write.sum", "sum"),
    "l1_hit_percent": ("l1tex__t_sector_hit_rate.pct", "mean"),
    "l2_hit_percent": ("lts__t_sector_hit_rate.pct", "mean"),
    "load_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "sum"),
    "store_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "sum"),
    "occupancy_percent": (f"sm__warps_active.{_PEAK}_active", "mean"),
    "theoretical_percent": ("sm__maximum_warps_per_active_cycle_pct", "mean"),
    "waves": ("launch__waves_per_multiprocessor", "mean"),
    "registers": ("launch__registers_per_thread", "max"),
    "shared_bytes": ("launch__shared_mem_per_block", "max"),
    "grid_blocks": ("launch__grid_size", "max"),
    "block_threads": ("launch__block_size", "max"),
    "shared_percent": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", "mean"),
    "l1_data_percent": (f"l1tex__data_pipe_lsu_wavefronts.{_PEAK}_elapsed", "mean"),
    "tensor_elapsed_percent": (f"sm__pipe_tensor_cycles_active.{_PEAK}_elapsed", "mean"),
    "fma_percent": (f"sm__pipe_fma_cycles_active.{_PEAK}_elapsed", "mean"),
    "alu_percent": (f"sm__pipe_alu_cycles_active.{_PEAK}_elapsed", "mean"),
    "fp64_percent": (f"sm__pipe_fp64_cycles_active.{_PEAK}_elapsed", "mean"),
    "xu_percent": (f"sm__inst_executed_pipe_xu.{_PEAK}_elapsed", "mean"),
    "lsu_percent": (f"sm__inst_executed_pipe_lsu.{_PEAK}_elapsed", "mean"),
    "issued_percent": (f"sm__inst_issued.{_PEAK}_elapsed", "mean"),
    "sm_cycles": ("sm__cycles_elapsed.avg", "sum"),
    "active_cycles": ("sm__cycles_active.avg", "sum"),
    "clock_hz": ("gpc__cycles_elapsed.avg.per_second", "mean"),
    "warps": ("smsp__warps_active.avg.per_cycle_active", "mean"),
    "instructions": ("smsp__inst_executed.sum", "sum"),
    "local_loads": ("smsp__sass_inst_executed_op_local_ld.sum", "sum"),
    "local_stores": ("smsp__sass_inst_executed_op_local_st.sum", "sum"),
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "sum"),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sum"),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "sum"),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sum"),
    "l2_sectors": ("lts__t_sectors.sum", "sum"),
    "wavefronts": ("l1tex__data_pipe_lsu_wavefronts.sum", "sum"),
    "shared_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "sum"),
}
_PIPES: Final = ("tensor_elapsed", "fma", "alu", "fp64", "xu", "lsu")
_OF: Final = {
    "load_sectors_per_request": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ),
    "store_sectors_per_request": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ),
    "load_conflict_share": (COUNTED["load_conflicts"][0], "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    "store_conflict_share": (COUNTED["store_conflicts"][0], "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
}
_OPERATIONS: Final = {"fp32_flop": {"fadd": 1, "fmul": 1, "ffma": 2}, "fp64_flop": {"dadd": 1, "dmul": 1, "dfma": 2}}
_STALLS: Final = (
    "selected", "not_selected", "long_scoreboard", "short_scoreboard", "lg_throttle", "mio_throttle", "tex_throttle",
    "math_pipe_throttle", "barrier", "membar", "wait", "gmma", "branch_resolving", "dispatch_stall", "no_instruction", "imc_miss",
    "drain", "sleeping", "misc",
)  # fmt: skip


@cache
def _launched(run: Shipped, workload: str, case: str, variant: str, config: str) -> pd.DataFrame:
    """The metrics of each launch of one execution."""
    table = run.table("counters")
    chosen = (table["workload"] == workload) & (table["case"] == case)
    chosen &= (table["variant"] == variant) & (table["config"] == config)
    return table[chosen].pivot_table("value", ["launch_index", "kernel"], "metric", aggfunc="first")


def counter(run: Shipped, row: Row, shown: Shown, metric: str, how: str) -> float:
    """A metric of the launches of one execution: added up, the largest, or averaged by their times."""
    wide = _launched(run, *shown.where[:2], row["variant"], row["config"])
    if metric not in wide:
        return math.nan
    values = wide[metric]
    if how == "mean":
        weights = wide["gpu__time_duration.sum"].where(values.notna())
        return float((values * weights).sum() / weights.sum())
    return float(values.sum() if how == "sum" else values.max())


def _counted(name: str) -> Rule:
    return lambda run, row, shown: counter(run, row, shown, *COUNTED[name])


def _share_of(name: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        part, whole = (counter(run, row, shown, metric, "sum") for metric in _OF[name])
        return part / whole if whole > 0 else math.nan

    return rule


def _flop(run: Shipped, row: Row, shown: Shown, kind: str) -> float:
    counts = (
        counter(run, row, shown, f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum", "sum") * each
        for name, each in _OPERATIONS[kind].items()
    )
    return sum(counts)


def _all_flop(run: Shipped, row: Row, shown: Shown) -> float:
    return _flop(run, row, shown, "fp32_flop") + _flop(run, row, shown, "fp64_flop")


def _dram(run: Shipped, row: Row, shown: Shown) -> float:
    return sum(counter(run, row, shown, *COUNTED[name]) for name in ("dram_read_bytes", "dram_write_bytes"))


def stall(run: Shipped, row: Row, shown: Shown, reason: str) -> float:
    return counter(run, row, shown, f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio", "mean")


def _stall(reason: str) -> Rule:
    return lambda run, row, shown: stall(run, row, shown, reason)


def _top(run: Shipped, row: Row, shown: Shown) -> tuple[str, float]:
    """The reason that a warp waits most for, and its share of the cycles between two instructions."""
    cycles = {reason: stall(run, row, shown, reason) for reason in _STALLS}
    cycles = {reason: each for reason, each in cycles.items() if not math.isnan(each)}
    top = max((reason for reason in cycles if reason not in ("selected", "not_selected")), key=cycles.__getitem__)
    return top, 100 * cycles[top] / sum(cycles.values())


def _launches(run: Shipped, row: Row, shown: Shown) -> Expected:
    return len(_launched(run, *shown.where[:2], row["variant"], row["config"]))


def _min_bytes(run: Shipped, row: Row, shown: Shown) -> float:
    return float(run.case(*shown.where[:2])["min_bytes"])


def _sampled(run: Shipped, row: Row, shown: Shown) -> dict[str, float]:
    """The median device times of the variant's configs by samples of the same run, cold, of those that may be called best."""
    workload, case = shown.where[:2]
    if not run.has("samples"):
        return {}
    return {
        config: float(run.rounds((workload, variant, config, case), gpus, "device", "cold").median())
        for variant, config, gpus in run.timed(workload, case, "device", "cold")
        if variant == row["variant"]
        and run.result(workload, variant, config, case).get("status", "ok") == "ok"
        and of.trusted(run, workload, variant, config, case, gpus, "device", "cold")
    }


def _fastest(run: Shipped, row: Row, shown: Shown) -> float:
    """The least time by samples of all variants that compete, with counters or without."""
    names = {variant for variant, *_ in run.timed(*shown.where[:2], "device", "cold")}
    compete = [name for name in names if run.variant(shown.where[0], name)["role"] not in ("ceiling", "specimen")]
    times = [ns for name in compete for ns in _sampled(run, {**row, "variant": name}, shown).values()]
    return min(times, default=math.nan)


def _quickest(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The config that took the least time by samples, or where none has samples under the profiler."""
    table, (workload, case) = run.table("counters"), shown.where[:2]
    table = table[
        (table["workload"] == workload)
        & (table["case"] == case)
        & (table["variant"] == row["variant"])
        & (table["metric"] == "gpu__time_duration.sum")
    ]
    profiled = table.groupby("config")["value"].sum()
    sampled = _sampled(run, row, shown)
    return str(min(profiled.index, key=lambda config: (sampled.get(config, math.inf), profiled[config])))


def _of_floor(run: Shipped, row: Row, shown: Shown) -> Expected:
    """The floor over the timed median of the config, where its time may be called best."""
    if row["config"] not in _sampled(run, row, shown):
        return math.nan
    where = {"workload": shown.where[0], "case": shown.where[1], "scope": "device", "cache": "cold", "gpus": 1}
    return cells.CELL["percent_of_floor"](run, {**row, **where}, shown)


def _own_time(run: Shipped, row: Row, shown: Shown) -> tuple[float, float]:
    """The timed median of a cell and its time under the profiler."""
    return _sampled(run, row, shown).get(row["config"], math.nan), counter(run, row, shown, *COUNTED["time_ns"])


def _step_from(run: Shipped, row: Row, shown: Shown) -> Row:
    """The row before a step, with its fastest config."""
    before = {"variant": row["previous"], "config": ""}
    return {**before, "config": _quickest(run, before, shown)}


def _gain(run: Shipped, row: Row, shown: Shown) -> Expected:
    before, own = _own_time(run, _step_from(run, row, shown), shown), _own_time(run, row, shown)
    timed = before[0] > 0 and own[0] > 0
    return before[0] / own[0] if timed else before[1] / own[1]


COUNTERS: Final[Rules] = {
    **dict.fromkeys(
        ("variant", "kernels", "limiter", "reason", "meaning", "previous", "cause", "explained_percent", "sentence")
    ),
    "percent_of_floor": _of_floor,
    "pipe_percent": lambda run, row, shown: max(
        (share for name in _PIPES if not math.isnan(share := counter(run, row, shown, *COUNTED[f"{name}_percent"]))),
        default=math.nan,
    ),
    "gain": _gain,
    "timed_ns": lambda run, row, shown: _sampled(run, row, shown).get(row["config"], math.nan),
    "fastest_ns": _fastest,
    "config": _quickest,
    "title": lambda run, row, shown: run.variant(shown.where[0], row["variant"])["title"],
    "role": lambda run, row, shown: run.variant(shown.where[0], row["variant"])["role"],
    "launches": _launches,
    **{name: _counted(name) for name in COUNTED},
    **{name: _share_of(name) for name in _OF},
    "dram_bytes": _dram,
    "min_bytes": _min_bytes,
    "dram_over_min": lambda run, row, shown: _dram(run, row, shown) / _min_bytes(run, row, shown),
    "fp32_flop": lambda run, row, shown: _flop(run, row, shown, "fp32_flop"),
    "fp64_flop": lambda run, row, shown: _flop(run, row, shown, "fp64_flop"),
    "gflop_per_s": lambda run, row, shown: _all_flop(run, row, shown) / counter(run, row, shown, *COUNTED["time_ns"]),
    "flop_per_byte": lambda run, row, shown: _all_flop(run, row, shown) / _dram(run, row, shown),
    **{f"stall_{reason}": _stall(reason) for reason in _STALLS},
    "top_stall": lambda run, row, shown: _top(run, row, shown)[0],
    "top_stall_percent": lambda run, row, shown: _top(run, row, shown)[1],
    "cycles": lambda run, row, shown: stall(run, row, shown, row["reason"]),
    "percent": lambda run, row, shown: (
        100 * stall(run, row, shown, row["reason"]) / np.nansum([stall(run, row, shown, reason) for reason in _STALLS])
    ),
}


# -- Runs & checks ---------------------------------------------------------------------------------------------------


def _sample(name: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        table = run.table("samples")
        for key in ("workload", "variant", "config", "case", "gpus", "rank", "cache", "scope", "twin", "round", "position"):
            table = table[table[key] == row[key]]
        assert len(table) == 1
        if name not in table or pd.isna(table[name].iloc[0]):  # runs that are older than the column lack it
            return None
        return float(table[name].iloc[0])

    return rule


SAMPLES: Final[Rules] = {
    **dict.fromkeys(
        ("workload", "variant", "config", "case", "gpus", "rank", "cache", "scope", "twin", "process", "round", "position")
    ),
    **{
        name: _sample(name)
        for name in ("duration_ns", "sm_clock_mhz", "held_clock_mhz", "temperature_c", "power_w", "throttle_reasons")
    },
}


def _verdicts(status: str) -> Rule:
    def rule(run: Shipped, row: Row, shown: Shown) -> Expected:
        table = run.table("results")
        table = table[table["workload"] == row["workload"]]
        return len(table if status == "total" else table[table["status"] == status])

    return rule


STATUSES: Final = ("ok", "wrong_result", "launch_error", "out_of_memory", "timeout", "skipped")
VERDICTS: Final[Rules] = {"workload": None, **{name: _verdicts(name) for name in (*STATUSES, "total")}}


def _errors(run: Shipped, row: Row) -> pd.DataFrame:
    table = run.table("results").merge(
        run.table("variants")[["workload", "variant", "precision", "role"]], on=["workload", "variant"]
    )
    word = {"tf32": "TF32", "3xtf32": "3xTF32"}
    table = table[
        (table["workload"] == row["workload"]) & (table["precision"].map(lambda each: word.get(each, each)) == row["precision"])
    ]
    return table[(table["status"] == "ok") & table["rel_l2_error"].notna() & (table["role"] != "specimen")]


def _largest(name: str) -> Rule:
    return lambda run, row, shown: float(_errors(run, row)[name].max())


ERRORS: Final[Rules] = {
    "workload": None,
    "precision": None,
    "variants": lambda run, row, shown: _errors(run, row)["variant"].nunique(),
    "cells": lambda run, row, shown: len(_errors(run, row)),
    **{name: _largest(name) for name in ("rel_l2_error", "max_rel_error", "tolerance")},
}


def _skipped(run: Shipped, row: Row) -> pd.DataFrame:
    table = run.table("results")
    return table[(table["status"] == "skipped") & (table["workload"] == row["workload"]) & (table["detail"] == row["detail"])]


SKIPS: Final[Rules] = {
    "workload": None,
    "detail": None,
    "variants": lambda run, row, shown: _skipped(run, row)["variant"].nunique(),
    "cells": lambda run, row, shown: len(_skipped(run, row)),
}


def _stopped(run: Shipped, row: Row, shown: Shown) -> Expected:
    table = run.table("results")
    table = table[(table["status"] == "ok") & (table["workload"] == row["workload"])]
    return sum(part.split(",")[0].strip() == row["reason"] for detail in table["detail"] for part in detail.split(";"))


STOPS: Final[Rules] = {"workload": None, "reason": None, "cells": _stopped}


def _twin(run: Shipped, row: Row, shown: Shown) -> Interval:
    """The baseline's second entry over the first."""
    cell = cells.cell_of(row)
    return of.ratio(
        run.rounds(cell, row["gpus"], row["scope"], row["cache"], 1), run.rounds(cell, row["gpus"], row["scope"], row["cache"])
    )


def _holds_one(run: Shipped, row: Row, shown: Shown) -> Expected:
    return {str(word == "tied") for word in of.verdicts(_twin(run, row, shown), of.FEWEST, (1.0, 1.0))}


NOISE: Final[Rules] = {
    **dict.fromkeys(("workload", "case", "scope", "cache", "variant", "config", "gpus")),
    **estimate("ratio", _twin, ("ratio", "low", "high")),
    "n": lambda run, row, shown: min(
        len(run.rounds(cells.cell_of(row), row["gpus"], row["scope"], row["cache"], twin)) for twin in (0, 1)
    ),
    "holds_one": None,
}


def _unlaunched(run: Shipped, row: Row) -> pd.DataFrame:
    table = run.table("kernels")
    return table[(table["name"] == row["kernel"]) & (table["range_id"].isna() | table["launch_start_ns"].isna())]


UNATTRIBUTED: Final[Rules] = {
    "kernel": None,
    "outside": lambda run, row, shown: int(_unlaunched(run, row)["range_id"].isna().sum()),
    "unlaunched": lambda run, row, shown: int(_unlaunched(run, row)["launch_start_ns"].isna().sum()),
    "time_ns": lambda run, row, shown: int((_unlaunched(run, row)["end_ns"] - _unlaunched(run, row)["start_ns"]).sum()),
}


def _copied(run: Shipped, row: Row, kind: str) -> list[int]:
    """The bytes that each end-to-end sample of a case copied in a direction."""
    own = traces.samples_of(run)
    table = run.table("ranges").set_index("range_id")
    mine = table[
        (table["workload"] == row["workload"])
        & (table["case"] == row["case"])
        & (table["scope"] == "end_to_end")
        & table["round"].notna()
    ]
    mine = mine[mine.index.isin(own["sample"])]
    copies = run.table("memory_ops")
    copies = copies[copies["kind"] == kind]
    sample = copies["range_id"].map(own.set_index("range_id")["sample"])
    return copies["bytes"].groupby(sample).sum().reindex(mine.index).fillna(0).astype(int).tolist()


def _equal(run: Shipped, row: Row, shown: Shown) -> Expected:
    case = run.case(row["workload"], row["case"])
    both = zip(_copied(run, row, "h2d"), _copied(run, row, "d2h"), strict=True)
    return sum((a, b) == (case["h2d_bytes"], case["d2h_bytes"]) for a, b in both)


ROUNDS: Final[Rules] = {
    "workload": None,
    "case": None,
    "rounds": lambda run, row, shown: len(_copied(run, row, "h2d")),
    "equal": _equal,
    "case_h2d_bytes": lambda run, row, shown: run.case(row["workload"], row["case"])["h2d_bytes"],
    "case_d2h_bytes": lambda run, row, shown: run.case(row["workload"], row["case"])["d2h_bytes"],
}
_ = UNKNOWN
