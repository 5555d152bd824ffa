"""What other runs of a machine measured, from which the noise between its runs is taken."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpladder.dashboard.core.between_runs import MOST_RUNS
from warpladder.dashboard.core.history import Medians, medians
from warpladder.data import store


def same_machine(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two runs are of one device and by one collector, by their rows of table `run`."""
    return bool((a["device_name"] or a["cpu_name"]) == (b["device_name"] or b["cpu_name"]) and a["collector"] == b["collector"])


def runs_of(every: Sequence[store.Run], info: Mapping[str, Any], workload: str) -> list[store.Run]:
    """The newest runs with samples of a workload on the machine of a run, the oldest first. Of copies of a run one counts."""
    found: dict[str, store.Run] = {}
    for run in sorted(every, key=lambda run: (run.info["started_at"], run.run_id), reverse=True):
        if len(found) == MOST_RUNS:
            break
        try:
            if run.run_id not in found and same_machine(run.info, info) and "samples" in run.tables and workload in run.timed:
                found[run.run_id] = run
        except store.StoreError:
            continue
    return list(found.values())[::-1]


class Recordings:
    """The other runs in some folders, read once and only where they are asked for.

    Args:
        folders: of runs.
        info: the row of table `run` of a run of the machine.
    """

    def __init__(self, folders: Sequence[Path], info: Mapping[str, Any]) -> None:
        self._folders, self._info = folders, info
        self._known: dict[str, list[Medians]] = {}

    def __call__(self, workload: str) -> list[Medians]:
        """What the runs measured of a workload, the oldest first. Runs that cannot be read are left out."""
        if workload not in self._known:
            every, _ = store.list_runs(self._folders)
            self._known[workload] = [
                found for run in runs_of(every, self._info, workload) if (found := _read(run, workload)) is not None
            ]
        return self._known[workload]


def _read(run: store.Run, workload: str) -> Medians | None:
    try:
        return medians(run, workload)
    except store.StoreError:
        return None
