"""Who is faster, by how much, and whether the difference is more than noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from warpladder.dashboard.core.axes import Timing, baseline
from warpladder.dashboard.core.cells import best_config, cells, select
from warpladder.dashboard.core.intervals import RatioInterval, paired_ratio
from warpladder.dashboard.core.precision import FULL
from warpladder.dashboard.core.run_data import Copy, RunData

_SPEEDUP: Final = {"low": "speedup_low", "high": "speedup_high"}

_SPEEDUP_COLUMNS: Final = [
    "variant", "config", "gpus", "speedup", "low", "high", "n", "paired", "noise_low", "noise_high", "verdict",
]  # fmt: skip
_NOISE_COLUMNS: Final = [
    "workload",
    "case",
    "scope",
    "cache",
    "variant",
    "config",
    "gpus",
    "ratio",
    "low",
    "high",
    "n",
    "holds_one",
]
_STEP_COLUMNS: Final = [
    "variant", "config", "rung", "previous_variant", "previous_config", "previous_precision", "gain", "low", "high", "n", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class Noise:
    """How far a baseline is from itself at the far end of its A/A interval, as a factor of at least 1: of the device's, and of the host's.

    A processor's times scatter by other causes than a GPU's, so neither says anything about a tie on the other.
    """

    hosts: frozenset[str]
    on_device: float
    on_host: float

    def between(self, *variants: str) -> float:
        """The band for a ratio of these variants; of one on the device and one on the host it is the wider of the two."""
        return max(self.on_host if variant in self.hosts else self.on_device for variant in variants)


def verdict(low: float, high: float, noise: float = 1.0) -> str:
    """`faster`, `slower`, or `tied` where the interval of a ratio holds 1 or lies within 1/noise..noise; empty for a null."""
    if pd.isna(low) or pd.isna(high):
        return ""
    if low <= 1 <= high or (low >= 1 / noise and high <= noise):
        return "tied"
    return "faster" if low > 1 else "slower"


def speedups(
    data: RunData, workload: str, case: str, scope: str, cache: str, reference_variant: str, reference_config: str = ""
) -> pd.DataFrame:
    """Every variant of a case against a reference, paired by round.

    Returns:
        One row a (variant, config, gpus) with samples, in the order of the variants: `speedup` (median of the reference over
        that of the variant), `low`, `high`, `n`, `paired`, `noise_low`, `noise_high` (the A/A of the case, by what both run on, as a band
        around 1; 1..1 where that has no twin) and `verdict`: `faster`, `slower`, or `tied` where low..high holds 1 or lies within the
        band. No rows where the reference has no samples.
    """
    rounds = data.rounds(workload, case, scope, cache)
    reference = find_copy(rounds, reference_variant, reference_config)
    if reference is None:
        return pd.DataFrame(columns=_SPEEDUP_COLUMNS)
    noise = noise_of(rounds, data.hosts(workload))
    place = {name: number for number, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    rows = []
    for copy in sorted(
        (copy for copy in rounds if not copy.twin), key=lambda copy: (place.get(copy.variant, len(place)), *copy)
    ):
        ratio = paired_ratio(rounds[reference], rounds[copy])
        band = noise.between(reference.variant, copy.variant)
        rows.append(
            {
                "variant": copy.variant, "config": copy.config, "gpus": copy.gpus, "speedup": ratio.ratio, "low": ratio.low,
                "high": ratio.high, "n": ratio.n, "paired": ratio.paired, "noise_low": 1 / band, "noise_high": band,
                "verdict": verdict(ratio.low, ratio.high, band),
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=_SPEEDUP_COLUMNS)


def noise_floors(data: RunData) -> pd.DataFrame:
    """The baseline's second copy against the first; not of phases, which are parts of samples that are compared whole.

    Returns:
        One row a (workload, case, scope, cache) with a twin: `variant`, `config`, `gpus`, `ratio`, `low`, `high`, `n`, `holds_one`.
    """
    keys = data.grouped.keys
    twins = keys[(keys["twin"] == 1) & ~keys["scope"].str.startswith("phase:")]
    views = twins[["workload", "case", "scope", "cache"]].drop_duplicates()
    rows = []
    for workload, case, scope, cache in views.itertuples(index=False):
        rounds = data.rounds(workload, case, scope, cache)
        for copy, ratio in _self_ratios(rounds).items():
            rows.append(
                {
                    "workload": workload, "case": case, "scope": scope, "cache": cache, "variant": copy.variant,
                    "config": copy.config, "gpus": copy.gpus, "ratio": ratio.ratio, "low": ratio.low, "high": ratio.high,
                    "n": ratio.n, "holds_one": ratio.low <= 1 <= ratio.high,
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=_NOISE_COLUMNS)


def steps(data: RunData, workload: str, case: str, view: Timing) -> pd.DataFrame:
    """The gain of each rung over the one before it in the same precision, each with its fastest config.

    The first rung of a precision is compared with the last of fp32 before it; where there is none, with the one before it.

    Returns:
        One row a rung with samples, in order: `variant`, `config`, `rung`, `previous_variant`, `previous_config`, `previous_precision`,
        `gain`, `low`, `high`, `n`, `verdict`; the first rung has null figures and an empty verdict.
    """
    best = best_config(select(cells(data), workload, case, view.scope, view.cache))
    return steps_of(data, workload, case, view, best)


def steps_of(data: RunData, workload: str, case: str, view: Timing, best: pd.DataFrame) -> pd.DataFrame:
    """`steps`, from the rows of `best_config` of one case and view."""
    rounds = data.rounds(workload, case, view.scope, view.cache)
    noise = noise_of(rounds, data.hosts(workload))
    rungs = best[best["role"] == "rung"].sort_values("rung", kind="stable")
    rows: list[dict[str, Any]] = []
    done: list[tuple[str, Copy]] = []
    for rung in rungs.to_dict("records"):
        copy = Copy(rung["variant"], rung["config"], int(rung["gpus"]), 0)
        known, previous = _step_from(done, rung["precision"])
        ratio = paired_ratio(rounds[previous], rounds[copy]) if previous else None
        rows.append(
            {
                "variant": rung["variant"], "config": rung["config"], "rung": rung["rung"],
                "previous_variant": previous.variant if previous else None,
                "previous_config": previous.config if previous else None, "previous_precision": known,
                "gain": ratio.ratio if ratio else None, "low": ratio.low if ratio else None,
                "high": ratio.high if ratio else None, "n": ratio.n if ratio else None,
                "verdict": verdict(ratio.low, ratio.high, noise.between(previous.variant, copy.variant)) if ratio and previous else "",
            }
        )  # fmt: skip
        done.append((rung["precision"], copy))
    return pd.DataFrame(rows, columns=_STEP_COLUMNS).astype({"gain": float, "low": float, "high": float, "n": "Int64"})


def _step_from(done: list[tuple[str, Copy]], precision: str) -> tuple[str | None, Copy | None]:
    """The rung that one of this precision is a step from, of those before it: see `steps`."""
    for wanted in (precision, FULL):
        for name, copy in reversed(done):
            if name == wanted:
                return name, copy
    return done[-1] if done else (None, None)


def find_copy(rounds: "Mapping[Copy, pd.Series[float]]", variant: str, config: str) -> Copy | None:
    """The first copy of a variant and config in a case, on the fewest GPUs; None where it has no samples."""
    found = [copy for copy in rounds if (copy.variant, copy.config, copy.twin) == (variant, config, 0)]
    return min(found, default=None)


def noise_of(rounds: "Mapping[Copy, pd.Series[float]]", hosts: frozenset[str]) -> Noise:
    """The noise of a case in a view; 1 where nothing of the kind has a twin.

    Args:
        hosts: `RunData.hosts`. The number of GPUs does not tell them: a host variant on several processes has one too.
    """
    bands = {True: 1.0, False: 1.0}
    for copy, ratio in _self_ratios(rounds).items():
        if ratio.n and ratio.low > 0:
            on_host = copy.variant in hosts
            bands[on_host] = max(bands[on_host], ratio.high, 1 / ratio.low)
    return Noise(hosts, on_device=bands[False], on_host=bands[True])


def _self_ratios(rounds: "Mapping[Copy, pd.Series[float]]") -> dict[Copy, RatioInterval]:
    twins = [copy for copy in rounds if copy.twin]
    return {twin: paired_ratio(rounds[twin], rounds[first]) for twin in twins if (first := twin._replace(twin=0)) in rounds}


def with_speedups(data: RunData, workload: str, view: Timing, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `cells` of one view with `speedup`, `speedup_low`, `speedup_high`, `verdict`, `baseline`, `baseline_config`."""
    reference = baseline(data, workload, view, cases=frame["case"].unique())
    if reference is None:
        return frame.assign(
            speedup=float("nan"),
            speedup_low=float("nan"),
            speedup_high=float("nan"),
            verdict="",
            baseline="",
            baseline_config="",
        )
    ratios = [
        speedups(data, workload, case, view.scope, view.cache, reference.variant, reference.config).assign(case=case)
        for case in frame["case"].unique()
    ]
    columns = ["case", "variant", "config", "gpus", "speedup", "low", "high", "verdict"]
    found = pd.concat([part for part in ratios if len(part)] or ratios[:1])[columns].rename(columns=_SPEEDUP)
    found["gpus"] = found["gpus"].astype("Int64")
    joined = frame.merge(found, on=["case", "variant", "config", "gpus"], how="left")
    joined["verdict"] = joined["verdict"].fillna("")
    return joined.assign(baseline=reference.variant, baseline_config=reference.config)
