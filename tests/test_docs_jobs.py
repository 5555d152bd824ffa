"""The example of docs/jobs.md is run, and prints what the page has."""

import contextlib
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.doc_pages import BLOCKS, ROOT
from warpladder.__main__ import command
from warpladder.data import store

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_the_example_prints_what_the_page_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [block for block in BLOCKS if block.page.name == "jobs.md"]
    place, python = next((place, block) for place, block in enumerate(blocks) if block.language == "python")
    words = blocks[place - 1].text.split()
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(command(), [*words[1:], "--data-dir", str(tmp_path), "--workers", "1"])
    assert done.exit_code == 0, done.output
    monkeypatch.setattr(store, "LOCAL", tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python.text, {})
    assert printed.getvalue().strip() == blocks[place + 1].text.strip()
