"""Comparisons within a run: which precisions may be compared, the noise of a case, speedups and gains; energies."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Self, cast

import numpy as np
import pandas as pd

from warpladder.dashboard.core.cell import Baseline, Entry, Estimate, Timing, with_estimates
from warpladder.dashboard.core.cells import baselines, baselines_case_by_case, is_trusted, measured
from warpladder.dashboard.core.intervals import (
    MIN_SAMPLES,
    RatioInterval,
    grouped_median_intervals,
    is_single,
    paired_ratio,
    scatter_ns,
)
from warpladder.dashboard.core.run_data import STATUS_KEY, RunData, find_entry, once
from warpladder.data.names import PHASE

FULL: Final = "fp32"
_WORDS: Final = {"tf32": "TF32", "3xtf32": "3xTF32"}
_FROM_FP32: Final = ("fp32", "fp64")
_FROM_TF32: Final = ("tf32", "3xtf32", *_FROM_FP32)
#: Precision of a rung -> precisions of the peers that it is compared with: its own, and those that hold all of its numbers, so that a user
#: can take such a peer in its place. 3xTF32 replaces fp32 with about the same error.
PEERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "fp32": _FROM_FP32,
    "3xtf32": ("3xtf32", *_FROM_FP32),
    "tf32": _FROM_TF32,
    "fp64": ("fp64",),
    "fp16": ("fp16", *_FROM_TF32),
    "bf16": ("bf16", *_FROM_TF32),
    "fp8": ("fp8", "fp16", "bf16", *_FROM_TF32),
    "int8": ("int8",),
    "int": ("int",),
    "mixed": ("mixed", *_FROM_FP32),
}


def word(precision: str) -> str:
    """`fp32`, `3xTF32`, `TF32`."""
    return _WORDS.get(precision, precision)


def with_precision(name: str, precision: str) -> str:
    """`v08_toeplitz · TF32`; the name alone where no precision is given, or where the name ends with it, as `cublas_tf32`."""
    return name if not precision or name.endswith(f"_{precision}") else f"{name} · {word(precision)}"


def is_mixed(variants: pd.DataFrame) -> bool:
    """Whether the rungs and peers have several precisions.

    Args:
        variants: with `role` and `precision`, of one workload.
    """
    return variants.loc[variants["role"].isin(["rung", "peer"]), "precision"].nunique() > 1


def precisions(frame: pd.DataFrame) -> list[str]:
    """The precisions in which a winner is chosen, fp32 first: the precisions of the rungs, or of all rows where there is no rung.

    Args:
        frame: rows of `cells`.
    """
    rungs = frame[frame["role"] == "rung"]
    names = list(dict.fromkeys((rungs if len(rungs) else frame)["precision"]))
    return sorted(names, key=lambda name: list(PEERS_OF).index(name) if name in PEERS_OF else len(PEERS_OF))


def compared(frame: pd.DataFrame, precision: str) -> pd.DataFrame:
    """The rows of `cells` among which the winner of a precision is chosen: its own rows, and the peers it is compared with."""
    return frame[(frame["precision"] == precision) & (frame["role"] != "peer") | is_peer_of(frame, precision)]


def is_peer_of(frame: pd.DataFrame, precision: str) -> "pd.Series[bool]":
    """Which rows of `cells` are peers that a rung of this precision is compared with."""
    return (frame["role"] == "peer") & frame["precision"].isin(PEERS_OF.get(precision, (precision,)))


#: The verdicts that call neither of two cells faster.
UNDECIDED: Final = ("tied", "unknown")
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


def verdict(ratio: Estimate, n: int, noise: float = 1.0) -> str:
    """The verdict about a speedup: `faster`, `slower`, `tied` or `unknown`; empty for a null.

    All words about two cells of one run come from here.

    Args:
        ratio: the speedup, with its interval.
        n: samples of the smaller side. Fewer than `MIN_SAMPLES` have no 95 % interval, so that nothing is known.
        noise: a ratio is a tie where its interval holds 1, or where it is itself between 1/noise and noise, however wide its interval is.
    """
    if pd.isna(ratio.low) or pd.isna(ratio.high):
        return ""
    if n < MIN_SAMPLES:
        return "unknown"
    if ratio.low <= 1 <= ratio.high or 1 / noise <= ratio.value <= noise:
        return "tied"
    return "faster" if ratio.low > 1 else "slower"


@once
def noise_floors(data: RunData) -> pd.DataFrame:
    """The baseline's second entry against the first, without phases.

    Returns:
        One row for each (workload, case, scope, cache) with a second entry: `variant`, `config`, `gpus`, `ratio`, `low`, `high`,
        `n` and `holds_one`.
    """
    keys = data.grouped.keys
    twins = keys[(keys["twin"] == 1) & ~keys["scope"].str.startswith(PHASE)]
    rows = []
    for where in twins[["workload", "case", "scope", "cache"]].drop_duplicates().itertuples(index=False, name=None):
        for entry, ratio in _self_ratios(data.rounds(*where)).items():
            ends = (ratio.ratio, ratio.low, ratio.high)
            rows.append((*where, entry.variant, entry.config, entry.gpus, *ends, ratio.n, ratio.low <= 1 <= ratio.high))
    return pd.DataFrame(rows, columns=_NOISE_COLUMNS)


def _self_ratios(rounds: "Mapping[Entry, pd.Series[float]]") -> dict[Entry, RatioInterval]:
    twins = [entry for entry in rounds if entry.twin]
    return {twin: paired_ratio(rounds[twin], rounds[first]) for twin in twins if (first := twin._replace(twin=0)) in rounds}


class Judgement(NamedTuple):
    """An entry against a reference: the reference's median over its own, the noise floor of the two, and the verdict."""

    ratio: RatioInterval
    noise: float
    verdict: str


@dataclass(frozen=True)
class CaseTimes:
    """The samples of a case in a timing, by entry and round, and the noise floors by which they are judged.

    Attributes:
        hosts: `RunData.hosts`. The number of GPUs does not tell them, because a host variant on several processes has one too.
        clock_ns: a difference of two times that the clock cannot tell; see `intervals.scatter_ns`.
    """

    rounds: Mapping[Entry, "pd.Series[float]"]
    hosts: frozenset[str]
    clock_ns: float = 0.0

    @classmethod
    def of(cls, data: RunData, workload: str, case: str, timing: Timing) -> Self:
        return cls(
            data.rounds(workload, case, timing.scope, timing.cache),
            data.hosts(workload),
            clock_ns(data, timing.scope, timing.cache),
        )

    def noise(self, *variants: str) -> float:
        """The noise floor for a ratio of these variants, as a factor of at least 1: how far the baseline's second entry is from the first.

        It is the far end of the interval of the ratio of the two copies; 1 without a second entry. Host and device have one each, because a
        processor's times scatter for other reasons than a GPU's. The larger one counts where one variant runs on the device and one on the
        host.
        """
        return max(self._noise_of_place[variant in self.hosts] for variant in variants)

    @cached_property
    def _noise_of_place(self) -> dict[bool, float]:
        """The noise floors, by whether they are those of the host."""
        found = {True: 1.0, False: 1.0}
        for entry, ratio in _self_ratios(self.rounds).items():
            if ratio.n and ratio.low > 0:
                on_host = entry.variant in self.hosts
                found[on_host] = max(found[on_host], ratio.high, 1 / ratio.low)
        return found

    def band(self, *entries: Entry) -> float:
        """The noise floor for a ratio of two entries: that of their variants, and at least what the clock cannot tell of the shorter time."""
        of_variants = self.noise(*(entry.variant for entry in entries))
        if not self.clock_ns:
            return of_variants
        return max(of_variants, 1 + self.clock_ns / max(min(float(self.rounds[entry].median()) for entry in entries), 1.0))

    def judge(self, entry: Entry, reference: Entry) -> Judgement:
        """Compare two entries. `faster` means that the entry is faster than the reference; see `verdict`."""
        ratio = paired_ratio(self.rounds[reference], self.rounds[entry])
        band = self.band(reference, entry)
        return Judgement(ratio, band, verdict(ratio.estimate, ratio.n, band))


def clock_ns(data: RunData, scope: str, cache: str) -> float:
    """`CaseTimes.clock_ns` of a timing: cold device times between events are single executions."""
    return scatter_ns(data.info["collector"], measured(data)) if is_single(scope, cache) else 0.0


def speedups(data: RunData, workload: str, case: str, timing: Timing, reference: Baseline) -> dict[Entry, Judgement]:
    """Every entry of a case with samples against a reference; empty where the reference has no samples."""
    times = CaseTimes.of(data, workload, case, timing)
    other = find_entry(times.rounds, reference.variant, reference.config)
    return {entry: times.judge(entry, other) for entry in times.rounds if not entry.twin} if other else {}


def with_gains(data: RunData, workload: str, case: str, timing: Timing, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of `cells` of one case, one for each variant, with the gain of each rung over the one before it in the same precision.

    The first rung of a precision is compared with the last fp32 rung before it. Without such a rung, it is compared with the
    rung before it. Rungs without samples are left out.

    The columns are the estimate `gain`, the time of the rung `gain_over` over its own; `gain_from`, the precision of that rung; and
    `gain_verdict`, which is `unknown` where one of the two may not be called best, and empty for the first rung. All are null for other roles.
    """
    times = CaseTimes.of(data, workload, case, timing)
    rungs = frame[(frame["role"] == "rung") & (frame["n"] > 0)].sort_values("rung", kind="stable")
    doubtful = set(rungs.loc[~is_trusted(rungs), "variant"])
    gains = []
    earlier: list[tuple[str, Entry]] = []
    for variant, config, gpus, precision in rungs[["variant", "config", "gpus", "precision"]].itertuples(
        index=False, name=None
    ):
        entry = Entry(variant, config, int(gpus), 0)
        from_precision, previous = _step_from(earlier, precision)
        gain, word = Estimate.unknown(), ""
        if previous:
            judged = times.judge(entry, previous)
            gain, word = judged.ratio.estimate, "unknown" if doubtful & {variant, previous.variant} else judged.verdict
        over = previous.variant if previous else None
        gains.append((variant, *gain.columns("gain").values(), word, over, from_precision or None))
        earlier.append((precision, entry))
    columns = ["variant", *Estimate.names("gain"), "gain_verdict", "gain_over", "gain_from"]
    types = {"variant": frame["variant"].dtype, **dict.fromkeys(Estimate.names("gain"), float)}
    return frame.merge(pd.DataFrame(gains, columns=columns).astype(types), on="variant", how="left")


def _step_from(earlier: list[tuple[str, Entry]], precision: str) -> tuple[str, Entry | None]:
    """The rung that a rung of this precision is compared with, after its own precision; see `with_gains`."""
    for target in (precision, FULL):
        for name, entry in reversed(earlier):
            if name == target:
                return name, entry
    return earlier[-1] if earlier else ("", None)


def with_speedups(
    data: RunData, workload: str, timing: Timing, frame: pd.DataFrame, *, case_by_case: bool = False
) -> pd.DataFrame:
    """Rows of `cells` of one timing, with their speedup over the baseline of their case (see `baseline.baselines`).

    The columns are `speedup`, `speedup_low`, `speedup_high`, `verdict`, `baseline`, `baseline_config` and `no_speedup`. Where the
    baseline may not be called best (see `trusted`), there is no speedup, and `no_speedup` has the reason. The verdict is `unknown`
    there, and where the cell itself may not be called best.

    Args:
        case_by_case: the baseline of each case is chosen by itself, as on the ladder.
    """
    names = frame["case"].unique()
    found = (
        baselines_case_by_case(data, workload, timing) if case_by_case else baselines(data, workload, timing, frozenset(names))
    )
    references = {case: found[case] for case in names if case in found}
    rows = [
        (case, *entry[:3], *judged.ratio[:3], judged.verdict)
        for case, reference in references.items()
        for entry, judged in speedups(data, workload, case, timing, reference).items()
    ]
    keys = ["case", "variant", "config", "gpus"]
    ratios = pd.DataFrame(rows, columns=[*keys, *Estimate.names("speedup"), "verdict"])
    types: dict[str, Any] = {
        "gpus": "Int64",
        **dict.fromkeys(Estimate.names("speedup"), float),
        **dict.fromkeys(("case", "variant", "config"), "str"),
    }
    joined = frame.merge(ratios.astype(types), on=keys, how="left")
    of_baseline = {"baseline": "variant", "baseline_config": "config", "no_speedup": "no_speedup"}
    for column, name in of_baseline.items():
        values = {case: getattr(reference, name) for case, reference in references.items()}
        joined[column] = joined["case"].map(values).fillna("").astype("str")
    doubted = joined["no_speedup"] != ""
    has_verdict = joined["verdict"].fillna("") != ""
    joined["verdict"] = joined["verdict"].fillna("").mask((~is_trusted(joined) | doubted) & has_verdict, "unknown")
    joined.loc[doubted, list(Estimate.names("speedup"))] = float("nan")
    return joined


#: The columns that `add_energy` adds.
ENERGY_COLUMNS: Final = (
    *(column for name in ("energy_mj", "per_watt", "energy_ratio") for column in Estimate.names(name)),
    "per_watt_unit",
    "energy_n",
    "energy_verdict",
    "energy_noise",
    "loop_ns",
    "loop_w",
    "loop_mhz",
    "idle_w",
)
#: Verdicts of a time, and the same of an energy.
_LESS_OR_MORE: Final = {"faster": "less", "slower": "more"}


def millijoules(energy: pd.DataFrame) -> "pd.Series[float]":
    """The energy of an execution in mJ of each row of table `energy`.

    The energy in the loop a nanosecond, less the idle power, times the nanoseconds of an execution. One watt is 1e-6 mJ a nanosecond.
    """
    above_idle = energy["energy_mj"] / energy["duration_ns"] - energy["idle_w"] * 1e-6
    return cast("pd.Series[float]", above_idle * energy["execution_ns"])


@lru_cache(maxsize=4)
def energies(data: RunData) -> pd.DataFrame:
    """The energy of each cell that was repeated in a loop.

    Returns:
        One row for each cell, with the columns of `STATUS_KEY`, and:

        - `energy_mj`, `energy_mj_low`, `energy_mj_high`, `energy_n`: median energy of an execution, its interval, and the repetitions;
        - `per_watt` and its ends, `per_watt_unit`: the operations of the case for each joule, in GFLOP/s/W; of a case without operations,
          and of a ceiling, its least bytes, in GB/s/W; null where the energy is not above idle;
        - `loop_ns`, `loop_w`, `loop_mhz`: medians of the time of an execution in the loop, and of the power and the clock held there;
        - `idle_w`: median of the idle power.
    """
    rows = data.energy[data.energy["twin"] == 0]
    rows = rows.assign(mj=millijoules(rows), loop_w=rows["energy_mj"] / rows["duration_ns"] * 1e6)
    groups = rows.groupby(STATUS_KEY, observed=True, sort=False)
    n = groups.size().to_numpy().astype(np.int64)
    ordered = rows["mj"].to_numpy(dtype=float)[np.argsort(groups.ngroup().to_numpy(), kind="stable")]
    ends = grouped_median_intervals(ordered, n)
    names = dict(zip(("median", "low", "high"), Estimate.names("energy_mj"), strict=True))
    names_of = {"execution_ns": "loop_ns", "loop_w": "loop_w", "held_clock_mhz": "loop_mhz", "idle_w": "idle_w"}
    frame = groups[list(names_of)].median().rename(columns=names_of).reset_index()
    frame = frame.assign(energy_n=n, **{names[end]: figures for end, figures in ends.items()})
    return _with_rates(frame, data)


def _with_rates(frame: pd.DataFrame, data: RunData) -> pd.DataFrame:
    work = frame.merge(data.cases[["workload", "case", "flops", "min_bytes"]], on=["workload", "case"], how="left")
    work = work.merge(data.variants[["workload", "variant", "role"]], on=["workload", "variant"], how="left")
    computes = ((work["flops"] > 0) & (work["role"] != "ceiling")).to_numpy()  # a ceiling moves the bytes and computes nothing
    amount = np.where(computes, work["flops"], work["min_bytes"]).astype(float)
    # 1e9 operations a joule are 1 GFLOP/s/W.
    ends = {
        column: np.where((amount > 0) & (work[energy] > 0), amount / work[energy].where(work[energy] > 0) * 1e-6, np.nan)
        for column, energy in zip(Estimate.names("per_watt"), ("energy_mj", "energy_mj_high", "energy_mj_low"), strict=True)
    }
    return frame.assign(**ends, per_watt_unit=np.where(computes, "GFLOP/s/W", "GB/s/W"))


def energy_rounds(data: RunData, workload: str, case: str) -> dict[Entry, "pd.Series[float]"]:
    """The energies of an execution in mJ by round, of every entry of a case, also of the baseline's twin."""
    return _by_round(data.energy.assign(mj=millijoules(data.energy)), workload, case, "mj")


def loop_times(data: RunData, workload: str, case: str) -> CaseTimes:
    """The times of an execution in the loops of a case."""
    return CaseTimes(_by_round(data.energy, workload, case, "execution_ns"), frozenset())


def _by_round(energy: pd.DataFrame, workload: str, case: str, column: str) -> dict[Entry, "pd.Series[float]"]:
    rows = energy[(energy["workload"] == workload) & (energy["case"] == case)]
    by_entry: Any = rows.groupby(["variant", "config", "twin"], observed=True, sort=False)
    return {
        Entry(variant, config, 1, int(twin)): group.set_index("round")[column] for (variant, config, twin), group in by_entry
    }


def add_energy(frame: pd.DataFrame, data: RunData, workload: str, case: str) -> pd.DataFrame:
    """Add `ENERGY_COLUMNS` to rows of a case that have the columns `variant`, `config`, `baseline` and `baseline_config`.

    `energy_ratio` is the energy over that of the baseline, paired by round. `energy_verdict` is `less`, `more`, `tied` or `unknown`, as
    `within_run.verdict` has them of times; empty without the energy of both. `energy_noise` is how far the two copies of the baseline differ,
    as a factor of at least 1; see `CaseTimes.noise`.
    """
    own = energies(data)
    own = own[(own["workload"] == workload) & (own["case"] == case)].drop(columns=["workload", "case"])
    joined = frame.merge(own, on=["variant", "config"], how="left")
    by_round = energy_rounds(data, workload, case)
    times = CaseTimes(by_round, frozenset())
    against = [_against(times, row) for row in frame.to_dict("records")]
    joined = with_estimates(joined, "energy_ratio", [ratio for ratio, _ in against])
    noise = times.noise("") if by_round else np.nan  # of any variant: a counter of energy is of a device
    return joined.assign(energy_verdict=[verdict for _, verdict in against], energy_noise=noise)


def _against(times: CaseTimes, row: Mapping[Any, Any]) -> tuple[Estimate, str]:
    """The energy of a row over that of its baseline, and the verdict."""
    entry, reference = Entry(row["variant"], row["config"], 1, 0), Entry(row["baseline"], row["baseline_config"], 1, 0)
    if entry == reference or not all(each in times.rounds and times.rounds[each].min() > 0 for each in (entry, reference)):
        return Estimate.unknown(), ""
    word = times.judge(entry, reference).verdict
    return paired_ratio(times.rounds[entry], times.rounds[reference]).estimate, _LESS_OR_MORE.get(word, word)


def energies_of_case(data: RunData, workload: str, case: str) -> pd.DataFrame:
    """The cells of a case with energy, the least first, with `ENERGY_COLUMNS`, and the baseline of the loops in `baseline` and `baseline_config`."""
    own = energies(data)
    cells = own[(own["workload"] == workload) & (own["case"] == case)][STATUS_KEY]
    twin = next((entry for entry in energy_rounds(data, workload, case) if entry.twin), Entry("", "", 1, 1))
    frame = add_energy(cells.assign(baseline=twin.variant, baseline_config=twin.config), data, workload, case)
    return frame.sort_values("energy_mj", kind="stable").reset_index(drop=True)


def metered_cases(data: RunData, workload: str) -> tuple[str, ...]:
    """The cases of a workload with energy, in the order of the cases."""
    have = set(data.energy.loc[data.energy["workload"] == workload, "case"])
    return tuple(case for case in data.cases.loc[data.cases["workload"] == workload, "case"] if case in have)
