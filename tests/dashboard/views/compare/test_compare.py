"""Two runs compared by the command and on the page."""

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import warpladder
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs, made_sweeps
from warpladder.__main__ import command

pytestmark = pytest.mark.slow

__all__ = ["open_app"]

WRONG, GONE = "v04_sliding", "v03_register_tile"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("compared")
    for run_id, seed in (("before", 7), ("after", 8)):
        made_runs.write(made, run_id, rounds=12, seed=seed, workloads=("conv2d",))
    made_runs.write(made, "other", rounds=8, workloads=("tensor_transpose",))
    made_runs.write_host_run(made, "host", rounds=8, workloads=("conv2d",))
    return made


def shown(markdown: str) -> str:
    """What a reader of Markdown sees of escaped texts."""
    return re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", markdown)


def said(folder: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command(), ["compare", *words, "--data-dir", str(folder)])
    return done.exit_code, done.output


def test_the_command_ends_with_1_where_a_cell_is_slower_by_more_than_the_limit(folder: Path) -> None:
    code, text = said(folder, "before", "after")
    assert code == 0 and re.fullmatch(
        r"57 tied; a difference below 1(.\d)? % would not be seen( in half of the tied cells, and below 9.\d % in the noisiest)?",
        text.splitlines()[-1],
    )
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


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and one with all of its times in which a variant is wrong and another one gone."""
    made = tmp_path_factory.mktemp("broken")
    kept = tuple(each for each in made_runs.VARIANTS if each.workload == "conv2d")
    made_runs.write_variants(made, "main", "main", kept, 12, 7, on_gpu=True)
    path = made_runs.write_variants(
        made, "change", "change", tuple(each for each in kept if each.name != GONE), 12, 8, on_gpu=True
    )
    results = pd.read_parquet(path / "results.parquet")
    wrong = (results["variant"] == WRONG) & (results["status"] == "ok")
    results = results.assign(
        status=results["status"].mask(wrong, "wrong_result"), detail=results["detail"].mask(wrong, "off by 1")
    )
    table = pq.read_table(path / "results.parquet")
    pq.write_table(pa.Table.from_pandas(results, schema=table.schema, preserve_index=False), path / "results.parquet")
    return made


def test_a_variant_that_became_wrong_fails_by_name_and_reason_in_every_form(broken: Path) -> None:
    code, text = said(broken, "main", "change")
    assert code == 1
    (wrong,) = (line for line in text.splitlines() if line.startswith("FAILED: ") and WRONG in line)
    assert wrong.endswith("more: wrong_result: off by 1")
    assert re.match(r"\d+ wrong or lost, \d+ tied; a difference below ", text.splitlines()[-1])
    code, text = said(broken, "main", "change", "--format", "markdown")
    assert code == 1 and text.startswith("**") and " wrong or lost" in text.splitlines()[0]
    assert f"- FAILED: conv2d n=1024 {WRONG}[" in shown(text) and "lost: B has no such variant" in shown(text)
    code, text = said(broken, "main", "change", "--format", "json")
    parsed = json.loads(text)
    assert code == 1 and {each["status"] for each in parsed["lost"]} == {"wrong_result", "lost"}
    assert all(each["failed"] and each["reason"] for each in parsed["lost"])
    code, text = said(broken, "main", "change", "--format", "junit")
    suite = ElementTree.fromstring(text)
    assert code == 1 and suite.get("failures") == str(len(parsed["lost"])) == str(len(suite.findall("testcase/failure")))
    assert suite.get("tests") == str(len(suite.findall("testcase"))) == str(len(parsed["lost"]) + len(parsed["changes"]))
    assert "wrong_result: off by 1" in {failure.get("message") for failure in suite.findall("testcase/failure")}


@pytest.mark.thorough
def test_only_what_was_asked_for_can_be_lost(broken: Path) -> None:
    assert said(broken, f"main@{WRONG}", f"change@{WRONG}")[0] == 1
    assert said(broken, "main@v01_naive", "change@v01_naive")[0] == 0
    code, text = said(broken, "main", "change", "--partial")
    assert code == 1 and "not compared: " in text


def test_the_page_lists_what_is_wrong_or_lost_without_a_click(open_app: Open, broken: Path) -> None:
    page = open_app(broken, "compare", **{"run": "change", "with": "main"})
    (told,) = (block.value for block in page.main.error)
    said = told.replace("\\", "")
    assert "Wrong or lost in B:" in said and "wrong_result: off by 1" in said and "lost: B has no such variant" in said
    filtered = open_app(broken, "compare", **{"run": "change", "with": "main", "like": "v01*"})
    assert not filtered.main.error


def test_what_an_earlier_run_lacks_was_not_lost(open_app: Open, broken: Path, tmp_path: Path) -> None:
    made = shutil.copytree(broken, tmp_path / "runs")
    table = pq.read_table(made / "change" / "run.parquet")
    place = table.schema.get_field_index("started_at")
    earlier = pc.subtract(table["started_at"], timedelta(days=1)).cast(table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), earlier), made / "change" / "run.parquet")
    page = open_app(made, "compare", **{"run": "change", "with": "main"})
    assert not page.main.error
    assert any("not in B, which was recorded before A:" in block.value for block in page.main.info)


def test_a_run_compared_from_python_shows_what_is_lost(broken: Path) -> None:
    found = warpladder.open_run("main", data_dir=broken).compare("change")
    assert "wrong or lost" in found.sentence and f"FAILED: conv2d n=1024 {WRONG}[" in str(found)
    assert "wrong_result: off by 1" in found._repr_html_()
    assert set(found.lost()["status"]) == {"wrong_result", "lost"} and found.lost()["fails"].all()


@pytest.mark.thorough
def test_all_forms_tell_the_same(folder: Path) -> None:
    words = ("before@v04_sliding", "before@v01_naive", "--match", "best", "--format")
    parsed = json.loads(said(folder, *words, "json")[1])
    slower = [change for change in parsed["changes"] if change["failed"]]
    suite = ElementTree.fromstring(said(folder, *words, "junit")[1])
    assert suite.get("failures") == str(len(slower)) == str(len(suite.findall("testcase/failure")))
    assert suite.get("tests") == str(len(parsed["changes"]))
    markdown = said(folder, *words, "markdown")[1]
    assert shown(markdown).splitlines()[0] == f"**{parsed['sentence']}**"
    assert sum(line.startswith("| slower |") for line in markdown.splitlines()) == len(slower) > 0
    assert "warpladder record" in markdown


@pytest.mark.thorough
def test_the_page_compares_with_the_newest_run_of_the_same_device(open_app: Open, folder: Path) -> None:
    page = open_app(folder, "compare", run="before")
    assert "tied" in words(page) and "The sources of all compared variants are equal." in words(page)
    assert "No other run has a workload of this one on the same device." in words(open_app(folder, "compare", run="other"))


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_two_variants_of_one_run_are_compared_on_the_page(open_app: Open, folder: Path) -> None:
    link = {"run": "before", "with": "before", "a": "v04_sliding", "b": "v01_naive"}
    page = open_app(folder, "compare", **link)
    assert " slower" in words(page) and "Sources that differ" in words(page)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("below", ["source", "counters", "cells", "recordings"])
def test_every_part_of_the_page_opens(open_app: Open, folder: Path, below: str) -> None:
    page = open_app(folder, "compare", run="before", below=below)
    assert not page.error and "tied" in words(page)


@pytest.mark.thorough
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
