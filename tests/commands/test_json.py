"""What commands print as JSON, against the schemas of the docs."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from tests.commands.test_forecast import recording
from tests.doc_pages import ROOT
from warpladder.__main__ import command

SCHEMAS = {file.stem: json.loads(file.read_text()) for file in (ROOT / "docs" / "schemas").glob("*.json")}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("runs", ["runs"]),
        ("doctor", ["doctor"]),
        ("summary", ["summary", "recorded"]),
        ("summary", ["summary", "H200 conv2d"]),
        ("compare", ["compare", "recorded", "recorded"]),
        ("compare", ["compare", "H200 conv2d@v02_naive_global", "H200 conv2d@v03_coalesced", "--match", "best"]),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, list) else each,
)
def test_what_is_printed_fits_its_schema(schema: str, words: list[str], tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    folder = [] if words[0] == "doctor" else ["--data-dir", str(tmp_path)]
    done = CliRunner().invoke(command(), [*words, "--format", "json", *folder])
    assert done.exit_code in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found
    jsonschema.Draft202012Validator(SCHEMAS[schema]).validate(found)


def test_a_schema_refuses_a_figure_that_is_a_text_and_a_field_that_is_missing() -> None:
    (row,) = json.loads(CliRunner().invoke(command(), ["summary", "H200 conv2d", "--format", "json"]).stdout)
    for wrong in ({**row, "speedup": "2x"}, {name: value for name, value in row.items() if name != "best_ns"}):
        assert not jsonschema.Draft202012Validator(SCHEMAS["summary"]).is_valid([wrong])
