"""The gain of a step of a program if each operation of its trace takes the time of its best verified variant, and beside it the profile of the
program in which operations were replaced.

A form is sped up by the ratio of its baseline to its best variant in the recording, with the cache whose baseline is nearest to the trace.
Each of its kernels takes that part of its time less. `program.DeviceTimeline` tells what of this the step gains.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Final

import pandas as pd

from warpladder.dashboard.compare.within_run import with_speedups
from warpladder.dashboard.core.cell import Estimate, Timing
from warpladder.dashboard.core.cells import cells
from warpladder.dashboard.core.numbers import format_duration, significant
from warpladder.dashboard.core.operations.baseline_check import AXIS, BASELINE
from warpladder.dashboard.core.operations.hot_operations import Form, HotOperations, Operation, short_name
from warpladder.dashboard.core.operations.program import Program
from warpladder.dashboard.core.run_data import RunData


@dataclass(frozen=True)
class Faster:
    """A form with a faster variant.

    Attributes:
        variant: the best verified one.
        ratio: the time of the baseline over its own, with the interval over cold and hot caches.
    """

    form: Form
    variant: str
    ratio: Estimate

    @property
    def saved_ns(self) -> Estimate:
        """Device time that all calls in all steps take less."""
        return self.ratio.map(lambda ratio: self.form.device_ns * _saved_part(ratio))


@dataclass(frozen=True)
class Gain:
    """An operation with a faster variant.

    Attributes:
        forms: those that have a faster variant.
        saved_ns: device time that all its calls in a step take less.
        gained_ns: what a step gains if only this operation is replaced.
    """

    operation: Operation
    forms: tuple[Faster, ...]
    saved_ns: Estimate
    gained_ns: Estimate

    @property
    def parts(self) -> dict[int, float]:
        """Number of each form -> the part of its time that is saved."""
        return {each.form.number: _saved_part(each.ratio.value) for each in self.forms}

    @property
    def hidden_ns(self) -> float:
        """The time that is saved and not gained: other streams or the host are waited for. Sums of floats that differ by less than 1 ps are equal."""
        return round(self.saved_ns.value - self.gained_ns.value, 3)


@dataclass(frozen=True)
class Forecast:
    """A step as it is, and as it would be.

    Attributes:
        steps_ns: of the program, with its host: the step, the shortest and the longest.
        gains: by falling gain; operations without a faster variant are left out.
        gained_ns: what a step gains if all of them are replaced.
        bound_ns: what it would gain if every operation that can be called again took the time of its floor, or of its best variant where
            that is less; NaN where no floor is known.
    """

    steps_ns: Estimate
    gains: tuple[Gain, ...]
    gained_ns: Estimate
    bound_ns: float

    @property
    def step_ns(self) -> float:
        return self.steps_ns.value

    @property
    def after_ns(self) -> Estimate:
        """The step if all of them are replaced. Its interval has the ends of the ratios and, of three steps or more, those of the step."""
        gained = self.gained_ns
        low, high = (self.step_ns if isnan(end) else end for end in (self.steps_ns.low, self.steps_ns.high))
        return Estimate(self.step_ns - gained.value, low - gained.high, high - gained.low)


def forecast(program: Program, data: RunData | None, replaced: Collection[int] | None = None) -> Forecast:
    """The forecast of a program.

    Args:
        data: a recording of the file that `warpladder extract` wrote; None without one, for the bound alone.
        replaced: numbers of the forms that are replaced; None for all.
    """
    faster = _faster(program, data) if data else {}
    chosen = {number: best for number, best in faster.items() if replaced is None or number in replaced}
    of_operations = [
        (operation, forms)
        for operation in program.hot.operations
        if (forms := tuple(chosen[form.number] for form in operation.forms if form.number in chosen))
    ]
    at_floor = floors(program, chosen.values())
    wanted = [saved for forms in (*(forms for _, forms in of_operations), chosen.values()) for saved in _saved(forms)]
    *gained, bound = program.gains_ns([*wanted, at_floor])
    *of_each, of_all = (Estimate(*gained[place : place + 3]) for place in range(0, len(gained), 3))
    gains = [Gain(*each, _saved_a_step(program, each[1]), gain) for each, gain in zip(of_operations, of_each, strict=True)]
    gains.sort(key=lambda gain: -gain.gained_ns.value)
    return Forecast(program.steps_ns, tuple(gains), of_all, bound if at_floor else nan)


def _saved(forms: Collection[Faster]) -> list[dict[int, float]]:
    """Number of each form -> the part of its time that is saved, and that with the low and the high end of its ratio."""
    return [{each.form.number: _saved_part(getattr(each.ratio, end)) for each in forms} for end in ("value", "low", "high")]


def _saved_a_step(program: Program, forms: Collection[Faster]) -> Estimate:
    """Device time that all calls of some forms take less in a step."""
    ends = zip(*((each.saved_ns.value, each.saved_ns.low, each.saved_ns.high) for each in forms), strict=True)
    return Estimate(*(sum(end) / program.hot.steps for end in ends))


@dataclass(frozen=True)
class Hosts:
    """A step by what is assumed of its host.

    Attributes:
        profiled: the host as the profile has it, with what the profiler took.
        hidden: a host that takes no time, as with CUDA graphs.
        own: the host of the program, where the time of its step without the profiler is known; None where it is not.
        cost_ns: what the profiler took for a call, if `own` is known.
    """

    profiled: Program
    hidden: Program
    own: Program | None = None
    cost_ns: float = nan

    @classmethod
    def of(cls, program: Program, step_ns: float | None = None) -> "Hosts":
        """The hosts of a program.

        Args:
            step_ns: the time of a step without the profiler, if it is known.
        """
        own, cost = program.without_profiler(step_ns) if step_ns is not None else (None, nan)
        return cls(program, program.with_hidden_host(), own, cost)

    @property
    def known(self) -> Program:
        """The program whose step is nearest to what the user has."""
        return self.own or self.profiled

    @property
    def waiting_ns(self) -> float:
        """The part of a step in which the device waits for the host."""
        return max(self.known.step_ns - self.hidden.step_ns, 0.0)

    @property
    def share(self) -> float:
        """The same as a part of the step, from 0 to 1."""
        return self.waiting_ns / self.known.step_ns if self.known.step_ns else 0.0


def floors(program: Program, faster: Collection[Faster]) -> dict[int, float]:
    """Number of each form that can be called again -> the part of its time above its floor, or above its best variant where that is faster.

    Empty where no floor is known.
    """
    above = {
        form.number: 1 - min(form.floor_ns / form.median_ns, 1.0)
        for operation in program.hot.operations
        for form in operation.forms
        if not operation.reason and form.median_ns and not isnan(form.floor_ns)
    }
    best = {each.form.number: _saved_part(each.ratio.value) for each in faster} if above else {}
    return {number: max(above.get(number, 0.0), best.get(number, 0.0)) for number in {**above, **best}}


def _saved_part(ratio: float) -> float:
    """The part of a time that is saved by a variant that is so many times as fast."""
    return 1 - 1 / ratio


def _faster(program: Program, data: RunData) -> dict[int, Faster]:
    """For each form the best verified variant that is faster than the baseline."""
    frame = cells(data)
    frame = frame[frame["scope"] == "device"]
    found: dict[int, Faster] = {}
    for operation in program.hot.operations:
        of_operation = frame[frame["workload"] == operation.workload]
        by_cache = {
            str(cache): with_speedups(data, operation.workload, Timing("device", str(cache)), rows)
            for cache, rows in of_operation.groupby("cache")
        }
        for form in operation.forms:
            cases = {cache: rows[rows["case"] == f"{AXIS}={form.name}"] for cache, rows in by_cache.items()}
            if best := _best(form, cases):
                found[form.number] = best
    return found


def _best(form: Form, cases: Mapping[str, pd.DataFrame]) -> Faster | None:
    """The best variant of a case with the cache whose baseline is nearest to the trace.

    The interval of its ratio reaches over all caches, for the L2 of a program is neither flushed nor the recording's.
    """
    baselines = {
        cache: float(rows[rows["variant"] == BASELINE]["median_ns"].iloc[0])
        for cache, rows in cases.items()
        if (rows["variant"] == BASELINE).any()
    }
    if not baselines:
        return None
    rows = cases[min(baselines, key=lambda cache: abs(baselines[cache] - form.median_ns))]
    rows = rows[rows["verdict"] == "faster"]
    if rows.empty:
        return None
    best = rows.sort_values("speedup").iloc[-1]
    every = pd.concat([rows[rows["variant"] == best["variant"]] for rows in cases.values()])
    ratio = Estimate(best["speedup"], every["speedup_low"].min(), every["speedup_high"].max())
    return Faster(form, str(best["variant"]), ratio)


# -- in words -----------------------------------------------------------------------------------------------------------------

#: Below this part of a step nothing is said of the host; above the other, it comes first.
_LEAST_HOST: Final = 0.02
_MUCH_OF_THE_HOST: Final = 1 / 3


def times_faster(ratios: Sequence[float]) -> str:
    """`1.96`, or `1.20 to 1.96` for several forms."""
    low, high = significant(min(ratios)), significant(max(ratios))
    return low if low == high else f"{low} to {high}"


def about_steps(hosts: Hosts, command: str = "") -> Iterator[str]:
    """How long a step takes with and without the profiler, and with the host hidden.

    Args:
        command: takes the time of a step without the profiler; empty where it is the reader's own command.
    """
    profiled, hidden = hosts.profiled.step_ns, hosts.hidden.step_ns
    yield f"a step takes {format_duration(profiled)} in the profile, and {format_duration(hidden)} with the host hidden"
    if hosts.own is None:
        if hosts.share > _LEAST_HOST:
            given = f"--step-time to {command}" if command else "--step-time"
            yield f"the profile lengthens the host's part: give {given}, the time of a step without the profiler"
        return
    own = f"without the profiler it takes {format_duration(hosts.own.step_ns)}: "
    if hosts.own.pace < 1:
        yield f"{own}{100 * (1 - hosts.own.pace):.1f} % less than with the host hidden, since the device is slower in the profile"
        return
    calls = significant(hosts.profiled.calls_a_step)
    yield f"{own}the profiler takes {format_duration(hosts.cost_ns)} for each of {calls} calls"


def advice(hosts: Hosts) -> Iterator[str]:
    """What comes before any kernel where the host is much of a step."""
    if hosts.share <= _MUCH_OF_THE_HOST:
        return
    launches = significant(hosts.known.launches_a_step)
    yield (
        f"first: the device waits for the host in {100 * hosts.share:.0f} % of a step{'' if hosts.own else ' of the profile'}; a CUDA graph, "
        f"or fewer launches than {launches} a step, gain up to {format_duration(hosts.waiting_ns)}"
    )


def in_vain(expected: Forecast) -> str:
    """A sentence about operations of which more than half is saved in vain; empty without any."""
    names = [short_name(gain.operation.name) for gain in expected.gains if gain.hidden_ns > gain.saved_ns.value / 2]
    if not names:
        return ""
    return f"More than half is hidden of {', '.join(names)}: the step waits for another stream or for the host."


#: An operation was replaced if it has at most this part of its calls left.
_LEFT: Final = 0.5
#: Operators whose device time changes by less than this part of the step are not listed.
_LEAST_PART: Final = 0.002


@dataclass(frozen=True)
class Change:
    """Device time of an operator in a step.

    Attributes:
        name: of the operator, or the reason why work belongs to none.
        before_ns, after_ns: measured.
        forecast_ns: before, less what its variants save; `before_ns` for an operator that was not replaced.
    """

    name: str
    before_ns: float
    forecast_ns: float
    after_ns: float

    @property
    def missed_ns(self) -> float:
        """Measured less forecast."""
        return self.after_ns - self.forecast_ns


@dataclass(frozen=True)
class ForecastCheck:
    """Forecast and measured step.

    Attributes:
        forecast: of the operations that were replaced.
        before_ns, after_ns: the step in both profiles, with the least and the largest of its steps as ends.
        forecast_ns: `Forecast.after_ns` of the replaced operations. Its ends also have `drift`.
        drift: device time a step of the operators that were not replaced, after over before: what two profiles of the same work differ by.
        changes: operators by falling change of device time.
    """

    forecast: Forecast
    before_ns: Estimate
    after_ns: Estimate
    forecast_ns: Estimate
    drift: float
    changes: tuple[Change, ...]

    @property
    def missed_percent(self) -> float:
        """Measured step over the forecast one, less 100 %."""
        return 100 * (self.after_ns.value / self.forecast_ns.value - 1)


def check_forecast(before: Program, after: Program, data: RunData) -> ForecastCheck:
    """Compare the forecast of the operations that were replaced with the profile in which they are.

    Args:
        before, after: the programs of both profiles.
        data: the recording of the operations' variants.
    """
    found = forecast(before, data, replaced_forms(before.hot, after.hot))
    expected, earlier, later = found.after_ns, _by_name(before.hot), _by_name(after.hot)
    kept = sorted((earlier.keys() & later.keys()) - {gain.operation.name for gain in found.gains})
    drift = sum(later[name] for name in kept) / sum(earlier[name] for name in kept) if any(map(earlier.get, kept)) else 1.0
    return ForecastCheck(
        found,
        before.steps_ns,
        after.steps_ns,
        Estimate(expected.value, expected.low * min(drift, 1.0), expected.high * max(drift, 1.0)),
        drift,
        _changes(earlier, later, found.gains, before.step_ns),
    )


def replaced_forms(hot: HotOperations, hot_after: HotOperations) -> Collection[int]:
    """Numbers of the forms of which the later profile has at most half of the calls a step."""
    left: dict[tuple[str, str], float] = {}
    for operation in hot_after.operations:
        for form in operation.forms:
            key = operation.name, repr(form.arguments)
            left[key] = left.get(key, 0.0) + form.calls / hot_after.steps
    return {
        form.number
        for operation in hot.operations
        for form in operation.forms
        if form.number >= 0 and left.get((operation.name, repr(form.arguments)), 0.0) <= _LEFT * form.calls / hot.steps
    }


def _changes(
    before: Mapping[str, float], after: Mapping[str, float], gains: tuple[Gain, ...], step: float
) -> tuple[Change, ...]:
    saved: dict[str, float] = {}
    for gain in gains:
        saved[gain.operation.name] = saved.get(gain.operation.name, 0.0) + gain.saved_ns.value
    changes = [
        Change(name, before.get(name, 0.0), before.get(name, 0.0) - saved.get(name, 0.0), after.get(name, 0.0))
        for name in dict.fromkeys((*before, *after))
    ]
    listed = [each for each in changes if abs(each.after_ns - each.before_ns) >= _LEAST_PART * step]
    return tuple(sorted(listed, key=lambda each: -abs(each.after_ns - each.before_ns)))


def _by_name(hot: HotOperations) -> dict[str, float]:
    """Device time of each operator in a step, ns."""
    found: dict[str, float] = {}
    for operation in hot.operations:
        found[operation.name] = found.get(operation.name, 0.0) + operation.device_ns / hot.steps
    return found
