"""What the listed runs of a machine measured, from which the noise between two of its runs is taken."""

from collections.abc import Sequence

from warpladder.dashboard.core.changes import History
from warpladder.dashboard.core.history import Medians, medians
from warpladder.dashboard.core.machine import runs_of, same_machine
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui import runs
from warpladder.data import store


def names(run: store.Run) -> tuple[str, ...]:
    """The names of the listed runs of the machine of a run. An answer that depends on them takes them as an argument."""
    every = runs.listing(runs.data_dirs()).runs
    return tuple(name for name, each in every.items() if same_machine(each.info, run.info))


def history(names_of_runs: Sequence[str], data: RunData) -> History:
    """What these runs measured of a workload, the oldest first. Runs that cannot be read are left out."""
    every = runs.listing(runs.data_dirs()).runs
    known = [every[name] for name in names_of_runs if name in every]

    def of(workload: str) -> list[Medians]:
        found = runs.glance(runs_of(known, data.info, workload), medians, workload)
        return [each for each in found if isinstance(each, Medians)]

    return of
