"""Two runs compared by the command and on the page."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.dashboard.cli import app as commands

__all__ = ["open_app"]


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


def test_a_link_shows_the_cell_and_the_filters_that_it_names(open_app: Open, folder: Path) -> None:
    link = {"run": "before", "with": "after", "like": "v04*", "of_scope": "operation", "below": "cells"}
    page = open_app(folder, "compare", **link)
    table = next(frame.value for frame in page.main.dataframe if "timing" in frame.value)
    assert set(table["timing"]) == {"operation hot"} and table["name"].str.startswith("v04").all()
    asked = "|".join(("conv2d", *page.session_state["compared cells from"][-1].split("|")[1:]))
    page = open_app(folder, "compare", at=asked, **link)
    assert asked.split("|")[1] in next(block.value for block in page.main.markdown if "times as long" in block.value).replace(
        "\\", ""
    )
    page = open_app(folder, "compare", at="nonsense", **link)
    assert "showing the slowest" in words(page)


def test_a_filter_that_no_cell_fits_says_so(open_app: Open, folder: Path) -> None:
    assert "No compared cell fits the filters." in words(open_app(folder, "compare", run="before", like="zzz"))


def test_two_variants_of_one_run_are_compared_on_the_page(open_app: Open, folder: Path) -> None:
    link = {"run": "before", "with": "before", "a": "v04_sliding", "b": "v01_naive"}
    page = open_app(folder, "compare", **link)
    assert " slower" in words(page) and "Sources that differ" in words(page)


@pytest.mark.parametrize("below", ["source", "counters", "cells", "recordings"])
def test_every_part_of_the_page_opens(open_app: Open, folder: Path, below: str) -> None:
    page = open_app(folder, "compare", run="before", below=below)
    assert not page.error and "unchanged" in words(page)


def test_counters_of_both_runs_stand_side_by_side(open_app: Open, tmp_path: Path) -> None:
    for run_id in ("before", "after"):
        made_sweeps.write_counted(tmp_path, run_id)
    at = f"{made_sweeps.WORKLOAD}|{made_sweeps.CASE}|device|cold|v03_shared||1"
    page = open_app(tmp_path, "compare", **{"run": "after", "with": "before", "below": "counters", "at": at})
    table = next(frame.value for frame in page.main.dataframe if "Counter" in frame.value)
    assert table.iloc[0]["Counter"] == "time under the profiler" and set(table["Change"]) == {"="}
    page = open_app(
        tmp_path, "compare", **{"run": "after", "with": "before", "below": "counters", "at": at.replace("v03", "v99")}
    )
    assert "showing the slowest" in words(page)
