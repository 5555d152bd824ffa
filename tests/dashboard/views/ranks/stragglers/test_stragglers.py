"""The section Stragglers on a made job."""

import math
from pathlib import Path

import pytest

from tests.dashboard.pages import plotted
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs
from warpladder.dashboard.core.lateness import lateness
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ranks.stragglers import chart as charts
from warpladder.dashboard.views.ranks.stragglers import query as queries
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("jobs")
    made_jobs.write(made)
    made_jobs.write(made, "refused", told=False)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "job"))


def test_the_rank_with_the_least_wait_comes_first_with_its_cause(data: RunData) -> None:
    ranks = queries.ranking(data)
    assert ranks["rank"].tolist() == [5, 7, 6, 4, 2, 1, 0], "a rank with a larger number computes longer, and rank 3 is broken"
    assert ranks.loc[0, ["wait_ns", "last", "collectives", "last_percent", "late"]].tolist() == [0, 8, 8, 100.0, True]
    assert ranks.loc[0, "wait_uncertainty_ns"] == 8 * made_jobs.UNCERTAINTY_NS
    title = queries.title(lateness(data), ranks)
    assert title == (
        "Rank 5 is late: the others wait 78.6 ms longer, on average, 25.4 % of a rank's 310 ms, all of it exposed. Cause: kernels take longer"
    )


def test_late_ranks_of_different_causes_have_none_in_the_title(data: RunData) -> None:
    ranks = queries.ranking(data)
    ranks.loc[1, ["late", "cause"]] = True, "host"
    assert "Cause" not in queries.title(lateness(data), ranks)


def test_another_kind_of_gpu_is_why_the_kernels_of_a_rank_take_longer(data: RunData) -> None:
    ranks = queries.ranking(data)
    ranks["device_name"] = ranks["device_name"].where(ranks["rank"] != 5, "NVIDIA A100")
    usual = ranks.loc[ranks["rank"] != 5, "device_name"].iloc[0]
    assert queries.cause_of(ranks) == f"another GPU: rank 5 has NVIDIA A100, the others have {usual}"
    assert queries.cause_of(ranks.assign(cause="host")) == queries.CAUSES["host"]
    assert not queries.other_gpu(ranks.assign(device_name=""))
    ranks.loc[0, "device_name"], ranks.loc[1, "device_name"] = usual, "NVIDIA A100"
    assert not queries.other_gpu(ranks)  # another rank with that GPU is not late


def test_of_many_ranks_those_with_the_least_wait_and_the_middle_one_are_drawn(data: RunData) -> None:
    ranks = queries.ranking(data)
    assert queries.drawn(ranks, 7)["rank"].tolist() == ranks["rank"].tolist()
    assert queries.drawn(ranks, 3)["rank"].tolist() == [5, 7, 4]


def test_words_stand_at_the_ends_of_bars_without_an_uncertainty_too(data: RunData) -> None:
    ranks = queries.ranking(data)
    words = charts.waits(ranks.assign(wait_uncertainty_ns=math.nan), "", look(data)).figure.layout.annotations
    assert [word.x for word in words] == ranks["wait_ns"].tolist()


def test_the_page_shows_the_waits_and_without_aligned_clocks_why_not(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "stragglers", run="job")
    assert "Rank 5 is late" in words(app) and len(plotted(app)) == 1
    assert app.main.dataframe[-1].value["rank"].iloc[0] == 5
    app = open_app(folder, "stragglers", run="refused")
    assert f"No late rank can be told: {made_jobs.REFUSED}" in words(app)
    assert not plotted(app) and app.main.get("page_link")
