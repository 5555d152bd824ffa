"""Every variant over the size axis, and the sizes that bandwidth or arithmetic does not limit."""

import pandas as pd

from warpladder.dashboard.compare.winners import best_per_size
from warpladder.dashboard.compare.within_run import with_speedups
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import add_floors, best_of_charted, ceiling, charted_cases
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Ceiling


def sizes(data: RunData, workload: str, timing: Timing, series: str = "") -> pd.DataFrame:
    """Each variant's fastest config at each size of one series, by variant and size_rank.

    Specimens are left out, since they show an error and not a time.

    Args:
        series: one of `axes.series`, such as `perm=210`.

    Returns:
        Rows of `cells.best_of_charted` with the columns of `within_run.with_speedups`, and `tied_with`: of the winner of the case, the next
        variant where the two are tied; else empty.
    """
    best = best_of_charted(data, workload, timing)
    best = best[(best["series"] == series) & (best["role"] != "specimen")]
    frame = with_speedups(data, workload, timing, best.reset_index(drop=True))
    place = {name: number for number, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    winners = best_per_size(data, workload, timing)
    tied = winners.loc[winners["tied"], ["case", "variant", "runner_up"]].itertuples(index=False, name=None)
    ties = {(case, variant): runner_up for case, variant, runner_up in tied}
    frame["tied_with"] = [ties.get(key, "") for key in frame[["case", "variant"]].itertuples(index=False, name=None)]
    return (
        frame.assign(place=frame["variant"].map(place))
        .sort_values(["place", "size_rank"], kind="stable")
        .drop(columns="place")
        .reset_index(drop=True)
    )


def timed_series(data: RunData, workload: str, timing: Timing) -> list[str]:
    """The series of `axes.series` that `sizes` has rows of in a timing."""
    best = best_of_charted(data, workload, timing)
    compared = best[best["role"] != "specimen"]
    timed = set(compared["series"])
    return [each for each in cells.series(data, workload) if each in timed]


def regions(data: RunData, workload: str, series: str = "") -> pd.DataFrame:
    """The sizes of a series, and whether something else than memory bandwidth or arithmetic limits them.

    Returns:
        One row for each size: `case`, `size`, `size_value`, `size_rank`, `min_bytes`, and

        - `floor_ns`: of fp32 on one GPU, by the rates of memory and arithmetic;
        - `fits_l2`: the bytes of a pass are known and within the GPU's L2; False where the run has no GPU;
        - `launch_bound`: the measured launch latency exceeds the floor; False where the run has no GPU.
    """
    cases = charted_cases(data, workload)
    cases = cases[cases["series"] == series].drop_duplicates("size").reset_index(drop=True)
    floors = add_floors(cases.assign(kind="cuda", precision="fp32", gpus=1, scope="device", cache=""), data)
    l2_bytes = data.info["l2_bytes"] or 0
    launch_ns = 1000 * ceiling(data, Ceiling.LAUNCH, on_gpu=True)
    columns = ["case", "size", "size_value", "size_rank", "min_bytes", "floor_ns"]
    fits_l2 = (floors["min_bytes"] / floors["passes"]).between(1, l2_bytes)
    return floors[columns].assign(fits_l2=fits_l2, launch_bound=floors["floor_ns"] < launch_ns)
