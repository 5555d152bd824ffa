"""Formats that runs are written in. Importing this module loads nothing else."""

from typing import Final, Literal, get_args

Form = Literal["table", "markdown", "csv", "json"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
Comparison = Literal["table", "markdown", "json", "junit"]
COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
IMAGES: Final = ("png", "svg", "pdf")
TABLES: Final = ("csv", "tex", "markdown")
CHARTS: Final = ("html", *IMAGES, *TABLES)
