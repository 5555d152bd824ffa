"""What commands print as JSON, against the schemas of the docs."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from click.testing import CliRunner

from tests.commands.test_forecast import recording, trace
from tests.doc_pages import ROOT
from tests.inside.test_findings import LOADS, row, rows_of
from tests.synthetic.made_compared_jobs import MadeJob
from warpladder.__main__ import command
from warpladder.dashboard.text import inside
from warpladder.dashboard.text.formats import json_text

SCHEMAS = {file.stem: json.loads(file.read_text()) for file in (ROOT / "docs" / "schemas").glob("*.json")}
STEP = str(ROOT / "docs" / "examples" / "training_step.json.gz")


def fits(schema: str, printed: str) -> Any:
    """What was printed, which fits the schema and is not empty."""
    found = json.loads(printed, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found
    jsonschema.Draft202012Validator(SCHEMAS[schema]).validate(found)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording, the profile whose operators it measures, the same with some of them replaced, and two jobs."""
    folder = tmp_path_factory.mktemp("json")
    recording(folder, 5_000)
    trace(folder / "before").rename(folder / "before.json")
    trace(folder / "after", relu="mine::relu", relu_us=5).rename(folder / "after.json")
    for seed, name in enumerate(("main", "same")):
        MadeJob(ranks=(0, 1), iterations=(1, 2), seed=seed).write(folder, name)
    (folder / "bench.py").write_text((ROOT / "docs" / "examples" / "row_sum.py").read_text())
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("list", "list conv2d bench.py"),
        ("runs", "runs"),
        ("doctor", "doctor"),
        ("summary", "summary recorded"),
        ("summary", "summary 'H200 conv2d'"),
        ("summary-all", "summary recorded --all"),
        ("summary-all", "summary 'H200 gan_tconv_bf16' --all"),
        ("summary-job", "summary main"),
        ("compare", "compare recorded recorded"),
        ("compare", "compare 'H200 conv2d@v02_naive_global' 'H200 conv2d@v03_coalesced' --match best"),
        ("compare-jobs", "compare main same"),
        ("import", f"import {STEP} before.json"),
        ("extract", "extract before.json"),
        ("extract-check", "extract before.json --check recorded"),
        ("forecast", "forecast before.json recorded --step-time 1.1ms"),
        ("forecast-check", "forecast before.json recorded --after after.json"),
        ("sql", "sql recorded 'SELECT * FROM results'"),
    ],
)
def test_what_is_printed_fits_its_schema(schema: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if schema == "sql":
        pytest.importorskip("duckdb")
    monkeypatch.chdir(folder)
    data = [] if schema in ("doctor", "list") else ["--data-dir", "."]
    done = CliRunner().invoke(command(), [*shlex.split(words), "--format", "json", *data])
    assert done.exit_code in (0, 1, 3), done.stderr
    found = fits(schema, done.stdout)
    for imported in found if schema == "import" else ():
        fits("summary-profile", json.dumps(imported["summary"]))


def test_the_findings_of_why_fit_their_schema() -> None:
    rows = [{"place": place, **each} for place, each in enumerate(rows_of(row("without", LOADS, 12_000, "3")))]
    rows[0]["low"] = float("nan")
    found = fits("why", json_text({"run": "a", "experiments": rows, "findings": inside.facts(rows)}))
    assert (found["experiments"][0]["low"], found["findings"][0]["lines"]) == (None, "3")


def test_a_frame_keeps_every_digit_and_what_is_not_known_is_null() -> None:
    frame = pd.DataFrame(
        {"error": [2.2e-16, math.nan, math.inf], "n": pd.array([1, None, 3], dtype="Int64"), "flag": [True, False, True],
         "name": pd.Categorical(["a", None, "b"]), "flags": [("x",), (), ()]}
    )  # fmt: skip
    assert json.loads(json_text({"rows": frame})) == {
        "rows": [
            {"error": 2.2e-16, "n": 1, "flag": True, "name": "a", "flags": ["x"]},
            {"error": None, "n": None, "flag": False, "name": None, "flags": []},
            {"error": None, "n": 3, "flag": True, "name": "b", "flags": []},
        ]
    }


@pytest.mark.slow
def test_a_schema_refuses_a_figure_that_is_a_text_and_a_field_that_is_missing() -> None:
    (row,) = json.loads(CliRunner().invoke(command(), ["summary", "H200 conv2d", "--format", "json"]).stdout)
    for wrong in ({**row, "speedup": "2x"}, {name: value for name, value in row.items() if name != "best_ns"}):
        assert not jsonschema.Draft202012Validator(SCHEMAS["summary"]).is_valid([wrong])


def test_every_command_with_figures_has_a_schema_and_the_page_lists_each() -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    assert {file.stem for file in (ROOT / "docs" / "schemas").iterdir()} == {
        name for name in SCHEMAS if f"schemas/{name}.json" in page
    }
    without = {"app", "capture", "export", "mcp", "new"}
    for name, each in command().commands.items():
        forms = [option.opts for option in each.params if "--format" in option.opts]
        assert bool(forms) or name in without, name
        assert name in without or f"`{name}" in page, name
