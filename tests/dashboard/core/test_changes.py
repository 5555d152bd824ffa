"""Two runs cell by cell: verdicts against the noise between runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.core.between_runs import UNMEASURED_NOISE, Distance, noise_between
from warpladder.dashboard.core.changes import NotComparable, Options, Side, compare, sentence
from warpladder.dashboard.core.run_data import RunData

#: Ten variants of one case, and one whose source the user changes.
OTHERS = [f"v{number:02}_same" for number in range(1, 11)]
MINE = "v11_mine"
NEAR = (1000, 1001, 999, 1000, 1002, 998, 1000, 1001)


def run(run_id: str, factors: Mapping[str, float], source: str = "one", **info: Any) -> RunData:
    """A run of all variants, each as many times slower than 1000 ns as its factor says."""
    names = [*OTHERS, MINE]
    declared = [
        variant(name, source_text=source if name == MINE else name, source_sha256=source if name == MINE else name)
        for name in names
    ]
    timed = [row for name in names for row in samples(name, [round(ns * factors.get(name, 1.0)) for ns in NEAR])]
    made = run_of(declared, timed)
    return replace(made, info={**made.info, "run_id": run_id, "label": run_id, **info})


def verdicts(a: RunData, b: RunData, options: Options = Options()) -> dict[str, str]:  # noqa: B008
    return {change.variant: change.verdict for change in compare(Side(a), Side(b), options).changes}


def test_a_run_compared_with_its_like_is_unchanged() -> None:
    found = compare(Side(run("a", {})), Side(run("b", {})))
    assert {change.verdict for change in found.changes} == {"unchanged"}
    assert (found.only_a, found.only_b, found.changed_sources) == (0, 0, ())
    assert sentence(found.changes) == "11 unchanged"


@pytest.mark.parametrize(("factor", "verdict"), [(1.05, "slower"), (0.95, "faster"), (1.005, "unchanged")])
def test_a_changed_variant_alone_is_called_slower_or_faster(factor: float, verdict: str) -> None:
    found = compare(Side(run("a", {})), Side(run("b", {MINE: factor}, source="two")))
    assert {change.variant: change.verdict for change in found.changes} == {**dict.fromkeys(OTHERS, "unchanged"), MINE: verdict}
    assert found.changed_sources == (("w", MINE),)


def test_slower_cells_come_first_and_faster_ones_last() -> None:
    # Of the second variant the median is 1.5 times as large, with an interval from 0.9 to 3: it is unchanged.
    names, wide = (MINE, *OTHERS[:2]), (900, 900, 950, 1500, 1500, 2900, 3000, 3000)
    sides = []
    for run_id, times in (("a", (NEAR, NEAR, NEAR)), ("b", ([ns * 6 // 5 for ns in NEAR], wide, [ns * 4 // 5 for ns in NEAR]))):
        timed = [row for name, durations in zip(names, times, strict=True) for row in samples(name, durations)]
        made = run_of([variant(name) for name in names], timed)
        sides.append(Side(replace(made, info={**made.info, "run_id": run_id})))
    found = compare(*sides)
    told = [(change.variant, change.verdict) for change in found.changes]
    assert told == [(MINE, "slower"), (OTHERS[0], "unchanged"), (OTHERS[1], "faster")]
    assert found.changes[1].ratio.value == pytest.approx(1.5, rel=1e-3)


def test_the_noise_between_runs_is_that_of_the_variants_whose_sources_are_equal() -> None:
    # Equal sources differ by up to 8 %, so that 5 % more of the changed one says nothing.
    scatter = {name: 1 + 0.008 * place for place, name in enumerate(OTHERS, 1)}
    found = compare(Side(run("a", {})), Side(run("b", {**scatter, MINE: 1.05}, source="two")))
    (mine,) = (change for change in found.changes if change.variant == MINE)
    assert mine.verdict == "unchanged" and 1.07 < mine.noise < 1.09
    assert verdicts(run("a", {}), run("b", {**scatter, MINE: 1.2}, source="two"))[MINE] == "slower"


def test_where_too_few_sources_are_equal_the_noise_is_the_documented_one() -> None:
    few = [variant(name, source_sha256="") for name in (OTHERS[0], MINE)]
    sides = []
    for run_id, factor in (("a", 1.0), ("b", 1.012)):
        made = run_of(few, samples(MINE, [round(ns * factor) for ns in NEAR]) + samples(OTHERS[0], NEAR))
        sides.append(Side(replace(made, info={**made.info, "run_id": run_id})))
    found = compare(*sides, Options(smallest=0.0))
    assert {(change.noise, change.verdict) for change in found.changes} == {(UNMEASURED_NOISE, "unchanged")}


def test_a_shift_that_all_variants_share_can_be_taken_out() -> None:
    a, b = run("a", {}), run("b", dict.fromkeys([*OTHERS, MINE], 1.1) | {MINE: 1.155}, source="two")
    (mine,) = (change for change in compare(Side(a), Side(b)).changes if change.variant == MINE)
    assert mine.shift == pytest.approx(1.1, rel=1e-3)
    assert (mine.ratio.value, mine.without_shift.value) == pytest.approx((1.155, 1.05), rel=1e-3)
    assert verdicts(a, b, Options(without_shift=True)) == {**dict.fromkeys(OTHERS, "unchanged"), MINE: "slower"}


def test_differences_that_make_a_comparison_unlike_are_warnings() -> None:
    facts = compare(
        Side(run("a", {}, collector="cupti", git_commit="1")), Side(run("b", {}, collector="cuda_events", git_commit="2"))
    ).facts
    assert [(fact.what, fact.a, fact.b, bool(fact.warning)) for fact in facts] == [
        ("collector", "cupti", "cuda_events", True),
        ("commit", "1", "2", False),
    ]


def test_other_devices_and_other_cells_are_not_comparable() -> None:
    other = run("b", {}, device_name="another GPU")
    with pytest.raises(NotComparable, match=r"a was recorded on GPU, b on another GPU; .* --any-device"):
        compare(Side(run("a", {})), Side(other))
    assert verdicts(run("a", {}), other, Options(any_device=True))
    with pytest.raises(NotComparable, match="no cell in common"):
        compare(Side(run("a", {})), Side(run("b", {})), Options(scope="end_to_end"))


def test_two_variants_of_one_run_are_compared_round_by_round() -> None:
    # All rounds drift together by far more than the two differ.
    drift = [1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400]
    data = run_of(
        [variant(OTHERS[0]), variant(MINE)], samples(OTHERS[0], drift) + samples(MINE, [ns * 103 // 100 for ns in drift])
    )
    data = replace(data, info={**data.info, "run_id": "a"})
    (change,) = compare(Side(data, OTHERS[0]), Side(data, MINE)).changes
    assert (change.verdict, change.variant, change.of_a) == ("slower", MINE, (OTHERS[0], ""))
    assert change.ratio.low == pytest.approx(1.03, rel=1e-3)


def ranks(name: str, durations: list[tuple[int, ...]], gpus: int) -> list[dict[str, Any]]:
    """Samples that ranks took together, a tuple for each round."""
    taken = {"workload": "w", "variant": name, "config": "", "case": "n=1", "gpus": gpus, "cache": "hot", "scope": "operation"}
    return [
        {**taken, "rank": rank, "round": number, "position": 0, "duration_ns": ns}
        for number, of_round in enumerate(durations)
        for rank, ns in enumerate(of_round)
    ]


def test_ranks_are_compared_by_the_slowest_of_each_round_with_as_many_ranks() -> None:
    sides = []
    for run_id, slowest, more in (("a", 1000, 4), ("b", 1100, 8)):
        rounds = [(700, slowest + step) for step in (0, 1, 2, 3, 4, 5, 6)]
        made = run_of([variant(MINE)], samples(MINE, NEAR, cache="hot", scope="operation"))
        together = [*ranks(MINE, rounds, 2), *ranks(MINE, [(500,) * more] * 6, more)]
        frame = pd.DataFrame(together).assign(twin=0, process=0)
        sides.append(Side(replace(made, together=frame, info={**made.info, "run_id": run_id})))
    found = compare(*sides)
    assert [(change.name, change.verdict) for change in found.changes] == [(f"{MINE} on 2 GPUs", "slower"), (MINE, "unchanged")]
    assert found.changes[0].ratio.value == pytest.approx(1103 / 1003)
    # Four GPUs of A and eight of B have no counterpart.
    assert (found.only_a, found.only_b) == (1, 1)


def test_the_noise_between_runs_is_the_quantile_of_the_other_cells_of_like_times() -> None:
    random = np.random.default_rng(6)
    cells = [
        Distance(number, "hot" if number % 3 else "cold", float(ns), abs(random.normal(0, 0.01)))
        for number, ns in enumerate(np.exp(random.uniform(0, 8, 90)))
    ]
    cells.append(Distance("not timed", "hot", 50.0, float("nan")))
    # The odd ones have no counterpart of equal code, so they are judged and tell nothing.
    equal = [cell for cell in cells if cell.key == "not timed" or int(str(cell.key)) % 2 == 0]
    for cell, noise in zip(cells, noise_between(cells, equal), strict=True):
        known = [other for other in equal if other.key != cell.key and other.timing == cell.timing and other.apart >= 0]
        like = [other for other in known if cell.time_ns / 3 <= other.time_ns <= cell.time_ns * 3]
        pool = like if len(like) >= 8 else known
        assert noise == pytest.approx(np.exp(np.quantile([other.apart for other in pool], 0.95)))
    assert noise_between(cells, equal[:8]) == [UNMEASURED_NOISE] * len(cells)


def test_the_noise_of_two_variants_of_two_runs_is_that_of_equal_code_in_both() -> None:
    """The difference that is planted is in no cell of equal code, so it does not hide itself."""
    sides = []
    for run_id, late in (("a", 1000), ("b", 1002)):
        rows = [row for other in OTHERS for row in samples(other, [late + step for step in range(8)])]
        rows += samples(MINE, [late * 103 // 100 + step for step in range(8)])
        made = run_of([variant(name) for name in (*OTHERS, MINE)], rows)
        sides.append(replace(made, info={**made.info, "run_id": run_id}))
    (change,) = compare(Side(sides[0], OTHERS[0]), Side(sides[1], MINE)).changes
    assert change.same_source and change.noise < 1.01
    assert (change.verdict, change.shift) == ("slower", pytest.approx(1.002, abs=1e-3))
