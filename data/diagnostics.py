"""Rows of table `diagnostics`.

Only collectors write them. The builder stands beside the schema because it must have the table's columns.
"""

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
