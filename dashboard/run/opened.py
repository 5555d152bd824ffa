"""Opens runs, and lists them."""

from collections.abc import Sequence
from pathlib import Path

from warpladder.dashboard.run.job import Job
from warpladder.dashboard.run.run import Run
from warpladder.data import store


def open_run(run: str | Path, *folders: Path) -> Run:
    """Open a run. A job of many ranks is a `Job`.

    Args:
        run: its id, label or folder; of several with one label, the newest.
        folders: further folders to look in, before the runs of this machine and those that ship.

    Raises:
        StoreError: there is no such run, or it is damaged.
    """
    return _opened(store.find_run(str(run), [*folders, store.LOCAL, store.RECORDED]))


def runs(*folders: Path) -> tuple[Sequence[Run], Sequence[str]]:
    """The runs of folders, newest first; and a line for each that cannot be opened."""
    good, bad = store.list_runs(folders or (store.LOCAL, store.RECORDED))
    return [_opened(each) for each in good], [f"{each.name}: {each.reason}" for each in bad]


def _opened(run: store.Run) -> Run:
    return Job(run) if run.info["kind"] == "job" else Run(run)
