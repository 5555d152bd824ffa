"""Rows of table `diagnostics`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

_CELL: Final = ("workload", "variant", "config", "case")


def diagnostic_row(severity: str, source: str, text: str, about: Mapping[Any, Any] = MappingProxyType({})) -> dict[str, Any]:
    """A row of `diagnostics`.

    Args:
        severity, source, text: its columns.
        about: a row that names the cell that it is about; empty where it is about none.
    """
    return {"severity": severity, "source": source, "text": text, **{name: about.get(name) for name in _CELL}}
