"""The medians of a workload in one run. Only the needed rows and columns are read, since there may be hundreds of runs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpladder.dashboard.core import clock
from warpladder.dashboard.core.intervals import grouped_median_intervals
from warpladder.dashboard.core.levels import Levels, levels
from warpladder.dashboard.core.timing import Timing
from warpladder.data import store
from warpladder.data.names import NOT_DONE

_KEY: Final = ("case", "scope", "cache", "variant", "config")
_NUMBERS: Final = ("gpus", "rank", "twin", "process", "duration_ns")


class TimedCell(NamedTuple):
    """A cell and how it was timed; see `cells.cells`."""

    case: str
    scope: str
    cache: str
    variant: str
    config: str
    gpus: int

    @property
    def timing(self) -> Timing:
        return Timing(self.scope, self.cache)


def alike(cell: TimedCell) -> tuple[Timing, int]:
    """What cells have in common that are timed alike: the timing and the number of GPUs, at least one."""
    return cell.timing, max(cell.gpus, 1)


@dataclass(frozen=True, eq=False)
class Medians:
    """What a run measured of one workload.

    Attributes:
        run_id: of the run.
        cells: those that ended well and have samples. Samples that several ranks took together are left out.
        levels: of the cells.
        figures: median, and ends of its interval with the error of the clock, in nanoseconds; shape (cells, 3).
        sources: variant -> hash of its source, as it was measured; empty where none was recorded.
        cases: case -> size_rank, and the JSON of its parameters, of the cases on the size axis.
        clock_mhz: median SM clock of the samples; NaN where it is not known.
        failed: (case, variant, config) -> status of the cells that ended badly, but for skipped ones; `distrusted` for those of `cells`
            whose work was not done.
    """

    run_id: str
    cells: tuple[TimedCell, ...]
    levels: Levels
    figures: npt.NDArray[np.float64]
    sources: Mapping[str, str]
    cases: Mapping[str, tuple[int, str]]
    clock_mhz: float
    failed: Mapping[tuple[str, str, str], str] = field(default_factory=dict)


def medians(run: store.Run, workload: str) -> Medians:
    """The medians of a workload. The run is not checked as `store.open_run` does.

    Raises:
        StoreError: a file is damaged or is not of this schema.
    """
    of = {"workload": workload}
    samples = run.arrow("samples", [*_KEY, *_NUMBERS, "sm_clock_mhz"], of)
    if any(samples.column(name).null_count for name in (*_KEY, *_NUMBERS)):
        raise store.StoreError(f"{run.path}: table samples has nulls where none may be; record or import the run again")
    cells, of_cells, figures = _medians(samples)
    verdicts = _rows(run.arrow("results", ["case", "variant", "config", "status"], of))
    found = {(case, variant, config): status for case, variant, config, status in verdicts}
    bad = {cell: status for cell, status in found.items() if status != "ok"}
    well = [
        place for place, cell in enumerate(cells) if (cell.case, cell.variant, cell.config) not in bad and figures[place, 1] > 0
    ]
    single = np.array([clock.is_single(cell.scope, cell.cache) for cell in cells], dtype=bool)
    error_ns = clock.error_ns(run.info["collector"], dict(_rows(run.arrow("ceilings", ["name", "value"]))))
    figures[:, 1], figures[:, 2] = clock.widened(figures[:, 1], figures[:, 2], error_ns, single)
    cases = {case: (rank, params) for case, rank, params in _rows(run.arrow("cases", ["case", "size_rank", "params"], of))}
    clocks = samples.column("sm_clock_mhz").drop_null().to_numpy()
    return Medians(
        run.run_id,
        tuple(cells[place] for place in well),
        of_cells.of(well),
        figures[well],
        {variant: source or "" for variant, source in _rows(run.arrow("variants", ["variant", "source_sha256"], of))},
        {case: (rank, params) for case, (rank, params) in cases.items() if rank is not None and _is_object(params)},
        float(np.median(clocks)) if len(clocks) else float("nan"),
        {cell: status for cell, status in bad.items() if status != "skipped"}
        | dict.fromkeys(_not_done(run, workload, found), "distrusted"),
    )


def _not_done(run: store.Run, workload: str, known: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The cells whose work was not done; see `names.NOT_DONE`. A null in a diagnostic stands for any value."""
    columns = ["case", "variant", "config", "source", "severity"]
    found = _rows(run.arrow("diagnostics", columns, {"workload": workload}))
    about = [each for *each, source, severity in found if source in NOT_DONE and severity != "info"]
    for cell in known if about else ():
        if any(all(wanted in (None, of) for wanted, of in zip(each, cell, strict=True)) for each in about):
            yield cell


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _rows(table: pa.Table) -> "zip[tuple[Any, ...]]":
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _medians(samples: pa.Table) -> tuple[list[TimedCell], Levels, npt.NDArray[np.float64]]:
    """Cells with their levels, and the medians with their ends."""
    gpus, rank, twin = (samples.column(name).to_numpy() for name in ("gpus", "rank", "twin"))
    alone = twin == 0
    if (rank > 0).any():
        alone &= gpus <= 1
    coded = [_codes(samples.column(name)) for name in _KEY]
    number = np.zeros(int(alone.sum()), dtype=np.int64)
    for codes, texts in (
        *((codes[alone], texts) for codes, texts in coded),
        (gpus[alone], range(int(gpus.max(initial=0)) + 1)),
    ):
        number = number * len(texts) + codes
    _, first, place, n = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    durations = samples.column("duration_ns").to_numpy()[alone].astype(float)[order]
    processes = samples.column("process").to_numpy()[alone][order]
    ends = grouped_median_intervals(durations, n)
    rows = np.flatnonzero(alone)[first]
    parts = [[texts[code] for code in codes[rows]] for codes, texts in coded]
    cells = list(map(TimedCell._make, zip(*parts, gpus[rows].tolist(), strict=True)))
    return (
        cells,
        levels(durations, n, processes, [alike(cell) for cell in cells]),
        np.column_stack([ends["median"], ends["low"], ends["high"]]),
    )


def _codes(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A text column as places in a list of its texts."""
    if not pa.types.is_dictionary(column.type):  # of a table without rows
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    return joined.indices.to_numpy().astype(np.int64), joined.dictionary.to_pylist()
