"""The tables of a job of many ranks, read by column when a page first needs them."""

from collections.abc import Sequence
from typing import Final

import pandas as pd
import pyarrow as pa

from warpladder.data import store


class Job:
    """The tables `ranks`, `iterations`, `rank_kernels`, `idle` and `collectives` of a run of kind `job`."""

    def __init__(self, run: store.Run | None) -> None:
        self._run = run

    def __bool__(self) -> bool:
        """Whether the run is a job."""
        return self._run is not None and "ranks" in self._run.tables

    def frame(self, table: str, *columns: str) -> pd.DataFrame:
        """Columns of a table; without rows where the job lacks the table.

        Raises:
            StoreError: the file is damaged, or its columns do not match the schema.
        """
        return self._opened.table(table, list(columns))

    def arrow(self, table: str, columns: Sequence[str]) -> pa.Table:
        """The same for a table of hundreds of thousands of rows, without the copies that a data frame makes."""
        return self._opened.arrow(table, columns)

    def open_rank(self, rank: int) -> store.Run:
        """The run of a rank, with times of its own clock.

        Raises:
            StoreError: the job has no profile of the rank, or it cannot be read.
        """
        return store.open_rank(self._opened, rank)

    def clocks(self) -> dict[int, store.Clock | None]:
        """The clock of each rank, by its number; None where it is not known."""
        rows = self.frame("ranks", "rank", "offset_ns", "offset_at_ns", "drift_ppm").sort_values("rank")
        rows = rows.astype(object).where(rows.notna(), None)
        return {int(row["rank"]): store.clock_of({str(name): row[name] for name in row}) for row in rows.to_dict("records")}

    @property
    def _opened(self) -> store.Run:
        if self._run is None:
            raise ValueError("no run to read a job of")
        return self._run


NO_JOB: Final = Job(None)
