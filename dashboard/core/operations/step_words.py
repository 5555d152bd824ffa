"""Sentences about a step of a program and its forecast."""

from collections.abc import Iterator, Sequence
from typing import Final

from warpladder.dashboard.core.numbers import format_duration, significant
from warpladder.dashboard.core.operations.forecast import Forecast, Hosts
from warpladder.dashboard.core.operations.hot_operations import short_name

#: Below this part of a step nothing is said of the host; above the other, it comes first.
_LEAST_HOST: Final = 0.02
_MUCH_OF_THE_HOST: Final = 1 / 3


def times_faster(ratios: Sequence[float]) -> str:
    """`1.96`, or `1.20 to 1.96` for several forms."""
    low, high = significant(min(ratios)), significant(max(ratios))
    return low if low == high else f"{low} to {high}"


def about_steps(hosts: Hosts) -> Iterator[str]:
    """How long a step takes with and without the profiler, and with the host hidden."""
    profiled, hidden = hosts.profiled.step_ns, hosts.hidden.step_ns
    yield f"a step takes {format_duration(profiled)} in the profile, and {format_duration(hidden)} with the host hidden"
    if hosts.own is None:
        if hosts.share > _LEAST_HOST:
            yield "the profile lengthens the host's part: give --step-time, the time of a step without the profiler"
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
