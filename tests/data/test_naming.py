"""Texts of ranges as cells, and the samples and rows that follow, counted by hand."""

import time

import numpy as np
import pytest

from warpladder.data import naming
from warpladder.data.matching import TooSlow, find, find_within
from warpladder.data.naming import MOST_CHARACTERS, CellName, Naming, NamingError


def named(expression: str, *texts: str) -> list[CellName | None]:
    return Naming.parse(f"nvtx:{expression}").name(texts, "app", seconds=20)


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


def test_an_expression_that_backtracks_without_end_is_stopped_and_said_in_one_line() -> None:
    began = time.monotonic()
    with pytest.raises(NamingError, match=r"not done within 0\.5 s on 1 texts") as refused:
        Naming.parse("nvtx:(?P<variant>(a+)+)$").name(["a" * 60 + "!"], "app", seconds=0.5)
    assert time.monotonic() - began < 10
    assert "\n" not in str(refused.value)
    with pytest.raises(TooSlow):
        find_within("(a|aa)+$", ["a" * 80 + "!"], 0.5)


def test_the_process_of_its_own_finds_what_is_found_in_this_one() -> None:
    texts = ["grün 1", "a\nb 2", "\ud800 3", '"quoted" 4', ""]
    assert find_within(r"(?P<variant>\w+).(?P<case>\d)", texts, 20) == find(r"(?P<variant>\w+).(?P<case>\d)", texts)
    assert find_within(r"(?P<variant>x)", [], 20) == []


def test_the_option_is_one_word_of_a_shell() -> None:
    assert Naming.parse("nvtx:(?P<variant>it's)").option == """--variant-from 'nvtx:(?P<variant>it'"'"'s)'"""


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
