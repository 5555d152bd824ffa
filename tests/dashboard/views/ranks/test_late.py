"""Why a rank of a made job is late."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import open_app
from tests.synthetic import made_jobs
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.views.ranks import late as queries
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
    assert ranks["late"].tolist() == [True, *[False] * 6]
    assert queries.cause_of(ranks) == "kernels take longer"
    ranks.loc[1, ["late", "cause"]] = True, "host"
    assert queries.cause_of(ranks) == "", "late ranks of different causes"


def test_another_kind_of_gpu_is_why_the_kernels_of_a_rank_take_longer(data: RunData) -> None:
    ranks = queries.ranking(data)
    ranks["device_name"] = ranks["device_name"].where(ranks["rank"] != 5, "NVIDIA A100")
    usual = ranks.loc[ranks["rank"] != 5, "device_name"].iloc[0]
    assert queries.cause_of(ranks) == f"another GPU: rank 5 has NVIDIA A100, the others have {usual}"
    assert queries.cause_of(ranks.assign(cause="host")) == queries.CAUSES["host"]
    assert not queries.other_gpu(ranks.assign(device_name=""))
    ranks.loc[0, "device_name"], ranks.loc[1, "device_name"] = usual, "NVIDIA A100"
    assert not queries.other_gpu(ranks)  # another rank with that GPU is not late
