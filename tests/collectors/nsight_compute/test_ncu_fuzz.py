"""Whatever a file holds behind the first bytes of a report, its blocks are read or refused in one line."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collectors.nsight_compute.ncu_reports import block, write
from warpladder.collectors.nsight_compute.facts import MAGIC, read_header
from warpladder.collectors.trace.model import ReportError


def refused_or_read(path: Path) -> None:
    try:
        read_header(path)
    except ReportError as error:
        assert len(str(error).splitlines()) == 1


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory, content: bytes) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.getbasetemp() / "random.ncu-rep"
    path.write_bytes(MAGIC + content)
    refused_or_read(path)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=20), st.data())
def test_blocks_of_which_some_bytes_changed(tmp_path_factory, details: bytes, payload: bytes, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path_factory.getbasetemp() / "changed.ncu-rep", [block(details, payload), block(details)])
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(4, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    refused_or_read(path)
