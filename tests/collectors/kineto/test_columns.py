"""Columns of arrays from values of any type."""

from typing import Any

import pytest

from warpladder.collectors.kineto import columns
from warpladder.collectors.kineto.columns import Texts


@pytest.mark.parametrize("kept", [0, 1 << 16])
def test_values_of_any_type_have_the_number_of_their_text(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MOST_KEPT", kept)
    values: list[Any] = ["b", None, 1, True, "a\ud800", b"b", b"\xff", 1, "b", "True", ""]
    texts = Texts()
    assert texts.codes(values).tolist() == [1, 0, 2, 3, 4, 1, 5, 2, 1, 3, 0]
    assert list(texts.of) == ["", "b", "1", "True", "a?", "\N{REPLACEMENT CHARACTER}"]
    assert texts.codes([["x"], "b", {}]).tolist() == [6, 1, 7]  # they cannot be kept
    assert texts.column(texts.codes(["b", "['x']"])).to_pylist() == ["b", "['x']"]
