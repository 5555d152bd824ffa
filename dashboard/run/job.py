"""A job of many ranks, for notebooks, scripts and interactive Python; and the runs and jobs of folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pandas as pd

from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.run.run import Run
from warpladder.dashboard.run.table import RunError
from warpladder.data import store

_BREAKDOWN: Final = (
    *("rank", "span_ns", "busy_ns", "compute_ns", "communication_ns", "exposed_ns", "memory_ns", "graph_ns"),
    *("host_wait_ns", "kernel_wait_ns", "other_idle_ns"),
)
_STRAGGLERS: Final = ("rank", "wait_ns", "wait_uncertainty_ns", "last", "collectives", "late", "cause")


class Job(Run):
    """Look into a job of many ranks. The frames of the job are small; those of a rank are read when they are asked for."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks whose profiles were imported."""
        found = self._run.table("ranks", ["rank", "status"])
        return tuple(found["rank"][found["status"] == "ok"].tolist())

    def rank(self, rank: int) -> Run:
        """Open the run of a rank, with times of its own clock.

        Raises:
            StoreError: the job has no profile of the rank.
        """
        return Run(store.open_rank(self._run, rank))

    def breakdown(self, by: str = "rank") -> pd.DataFrame:
        """Give the time of the devices by class.

        Args:
            by: `rank`, `device` for a row for each rank and GPU, or `iteration` for one for each rank and iteration.

        Returns:
            The span, and within it busy time, compute, communication, exposed communication, memory and idle times by cause, in ns;
            see the tables `ranks`, `rank_devices` and `iterations`.
        """
        if by == "iteration":
            return self._run.table("iterations", ["rank", "iteration", *_BREAKDOWN[1:], "wait_ns"])
        if by == "device":
            return self._run.table("rank_devices", ["rank", "device", *_BREAKDOWN[1:]])
        found = self._run.table("ranks", [*_BREAKDOWN, "status"])
        return found[found["status"] == "ok"].drop(columns="status").reset_index(drop=True)

    def stragglers(self) -> pd.DataFrame:
        """Find the late ranks: ranks by the time that they wait in collectives, the ones that others wait for first.

        Returns:
            Wait and its standard deviation in ns, how often the rank came last, the number of matched collectives, whether the others
            wait for it (`late`), and why. Without aligned clocks all but the rank is null.
        """
        found = self._run.table("ranks", [*_STRAGGLERS, "status"])
        return found[found["status"] == "ok"].drop(columns="status").sort_values("wait_ns", ignore_index=True)

    def collectives(self) -> pd.DataFrame:
        """Give every collective of every rank, with the columns of table `collectives`."""
        return self._run.table("collectives")

    def kernels(self, ranks: Sequence[int] | None = None) -> pd.DataFrame:
        """Give the kernel executions, with the columns of table `kernels` and `rank`; times are on the job's clock.

        Args:
            ranks: None for all, which may be millions of rows; see `each_rank`.
        """
        return self._of_ranks("kernels", ranks)

    def operations(self, ranks: Sequence[int] | None = None) -> pd.DataFrame:
        """Give the operators of PyTorch, with the columns of table `operations` and `rank`; as `kernels`."""
        return self._of_ranks("operations", ranks)

    def critical_path(self, iteration: int | None = None, by: str = "segment") -> pd.DataFrame:
        """Find the chain of activities that an iteration waits for. It covers the iteration without gap or overlap.

        Args:
            iteration: its number; None for the one with the median duration, or for the whole of profiles without iterations.
            by: `segment`, or `kernel` for a row for each kernel, copy and set on the path.

        Returns:
            `rank`, `kind`, `name`, `start_ns`, `end_ns` on the job's clock, and `overlap_ns`, how long it ran before while the work that it
            waited for still ran, and `inferred`: the profile does not name it as what the next segment waited for. By kernel: `name`, `kind`,
            `time_ns` and `percent` of the iteration, `executions` and `ranks` on the path, `inferred` of the executions, `tenth_ns`, a tenth of the time and of the overlap, and `gain_ns`, how much shorter the iteration is if the kernel takes 10 % less time on all ranks. It is an upper bound where not all ranks can be replayed, and null where the
            path runs through too many.

        Raises:
            RunError: no rank has device work in such an iteration.
            StoreError: the profile of a rank on the path cannot be read.
        """
        job = self._data.job
        there = paths.iterations(job)
        if there.empty:
            raise RunError("no rank of this job has device work")
        numbers = [] if there["iteration"].isna().any() else there["iteration"].tolist()
        if iteration is not None and iteration not in numbers:
            raise RunError(
                f"iteration {iteration} has no device work; {f'there are {numbers[0]} to {numbers[-1]}' if numbers else 'there are none'}"
            )
        found = paths.critical_path(job, paths.typical(there) if iteration is None else iteration)
        return found.kernels if by == "kernel" else found.segments

    def _of_ranks(self, table: str, ranks: Sequence[int] | None) -> pd.DataFrame:
        frame = store.ranks_of(self._run, self.ranks if ranks is None else ranks).table(table)
        return frame.rename(columns={"process": "rank"})


def open_run(run: str | Path, *folders: Path) -> Run:
    """Open a run. A job of many ranks is a `Job`.

    Args:
        run: its id, label or folder; of several with one label, the newest.
        folders: further folders to look in, before the runs of this machine and those that ship.

    Raises:
        StoreError: there is no such run, or it is damaged.
    """
    return _opened(store.find_run(str(run), [*folders, store.LOCAL, store.RECORDED]))


def runs(*folders: Path) -> tuple[Sequence[Run], Sequence[str]]:
    """The runs of folders, newest first; and a line for each that cannot be opened."""
    good, bad = store.list_runs(folders or (store.LOCAL, store.RECORDED))
    return [_opened(each) for each in good], [f"{each.name}: {each.reason}" for each in bad]


def _opened(run: store.Run) -> Run:
    return Job(run) if run.info["kind"] == "job" else Run(run)
