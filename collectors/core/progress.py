"""The progress of a recording, as it is told."""

from collections.abc import Sequence


class Progress:
    """Receives the progress of the recording; the command line shows it as a bar."""

    def compiling(self, finished: int, jobs: int, times: str) -> None:
        """Called while kernels are compiled, before the first case and between cases; the first call has `finished` 0. `times` has the seconds
        so far, and the job that took longest."""

    def start(self, jobs: int) -> None: ...

    def limit(self, seconds: float) -> None:
        """Called before the first job where the recording leaves out what does not fit into some seconds."""

    def job(self, text: str) -> None: ...

    def advance(self) -> None: ...

    def end(self, lines: Sequence[str]) -> None:
        """Called by who started the recording, with what it found."""
