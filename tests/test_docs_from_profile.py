"""The example of docs/from-profile.md is run: what the first command prints, and the part of the file that the page shows."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.doc_pages import BLOCKS, ROOT
from warpladder.__main__ import command


def test_the_example_prints_and_writes_what_the_page_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [block for block in BLOCKS if block.page.name == "from-profile.md"]
    words = blocks[0].text.splitlines()[0].split()
    monkeypatch.chdir(ROOT)
    out = tmp_path / words[-1]
    done = CliRunner().invoke(command(), [*words[1:-1], str(out), "--data-dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert blocks[1].text in done.stdout
    assert blocks[2].text in out.read_text()
    variant = blocks[3].text.splitlines()
    assert variant[0].removeprefix("@") in out.read_text()
    assert f"#     {variant[2].strip()}" in out.read_text()
