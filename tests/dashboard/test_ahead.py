"""What the server computes ahead, no page computes again."""

from pathlib import Path

import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app
from tests.synthetic import made_jobs
from warpladder.dashboard import ahead
from warpladder.dashboard.core.traces import Job
from warpladder.dashboard.ui import runs

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


def _unread(*_: object) -> None:
    raise AssertionError("a page reads a table of the job")


def test_the_pages_of_the_newest_job_read_no_table_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_app: Open
) -> None:
    made_jobs.write(tmp_path, "job")
    monkeypatch.setenv(runs.DATA_DIR_VARIABLE, str(tmp_path))
    ahead.compute()
    for name in ("arrow", "frame"):
        monkeypatch.setattr(Job, name, _unread)
    for page in ("ranks", "collectives"):
        assert plotted(open_app(tmp_path, page, run="job")), page
