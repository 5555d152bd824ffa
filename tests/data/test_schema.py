"""The contract is written once."""

from pathlib import Path

import pyarrow as pa
import pytest

from warpladder.data import dictionary, schema
from warpladder.data.columns import Column, integer

ROOT = Path(__file__).resolve().parents[2]


def test_the_data_dictionary_is_the_one_generated_from_the_schema() -> None:
    assert (ROOT / "data" / "README.md").read_text() == dictionary.markdown(), (
        "run: python -m warpladder.data.dictionary > data/README.md"
    )


def test_the_data_dictionary_says_what_the_row_of_a_whole_cuda_graph_is() -> None:
    section = (ROOT / "data" / "README.md").read_text().partition("## `kernels`")[2].partition("\n## ")[0]
    assert "one row a launch, named `[CUDA graph]`" in section


def test_every_key_column_is_a_column_of_its_table_and_never_null() -> None:
    for table in schema.TABLES.values():
        columns = {column.name: column for column in table.columns}
        assert all(not columns[name].nullable for name in table.key)


def test_every_column_has_a_meaning_and_every_duration_a_unit() -> None:
    for table in schema.TABLES.values():
        for column in table.columns:
            assert column.meaning
            assert not column.name.endswith("_ns") or column.unit == "ns"
            assert not column.name.endswith("_bytes") or column.unit == "B"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (integer("size", "", bits=32, nullable=True, least=0), [None, None, 0, 7, None]),
        (integer("size", "", bits=32), [None, -(1 << 31), 0, 7, (1 << 31) - 1]),
        (integer("size", "", nullable=True, most=8), [None, -(1 << 40), 0, 7, None]),
    ],
)
def test_a_number_outside_of_its_column_is_null_or_where_there_is_no_null_the_nearest_bound(
    column: Column, expected: list[int | None]
) -> None:
    found = column.bounded(pa.array([None, -(1 << 40), 0, 7, 1 << 40], pa.int64()))
    assert found.to_pylist() == expected and found.type == column.type
