"""Random traces, whole and damaged, in pieces of any size: the events of `json.loads`, or one line (`tests.fuzz.trace_files`)."""

import gzip
from pathlib import Path

import pytest

from tests.fuzz import trace_files
from warpladder.collectors.kineto.events import CallArguments, TraceFile, arguments_of


@pytest.mark.slow
def test_random_traces_are_read_as_json_reads_them(tmp_path: Path) -> None:
    wrong = {seed: said for seed in range(150) if (said := trace_files.check(seed, tmp_path))}
    assert not wrong


def test_a_gzip_file_whose_first_part_ends_before_the_events(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEv') + gzip.compress(b'ents": [{"ph": "X", "ts": 1}]}'))
    assert [event.ts for piece in TraceFile(path).pieces() for event in piece.events] == [1]


def test_arguments_that_are_no_object_are_none(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    arguments = ['{"correlation": 7}', "null", "3", "[1]", '{"a": {}}']
    path.write_text('{"traceEvents": [' + ", ".join(f'{{"args": {each}}}' for each in arguments) + ', {"ph": "X"}]}')
    (events,) = (piece.events for piece in TraceFile(path).pieces())
    assert [each.correlation for each in arguments_of(events, CallArguments)] == [7, None, None, None, None, None]
    assert [each.correlation for each in arguments_of(events[:2], CallArguments)] == [7, None]
