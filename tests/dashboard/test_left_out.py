"""A table that is too large to be read: the pages that need it say so, and the others work."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_traces
from warpladder.data.store import tables

__all__ = ["open_app"]

pytestmark = pytest.mark.xdist_group("bad input")


@pytest.mark.slow
def test_a_page_says_which_table_is_too_large(open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_traces.write_variants(tmp_path)
    monkeypatch.setattr(tables, "LONG_TABLES", frozenset({"kernels", "memory_ops", "api_calls"}))
    monkeypatch.setattr(tables, "LONG", tables.Budget(1, 10**9))
    app = open_app(tmp_path, "transfers", run="variants")
    assert not app.main.error
    assert "memory_ops.parquet: has 8 rows, and at most 1 are read" in " ".join(
        str(each.value) for each in app.main.info
    ).replace("\\", "")
    app = open_app(tmp_path, "trust", run="variants")
    assert not app.main.error
    assert "Left out: " in words(app) and "kernels.parquet: has " in words(app)
