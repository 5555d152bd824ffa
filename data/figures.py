"""Published figures: the figures of the student reports on which the workloads are based, as CSV with table, unit and hardware.

`published/README.md` describes the source of each student report and how it counts operations and bytes.
"""

from functools import cache
from pathlib import Path
from typing import Final

import pandas as pd

from warpladder.errors import Error

#: Workload -> the report that its figures come from, with the hardware that the report names.
CITATIONS: Final = {
    "call_routes": 'E. Sgarbanti, "Advanced Computer Architectures Report", undated, section 0.3. GeForce GTX 1070, Core i5-4690K.',
    "tensor_transpose": 'E. Sgarbanti, "Advanced Computer Architectures Report", undated. GeForce GTX 1070, Core i5-4690K.',
    "conv2d": (
        'G. Matthews and M. Klobukov, "CUDA Assignment 3: 2D Convolution", Drexel University, 2017. GPU and CPU not named.'
    ),
    "cnn_conv": (
        'J. Danner, K. Torng and Y. Deng, "ECE 408 Final Project Report", University of Illinois, undated. '
        "GPU and CPU not named."
    ),
    "gan_tconv": 'S. Yi, "SHPC 2021 Fall Term Project Report", 2021. Two nodes of four GPUs; the report does not name them.',
    "mlp_elementwise": 'M. L. Wong, "CME213 Final Project Report", undated. GPU and CPU not named.',
    "mlp_training": 'M. L. Wong, "CME213 Final Project Report", undated. GPU and CPU not named.',
}
#: The host variant that corresponds to the reports' sequential code. The reports count their speedups from that code.
SEQUENTIAL: Final = "numba_serial"
PUBLISHED: Final = Path(__file__).resolve().parent / "published"

COLUMNS: Final = (
    "report",
    "table",
    "quantity",
    "variant",
    "workload",
    "our_variant",
    "config",
    "case",
    "scope",
    "value",
    "unit",
    "hardware",
    "note",
)
#: Unit that every row of a quantity has.
UNITS: Final = {
    "time": ("ms", "s", "ns"),
    "bandwidth": ("GB/s",),
    "speedup": ("x",),
    "bank_conflicts": ("conflicts",),
    "time_change": ("s",),
    "time_change_per_thread": ("s",),
    "overhead": ("s",),
    "overhead_fraction": ("x",),
    "operations": ("FLOP",),
    "rate": ("GFLOP/s",),
    "bytes": ("KiB",),
    "gain": ("x",),
    "accuracy": ("of 1",),
}


class FiguresError(Error):
    """A file of published figures that does not fit. Its message says where, what, and what to do, in one line."""


def reports(folder: Path = PUBLISHED) -> tuple[str, ...]:
    """Names of the student reports with figures, one CSV each."""
    return tuple(sorted(file.stem for file in folder.glob("*.csv")))


@cache
def compared() -> frozenset[str]:
    """The reports with a figure that a variant of this project has too."""
    return frozenset(name for name in reports() if (read(name)["our_variant"] != "").any())


def read(report: str, folder: Path = PUBLISHED) -> pd.DataFrame:
    """The figures of one student report, a row for each printed number. Raises FiguresError: there is no such student
    report, or a column, value or unit that does not fit.

    Returns:
        Columns `COLUMNS`, all text but `value` (float64 in `unit`; NaN where the student report gives a reason in `note`
        instead). `our_variant`, `config` and `case` name the cell of this project that corresponds to the figure; `our_variant`
        is empty if there is none. `scope` is a scope of this project too: the one that covers the same time as the student
        report's clock.
    """
    file = folder / f"{report}.csv"
    if not file.is_file():
        raise FiguresError(f"{file}: no such report; known: {', '.join(reports(folder)) or 'none'}")
    rows = pd.read_csv(file, dtype=str, keep_default_na=False)
    if tuple(rows.columns) != COLUMNS:
        raise FiguresError(f"{file}: columns are {list(rows.columns)}, not {list(COLUMNS)}; mend its first line")
    for line, row in enumerate(rows.to_dict("records"), start=2):
        if row["unit"] not in UNITS.get(row["quantity"], ()):
            raise FiguresError(f"{file}:{line}: {row['quantity']} in {row['unit']!r}; see UNITS in data/figures.py")
        if not row["value"] and not row["note"]:
            raise FiguresError(f"{file}:{line}: has neither a value nor a note that says why not")
    try:
        rows["value"] = pd.to_numeric(rows["value"].where(rows["value"] != ""))
    except ValueError as error:
        raise FiguresError(f"{file}: {error}; a value is a plain number") from error
    return rows
