"""Formats that runs are written in, and their JSON. Importing this module loads nothing else."""

import json
import math
from typing import Any, Final, Literal, get_args

Form = Literal["table", "markdown", "csv", "json"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
TableOrJson = Literal["table", "json"]
TABLE_OR_JSON: Final[tuple[TableOrJson, ...]] = get_args(TableOrJson)
Comparison = Literal["table", "markdown", "json", "junit"]
COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
IMAGES: Final = ("png", "svg")
CHARTS: Final = ("html", *IMAGES, "csv")


def json_text(content: object) -> str:
    """Texts, numbers and frames as JSON that ends with a line feed. What is not finite is null, since JSON has no number for it."""
    return json.dumps(_plain(content), indent=1, default=_scalar) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "to_dict"):  # a frame; its own `to_json` rounds to ten decimals, so that an error of 1e-12 would be 0
        return _plain(value.astype(object).where(value.notna(), None).to_dict("records"))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _scalar(value: Any) -> Any:
    """A number of NumPy as one of Python; a time, a decimal and the like as text."""
    return value.item() if hasattr(value, "item") else str(value)
