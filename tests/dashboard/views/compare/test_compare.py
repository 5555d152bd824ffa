"""Two runs cell by cell: verdicts against the noise between runs, and the command that gives them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs
from warpladder.dashboard.cli import app as commands
from warpladder.dashboard.core.noise import UNMEASURED_NOISE
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.compare.query import NotComparable, Options, Side, compare, sentence, source_difference

__all__ = ["open_app"]

#: Ten variants of one case, and one whose source the user changes.
OTHERS = [f"v{number:02}_same" for number in range(1, 11)]
MINE = "v11_mine"
NEAR = (1000, 1001, 999, 1000, 1002, 998, 1000, 1001)


def run(run_id: str, factors: Mapping[str, float], source: str = "one", **info: Any) -> RunData:
    """A run of all variants, each as many times slower than 1000 ns as its factor says."""
    names = [*OTHERS, MINE]
    declared = [
        variant(name, source_text=source if name == MINE else name, source_sha256=source if name == MINE else name)
        for name in names
    ]
    timed = [row for name in names for row in samples(name, [round(ns * factors.get(name, 1.0)) for ns in NEAR])]
    made = run_of(declared, timed)
    return replace(made, info={**made.info, "run_id": run_id, "label": run_id, **info})


def verdicts(a: RunData, b: RunData, options: Options = Options()) -> dict[str, str]:  # noqa: B008
    return {change.variant: change.verdict for change in compare(Side(a), Side(b), options).changes}


def test_a_run_compared_with_its_like_is_unchanged() -> None:
    found = compare(Side(run("a", {})), Side(run("b", {})))
    assert {change.verdict for change in found.changes} == {"unchanged"}
    assert (found.only_a, found.only_b, found.changed_sources) == (0, 0, ())
    assert sentence(found) == "11 unchanged"


@pytest.mark.parametrize(("factor", "verdict"), [(1.05, "slower"), (0.95, "faster"), (1.005, "unchanged")])
def test_a_changed_variant_alone_is_called_slower_or_faster(factor: float, verdict: str) -> None:
    found = compare(Side(run("a", {})), Side(run("b", {MINE: factor}, source="two")))
    assert {change.variant: change.verdict for change in found.changes} == {**dict.fromkeys(OTHERS, "unchanged"), MINE: verdict}
    assert found.changed_sources == (("w", MINE),)


def test_the_noise_between_runs_is_that_of_the_variants_whose_sources_are_equal() -> None:
    # Equal sources differ by up to 8 %, so that 5 % more of the changed one says nothing.
    scatter = {name: 1 + 0.008 * place for place, name in enumerate(OTHERS, 1)}
    found = compare(Side(run("a", {})), Side(run("b", {**scatter, MINE: 1.05}, source="two")))
    (mine,) = (change for change in found.changes if change.variant == MINE)
    assert mine.verdict == "unchanged" and 1.07 < mine.noise < 1.09
    assert verdicts(run("a", {}), run("b", {**scatter, MINE: 1.2}, source="two"))[MINE] == "slower"


def test_where_too_few_sources_are_equal_the_noise_is_the_documented_one() -> None:
    few = [variant(name, source_sha256="") for name in (OTHERS[0], MINE)]
    sides = []
    for run_id, factor in (("a", 1.0), ("b", 1.012)):
        made = run_of(few, samples(MINE, [round(ns * factor) for ns in NEAR]) + samples(OTHERS[0], NEAR))
        sides.append(Side(replace(made, info={**made.info, "run_id": run_id})))
    found = compare(*sides, Options(smallest=0.0))
    assert {(change.noise, change.verdict) for change in found.changes} == {(UNMEASURED_NOISE, "unchanged")}


def test_a_shift_that_all_variants_share_can_be_taken_out() -> None:
    a, b = run("a", {}), run("b", dict.fromkeys([*OTHERS, MINE], 1.1) | {MINE: 1.155}, source="two")
    (mine,) = (change for change in compare(Side(a), Side(b)).changes if change.variant == MINE)
    assert mine.shift == pytest.approx(1.1, rel=1e-3)
    assert (mine.ratio.value, mine.without_shift.value) == pytest.approx((1.155, 1.05), rel=1e-3)
    assert verdicts(a, b, Options(without_shift=True)) == {**dict.fromkeys(OTHERS, "unchanged"), MINE: "slower"}


def test_differences_that_make_a_comparison_unlike_are_warnings() -> None:
    facts = compare(
        Side(run("a", {}, collector="cupti", git_commit="1")), Side(run("b", {}, collector="cuda_events", git_commit="2"))
    ).facts
    assert [(fact.what, fact.a, fact.b, bool(fact.warning)) for fact in facts] == [
        ("collector", "cupti", "cuda_events", True),
        ("commit", "1", "2", False),
    ]


def test_other_devices_and_other_cells_are_not_comparable() -> None:
    other = run("b", {}, device_name="another GPU")
    with pytest.raises(NotComparable, match=r"a was recorded on GPU, b on another GPU; .* --any-device"):
        compare(Side(run("a", {})), Side(other))
    assert verdicts(run("a", {}), other, Options(any_device=True))
    with pytest.raises(NotComparable, match="no cell in common"):
        compare(Side(run("a", {})), Side(run("b", {})), Options(scope="end_to_end"))


def test_two_variants_of_one_run_are_compared_round_by_round() -> None:
    # All rounds drift together by far more than the two differ.
    drift = [1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400]
    data = run_of(
        [variant(OTHERS[0]), variant(MINE)], samples(OTHERS[0], drift) + samples(MINE, [ns * 103 // 100 for ns in drift])
    )
    data = replace(data, info={**data.info, "run_id": "a"})
    (change,) = compare(Side(data, OTHERS[0]), Side(data, MINE)).changes
    assert (change.verdict, change.variant, change.of_a) == ("slower", MINE, (OTHERS[0], ""))
    assert change.ratio.low == pytest.approx(1.03, rel=1e-3)


def test_sources_differ_line_by_line() -> None:
    a, b = run("a", {}, source="same\nold"), run("b", {}, source="same\nnew")
    assert source_difference(a, b, "w", MINE, MINE).splitlines()[2:] == ["@@ -1,2 +1,2 @@", " same", "-old", "+new"]
    assert source_difference(a, b, "w", OTHERS[0], OTHERS[0]) == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compared")
    for run_id, seed in (("before", 7), ("after", 8)):
        made_runs.write(made, run_id, rounds=12, seed=seed, workloads=("conv2d",))
    made_runs.write(made, "other", rounds=8, workloads=("tensor_transpose",))
    made_runs.write_host_run(made, "host", rounds=8, workloads=("conv2d",))
    return made


def said(folder: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(commands, ["compare", *words, "--data-dir", str(folder)])
    return done.exit_code, done.output


def test_the_command_ends_with_1_where_a_cell_is_slower_by_more_than_the_limit(folder: Path) -> None:
    code, text = said(folder, "before", "after")
    assert code == 0 and text.splitlines()[-1].endswith(" unchanged")
    words = ("before@v04_sliding", "before@v01_naive", "--match", "best")
    code, text = said(folder, *words)
    assert code == 1 and "v04_sliding[rows=8] → v01_naive" in text and " slower" in text.splitlines()[-1]
    assert said(folder, *words, "--fail-above", "5000%")[0] == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("before", "other"), "before and other have no cell in common"),
        (("before", "host"), "--any-device"),
        (("before", "before@v99_none"), "before@v99_none: the run has no variant v99_none; it has "),
        (("before", "none@v01_naive"), "none: no such run"),
        (("before", "after", "--fail-above", "much"), "much: write a percentage such as 2%"),
        (("before", "after", "--smallest", "-1%"), "-1%: write a percentage such as 2%"),
    ],
)
def test_the_command_ends_with_2_and_a_line_where_nothing_can_be_compared(
    folder: Path, words: tuple[str, ...], line: str
) -> None:
    code, text = said(folder, *words)
    assert code == 2 and line in text and "Traceback" not in text


def test_all_forms_tell_the_same(folder: Path) -> None:
    words = ("before@v04_sliding", "before@v01_naive", "--match", "best", "--format")
    parsed = json.loads(said(folder, *words, "json")[1])
    slower = [change for change in parsed["changes"] if change["failed"]]
    suite = ElementTree.fromstring(said(folder, *words, "junit")[1])
    assert suite.get("failures") == str(len(slower)) == str(len(suite.findall("testcase/failure")))
    assert suite.get("tests") == str(len(parsed["changes"]))
    markdown = said(folder, *words, "markdown")[1]
    assert markdown.splitlines()[0] == f"**{parsed['sentence']}**"
    assert sum(line.startswith("| slower |") for line in markdown.splitlines()) == len(slower) > 0
    assert "warpladder record" in markdown


def test_the_page_compares_with_the_newest_run_of_the_same_device(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "compare", run="before")
    assert "unchanged" in words(page) and "The sources of all compared variants are equal." in words(page)
    assert "No other run has a workload of this one on the same device." in words(open_app(folder, "compare", run="other"))
