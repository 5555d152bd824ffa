"""The page Ranks on a made job: the figures, counted by hand, and the words where something is not known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.dashboard.pages import run_of
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_jobs, made_traces
from warpladder.dashboard.core.lateness import Lateness
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.ranks import chart as charts
from warpladder.dashboard.views.ranks import query as queries
from warpladder.data import store

__all__ = ["open_app"]

pytestmark = pytest.mark.slow
MS = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("jobs")
    made_jobs.write(made)
    made_jobs.write(made, "refused", told=False)
    made_jobs.write(made, "whole", broken=(), iterations=0)
    made_traces.write(made)
    return made


@pytest.fixture(scope="module")
def data(folder: Path) -> RunData:
    return load(store.open_run(folder / "job"))


def test_the_answer_is_the_exposed_share_and_how_much_longer_the_others_wait(data: RunData) -> None:
    found = queries.answer(data)
    # An iteration spans 77.5 ms. The six others communicate for 30 ms less 0.1 ms a number and 0.01 ms an iteration, rank 5 for 10 ms.
    exposed = sum(30 - 0.1 * rank - 0.01 * iteration for rank in (0, 1, 2, 4, 6, 7) for iteration in range(4)) + 40
    assert found.exposed_percent == pytest.approx(100 * exposed / (7 * 4 * 77.5))
    # The six others wait 20 ms an iteration, less the same; 7 ranks of 4 iterations span 2.17 s.
    assert found.sentence.endswith(
        "of the step is exposed communication; rank 5 is late: the others wait 78.6 ms longer, on average, 25.4 % of a rank's 310 ms, all of it exposed"
    )


def test_several_late_ranks_are_all_named() -> None:
    assert Lateness((5, 3), 6 * MS, 3 * MS, 3, 4 * MS, ()).sentence == (
        "ranks 5 and 3 are late: the others wait 2.00 ms longer, on average, 50.0 % of a rank's 4.00 ms, 1.00 ms of it exposed"
    )
    assert Lateness((1, 2, 3, 4, 5, 6), 0, 0, 1, 1, ()).sentence.startswith("ranks 1, 2, 3, 4 and 2 more are late")


def test_a_job_without_aligned_clocks_says_why_no_rank_can_be_told(folder: Path) -> None:
    found = queries.answer(load(store.open_run(folder / "refused")))
    assert found.sentence.endswith("; no late rank can be told")
    assert found.reasons == (made_jobs.REFUSED,)


def test_profiles_without_iterations_are_one_column(folder: Path) -> None:
    whole = load(store.open_run(folder / "whole"))
    cells = queries.by_iteration(whole)
    assert len(cells) == 8 and cells["iteration"].isna().all()
    table = queries.grid(cells, "idle", share=False)
    assert list(table.columns) == ["profile"] and table["profile"].tolist() == [4 * 5.5 * MS] * 8
    assert " of the profile is " in queries.answer(whole).sentence


def test_a_slow_group_comes_before_late_ranks() -> None:
    found = queries.Answer(24.9, 0.0, "no rank is late", True, (), slow="the group of ranks 2 and 3 is slow")
    assert found.sentence == "24.9 % of the step is exposed communication; the group of ranks 2 and 3 is slow"


def test_the_grid_has_the_share_of_each_iteration_and_a_gap_where_a_rank_lacks_it(data: RunData) -> None:
    cells = queries.by_iteration(data)
    table = queries.grid(cells[~((cells["rank"] == 0) & (cells["iteration"] == 3))], "host_wait", share=True)
    assert table.shape == (7, 4) and 3 not in table.index
    assert np.isnan(table.loc[0, 3]) and table.loc[1, 3] == pytest.approx(100 * 4 / 77.5)


def test_the_late_rank_is_the_farthest_from_the_median_and_parts_sum_to_the_span(data: RunData) -> None:
    ranks = queries.breakdown(data)
    first = ranks.iloc[0]
    assert (first["rank"], first["differs_in"], first["late"], first["cause"]) == (5, "compute", True, "compute")
    # Compute and exposed communication of the ranks 0, 1, 2, 4, 5, 6, 7 are 0.4 ms a number apart in sum, with the median of rank 4 and 2;
    # the deviations from the median, in ms: 0, 0.8, 0.8, 0.8 …, of which the median is 1.2.
    computed = np.array([4 * 60.0 if rank == 5 else 4 * (40 + 0.1 * rank) + 0.06 for rank in (0, 1, 2, 4, 5, 6, 7)])
    apart = computed - np.median(computed)
    assert abs(first["distance"]) == pytest.approx(apart[4] / (1.4826 * np.median(abs(apart))))
    assert (ranks[list(queries.PARTS)].sum(axis=1) == ranks["span_ns"]).all()


def test_ranks_that_agree_closely_are_no_outliers_and_two_ranks_have_no_distance(folder: Path) -> None:
    data = load(store.open_run(folder / "job"))
    ranks = queries.breakdown(data)
    # Rank 0 has the same host wait as all others: its spread is 0, and counts as 0.1 % of the span.
    assert ranks["distance"].abs().max() < np.inf and ranks["distance"].notna().all()
    two = made_jobs.write(folder, "two", broken=(2, 3, 4, 5, 6, 7))
    assert queries.breakdown(load(store.open_run(two)))["distance"].isna().all()


def test_of_many_ranks_the_farthest_and_the_median_are_drawn(data: RunData) -> None:
    ranks = queries.breakdown(data)
    assert queries.drawn(ranks, 8)["who"].tolist() == ["0", "1", "2", "4", "5", "6", "7"]
    drawn = queries.drawn(ranks, 3)
    assert drawn["who"].tolist() == ["median", "5", str(ranks["rank"][1])]
    assert drawn.loc[0, "span_ns"] == 310 * MS


def test_idle_time_is_summed_by_stream(data: RunData) -> None:
    (row,) = queries.idle_by_stream(data).to_dict("records")
    assert (row["stream"], row["ranks"], row["host_wait_ns"], row["kernel_wait_count"]) == (7, 7, 7 * 16 * MS, 28)


def test_a_map_of_512_ranks_and_100_iterations_is_small() -> None:
    rank, iteration = np.divmod(np.arange(512 * 100), 100)
    cells = pd.DataFrame({"rank": rank, "iteration": iteration, "span_ns": 1_000, "busy_ns": rank + iteration})
    data = RunData({"device_name": "", "cpu_name": "x"}, *[pd.DataFrame(columns=["workload"])] * 6)
    chart = charts.over_iterations(cells, "busy", "title", look(data), share=True)
    assert len(chart.figure.to_json()) < 1_200_000
    (drawn,) = chart.figure.data
    assert np.asarray(drawn.z).shape == (512, 100)


def test_the_page_names_the_broken_rank_and_the_late_one(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "ranks", run="job")
    assert "rank 5 is late" in words(app)
    assert [block.value.replace("\\", "") for block in app.main.warning] == [
        f"Rank 3: broken; {made_jobs.REASON}. The figures are those of the others."
    ]
    assert app.main.dataframe[-2].value["rank"].iloc[0] == 5
    app = open_app(folder, "ranks", run="refused")
    assert made_jobs.REFUSED in words(app)
    assert "wait" not in app.selectbox(key="choose figure").options


@pytest.mark.parametrize("page", ["ranks", "collectives"])
def test_a_run_of_one_process_leads_to_the_jobs_and_the_menu_marks_the_pages(open_app: Open, folder: Path, page: str) -> None:
    app = open_app(folder, page, run="trace")
    assert [block.value for block in app.main.code] == ["warpladder import --job FOLDER"]
    assert len(app.main.get("page_link")) >= 3
    assert run_of(open_app(folder, page)) != "trace", "a page of jobs chooses a job"


def test_what_is_outside_of_the_iterations_is_told_and_adds_up(folder: Path) -> None:
    # 7 ranks of 4 iterations of 77.5 ms each, which are the whole profile.
    assert queries.answer(load(store.open_run(folder / "job"))).outside == ""
    longer = made_jobs.write(folder, "longer", further={"span_ns": 90 * MS, "busy_ns": 30 * MS, "host_wait_ns": 60 * MS})
    told = queries.answer(load(store.open_run(longer))).outside
    # 90 of 400 ms.
    assert told == "22.5 % of the profile is outside of the iterations, before, between or after them: 15.0 % idle, 7.50 % busy"
    whole = load(store.open_run(folder / "whole"))
    assert queries.answer(whole).outside == "", "without iterations, the rows are the whole profile"


def test_two_gpus_of_a_rank_have_a_row_each_and_their_streams_too(folder: Path, data: RunData) -> None:
    assert queries.gpus(data).empty
    assert queries.idle_by_stream(data)["device"].isna().all()
    two = load(store.open_run(made_jobs.write(folder, "gpus", broken=(2, 3, 4, 5, 6, 7), gpus=2)))
    rows = queries.gpus(two)
    assert rows[["rank", "device", "span_ns"]].to_numpy().tolist() == [
        [rank, gpu, 310 * MS] for rank in (0, 1) for gpu in (0, 1)
    ]
    assert (rows[list(queries.PARTS)].sum(axis=1) == rows["span_ns"]).all()
    idle = queries.idle_by_stream(two)
    assert idle[["device", "stream", "ranks"]].to_numpy().tolist() == [[0, 7, 2], [1, 7, 2]]


def test_where_each_rank_is_near_the_median_rank_the_title_tells_it(data: RunData) -> None:
    alike = queries.breakdown(data).assign(differs_in="")
    assert charts.breakdown(alike, look(data)).title == "No rank differs much from the median rank"
