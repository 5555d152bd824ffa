"""Judges what a program printed: the same as the first program, or right by a command of the user's."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from warpladder.collectors.core.bench import Failed
from warpladder.collectors.programs.names import Program
from warpladder.collectors.programs.runner import MOST_OUTPUT, Ended, Launch
from warpladder.data.files import one_line

#: In the detail of a result, where outputs were not compared.
NOT_COMPARED: Final = "outputs were not compared"
#: How details of runs begin whose outputs are too much to keep.
CANNOT_BE_KEPT: Final = ("its output cannot be kept", f"printed more than {MOST_OUTPUT >> 30} GiB")
#: What follows where an output that nobody asked about is another.
OTHER_OUTPUT: Final = "; --same-output makes that a failure"
_BYTES_AT_ONCE: Final = 1 << 20
_MOST_OF_A_LINE: Final = 40
_MOST_OF_STDERR: Final = 200

Run = Callable[[Launch], Ended]


class Outputs:
    """Compares outputs with the output of the first program that ran.

    Args:
        same: whether outputs have to be equal, byte for byte.
        check: command that reads an output and exits with 0 if it is right; None for none.
        folder: folder for files.
        timeout_s: seconds that `check` may take.
        run: runs a command.
    """

    def __init__(self, same: bool, check: Program | None, folder: Path, timeout_s: float, run: Run) -> None:
        self._same, self._check, self._folder, self._timeout_s, self._run = same, check, folder, timeout_s, run
        self._first: tuple[str, Path] | None = None

    @property
    def judged(self) -> bool:
        """Whether outputs are judged at all."""
        return self._same or self._check is not None

    def judge(self, variant: str, output: Path) -> Failed | None:
        """Judge the output of a program; None if it is right. The first one is kept."""
        if self._check is not None:
            return self._checked(self._check, output)
        differs = self._difference(variant, output) if self._same else ""
        return Failed("wrong_result", differs) if differs else None

    def other(self, variant: str, output: Path) -> str:
        """Where the output of a program differs from that of the first, in words, although none is judged; empty if it does not."""
        differs = self._difference(variant, output)
        return f"{differs}{OTHER_OUTPUT}" if differs else ""

    def _difference(self, variant: str, output: Path) -> str:
        """Where an output differs from the first one, which is kept; empty if it does not."""
        if self._first is None:
            self._first = variant, self._folder / "first"
            shutil.move(output, self._first[1])
            return ""
        name, first_output = self._first
        return difference(first_output, output, "its first output" if name == variant else name)

    def _checked(self, check: Program, output: Path) -> Failed | None:
        stderr = self._folder / "check"
        path = shutil.which(check.words[0]) or check.words[0]
        ended = self._run(Launch(path, check.words, self._timeout_s, stdin=str(output), stderr=str(stderr)))
        if not ended.problem and ended.code == 0:
            return None
        return Failed("wrong_result", f"--check {check.shown}: {why(ended, self._timeout_s, stderr)}")

    def right(self, variant: str) -> str:
        """The facts about the output of a program that is ok."""
        if self._check is not None:
            return f"its output is right by --check {self._check.shown}"
        if not self._same or self._first is None:
            return NOT_COMPARED
        first = self._first[0]
        return (
            "the outputs of the others are compared with its output" if first == variant else f"its output is that of {first}"
        )


def failure(ended: Ended, timeout_s: float, stderr: Path) -> Failed | None:
    """The failure of a run of a program; None if it exited with 0.

    Args:
        ended: how it ended.
        stderr: file with its messages.
    """
    if not ended.problem and ended.code == 0:
        return None
    is_killed = ended.code == -9 and not ended.problem
    status = "timeout" if ended.problem == "timeout" else "out_of_memory" if is_killed else "launch_error"
    return Failed(status, why(ended, timeout_s, stderr))


def why(ended: Ended, timeout_s: float, stderr: Path) -> str:
    """The reason why a run failed, with the last line of its messages."""
    if ended.problem == "start":
        return f"cannot be started ({ended.detail})"
    if ended.problem == "keep":
        return f"{CANNOT_BE_KEPT[0]} ({ended.detail}); free space in the folder for temporary files, or set TMPDIR"
    if ended.problem == "output":
        return f"{CANNOT_BE_KEPT[1]}, and was killed"
    if ended.problem == "timeout":
        reason = f"did not end within {timeout_s:g} s, and was killed with all that it started"
        if ended.leftovers:
            names = ", ".join(ended.leftovers)
            reason = f"exited with {ended.code}, but left {names} running, killed after {timeout_s:g} s; it has to end"
    elif ended.code == -9:
        reason = "was killed (signal 9), as the system does when memory runs out"
    else:
        reason = f"was killed by signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
    last = _last_line(stderr)
    return f"{reason}: {last}" if last else reason


def difference(first: Path, other: Path, name: str) -> str:
    """Where an output differs from the first one, in words; empty if both are equal.

    Args:
        first, other: the files.
        name: what the first one is called.
    """
    with first.open("rb") as expected, other.open("rb") as actual:
        while True:
            begin = expected.tell()
            expected_part, actual_part = expected.read(_BYTES_AT_ONCE), actual.read(_BYTES_AT_ONCE)
            if expected_part != actual_part:
                break
            if not expected_part:
                return ""
    pairs = enumerate(zip(expected_part, actual_part, strict=False))
    at = begin + next(
        (place for place, (expected_byte, actual_byte) in pairs if expected_byte != actual_byte),
        min(len(expected_part), len(actual_part)),
    )
    line, expected_line, found_line = _line_at(first, other, at)
    return f"its output differs from {name} at byte {at + 1:,}, line {line:,}: {found_line}, not {expected_line}"


def _line_at(first: Path, other: Path, at: int) -> tuple[int, str, str]:
    """Number of the line with a byte, and that line in both files, shortened."""
    lines, line_start = 1, 0
    with first.open("rb") as file:
        remaining = at
        while remaining and (part := file.read(min(_BYTES_AT_ONCE, remaining))):
            newline = part.rfind(b"\n")
            line_start = file.tell() - len(part) + newline + 1 if newline >= 0 else line_start
            lines += part.count(b"\n")
            remaining -= len(part)
    return lines, _line_around(first, line_start, at), _line_around(other, line_start, at)


def _line_around(path: Path, line_start: int, at: int) -> str:
    """The line around a byte; `line_start` is the line's first byte."""
    begin = max(line_start, at - _MOST_OF_A_LINE // 2)
    with path.open("rb") as file:
        file.seek(begin)
        text = file.read(4 * _MOST_OF_A_LINE)
    if begin + len(text) <= at:
        return "the end"
    line = one_line(text.split(b"\n")[0].decode("utf-8", "surrogateescape"))[:_MOST_OF_A_LINE]
    return f"'{'…' if begin > line_start else ''}{line}'"


def _last_line(path: Path) -> str:
    """The last line of a file that is not blank, shortened."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            lines = [line for line in file.read().splitlines() if line.strip()]
    except OSError:
        return ""
    return one_line(lines[-1].strip().decode("utf-8", "surrogateescape"))[:_MOST_OF_STDERR] if lines else ""
