"""What a value, a key or a parent may be, and what is said of one that may not."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from tests.synthetic.made_runs import row
from warpladder.data import checks, schema
from warpladder.data.columns import Column, Table

CELL = {"workload": "w", "variant": "v", "config": "", "case": "n=1"}
VARIANT = {"workload": "w", "variant": "v", "kind": "cuda", "role": "rung", "precision": "fp32"}
CASE = {"workload": "w", "case": "n=1", "params": '{"n": 1}'}
RANGE = {"style": "push_pop", "start_ns": 0, "end_ns": 1}


def table(name: str, *rows: Mapping[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([row(name, **each) for each in rows], schema=schema.TABLES[name].arrow)


def problem(**tables: list[dict[str, Any]]) -> str:
    """The first problem of some tables, in their order; empty where there is none."""
    checker = checks.Checker()
    for name, rows in tables.items():
        found = checker.piece(schema.TABLES[name], table(name, *rows)) or checker.end(schema.TABLES[name])
        if found:
            return f"{name}: {found}"
    return ""


def of_sample(**values: Any) -> dict[str, Any]:
    return {**CELL, "cache": "hot", "scope": "device", "duration_ns": 5, **values}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("variants", {**VARIANT, "role": "king"}, "column role, row 2: is 'king', and has to be one of ceiling, rung"),
        ("variants", {**VARIANT, "variant": ""}, "column variant, row 2: is empty"),
        ("cases", {**CASE, "params": "[1]"}, r"column params, row 2: is '\[1\]', and has to be a JSON object"),
        ("cases", {**CASE, "params": '{"n": 1e999}'}, "column params, row 2: .* whose numbers are finite"),
        ("cases", {**CASE, "params": "[" * 100_000}, "column params, row 2"),
        ("cases", {**CASE, "min_bytes": -1}, "column min_bytes, row 2: is -1, and has to be at least 0"),
        ("samples", of_sample(duration_ns=0), "column duration_ns, row 2: is 0, and has to be at least 1"),
        ("samples", of_sample(twin=2), "column twin, row 2: is 2, and has to be at most 1"),
        ("ceilings", {"value": 0.0}, "column value, row 2: is 0.0, and has to be at least 1e-09"),
        ("ceilings", {"value": float("inf")}, "column value, row 2: is inf, and has to be a finite number"),
        ("ceilings", {"value": float("nan")}, "column value, row 2: is nan, and has to be a finite number"),
        ("kernels", {"start_ns": 5, "end_ns": 4}, "column end_ns, row 2: is 4, before start_ns, which is 5"),
        ("kernels", {"start_ns": -(2**63), "end_ns": 4}, "column start_ns, row 2"),
    ],
)
def test_a_value_that_may_not_be_is_told_with_its_column_and_row(name: str, values: dict[str, Any], said: str) -> None:
    good = {
        "variants": {**VARIANT, "variant": "u"}, "cases": {**CASE, "case": "n=0"}, "samples": of_sample(round=7),
        "ceilings": {"name": "fma", "value": 1.0}, "kernels": {},
    }[name]  # fmt: skip
    checker = checks.Checker()
    rows = table(name, good, values)
    found = checker.piece(schema.TABLES[name], rows)
    assert found is not None
    assert re.match(said, str(found)), found


def test_a_null_that_may_not_be_is_told_and_one_that_may_be_is_not() -> None:
    nulls = pa.table({"value": pa.array([1.0, None])})
    column = Column("value", pa.float64(), "")
    assert str(checks.first_problem(Table("t", "", (column,)), nulls)) == "column value, row 2: is null, and may not be"
    nullable = Column("value", pa.float64(), "", nullable=True)
    assert checks.first_problem(Table("t", "", (nullable,)), nulls) is None


def test_rows_are_counted_on_over_the_pieces_of_a_table() -> None:
    checker = checks.Checker()
    assert checker.piece(schema.KERNELS, table("kernels", {}, {}, {})) is None
    found = checker.piece(schema.KERNELS, table("kernels", {}, {"process": -1}))
    assert found is not None and found.row == 4


def test_a_key_that_is_there_twice_is_told_with_both_rows() -> None:
    tables = {"variants": [VARIANT], "cases": [CASE]}
    assert problem(**tables, samples=[of_sample(), of_sample(round=1)]) == ""
    found = problem(**tables, samples=[of_sample(), of_sample(round=1), of_sample()])
    assert "row 3: is the key of a row, and row 1 has the same: workload='w', variant='v'" in found


def test_keys_are_told_apart_by_every_digit_and_by_every_column() -> None:
    far = [{**RANGE, "range_id": number} for number in (0, 2**61, 2**61 + 1)]
    assert problem(ranges=far) == ""
    assert "row 4" in problem(ranges=[*far, {**RANGE, "range_id": 2**61 + 1}])


def test_a_row_of_a_variant_or_a_case_that_the_run_does_not_have_is_told() -> None:
    result = {**CELL, "status": "ok"}
    assert problem(variants=[VARIANT], cases=[CASE], results=[result]) == ""
    assert "is 'w / v', and table variants has no such row" in problem(cases=[CASE], results=[result])
    other = {**result, "case": "n=2"}
    assert "column case, row 2: is 'w / n=2', and table cases" in problem(
        variants=[VARIANT], cases=[CASE], results=[result, other]
    )


def chain(length: int, **changes: Any) -> list[dict[str, Any]]:
    """Ranges of which each is the parent of the next; `changes` are of the first."""
    ranges = [{**RANGE, "range_id": n, "parent_id": n - 1 if n else None, "depth": n} for n in range(length)]
    return [{**ranges[0], **changes}, *ranges[1:]]


def test_ranges_that_nest_deeply_are_no_problem() -> None:
    assert problem(ranges=chain(5_000)) == ""


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        (chain(3, parent_id=0), "column parent_id, row 1: of range 0 is 0, the range itself"),
        (chain(3, parent_id=2), "column parent_id, row 1: of range 0 is 2, whose depth is 2 .* the parents form a circle"),
        (chain(3, parent_id=9), "column parent_id, row 1: of range 0 is 9, and no range has that id"),
        (chain(3, depth=2**31 - 1), "column parent_id, row 1|column parent_id, row 2"),
    ],
)
def test_parents_that_form_a_circle_or_are_not_there_are_told(ranges: list[dict[str, Any]], said: str) -> None:
    assert re.match(f"ranges: ({said})", problem(ranges=ranges))


def test_device_work_of_a_range_that_is_not_there_is_told_unless_there_are_no_ranges() -> None:
    kernel = {"range_id": 7}
    assert problem(kernels=[kernel]) == ""
    assert "column range_id, row 1: is 7, and no range has that id" in problem(ranges=chain(3), kernels=[kernel])


def test_text_that_is_not_utf8_is_told_with_its_row() -> None:
    column = Column("text", pa.string(), "")
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"good", b"caf\xe9"], pa.binary()).buffers())
    assert str(checks.first_problem(Table("t", "", (column,)), pa.table({"text": bad}))).endswith("row 2: is not text in UTF-8")
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), bad)
    assert str(checks.first_problem(Table("t", "", (column,)), pa.table({"text": coded}))).endswith(
        "row 2: is not text in UTF-8"
    )


def test_a_damaged_dictionary_is_told() -> None:
    """As pages leave it whose checksum nobody wrote: an index that no word has."""
    column = Column("text", pa.string(), "")
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 127]), pa.array(["a"]), safe=False)
    assert "row 2" in str(checks.first_problem(Table("t", "", (column,)), pa.table({"text": coded})))


def test_an_infinite_error_is_a_value_and_a_negative_one_is_not() -> None:
    result = {**CELL, "status": "wrong_result", "rel_l2_error": float("inf"), "max_rel_error": float("nan")}
    assert problem(variants=[VARIANT], cases=[CASE], results=[result]) == ""
    found = problem(variants=[VARIANT], cases=[CASE], results=[result | {"rel_l2_error": -1.0}])
    assert "column rel_l2_error, row 1: is -1.0" in found
