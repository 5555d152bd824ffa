"""Which variant is faster, and by what factor."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from warpladder.dashboard.core.baseline import baselines
from warpladder.dashboard.core.estimate import Estimate
from warpladder.dashboard.core.intervals import RatioInterval, paired_ratio
from warpladder.dashboard.core.noise import Noise, noise_of, verdict
from warpladder.dashboard.core.precision import FULL
from warpladder.dashboard.core.run_data import Entry, RunData, find_entry
from warpladder.dashboard.core.timing import Timing
from warpladder.dashboard.core.trusted import is_trusted


@dataclass(frozen=True)
class Speedup:
    """A variant and config of a case, compared with a reference.

    Attributes:
        ratio: median of the reference over the median of the variant.
        n: samples of the smaller side.
        paired: whether the ratio was taken round by round.
        noise: the noise floor for the two, as a factor of at least 1; 1 where the baseline has no second entry.
        verdict: see `verdict`.
    """

    variant: str
    config: str
    gpus: int
    ratio: Estimate
    n: int
    paired: bool
    noise: float
    verdict: str


@dataclass(frozen=True)
class Step:
    """A rung, and its gain over a rung before it.

    Attributes:
        previous: the rung that it is compared with; None for the first rung.
        previous_precision: its precision; empty for the first rung.
        gain: median of the previous rung over the median of this one.
        n: samples of the smaller side; 0 for the first rung.
        verdict: see `verdict`; empty for the first rung, and `unknown` where one of the two may not be called best.
    """

    variant: str
    config: str
    previous: Entry | None
    previous_precision: str
    gain: Estimate
    n: int
    verdict: str


class Judged(NamedTuple):
    """An entry against a reference: the reference's median over its own, the noise floor of the two, and the verdict."""

    ratio: RatioInterval
    noise: float
    verdict: str


def judged(rounds: Mapping[Entry, "pd.Series[float]"], noise: Noise, entry: Entry, reference: Entry) -> Judged:
    """Compare two entries of a case. `faster` means that the entry is faster than the reference; see `noise.verdict`."""
    ratio = paired_ratio(rounds[reference], rounds[entry])
    band = noise.between(reference.variant, entry.variant)
    return Judged(ratio, band, verdict(ratio.low, ratio.high, ratio.n, band))


def speedups(
    data: RunData, workload: str, case: str, timing: Timing, reference_variant: str, reference_config: str = ""
) -> list[Speedup]:
    """Every variant and config of a case with samples against a reference, in the order of the variants.

    The list is empty where the reference has no samples.
    """
    rounds = data.rounds(workload, case, timing.scope, timing.cache)
    reference = find_entry(rounds, reference_variant, reference_config)
    if reference is None:
        return []
    noise = noise_of(rounds, data.hosts(workload))
    place = {name: number for number, name in enumerate(data.variants.loc[data.variants["workload"] == workload, "variant"])}
    compared = sorted(
        (entry for entry in rounds if not entry.twin), key=lambda each: (place.get(each.variant, len(place)), *each)
    )
    found = []
    for entry in compared:
        ratio, band, told = judged(rounds, noise, entry, reference)
        found.append(Speedup(entry.variant, entry.config, entry.gpus, ratio.estimate, ratio.n, ratio.paired, band, told))
    return found


def steps(data: RunData, workload: str, case: str, timing: Timing, best: pd.DataFrame) -> list[Step]:
    """The gain of each rung over the one before it in the same precision, each with its fastest config, in the order of the
    rungs.

    The first rung of a precision is compared with the last fp32 rung before it, or where there is none with the rung before it.
    Rungs without samples are left out.

    Args:
        best: `cells.best_config` of the case in the timing.
    """
    rounds = data.rounds(workload, case, timing.scope, timing.cache)
    noise = noise_of(rounds, data.hosts(workload))
    rungs = best[best["role"] == "rung"].sort_values("rung", kind="stable")
    found: list[Step] = []
    done: list[tuple[str, Entry]] = []
    doubtful = set(rungs.loc[~is_trusted(rungs), "variant"])
    for variant, config, gpus, precision in rungs[["variant", "config", "gpus", "precision"]].itertuples(
        index=False, name=None
    ):
        entry = Entry(variant, config, int(gpus), 0)
        known, previous = _step_from(done, precision)
        if previous is None:
            found.append(Step(variant, config, None, "", Estimate.unknown(), 0, ""))
        else:
            ratio, _, told = judged(rounds, noise, entry, previous)
            told = "unknown" if doubtful & {variant, previous.variant} else told
            found.append(Step(variant, config, previous, known, ratio.estimate, ratio.n, told))
        done.append((precision, entry))
    return found


def _step_from(done: list[tuple[str, Entry]], precision: str) -> tuple[str, Entry | None]:
    """The rung that a rung of this precision is compared with, after its own precision; see `steps`."""
    for wanted in (precision, FULL):
        for name, entry in reversed(done):
            if name == wanted:
                return name, entry
    return done[-1] if done else ("", None)


def with_speedups(data: RunData, workload: str, timing: Timing, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `cells` of one timing, with their speedup over the baseline of their case (see `baseline.baselines`).

    The columns are `speedup`, `speedup_low`, `speedup_high`, `verdict`, `baseline`, `baseline_config` and `no_speedup`. Where the
    baseline may not be called best (see `trusted`), there is no speedup, and `no_speedup` has the reason. The verdict is `unknown`
    there, and where the cell itself may not be called best.
    """
    references = baselines(data, workload, timing, frame["case"].unique())
    found = [
        (case, each.variant, each.config, each.gpus, *each.ratio.columns("speedup").values(), each.verdict)
        for case, reference in references.items()
        for each in speedups(data, workload, case, timing, reference.variant, reference.config)
    ]
    keys = ["case", "variant", "config", "gpus"]
    ratios = pd.DataFrame(found, columns=[*keys, *Estimate.names("speedup"), "verdict"])
    types: dict[str, Any] = {
        "gpus": "Int64",
        **dict.fromkeys(Estimate.names("speedup"), float),
        **dict.fromkeys(("case", "variant", "config"), "str"),
    }
    joined = frame.merge(ratios.astype(types), on=keys, how="left")
    named = {"baseline": "variant", "baseline_config": "config", "no_speedup": "no_speedup"}
    for column, name in named.items():
        values = {case: getattr(reference, name) for case, reference in references.items()}
        joined[column] = joined["case"].map(values).fillna("").astype("str")
    doubted = joined["no_speedup"] != ""
    known = joined["verdict"].fillna("") != ""
    joined["verdict"] = joined["verdict"].fillna("").mask((~is_trusted(joined) | doubted) & known, "unknown")
    joined.loc[doubted, list(Estimate.names("speedup"))] = float("nan")
    return joined
