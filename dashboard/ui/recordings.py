"""Two recordings of a machine compared for a page, with the noise that its other runs measured."""

from collections.abc import Sequence
from dataclasses import replace

from warpladder.dashboard.compare import changes
from warpladder.dashboard.compare.between_runs import runs_of, same_machine
from warpladder.dashboard.compare.changes import Comparison, History
from warpladder.dashboard.compare.levels import Medians, medians
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui import runs
from warpladder.data import store


def names(run: store.Run) -> tuple[str, ...]:
    """The names of the listed runs of the machine of a run. An answer that depends on them takes them as an argument."""
    every = runs.listing(runs.data_dirs()).runs
    return tuple(name for name, each in every.items() if same_machine(each.info, run.info))


def _history(names_of_runs: Sequence[str], data: RunData) -> History:
    """The medians of a workload in these runs, the oldest first. Runs that cannot be read are left out."""
    every = runs.listing(runs.data_dirs()).runs
    runs_with_name = [every[name] for name in names_of_runs if name in every]

    def of(workload: str) -> list[Medians]:
        medians_of_runs = runs.glance(runs_of(runs_with_name, data.info, workload), medians, workload)
        return [each for each in medians_of_runs if isinstance(each, Medians)]

    return of


def compared(
    data: RunData, other: RunData, of_a: str, of_b: str, options: changes.Options, names: tuple[str, ...]
) -> Comparison | str:
    """The comparison of a run with another one, or the reason that they cannot be compared.

    Args:
        of_a, of_b: a variant of the other run and one of the run; empty for every variant with the one of its name.
        names: see `names`.
    """
    try:
        found = changes.compare(changes.Side(other, of_a), changes.Side(data, of_b), options, _history(names, data))
    except changes.NotComparable as error:
        return str(error)
    # A run of other workloads has lost none; `compare` on the command line, a gate, fails on them.
    lost = [each if each.workload in data.workloads else replace(each, fails=False) for each in found.lost]
    return replace(found, lost=tuple(sorted(lost, key=lambda each: not each.fails)))
