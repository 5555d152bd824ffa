"""A variant whose source is not what was measured."""

import hashlib
from pathlib import Path

import pytest

from tests.dashboard.core.test_queries_cells import run_of, variant
from warpladder.dashboard.compare import suspect
from warpladder.data import source_text


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_variant_is_stale_when_its_source_is_not_what_was_measured(tmp_path: Path) -> None:
    texts = {
        "same.cu": "kernel\n",
        "changed.cu": "kernel v2\n",
        "kept.py": "def a(): ...\n\ndef b(): ...\n",
        "lost.py": "def a(): 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    sha256 = sha256_of("kernel\n")
    recorded = [
        variant(
            f"v0{number}_x",
            source_path=path,
            source_text="kernel\n" if path.endswith(".cu") else "def a(): ...\n",
            source_sha256=sha256,
        )
        for number, path in enumerate(["same.cu", "changed.cu", "kept.py", "lost.py", "gone.cu", "", "../outside.cu"])
    ]
    assert suspect.stale_variants(run_of(recorded, []), tmp_path)["source_path"].tolist() == [
        "changed.cu",
        "lost.py",
        "gone.cu",
    ]


def test_a_variant_is_stale_when_what_its_source_includes_has_changed(tmp_path: Path) -> None:
    (tmp_path / "v01_a.cu").write_text('#include "b.cuh"\nkernel\n')
    (tmp_path / "b.cuh").write_text("helper\n")
    text = '#line 1 "b.cuh"\nhelper\n#line 2 "v01_a.cu"\nkernel\n'
    run = run_of([variant("v01_a", source_path="v01_a.cu", source_text=text, source_sha256=sha256_of(text))], [])
    assert suspect.stale_variants(run, tmp_path).empty
    (tmp_path / "b.cuh").write_text("helper v2\n")
    assert suspect.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]
    (tmp_path / "b.cuh").unlink()
    assert suspect.stale_variants(run, tmp_path)["variant"].tolist() == ["v01_a"]


def test_a_variant_is_not_stale_when_only_comments_have_changed(tmp_path: Path) -> None:
    text = '// Idea: one.\n#line 1 "b.cuh"\nhelper  // adds\n#line 3 "v01_a.cu"\nkernel /* twice */ ("mov // %0;", 1\'000);\n'
    now = '// Idea: another,\n// longer one.\n#include "b.cuh"\n\nkernel /* once */ ("mov // %0;", 1\'000);\n'
    (tmp_path / "b.cuh").write_text("/* what\n   all share */\nhelper  // subtracts\n")
    (tmp_path / "v01_a.cu").write_text(now)
    run = run_of([variant("v01_a", source_path="v01_a.cu", source_text=text, source_sha256=sha256_of(text))], [])
    assert suspect.stale_variants(run, tmp_path).empty
    for before, after in [("mov //", "add //"), ("mov // %0", "mov // %1"), ("kernel", "//kernel"), ("1'000", "1'001")]:
        (tmp_path / "v01_a.cu").write_text(now.replace(before, after))
        assert len(suspect.stale_variants(run, tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a // b\nc", ["a", "c"]),
        ("a // b \\\nc\nd", ["a", "d"]),
        ("a /* b\nc */ d", ["a", " d"]),
        ('"a\\" // b" // c', ['"a\\" // b"']),
        ("'\"' // b", ["'\"'"]),
        ('R"x(" // )" )x" // b', ['R"x(" // )" )x"']),
        ('#line 7 "a.cu"\n#define line 7\n\n', ["#define line 7"]),
    ],
)
def test_code_is_what_is_left_without_comments(text: str, code: list[str]) -> None:
    assert source_text.code(text) == code
