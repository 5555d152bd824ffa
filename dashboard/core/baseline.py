"""The baseline: the one rule that chooses what speedups are counted from."""

from collections.abc import Iterable, Mapping

from warpladder.dashboard.core.cells import best_config, cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.timing import Baseline, Timing
from warpladder.dashboard.core.trusted import doubt


def baselines(data: RunData, workload: str, timing: Timing, cases: Iterable[str]) -> Mapping[str, Baseline]:
    """The baseline of each case: the variant of `baseline_variant` over these cases, with its fastest config of the case.

    The config is the one of `cells.best_config`, so that every speedup is over the cell that the ladder shows. A case without a right
    time of the variant has none.
    """
    wanted = set(cases)
    data = data.selected_from or data
    variant = baseline_variant(data, workload, timing, cases=wanted)
    every = cells(data)
    chosen = (every["workload"] == workload) & (every["variant"] == variant) & every["case"].isin(wanted)
    chosen &= (every["scope"] == timing.scope) & (every["cache"] == timing.cache)
    # Where a variant ran on several numbers of GPUs, the fewest are the baseline.
    rows = best_config(every[chosen]).sort_values("gpus", kind="stable").drop_duplicates("case")
    return {
        str(row["case"]): Baseline(
            str(row["variant"]), str(row["config"]), int(row["gpus"]), doubt(int(row["n"]), row["flags"])
        )
        for row in rows.to_dict("records")
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
    groups = data.grouped.keys
    chosen = (groups["workload"] == workload) & (groups["scope"] == timing.scope) & (groups["cache"] == timing.cache)
    if on_host:
        chosen &= groups["gpus"] == 0
    if cases is not None:
        chosen &= groups["case"].isin(list(cases))
    copies = groups.loc[chosen, ["variant", "config", "case", "gpus", "twin"]]
    if copies.empty:
        return ""
    # A case whose baseline failed has a second copy of another variant. The baseline has one in the most cases.
    found = copies.groupby(["variant", "config", "gpus"], as_index=False, sort=False)["twin"].sum()
    variants = data.variants[data.variants["workload"] == workload].reset_index(names="place")
    found = found.merge(variants[["variant", "role", "rung", "place"]], on="variant", how="left")
    order = found.assign(
        single=found["twin"] == 0,
        off_gpu=found["gpus"] == 0,
        twins=-found["twin"],
        rung=found["rung"].astype(float).where(found["role"] == "rung"),
        not_preferred=found["variant"] != preferred,
    )
    keys = ["single", "off_gpu", "twins", "rung", "not_preferred", "place"]
    first = order.sort_values(keys, na_position="last", kind="stable").iloc[0]
    return str(first["variant"])
