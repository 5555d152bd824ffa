"""A recorded or imported run, for notebooks, scripts and interactive Python."""

import html
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from warpladder.dashboard.compare.changes import Match, Options
from warpladder.dashboard.core import critical_path as paths
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData, RunError, chosen
from warpladder.dashboard.run import table as tables
from warpladder.dashboard.run.table import html_table
from warpladder.dashboard.text import summary
from warpladder.data import store
from warpladder.installation import ROOT

if TYPE_CHECKING:
    from warpladder.dashboard.run.comparison import RunComparison
    from warpladder.dashboard.run.plot import Plot


class Run:
    """Look into a run: tables as pandas frames, times in nanoseconds; charts as Plotly figures, methods of `plot`.

    Methods that take `workload` need it only where the run has several. A request that the run cannot meet raises RunError, whose
    message names what the run has. A damaged run raises StoreError.
    """

    def __init__(self, run: store.Run) -> None:
        self._run = run

    @property
    def id(self) -> str:
        return self._run.run_id

    @property
    def label(self) -> str:
        """The name that the user gave the run; may be empty."""
        return str(self._run.info["label"] or "")

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._run.path

    @property
    def info(self) -> Mapping[str, Any]:
        """The row of table `run`: device, versions, command, time of start."""
        return self._run.info

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workloads in the order in which they were recorded."""
        return self._data.workloads

    @cached_property
    def _data(self) -> RunData:
        return run_data.load(self._run)

    # -- frames ----------------------------------------------------------------------------------------------------

    def table(self, workload: str | None = None, *, scope: str | None = None, cache: str | None = None) -> tables.Table:
        """Give every cell, one row for each timing, times in nanoseconds; a cell that failed or was skipped has a row with its reason.

        Args:
            workload: None for all.
            scope: `device`, `operation`, `end_to_end`, a phase, or `all`; None for the first timing of each workload.
            cache: `cold` or `hot`; None for both.

        Returns:
            A frame that is shown in words. Its columns are the axes, and `workload`, `case`, `variant`, `config`, `gpus`,
            `scope`, `cache`, `samples`, `median_ns`, `speedup` (over the baseline) and `percent_of_floor` with the ends of
            their 95 % intervals, `verdict` (`faster`, `slower`, `tied`, or `unknown` below six samples and where one side is
            distrusted), `baseline`, `baseline_config`, `floor_ns`, `floor_bound`, `floor_ceiling`, `gb_per_s`, `gflop_per_s`,
            `role`, `kind`, `precision`, `rel_l2_error`, `status`, `detail` and `flags`. Where a cell has no figure, it is NaN.

        Raises:
            RunError: there is no such workload, or nothing was timed so.
        """
        workloads = self.workloads if workload is None else (self._workload(workload),)
        return tables.table(self._data, workloads, scope, cache)

    def answer(self) -> pd.DataFrame:
        """Give the winners, one row for each workload and precision: the best variant against baseline, floor and best peer.

        Returns:
            The columns of `warpladder summary --format csv`.
        """
        return summary.figures(self._data, ROOT)

    def samples(self, workload: str | None = None) -> pd.DataFrame:
        """Give every sample, with the columns of table `samples`; `duration_ns` is in nanoseconds."""
        frame = self._run.table("samples")
        if workload is None:
            return frame
        return frame[frame["workload"] == self._workload(workload)].reset_index(drop=True)

    def kernels(self) -> pd.DataFrame:
        """Give the kernel executions of a trace, with the columns of table `kernels`."""
        return self._run.table("kernels")

    def operations(self) -> pd.DataFrame:
        """Give the operators of PyTorch of a trace, with the columns of table `operations`."""
        return self._run.table("operations")

    # -- figures ---------------------------------------------------------------------------------------------------

    @property
    def plot(self) -> "Plot":
        """The charts of the run, such as `run.plot.ladder()`."""
        from warpladder.dashboard.run.plot import Plot

        return Plot(self._data, self._name)

    def compare(
        self,
        after: "Run | str | Path",
        /,
        *,
        scope: str = "",
        match: Match = "config",
        smallest: float = 0.01,
        absolute: bool = False,
        any_device: bool = False,
        partial: bool = False,
    ) -> "RunComparison":
        """Compare another run (B) with this one (A), cell by cell: what became slower or faster in B.

        The order is the same as in `warpladder compare A B`.

        Args:
            after: a run, or its id, label or folder.
            scope: one scope, or `all`; empty for the first timing that both have.
            match: `config` for equal configs, `best` for the fastest config of each run.
            smallest: smaller differences, as a fraction, are `tied`.
            absolute: judge the times as they are, not relative to the unchanged variants of their case.
            any_device: compare although the GPUs differ, or without a GPU the processors.
            partial: B recorded a part of A: a cell without a result is not lost.

        Raises:
            RunError: no cell is in both runs, or they are of different devices.
            StoreError: there is no such run.
        """
        from warpladder.dashboard.compare.between_runs import Recordings
        from warpladder.dashboard.run.comparison import RunComparison

        other = (
            after
            if isinstance(after, Run)
            else Run(store.find_run(str(after), [self.path.parent, store.LOCAL, store.RECORDED]))
        )
        options = Options(scope, match, smallest, absolute, any_device, partial)
        folders = dict.fromkeys((other.path.parent, self.path.parent, store.LOCAL, store.RECORDED))
        history = Recordings(list(folders), other._data.info)
        return RunComparison.of((self._run.title, self._data), (other._run.title, other._data), options, history)

    # -- words -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self._run.title}>"

    def __str__(self) -> str:
        """The answer as a table, then the verdicts, as `warpladder record` prints them."""
        rows = self.answer()
        return "\n".join(
            [self._run.title, *filter(None, [summary.render(rows, "table").rstrip()]), *summary.findings(self._run)]
        )

    def _repr_html_(self) -> str:
        headings, rows = summary.with_figures(summary.HEADINGS, summary.texts(self.answer()))
        table = html_table(headings, rows) if rows else ""
        lines = "<br>".join(map(html.escape, summary.findings(self._run)))
        return f"<b>{html.escape(self._run.title)}</b><br><code>{html.escape(self.id)}</code>{table}<div>{lines}</div>"

    # -- what was asked for ----------------------------------------------------------------------------------------

    def _workload(self, workload: str | None) -> str:
        return chosen(workload, self.workloads, self._name, "workload")

    @property
    def _name(self) -> str:
        return f"run {self.label or self.id}"


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
