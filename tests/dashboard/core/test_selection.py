"""Some workloads and variants of a run, for an export."""

import pytest

from tests.synthetic import made_runs
from warpladder.dashboard.compare.within_run import with_speedups
from warpladder.dashboard.core.cells import cells, charted_cases, timings
from warpladder.dashboard.core.run_data import RunData, load, select
from warpladder.dashboard.export import charts_of
from warpladder.data import store
from warpladder.errors import Error


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_runs.write_host_run(tmp_path_factory.mktemp("runs"), rounds=8)))


@pytest.mark.slow
def test_a_glob_finds_variants_and_the_speedup_stays_that_over_the_hidden_baseline(data: RunData) -> None:
    workload = data.workloads[0]
    timing = timings(data, workload)[0]
    every = with_speedups(
        data, workload, timing, cells(data).query("workload == @workload and n > 0 and scope == @timing.scope")
    )
    chosen = select(data, [workload], ["numba_p*"])
    of_chosen = cells(chosen)
    found = with_speedups(chosen, workload, timing, of_chosen[(of_chosen["n"] > 0) & (of_chosen["scope"] == timing.scope)])
    assert set(found["variant"]) == {"numba_parallel"} and chosen.workloads == (workload,)
    assert (found["baseline"] != "numba_parallel").all()
    kept = every[every["variant"] == "numba_parallel"]
    assert found["speedup"].tolist() == kept["speedup"].tolist()


@pytest.mark.thorough
def test_the_ladder_of_each_chosen_case_is_drawn(data: RunData) -> None:
    workload = data.workloads[0]
    names = list(charted_cases(data, workload)["case"])[:2]
    chosen = select(data, [workload], ["numba_p*"], names)
    assert list(chosen.cases["case"]) == names and set(chosen.results["case"]) == set(names)
    assert set(cells(chosen)["case"]) == set(names)
    drawn = [chart for chart in charts_of(chosen, topics=("comparisons",)) if chart.name.startswith("ladder")]
    assert {case for chart in drawn for case in chart.data["case"]} == set(names)


def test_a_workload_without_a_chosen_case_is_left_out(data: RunData) -> None:
    first = data.cases.iloc[0]
    others = set(data.cases.loc[data.cases["case"] == first["case"], "workload"])
    assert set(select(data, cases=[first["case"]]).workloads) == others


def test_nothing_chosen_is_the_whole_run(data: RunData) -> None:
    assert select(data) is data


@pytest.mark.thorough
def test_every_single_variant_can_be_charted(data: RunData) -> None:
    for variant in data.variants["variant"].unique():
        for chart in charts_of(select(data, (), [variant]), topics=("comparisons", "roofline")):
            drawn = set(chart.data["variant"]) if "variant" in chart.data else {variant}
            assert drawn <= {variant}, chart.name


@pytest.mark.parametrize(
    ("workloads", "variants", "cases", "said"),
    [
        (["conv2"], [], [], "--workload conv2: no workload of this run; did you mean conv2d"),
        ([], ["numba_paralel"], [], "--variants numba_paralel: no variant of this run; did you mean numba_parallel"),
        ([], ["qq*"], [], "--variants qq*: no variant of this run; it has "),
        ([], [], ["n=7"], "--case n=7: no case of this run; "),
        ([], [""], [], "--variants : no variant of this run; it has "),
    ],
)
def test_a_name_that_finds_nothing_is_one_line_with_the_close_ones(
    data: RunData, workloads: list[str], variants: list[str], cases: list[str], said: str
) -> None:
    with pytest.raises(Error) as caught:
        select(data, workloads, variants, cases)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)
