"""What a run tells besides its best variants, as lines of text: energy, times on several ranks, and limits by counters.

Of each workload the last case is shown, or with `every` all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.compare import sustained
from warpladder.dashboard.compare.within_run import energies, energies_of_case, metered_cases
from warpladder.dashboard.core import counted, counters
from warpladder.dashboard.core.cell import Estimate, Timing, name_of
from warpladder.dashboard.core.cells import is_trusted
from warpladder.dashboard.core.numbers import (
    ITSELF,
    NOTHING,
    format_duration,
    format_energy,
    format_estimate,
    format_loop,
    format_percent,
    format_rate,
    format_ratio,
    ranks_words,
)
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.text import plain_table
from warpladder.dashboard.views.devices.gpus.query import scaling, timings

#: The columns of `energies` that stand beside the best variant.
_COLUMNS: Final = [
    *Estimate.names("energy_mj"), "energy_n", *Estimate.names("per_watt"), "per_watt_unit", "loop_ns", "loop_w", "loop_mhz",
]  # fmt: skip


def _below(tables: Iterable[list[str]]) -> list[str]:
    """Tables with an empty line between each two."""
    return [line for place, table in enumerate(tables) for line in (["", *table] if place else table)]


def _chosen(cases: Sequence[str], every: bool) -> Sequence[str]:
    return cases if every else cases[-1:]


def limits(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload with counters: the limit of its fastest variant, and the step to the fastest rung, or with `every` each step."""
    return [line for workload in counters.counted_workloads(data) for line in _limits_of(data, workload, every)]


def _limits_of(data: RunData, workload: str, every: bool) -> Iterator[str]:
    for case in _chosen(counters.counted_cases(data, workload), every):
        frame = counted.best(data, workload, case, counted.times(data, workload, case))
        yield f"{workload} {case}: {counted.answer(frame)}"
        sentences = (
            counted.steps(data, workload, case, frame)["sentence"]
            if every
            else [counted.step_to_fastest(data, workload, case, frame)]
        )
        yield from (f"  {sentence}" for sentence in sentences if sentence)


def several_ranks(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload that several GPUs, or several processes, measured: times with speedup and efficiency against one rank."""
    tables = []
    for workload in data.workloads:
        for timing in timings(data, workload)[:1]:
            frame = scaling(data, workload, timing)
            cases = list(dict.fromkeys(frame.sort_values("size_rank", kind="stable")["case"]))
            trusted = frame[is_trusted(frame)]
            tables += [
                _of_ranks(trusted[trusted["case"] == case], f"{workload} {case}", timing) for case in _chosen(cases, every)
            ]
    return _below(filter(None, tables))


def _of_ranks(frame: pd.DataFrame, title: str, timing: Timing) -> list[str]:
    """The lines of a case; none where no time of it may be called best."""
    if frame.empty:
        return []
    ranks = sorted(frame["ranks"].unique())
    on_gpu = bool((frame["kind"] != "host").any())
    rows = []
    for variant, of_variant in frame.groupby("variant", sort=False):
        cells = {row["ranks"]: _on_ranks(row) for row in of_variant.to_dict("records")}
        rows.append([str(variant), *(cells.get(each, NOTHING) for each in ranks)])
    one = ranks_words(1, on_gpu=on_gpu).removeprefix("1 ")
    return [
        f"{title}: {timing.label(on_gpu=on_gpu)}, speedup over one {one}, efficiency",
        *plain_table(["variant", *(ranks_words(each, on_gpu=on_gpu) for each in ranks)], rows),
    ]


def _on_ranks(row: Mapping[Any, Any]) -> str:
    time = format_duration(row["median_ns"])
    if row["ranks"] == 1 or pd.isna(row["speedup"]):
        return time
    return f"{time}, {format_ratio(row['speedup'])}, {format_percent(row['efficiency'])}"


def energy(data: RunData, *, every: bool = False) -> list[str]:
    """For each workload with energy a table of what an execution takes, the least first, and `sustained.remarks`."""
    cases = ((name, case) for name in data.workloads for case in _chosen(metered_cases(data, name), every))
    return _below(_energy_of(data, *each) for each in cases)


def _energy_of(data: RunData, workload: str, case: str) -> list[str]:
    frame = energies_of_case(data, workload, case)
    noise = frame["energy_noise"].iloc[0]
    copies = f"; two copies of the baseline differ by {format_percent(100 * (noise - 1))} at most" if noise > 1 else ""
    headings = ("variant", "energy an execution", "a watt", "over the baseline", "in the loop")
    return [
        f"{workload} {case}: energy above {frame['idle_w'].median():.0f} W idle{copies}",
        *plain_table(headings, [_energy_line(row) for row in frame.to_dict("records")]),
        *(f"  {remark}" for remark in sustained.remarks(data, workload, case)),
    ]


def _energy_line(row: Mapping[Any, Any]) -> tuple[str, ...]:
    name, baseline = name_of(row["variant"], row["config"]), name_of(row["baseline"], row["baseline_config"])
    ratio = Estimate.of(row, "energy_ratio")
    over = format_ratio(ratio.value) if row["energy_verdict"] in ("less", "more") else row["energy_verdict"] or NOTHING
    return (
        name,
        format_estimate(Estimate.of(row, "energy_mj"), format_energy),
        format_rate(row["per_watt"], row["per_watt_unit"]),
        ITSELF if name == baseline else over,
        format_loop(row["loop_ns"], row["loop_w"], row["loop_mhz"]),
    )


def with_energy(rows: pd.DataFrame, data: RunData) -> pd.DataFrame:
    """The rows of `summary.figures`, in a run with energy with the columns of the best variant's."""
    if data.energy.empty:
        return rows
    own = energies(data)[["workload", "variant", "config", "case", *_COLUMNS]].rename(
        columns={"variant": "best", "config": "best_config"}
    )
    rows = rows.astype({"best": "str", "best_config": "str"})  # where no case has a best variant, they are columns of NaN
    return rows.merge(own, on=["workload", "best", "best_config", "case"], how="left")
