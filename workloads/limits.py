"""The largest cases that a slow variant is measured at."""

from collections.abc import Callable

from warpladder.workloads.api import Case, Params


def up_to(most: int, unit: str, count: Callable[[Case], float]) -> Callable[[Case, Params], str | None]:
    """What `Variant.skip` takes: skips larger cases, at which a call takes seconds or minutes and the ratio to other variants stays.

    Args:
        most: units of the largest case that is measured.
        unit: what the time grows with, e.g. `images`.
        count: units of a case.
    """
    reason = f"too slow for this case: its time grows with the number of {unit}, so it is measured up to {most:,} {unit}"

    def skip(case: Case, config: Params) -> str | None:
        return reason if count(case) > most else None

    return skip
