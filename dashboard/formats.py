"""Formats that runs are written in. Importing this module loads nothing else."""

from typing import Final, Literal, get_args

Answer = Literal["table", "markdown", "csv", "json"]
ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
Comparison = Literal["text", "markdown", "json", "junit"]
COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
IMAGES: Final = ("png", "svg", "pdf")
TABLES: Final = ("csv", "tex", "md")
CHARTS: Final = ("html", *IMAGES, *TABLES)
