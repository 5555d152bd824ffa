"""A variant whose source is not what was measured."""

import hashlib
from pathlib import Path

from tests.dashboard.core.test_queries_cells import run_of, variant
from warpladder.dashboard.core import staleness


def test_a_variant_is_stale_when_its_source_is_not_what_was_measured(tmp_path: Path) -> None:
    texts = {
        "same.cu": "kernel\n",
        "changed.cu": "kernel v2\n",
        "kept.py": "def a(): ...\n\ndef b(): ...\n",
        "lost.py": "def a(): 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    sha256 = hashlib.sha256(b"kernel\n").hexdigest()
    recorded = [
        variant(
            f"v0{number}_x",
            source_path=path,
            source_text="kernel\n" if path.endswith(".cu") else "def a(): ...\n",
            source_sha256=sha256,
        )
        for number, path in enumerate(["same.cu", "changed.cu", "kept.py", "lost.py", "gone.cu", "", "../outside.cu"])
    ]
    assert staleness.stale_variants(run_of(recorded, []), tmp_path)["source_path"].tolist() == [
        "changed.cu",
        "lost.py",
        "gone.cu",
    ]


def test_a_variant_is_stale_when_what_its_source_includes_has_changed(tmp_path: Path) -> None:
    (tmp_path / "v01_a.cu").write_text('#include "b.cuh"\nkernel\n')
    (tmp_path / "b.cuh").write_text("helper\n")
    text = '#line 1 "b.cuh"\nhelper\n#line 2 "v01_a.cu"\nkernel\n'
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    run = run_of([variant("v01_a", source_path="v01_a.cu", source_text=text, source_sha256=sha256)], [])
    assert staleness.stale_variants(run, tmp_path).empty
    (tmp_path / "b.cuh").write_text("helper v2\n")
    assert staleness.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]
    (tmp_path / "b.cuh").unlink()
    assert staleness.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]
