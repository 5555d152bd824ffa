"""A recorded or imported run, for notebooks, scripts and interactive Python."""

import html
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from warpladder.dashboard.compare.changes import Match, Options
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.run import table as tables
from warpladder.dashboard.run.table import chosen, html_table
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
            any_device: compare although the GPUs differ.
            partial: B recorded a part of A: a cell without a result is not lost.

        Raises:
            RunError: no cell is in both runs, or they are of different GPUs.
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
