"""Several ranks' samples: time, speedup, efficiency and shares worked out by hand, and the map of the best number."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from tests.dashboard.core.test_queries_cells import COLD, frame, run_of, samples, variant
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.text import further
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.devices.gpus import chart as charts
from warpladder.dashboard.views.devices.gpus import chart as gpu_counts
from warpladder.dashboard.views.devices.gpus import query as queries
from warpladder.data.names import Phase, diagnostic_row, nccl_allreduce

pytestmark = pytest.mark.slow

HUNDRED = [100] * 6


def case(n: int, rank: int = 0, flops: int | None = None) -> dict[str, Any]:
    operations = 10 * n if flops is None else flops
    return {"workload": "w", "case": f"n={n}", "size_rank": rank, "params": f'{{"n":{n}}}', "flops": operations, "min_bytes": 1}


def ranked(name: str, *of_ranks: Sequence[int], **more: Any) -> list[dict[str, Any]]:
    """Samples of as many ranks as there are sequences, each with the durations of a rank by round."""
    return [
        row
        for rank, durations in enumerate(of_ranks)
        for row in samples(name, durations, gpus=len(of_ranks), rank=rank, **more)
    ]


def scaled(
    alone: list[dict[str, Any]], together: list[dict[str, Any]], cases: Sequence[dict[str, Any]] = (), **more: Any
) -> RunData:
    names = dict.fromkeys(row["variant"] for row in [*alone, *together])
    made = [variant(name) if name.startswith("v") else variant(name, "host", "host") for name in names]
    data = run_of(made, alone, cases=cases or [case(1)], **more)
    return replace(data, together=frame("samples", together))


def only(found: pd.DataFrame) -> dict[Any, Any]:
    (row,) = found.to_dict("records")
    return row


def by_ranks(found: pd.DataFrame) -> dict[int, dict[Any, Any]]:
    return {row["ranks"]: row for row in found.to_dict("records")}


def test_summary_has_the_times_of_each_number_of_ranks_at_the_largest_case() -> None:
    one = [*samples("v01_a", [100] * 6, case="n=1"), *samples("v01_a", [400] * 6, case="n=2")]
    two = [*ranked("v01_a", [80] * 6, [60] * 6, case="n=1"), *ranked("v01_a", [250] * 6, [250] * 6, case="n=2")]
    heading, names, times = further.several_ranks(scaled(one, two, cases=[case(1), case(2, 1)]))
    assert heading == "w n=2: device time, cold L2, speedup over one GPU, efficiency"
    assert names.split() == ["variant", "1", "GPU", "2", "GPUs"]
    assert re.split("  +", times) == ["v01_a", "400 ns", "250 ns, 1.60×, 80.0 %"]
    assert further.several_ranks(run_of([variant("v01_a")], samples("v01_a", HUNDRED), cases=[case(1)])) == []


def test_a_round_takes_as_long_as_its_slowest_rank_whichever_that_is() -> None:
    two = ranked("v01_a", [40, 50, 40, 50, 40, 50], [50, 40, 50, 40, 50, 40])
    rows = by_ranks(queries.scaling(scaled(samples("v01_a", HUNDRED), two), "w", COLD))
    assert (rows[2]["median_ns"], rows[2]["low_ns"], rows[2]["high_ns"], rows[2]["n"]) == (50, 50, 50, 6)
    assert (rows[1]["median_ns"], rows[1]["speedup"], rows[1]["efficiency"]) == (100, 1, 100)


def test_speedup_and_efficiency_are_counted_over_one_rank() -> None:
    """100 ns on one, 50 on two, 40 on four: 2 and 2.5 times as fast, 100 % and 62.5 % of ideal."""
    together = ranked("v01_a", [45] * 6, [50] * 6) + ranked("v01_a", [10] * 6, [20] * 6, [30] * 6, [40] * 6)
    rows = by_ranks(queries.scaling(scaled(samples("v01_a", HUNDRED), together), "w", COLD))
    assert [(rows[n]["speedup"], rows[n]["efficiency"]) for n in (2, 4)] == [(2, 100), (2.5, 62.5)]
    assert (rows[4]["speedup_low"], rows[4]["speedup_high"]) == (2.5, 2.5)


def test_numbers_of_ranks_are_not_paired_by_round_since_each_is_a_launch_of_its_own() -> None:
    """Rounds that drift alike would cancel if they were paired: 60 to 160 over 30 to 80 is always 2."""
    drift = [60, 80, 100, 120, 140, 160]
    two = ranked("v01_a", [ns // 2 for ns in drift], [ns // 4 for ns in drift])
    rows = by_ranks(queries.scaling(scaled(samples("v01_a", drift), two), "w", COLD))
    assert (rows[1]["speedup_low"], rows[1]["speedup_high"]) == (1, 1), "of itself nothing is uncertain"
    row = rows[2]
    assert row["speedup"] == 2
    assert row["speedup_low"] < 1.8 and row["speedup_high"] > 2.2


def test_a_process_alone_on_the_host_is_one_rank() -> None:
    view = Timing("operation", "hot")
    how = {"scope": "operation", "cache": "hot"}
    data = scaled(samples("numba", HUNDRED, gpus=0, **how), ranked("numba", [60] * 6, [80] * 6, **how))
    rows = by_ranks(queries.scaling(data, "w", view))
    assert {count: row["speedup"] for count, row in rows.items()} == {1: 1, 2: 1.25}


def test_each_number_of_ranks_has_the_config_that_is_fastest_there() -> None:
    alone = samples("v01_a", HUNDRED, config="block=8") + samples("v01_a", [120] * 6, config="block=16")
    two = ranked("v01_a", [70] * 6, [80] * 6, config="block=8") + ranked("v01_a", [40] * 6, [50] * 6, config="block=16")
    rows = by_ranks(queries.scaling(scaled(alone, two), "w", COLD))
    assert [(rows[n]["config"], rows[n]["median_ns"]) for n in (1, 2)] == [("block=8", 100), ("block=16", 50)]
    assert rows[2]["speedup"] == 2


def test_without_samples_of_one_rank_there_is_a_time_and_no_speedup() -> None:
    row = only(queries.scaling(scaled([], ranked("v01_a", [40] * 6, [50] * 6)), "w", COLD))
    assert row["median_ns"] == 50
    assert pd.isna(row["speedup"]) and pd.isna(row["efficiency"])


def test_over_a_time_of_one_rank_that_is_not_to_be_believed_there_is_no_speedup() -> None:
    two = [*ranked("v01_a", [50] * 6, [50] * 6, case="n=1"), *ranked("v01_a", [100] * 6, [100] * 6, case="n=2")]
    few = scaled(samples("v01_a", [100] * 5), two, cases=[case(1), case(2, 1)])
    found = queries.scaling(few, "w", COLD)
    assert found.loc[found["ranks"] == 2, "speedup"].isna().all() and queries.weak(few, "w", COLD).empty
    title = "w, n=1: no speedup, as times are of only 5 samples"
    assert charts.strong(found[found["case"] == "n=1"], look(few, "light")).title == title
    assert further.several_ranks(few)[-1].split() == ["v01_a", "100", "ns"]
    doubted = diagnostic_row("warning", "throttling", "", {"workload": "w", "case": "n=2"})
    assert further.several_ranks(scaled(samples("v01_a", HUNDRED), two, [case(1), case(2, 1)], diagnostics=[doubted])) == []


def test_a_cell_that_is_wrong_at_some_number_and_a_variant_of_one_process_stay_out() -> None:
    wrong = {
        "workload": "w",
        "variant": "v01_a",
        "config": "",
        "case": "n=1",
        "status": "wrong_result",
        "detail": "on 2 GPUs: 0.3",
    }
    data = scaled(samples("v01_a", HUNDRED) + samples("v02_b", HUNDRED), ranked("v01_a", [40] * 6, [50] * 6), results=[wrong])
    assert queries.scaling(data, "w", COLD).empty


def test_what_one_process_measured_alone_is_no_scaling() -> None:
    """Two ranks measured n=2, which is not charted."""
    uncharted = case(2) | {"size_rank": None}
    data = scaled(samples("v01_a", HUNDRED), ranked("v01_a", [40] * 6, [50] * 6, case="n=2"), [case(1), uncharted])
    assert queries.scaling(data, "w", COLD).empty
    assert not list(charts_of(data, topics=["gpus"]))


def test_the_best_number_of_a_case_is_marked_and_what_is_tied_with_it() -> None:
    """At n=1 the two ranks' 92 to 108 ns hold the 98 to 103 of one; at n=2 they take half."""
    alone = samples("v01_a", [98, 99, 100, 101, 102, 103], "n=1") + samples("v01_a", [200] * 6, "n=2")
    two = [92, 95, 100, 102, 105, 108]
    together = ranked("v01_a", [50] * 6, two, case="n=1") + ranked("v01_a", [50] * 6, [100] * 6, case="n=2")
    together += ranked("v01_a", *[[150] * 6] * 4, case="n=1") + ranked("v01_a", *[[125] * 6] * 4, case="n=2")
    found = queries.crossover(scaled(alone, together, [case(1), case(2, 1)]), "w", COLD, "v01_a")
    places = {(row["case"], row["ranks"]): row["place"] for row in found.to_dict("records")}
    assert places == {
        ("n=1", 1): "best", ("n=1", 2): "tied", ("n=1", 4): "slower",
        ("n=2", 1): "slower", ("n=2", 2): "best", ("n=2", 4): "slower",
    }  # fmt: skip
    slow = found[(found["case"] == "n=2") & (found["ranks"] == 4)]
    assert only(slow)["over_best"] == 1.25
    chart = gpu_counts.best_counts(found, look(scaled(alone, together)))
    assert chart.title == "w, v01_a: 1 or 2 GPUs are best up to n=1, 2 above"


def test_sizes_in_which_nothing_may_be_called_best_are_not_counted_by_the_title() -> None:
    alone = samples("v01_a", [98, 99, 100, 101, 102, 103], "n=1") + samples("v01_a", [200] * 6, "n=2")
    two = [92, 95, 100, 102, 105, 108]
    together = ranked("v01_a", [50] * 6, two, case="n=1") + ranked("v01_a", [50] * 6, [100] * 6, case="n=2")
    made = scaled(alone, together, [case(1), case(2, 1)])
    found = queries.crossover(made, "w", COLD, "v01_a")
    found.loc[found["case"] == "n=2", "place"] = "unknown"
    chart = gpu_counts.best_counts(found, look(made))
    assert chart.title == "w, v01_a: 1 and 2 GPUs are tied at n=1"


def test_where_no_number_is_slower_the_map_says_that_all_are_tied() -> None:
    two = ranked("v01_a", [50] * 6, [92, 95, 100, 102, 105, 108])
    made = scaled(samples("v01_a", [98, 99, 100, 101, 102, 103]), two)
    chart = gpu_counts.best_counts(queries.crossover(made, "w", COLD, "v01_a"), look(made))
    assert chart.title == "w, v01_a: 1 and 2 GPUs are tied at every size"


def test_within_the_noise_of_the_baseline_against_itself_two_numbers_are_tied() -> None:
    """101 ns against 100 is slower, unless the baseline's second copy took 102 where the first took 100."""
    alone, two = samples("v01_a", HUNDRED), ranked("v01_a", [50] * 6, [101] * 6)
    twin = samples("v01_a", [102] * 6, twin=1)
    places = [
        by_ranks(queries.crossover(scaled(timed, two), "w", COLD, "v01_a"))[2]["place"] for timed in (alone, alone + twin)
    ]
    assert places == ["slower", "tied"]


def test_the_noise_of_a_host_variant_on_several_processes_ties_no_gpus() -> None:
    """One takes 42 ns and two 88; NumPy's second copy on two processes took a tenth of the time of its first."""
    alone = samples("v01_a", [42] * 6) + samples("v01_a", [42] * 6, twin=1) + samples("numpy", HUNDRED, gpus=0)
    two = ranked("v01_a", [80] * 6, [88] * 6) + ranked("v01_a", [80] * 6, [88] * 6, twin=1)
    two += ranked("numpy", HUNDRED, HUNDRED) + ranked("numpy", [10] * 6, [10] * 6, twin=1)
    data = scaled(alone, two)
    assert by_ranks(queries.crossover(data, "w", COLD, "v01_a"))[2]["place"] == "slower"
    # NumPy's own 100 and 100 are tied whatever the noise.
    assert by_ranks(queries.crossover(data, "w", COLD, "numpy"))[2]["place"] == "tied"


def test_weak_scaling_compares_cases_with_as_much_for_each_rank() -> None:
    """n=400 on one takes 100 ns, n=800 on two 125, n=1600 on four 200: 80 % and 50 %."""
    cases = [case(400, 0, 40), case(800, 1, 80), case(1600, 2, 160)]  # operations that a GPU can do in so little time
    alone = samples("v01_a", HUNDRED, "n=400") + samples("v01_a", [190] * 6, "n=800")
    together = ranked("v01_a", [120] * 6, [125] * 6, case="n=800") + ranked("v01_a", *[[200] * 6] * 4, case="n=1600")
    together += ranked("v01_a", [60] * 6, [60] * 6, case="n=400") + ranked("v01_a", [240] * 6, [250] * 6, case="n=1600")
    found = queries.weak(scaled(alone, together, cases), "w", COLD)
    rows = [(row["per_rank"], row["ranks"], row["case"], row["weak_efficiency"]) for row in found.to_dict("records")]
    assert rows == [
        (400, 1, "n=400", 100), (400, 2, "n=800", 80), (400, 4, "n=1600", 50), (800, 1, "n=800", 100), (800, 2, "n=1600", 76),
    ]  # fmt: skip
    assert set(found["axis"]) == {"n"}


def test_where_the_operations_grow_faster_than_the_ranks_there_is_no_weak_scaling() -> None:
    """Twice the edge of a matrix is eight times its product."""
    cases = [case(400, flops=1), case(800, 1, flops=8)]
    alone, two = samples("v01_a", HUNDRED, "n=400"), ranked("v01_a", [120] * 6, [125] * 6, case="n=800")
    assert queries.weak(scaled(alone, two, cases), "w", COLD).empty


def test_shares_are_of_the_slowest_rank_of_each_round() -> None:
    """The slowest of 100 ns is rank 0 in three rounds, with 10 of copies, and rank 1 in three, with 30: 20 % in the middle."""
    whole = {"scope": "end_to_end", "cache": "hot"}
    part = {"scope": Phase.D2H, "cache": "hot"}
    together = ranked("v01_a", [100, 90] * 3, [90, 100] * 3, **whole) + ranked("v01_a", [10, 50] * 3, [50, 30] * 3, **part)
    alone = samples("v01_a", [200] * 6, **whole) + samples("v01_a", [20] * 6, **part)
    data = scaled(alone, together)
    assert queries.timings(data, "w") == (Timing("end_to_end", "hot"),)
    found = queries.shares(data, "w", Timing("end_to_end", "hot"))
    assert [(row["ranks"], row["part"], row["share"]) for row in found.to_dict("records")] == [
        (1, "copies out", 10), (2, "copies out", 20),
    ]  # fmt: skip
    assert (found["share_low"].iloc[1], found["share_high"].iloc[1], found["n"].iloc[1]) == (10, 30, 6)


def test_communication_is_a_part_of_the_operation_and_copies_are_of_end_to_end() -> None:
    """Of 100 ns rank 1, the slowest, communicates for 40, of which it waits for nobody; rank 0 for 55. NCCL alone takes 32."""
    views = {scope: Timing(scope, "hot") for scope in ("end_to_end", "operation", "device")}
    together = []
    for scope, ranks in (
        ("end_to_end", (300, 310)),
        (Phase.D2H, (30, 31)),
        ("operation", (90, 100)),
        (Phase.ALLREDUCE, (55, 40)),
    ):
        together += ranked("v01_a", *([value] * 6 for value in ranks), scope=scope, cache="hot")
    data = scaled(samples("v01_a", [200] * 6, scope="operation", cache="hot"), together)
    assert queries.timings(data, "w") == (views["operation"], views["end_to_end"])
    found = {name: queries.shares(data, "w", view).to_dict("records") for name, view in views.items()}
    assert [(row["part"], row["share"], row["least_ns"]) for row in found["operation"]] == [("communication", 40, 40)]
    assert [(row["part"], row["share"]) for row in found["end_to_end"]] == [("copies out", 10)]
    assert pd.isna(found["end_to_end"][0]["least_ns"])
    assert found["device"] == []
    assert pd.isna(found["operation"][0]["alone_ns"])
    ceiling = {"name": nccl_allreduce(7), "device": "2 GPUs", "value": 0.032, "unit": "us", "method": ""}
    others = [{**ceiling, "device": "4 GPUs", "value": 1.0}, {**ceiling, "name": nccl_allreduce(8), "value": 2.0}]
    known = replace(data, ceilings=pd.DataFrame([ceiling, *others]), cases=data.cases.assign(d2h_bytes=7))
    assert queries.shares(known, "w", views["operation"])["alone_ns"].tolist() == [32]
    note = charts.shares(queries.shares(known, "w", views["operation"]), look(known)).note
    assert note.endswith("Without that wait, over NCCL's own time for as many bytes: 1.25× on 2 GPUs.")


def test_the_size_a_rank_that_is_shown_is_the_largest_that_most_numbers_of_ranks_have() -> None:
    rows = [(400, 1), (400, 2), (400, 4), (8192, 1), (8192, 2), (8192, 4), (16384, 1), (16384, 2)]
    assert queries.weak_to_show(pd.DataFrame(rows, columns=["per_rank", "ranks"])) == 8192


def test_a_variant_without_phases_has_no_shares() -> None:
    data = scaled(samples("v01_a", HUNDRED), ranked("v01_a", [40] * 6, [50] * 6))
    assert queries.shares(data, "w", COLD).empty


def test_a_number_of_ranks_with_fewer_than_six_samples_is_neither_best_nor_slower() -> None:
    """Two ranks take half the time in five rounds. One rank has six."""
    data = scaled(samples("v01_a", HUNDRED), ranked("v01_a", [50] * 5, [50] * 5))
    crossover = queries.crossover(data, "w", COLD, "v01_a")
    assert {count: row["place"] for count, row in by_ranks(crossover).items()} == {1: "best", 2: "unknown"}
    chart = gpu_counts.best_counts(crossover, look(data))
    assert chart.title == "w, v01_a: 1 GPU is best at every size"
    assert "of only 5 samples" in str(chart.figure.data[0].hovertext)
    assert (
        charts.strong(queries.scaling(data, "w", COLD), look(data)).title
        == "w, n=1: no speedup, as times are of only 5 samples"
    )


def test_a_distrusted_variant_is_not_the_one_that_is_shown_and_names_no_best_number() -> None:
    warning = {"severity": "warning", "source": "above_ceiling", "text": "", "workload": "w", "variant": "v02_b"}
    alone = samples("v01_a", HUNDRED) + samples("v02_b", [2] * 6)
    together = ranked("v01_a", [50] * 6, [50] * 6) + ranked("v02_b", [1] * 6, [1] * 6)
    data = scaled(alone, together, diagnostics=[warning])
    assert queries.variant_to_show(queries.scaling(data, "w", COLD)) == "v01_a"
    crossover = queries.crossover(data, "w", COLD, "v02_b")
    assert set(crossover["place"]) == {"unknown"}
    title = gpu_counts.best_counts(crossover, look(data)).title
    assert title == "w, v02_b: no number is best; each time is distrusted: above_ceiling"
