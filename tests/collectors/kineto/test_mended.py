"""Traces that are no JSON in some places, compressed, or without their end."""

import bz2
import gzip
import json
import lzma
import random
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from tests.collectors.kineto.made_events import document, host, imported_file, kernel, launch
from warpladder.collectors.kineto import events
from warpladder.collectors.kineto.events import CopyArguments, TraceFile, arguments_of
from warpladder.collectors.kineto.mended import mended
from warpladder.collectors.kineto.parse import is_trace
from warpladder.collectors.trace.model import ReportError

EVENTS = [host("aten::mm", 0, 100), launch(10, 1), kernel(40, 500, 1)]
TEXT = json.dumps(document(EVENTS)).encode()


def read(path: Path) -> list[Any]:
    return [event for piece in TraceFile(path).pieces() for event in piece.events]


@pytest.mark.parametrize(
    "word", ["inf", "-inf", "Infinity", "-Infinity", "NaN", "nan", "-nan(ind)", "1.#INF", "-1.#QNAN", "N/A", "n/a", "None"]
)
def test_a_word_for_no_number_reads_as_missing(tmp_path: Path, word: str) -> None:
    path = tmp_path / "trace.json"
    event = f'{{"ph": "X", "name": "inf, NaN", "ts": 1, "args": {{"bytes": {word}, "x": [{word}, 2]}}}}'
    path.write_text(f'{{"traceEvents": [{event}]}}')
    (found,) = read(path)
    assert (found.name, found.ts) == ("inf, NaN", 1)
    assert arguments_of([found], CopyArguments)[0].bytes is None
    _, changed = mended(path.read_bytes())
    assert [each.split("number")[1] for each in changed] == [
        " in `bytes`, which counts as missing",
        ", which counts as missing",
    ]


@pytest.mark.parametrize(
    ("word", "value"), [(".5", 0.5), ("5.", 5), ("+7", 7), ("007", 7), ("-.25", -0.25), ("1e3", 1000), ("+1.E2", 100)]
)
def test_a_number_that_json_does_not_have_keeps_its_value(tmp_path: Path, word: str, value: float) -> None:
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{{"ts": {word}}}]}}')
    assert [event.ts for event in read(path)] == [value]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (rb"torch\cuda\__init__.py", "torch\\cuda\\__init__.py"),
        (rb"C:\new\cuda", "C:\\new\\cuda"),
        (rb"C:\dir\\", "C:\\dir\\"),
        (rb"C:\dir" + b"\\", "C:\\dir\\"),
        (rb"\u12 \x", "\\u12 \\x"),
        (b"a\x01b\tc\nd", "a\x01b\tc\nd"),
        (b"a\xffb", "a\N{REPLACEMENT CHARACTER}b"),
        (rb"\ud800", "\N{REPLACEMENT CHARACTER}"),
        (rb"\"say\" \\ \u00e9 \ud83d\ude00", '"say" \\ é \U0001f600'),
    ],
)
def test_a_text_is_read_as_its_writer_meant_it(tmp_path: Path, raw: bytes, name: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [{"ph": "X", "name": "' + raw + b'", "pid": 3, "args": {"a": 1}}, {"name": "last"}]}')
    assert [(event.name, event.pid) for event in read(path)] == [(name, 3), ("last", None)]


def test_commas_and_colons_before_nothing_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [{"ts": 1, "dur": , "args": {"a": },}, {"ts": 2},\n]}')
    assert [(event.ts, event.dur) for event in read(path)] == [(1, None), (2, None)]


@pytest.mark.parametrize(
    "text", [b'{"ts": 1a}', b'{"ts": 1 "dur": 2}', b'{"ts": [1}', b'{"ts": 1}}, {', b"{'ts': 1}", b'{"ts": 1} {"ts": 2}']
)
def test_other_damage_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"traceEvents": [{"ts": 0}, ' + text + b', {"ts": 3}]}')
    with pytest.raises(ReportError, match=r"^trace\.json: is (damaged|cut off)[^\n]*\Z"):
        read(path)


def test_random_damage_in_pieces_of_any_size_reads_as_the_whole_json_does(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for seed in range(60):
        draw = random.Random(seed)
        number = [draw.choice(("1", "2.5", "inf", "N/A")) for _ in range(40)]
        name = [draw.choice(("plain", "b\\\\c", "b\\c", 'q\\"},{\\"a', "tab\there")) for _ in range(40)]
        listed = [f'{{"ph": "X", "name": "{text}", "ts": {place}, "dur": {each}, "args": {{"x": [{{"a": 1}}, {{"a": {each}}}]}}}}'
                  for place, (each, text) in enumerate(zip(number, name, strict=True))]  # fmt: skip
        path.write_text('{"traceEvents": [' + ",\n".join(listed) + '], "distributedInfo": {"rank": 3}}')
        file = TraceFile(path)
        with patch.multiple(events, PIECE_BYTES=draw.choice((64, 300, 5000)), _WINDOW_BYTES=draw.choice((200, 5000))):
            found = [event for piece in file.pieces() for event in piece.events]
        value = {"1": 1, "2.5": 2.5, "inf": None, "N/A": None}
        text_of = {"b\\\\c": "b\\c", 'q\\"},{\\"a': 'q"},{"a'}
        assert [(event.ts, event.dur, event.name) for event in found] == [
            (place, value[each], text_of.get(text, text)) for place, (each, text) in enumerate(zip(number, name, strict=True))
        ], seed
        assert file.head.distributed == {"rank": 3}


@pytest.mark.slow
@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("added", ["", "\n", ",", ", \n", "\x00\x00"])
def test_a_trace_without_its_end_is_read_with_a_warning(tmp_path: Path, lost: int, added: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT[:-lost] + added.encode() if lost == 2 or added != "," else TEXT[:-lost])
    run, warnings = imported_file(path, tmp_path / "runs")
    assert run.rows("kernels") == 1
    assert any("without the end of its list" in text for text in warnings)


@pytest.mark.slow
def test_a_trace_that_is_cut_off_within_an_event_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for length in range(TEXT.index(b"[{") + 5, len(TEXT) - 2):
        path.write_bytes(TEXT[:length])
        if TEXT[:length].endswith((b"}}", b"}},", b"}}, ")):
            continue  # behind an event
        with pytest.raises(ReportError, match="is cut off"):
            read(path)


def _zip(data: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", data)


def _zstd(data: bytes, path: Path) -> None:
    path.write_bytes(pa.compress(data, codec="zstd", asbytes=True))


WRITERS = {
    "json": lambda data, path: path.write_bytes(data),
    "json.gz": lambda data, path: path.write_bytes(gzip.compress(data)),
    "json.xz": lambda data, path: path.write_bytes(lzma.compress(data)),
    "json.bz2": lambda data, path: path.write_bytes(bz2.compress(data)),
    "json.zst": _zstd,
    "json.zip": _zip,
}


@pytest.mark.parametrize("name", ["trace.{}", "trace.pt.trace.{}.tmp", "trace.txt", "trace"])
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n "])
def test_every_form_under_every_name_is_a_trace(tmp_path: Path, name: str, form: str, begin: bytes) -> None:
    path = tmp_path / name.format(form)
    WRITERS[form](begin + TEXT, path)
    assert is_trace(path)
    assert [event.name for event in read(path)] == ["aten::mm", "cudaLaunchKernel", "gemm"]


@pytest.mark.parametrize("form", [form for form in WRITERS if form != "json"])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"trace.{form}"
    WRITERS[form](TEXT + json.dumps(list(range(2000))).encode(), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ReportError, match=r"^trace\.json[^\n]*\Z"):
        read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_of_unicode_are_read_also_without_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TEXT.decode().encode(encoding))
    assert len(read(path)) == 3


def test_what_stands_for_a_trace_is_named(tmp_path: Path) -> None:
    pointer, archive = tmp_path / "lfs.json.gz", tmp_path / "several.zip"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("rank-0.json", TEXT)
        file.writestr("rank-1.json", TEXT)
    with pytest.raises(ReportError, match=r"lfs\.json\.gz: a git-lfs pointer"):
        read(pointer)
    assert is_trace(archive)
    with pytest.raises(ReportError, match="an archive of 2 files"):
        read(archive)


@pytest.mark.parametrize("text", ["[INFO] started", "some log\n{}", "", "SQLite format 3\0", "a,b\n1,2\n"])
def test_other_texts_are_no_traces(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text)
    assert not is_trace(path)


def test_a_file_in_which_all_stands_twice_is_refused_and_one_event_that_does_is_not(tmp_path: Path) -> None:
    """Each kernel counted twice, and all figures were twice too large."""
    events = [*EVENTS, launch(600, 2), kernel(640, 500, 2)]
    path = tmp_path / "twice.json"
    for twice in (events * 2, [event for event in events for _ in range(2)]):
        path.write_text(json.dumps(document(twice)))
        with pytest.raises(ReportError, match=r"twice\.json: each kernel, copy and call stands in it more than once"):
            imported_file(path, tmp_path)
    path.write_text(json.dumps(document([*events, kernel(640, 500, 2)])))
    assert imported_file(path, tmp_path)[0].rows("kernels") == 3
