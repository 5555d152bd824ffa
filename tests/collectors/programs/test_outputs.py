"""Outputs of programs: where they differ, and how a failed run is told."""

from pathlib import Path

import pytest

from warpladder.collectors.programs.outputs import difference, failure
from warpladder.collectors.programs.runner import Ended


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (b"", b"", ""),
        (b"a\nb\n", b"a\nb\n", ""),
        (b"a\nbcd\n", b"a\nbxd\n", "at byte 4, line 2: 'bxd', not 'bcd'"),
        (b"a\n", b"", "at byte 1, line 1: the end, not 'a'"),
        (b"a\n", b"a\nmore\n", "at byte 3, line 2: 'more', not the end"),
        (b"\xff\x00", b"\xff\x01", r"at byte 2, line 1: '\xff\x01', not '\xff\x00'"),
        (b"x" * 3_000_000 + b"1", b"x" * 3_000_000 + b"2", f"at byte 3,000,001, line 1: '…{'x' * 20}2', not '…{'x' * 20}1'"),
        (b"1\n" * 700_000 + b"a", b"1\n" * 700_000 + b"b", "at byte 1,400,001, line 700,001: 'b', not 'a'"),
    ],
    ids=range(8),
)
def test_the_first_byte_that_differs_is_told_with_its_line(first: bytes, other: bytes, said: str, tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_bytes(first)
    right.write_bytes(other)
    assert difference(left, right, "v1") == (f"its output differs from v1 {said}" if said else "")


@pytest.mark.parametrize(
    ("ended", "stderr", "status", "detail"),
    [
        (Ended(code=3), b"first\nno such device\n\n", "launch_error", "exit code 3: no such device"),
        (Ended(code=1), b"", "launch_error", "exit code 1"),
        (Ended(code=-11), b"", "launch_error", "was killed by signal 11"),
        (Ended(code=-9), b"", "out_of_memory", "was killed (signal 9), as the system does when memory runs out"),
        (Ended(code=-9, problem="timeout"), b"at step 3\n", "timeout", "did not end within 2 s, and was killed with all that it started: at step 3"),
        (Ended(problem="timeout", leftovers=("sleep",)), b"", "timeout", "exited with 0, but left sleep running, killed after 2 s; it has to end"),
        (Ended(problem="keep", detail="No space left on device"), b"", "launch_error",
         "its output cannot be kept (No space left on device); free space in the folder for temporary files, or set TMPDIR"),
        (Ended(code=-9, problem="output"), b"", "launch_error", "printed more than 1 GiB, and was killed"),
        (Ended(problem="start", detail="Exec format error"), b"", "launch_error", "cannot be started (Exec format error)"),
        (Ended(code=2), b"\x1b[31mred\xff" + b"y" * 9000, "launch_error", None),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_failed_run_is_told_by_its_code_and_the_last_line_of_its_messages(
    ended: Ended, stderr: bytes, status: str, detail: str | None, tmp_path: Path
) -> None:
    said = tmp_path / "stderr"
    said.write_bytes(stderr)
    found = failure(ended, 2.0, said)
    if detail is None:
        assert found is not None and found.status == status
        assert found.detail.isprintable()
        assert len(found.detail) < 250
    else:
        assert found is not None and (found.status, found.detail) == (status, detail)


def test_a_run_that_exits_with_0_is_no_failure(tmp_path: Path) -> None:
    assert failure(Ended(code=0), 2.0, tmp_path / "absent") is None
