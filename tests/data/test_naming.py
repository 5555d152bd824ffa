"""Texts of ranges as cells, and the samples and rows that follow, counted by hand."""

import time

import numpy as np
import pytest

from warpladder.data import naming
from warpladder.data.naming import MOST_CHARACTERS, CellName, Naming, NamingError


def named(expression: str, *texts: str) -> list[CellName | None]:
    return Naming.parse(f"nvtx:{expression}").name(texts, "app")


def test_the_groups_of_the_expression_name_the_cell_and_what_it_does_not_tell_has_a_default() -> None:
    assert named(r"(?P<variant>naive|tiled) n=(?P<case>\d+)", "naive n=8", "other", "the tiled n=16") == [
        CellName("app", "naive", "", "8"),
        None,
        CellName("app", "tiled", "", "16"),
    ]
    every = r"(?P<case>\w+)/(?P<workload>\w+)/(?P<variant>\w*)(?:\[(?P<config>.*)\])?"
    assert named(every, "c/w/v[block=8]", "c/w/v", "c/w/") == [
        CellName("w", "v", "block=8", "c"),
        CellName("w", "v", "", "c"),
        None,
    ], "a range without a variant is no measurement"


def test_unnamed_groups_change_nothing() -> None:
    assert named(r"(a|b)(?P<variant>\d)(c)?(?P<case>x|y)?", "a1", "b2cy") == [
        CellName("app", "1", "", "all"),
        CellName("app", "2", "", "y"),
    ]


@pytest.mark.parametrize(
    "wrong", ["gemm", "nvtx:", "nvtx:(", "nvtx:gemm", "nvtx:(?P<variant>a)(?P<colour>b)", "nvtx:(?P<variant>a){9999999999999}"]
)
def test_a_wrong_naming_is_refused_in_one_line_with_an_example(wrong: str) -> None:
    with pytest.raises(NamingError, match=r"\(\?P<variant>gemm") as refused:
        Naming.parse(wrong)
    assert "\n" not in str(refused.value)


def test_an_expression_that_is_too_long_or_nested_too_deep_is_refused() -> None:
    with pytest.raises(NamingError, match=f"has {MOST_CHARACTERS + 1} characters") as refused:
        Naming.parse("nvtx:" + "x" * (MOST_CHARACTERS + 1))
    assert len(str(refused.value)) < 250
    Naming.parse("nvtx:(?P<variant>a)" + "x" * (MOST_CHARACTERS - 14))
    with pytest.raises(NamingError):
        Naming.parse("nvtx:" + "(" * 400)


def test_an_expression_that_backtracks_without_end_elsewhere_is_done_at_once() -> None:
    began = time.monotonic()
    assert named("(?P<variant>(a+)+)$", "a" * 5_000 + "!", "a" * 5_000) == [None, CellName("app", "a" * 5_000, "", "all")]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("wrong", [r"(?P<variant>\w+)(?=x)", r"(?P<variant>a)(?P=variant)", r"(a)(?P<variant>b)\1"])
def test_what_re2_does_not_have_is_refused_in_one_line(wrong: str) -> None:
    with pytest.raises(NamingError, match="not a regular expression of RE2") as refused:
        Naming.parse(f"nvtx:{wrong}")
    assert "\n" not in str(refused.value)


def test_a_parenthesis_in_a_set_or_after_a_backslash_is_no_group() -> None:
    assert named(r"[()](?P<variant>[^]()]+)\((?P<case>[\](]+)(x|y)", "(v(](y") == [CellName("app", "v", "", "](")]


def test_texts_of_every_alphabet_are_matched() -> None:
    assert named(r"(?P<variant>\S+)\s(?P<case>\d)", "grün 1", "a\nb 2", "") == [
        CellName("app", "grün", "", "1"), CellName("app", "b", "", "2"), None,
    ]  # fmt: skip


def test_cells_are_numbered_in_their_order() -> None:
    a, b = CellName("w", "a", "", "1"), CellName("w", "b", "", "1")
    cells, numbers = naming.distinct([b, None, a, b])
    assert cells == [a, b]
    assert numbers.tolist() == [1, -1, 0, 1]
    assert naming.distinct([])[1].tolist() == []


def test_a_range_gives_a_sample_of_each_scope_with_its_round_by_start_within_the_cell() -> None:
    made = naming.samples(
        np.array([1, 0, 1, 1]), np.array([300, 10, 100, 200]), np.array([30, 1, 11, -5]), np.array([7, 2, -1, 9])
    )
    rows = list(zip(*(made[name].tolist() for name in ("scope", "cell", "round", "duration_ns")), strict=True))
    assert rows == [(0, 0, 0, 2), (0, 1, 1, 9), (0, 1, 2, 7), (1, 0, 0, 1), (1, 1, 0, 11), (1, 1, 2, 30)]
    none = np.empty(0, np.int64)
    assert all(len(column) == 0 for column in naming.samples(none, none, none, none).values())


def test_variants_stand_by_name_and_cases_by_the_numbers_in_their_names() -> None:
    cells = [CellName("w", variant, "", case) for variant in ("b", "a") for case in ("n=16", "n=8")]
    assert [(row["variant"], row["rung"]) for row in naming.variant_rows(cells)] == [("a", 0), ("b", 1)]
    assert [(row["case"], row["size_rank"], row["params"]) for row in naming.case_rows(cells)] == [
        ("n=8", 0, '{"n":8}'),
        ("n=16", 1, '{"n":16}'),
    ]
    assert [row["case"] for row in naming.result_rows(cells)] == ["n=16", "n=8", "n=16", "n=8"]


@pytest.mark.parametrize(
    ("case", "params"),
    [("8", '{"case":8}'), ("all", '{"case":"all"}'), ("n=8, m=4", '{"m":4,"n":8}'), ("n=8 n=9", '{"case":"n=8 n=9"}')],
)
def test_the_axes_of_a_case_are_read_from_its_name(case: str, params: str) -> None:
    assert naming.case_rows([CellName("w", "v", "", case)])[0]["params"] == params
