"""Home of a job has the sentences of its summary."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs

__all__ = ["open_app"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("told", "sentences"),
    [(True, ("Rank 5 is late: the others wait", "Cause: kernels take longer")), (False, ("No late rank can be told: clocks",))],
)
def test_home_of_a_job_has_the_sentences_of_its_summary(
    open_app: Open, tmp_path: Path, told: bool, sentences: tuple[str, ...]
) -> None:
    made_jobs.write(tmp_path, told=told)
    app = open_app(tmp_path, "home", run="job")
    assert not app.exception and all(each in words(app) for each in sentences)
