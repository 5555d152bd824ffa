"""Two runs cell by cell: verdicts against the noise between runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare import levels
from warpladder.dashboard.compare.between_runs import EqualCode, Spread
from warpladder.dashboard.compare.changes import NotComparable, Options, Side, compare, sentence, unseen
from warpladder.dashboard.compare.levels import Level, Medians, TimedCell, reading
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.views.compare import page
from warpladder.data.names import WHOLE_PROGRAM

pytestmark = pytest.mark.slow

#: Ten variants of one case, and one whose source the user changes.
OTHERS = [f"v{number:02}_same" for number in range(1, 11)]
MINE = "v11_mine"
NEAR = (1000, 1001, 999, 1000, 1002, 998, 1000, 1001, 1000)
#: The variance of the logarithm of a ratio of two medians of these: the 95 % interval of nine samples lies between the second and the eighth.
OWN = 2 * (math.log(1001 / 999) / (2 * 1.96)) ** 2


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


def few(run_id: str, factors: Mapping[str, float], source: str) -> RunData:
    """A run of two variants alone."""
    made = run(run_id, factors, source)
    kept = (MINE, OTHERS[0])
    return replace(made, samples=made.samples[made.samples["variant"].isin(kept)])


def in_three(data: RunData) -> RunData:
    """The same run, whose rounds three processes took."""
    parts = {name: getattr(data, name) for name in ("samples", "together")}
    return replace(data, **{name: part.assign(process=part["round"] % 3) for name, part in parts.items() if len(part)})


def apart(data: RunData, more: float) -> RunData:
    """The same run, in which each process takes more time than the one before, by a fraction."""
    factor = (1 + more) ** data.samples["process"].astype(float)
    return replace(data, samples=data.samples.assign(duration_ns=(data.samples["duration_ns"] * factor).round().astype(int)))


def verdicts(a: RunData, b: RunData, options: Options = Options()) -> dict[str, str]:  # noqa: B008
    return {change.variant: change.verdict for change in compare(Side(a), Side(b), options).changes}


def test_a_run_compared_with_its_like_is_tied() -> None:
    found = compare(Side(run("a", {})), Side(run("b", {})))
    assert {change.verdict for change in found.changes} == {"tied"}
    assert (found.lost, found.new, found.changed_sources) == ((), (), ())
    assert sentence(found.changes) == "11 tied; a difference below 1 % would not be seen"
    blind = [replace(change, least_effect=1999.0) for change in found.changes]
    assert sentence(blind) == "11 tied; a difference even of ten times would not be seen"


@pytest.mark.parametrize(("factor", "verdict"), [(1.05, "slower"), (0.95, "faster"), (1.005, "tied")])
def test_a_changed_variant_alone_is_called_slower_or_faster(factor: float, verdict: str) -> None:
    found = compare(Side(run("a", {})), Side(run("b", {MINE: factor}, source="two")))
    assert {change.variant: change.verdict for change in found.changes} == {**dict.fromkeys(OTHERS, "tied"), MINE: verdict}
    assert found.changed_sources == (("w", MINE),)


def test_slower_cells_come_first_and_faster_ones_last() -> None:
    # Of the second variant the medians of three processes are far apart: it is tied.
    names, wide = (MINE, *OTHERS[:2]), (900, 1500, 3000) * 3
    sides = []
    for run_id, times in (("a", (NEAR, NEAR, NEAR)), ("b", ([ns * 6 // 5 for ns in NEAR], wide, [ns * 4 // 5 for ns in NEAR]))):
        timed = [row for name, durations in zip(names, times, strict=True) for row in samples(name, durations)]
        made = in_three(run_of([variant(name, source_sha256=run_id) for name in names], timed))
        sides.append(Side(replace(made, info={**made.info, "run_id": run_id})))
    found = compare(*sides)
    told = [(change.variant, change.verdict) for change in found.changes]
    assert told == [(MINE, "slower"), (OTHERS[0], "tied"), (OTHERS[1], "faster")]
    assert found.changes[1].ratio.high > 2


def test_the_noise_between_runs_is_that_of_the_variants_whose_sources_are_equal() -> None:
    # Equal sources differ by 0.8 % to 8 %, so that 5 % more than their median says nothing.
    scatter = {name: 1 + 0.008 * place for place, name in enumerate(OTHERS, 1)}
    found = compare(Side(run("a", {})), Side(run("b", {**scatter, MINE: 1.05 * 1.044}, source="two")))
    (mine,) = (change for change in found.changes if change.variant == MINE)
    # Of ten, each counts relative to the median of the other nine: the sixth, or of the later five the fifth.
    moved = [math.log((1 + 0.008 * place) / (1 + 0.008 * (6 if place <= 5 else 5))) for place in range(1, 11)]
    # The three quarters: of ten distances in order, 0 to 9, the one at place 6.75.
    seventh, eighth = sorted(map(abs, moved))[6:8]
    noise = math.exp(1.6 * 2.228 * math.sqrt(OWN + ((seventh + 0.75 * (eighth - seventh)) / 1.1503) ** 2))
    assert mine.noise == pytest.approx(noise, abs=0.003) and mine.verdict == "tied"
    assert (mine.shift, mine.ratio.value) == pytest.approx((1.044, 1.05), rel=2e-3)
    assert verdicts(run("a", {}), run("b", {**scatter, MINE: 1.3}, source="two"))[MINE] == "slower"


@pytest.mark.parametrize("by", [1.03, 1.1, 1.57])
def test_one_cell_of_equal_code_that_moves_hides_no_slowdown_and_is_named(by: float) -> None:
    """As by a library that was upgraded: 36 of 36 cells were tied where one had doubled."""
    found = compare(Side(run("a", {})), Side(run("b", {OTHERS[3]: 2.0, MINE: by}, source="two")))
    told = {change.variant: change.verdict for change in found.changes if change.verdict != "tied"}
    assert told == {OTHERS[3]: "drifted", MINE: "slower"}
    assert {change.variant: round(change.ratio.value, 2) for change in found.changes if change.verdict != "tied"} == {
        OTHERS[3]: 2,
        MINE: by,
    }


def test_what_the_machine_does_to_a_round_cancels() -> None:
    """Each round of B lasts up to three times as long as usual, for all variants alike, and 4 % more of one is found."""
    load = (1.0, 2.9, 1.4, 3.0, 1.1, 2.2, 1.8, 2.6, 2.0)
    before, after = run("a", {}), run("b", {MINE: 1.04}, source="two")
    rounds = after.samples["round"].map(dict(enumerate(load)))
    after = replace(
        after, samples=after.samples.assign(duration_ns=(after.samples["duration_ns"] * rounds).round().astype(int))
    )
    (mine,) = (change for change in compare(Side(before), Side(after)).changes if change.variant == MINE)
    assert (mine.verdict, mine.ratio.value) == ("slower", pytest.approx(1.04, abs=2e-3))
    assert mine.shift == pytest.approx(2.0, rel=0.01), "the median of the load: between 1.8 and 2.2"
    assert compare(Side(before), Side(after), Options(absolute=True)).of("slower") == ()


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.5])
def test_one_process_and_no_equal_source_give_no_verdict(factor: float) -> None:
    """The times of two processes of one H200 differ by up to 1.3 % at 5 to 20 us, and on a host by 3 % and more."""
    sides = [few(run_id, {MINE: by}, source=run_id) for run_id, by in (("a", 1.0), ("b", factor))]
    sides = [replace(side, samples=side.samples[side.samples["variant"] == MINE]) for side in sides]
    found = compare(*map(Side, sides))
    assert {change.verdict for change in found.changes} == {"unknown"}
    assert all(math.isnan(change.noise) and math.isnan(change.least_effect) for change in found.changes)
    assert sentence(found.changes) == "1 unknown"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "tied"), (0.9, "tied"), (1.5, "slower"), (0.5, "faster")])
def test_one_process_and_one_equal_cell_tell_large_changes_alone(factor: float, verdict: str) -> None:
    sides = [few(run_id, {MINE: by}, source=run_id) for run_id, by in (("a", 1.0), ("b", factor))]
    (mine,) = (change for change in compare(*map(Side, sides)).changes if change.variant == MINE)
    # 1.6 times Student's 12.7 of one distance, which counts as 1 % though it is 0.
    assert mine.noise == pytest.approx(np.exp(1.6 * 12.706 * np.hypot(np.log(1.01), OWN**0.5)), rel=1e-3)
    assert mine.verdict == verdict


def test_three_processes_hold_the_noise_between_them() -> None:
    sides = [in_three(few(run_id, {MINE: by}, source=run_id)) for run_id, by in (("a", 1.0), ("b", 1.05))]
    assert verdicts(*sides) == {MINE: "slower", OTHERS[0]: "tied"}
    # What a process does to all variants alike cancels. Where it is one variant that each process finds slower, 1.05 is within their noise.
    assert verdicts(*(apart(side, 0.04) for side in sides))[MINE] == "slower"
    alone = [replace(side, samples=side.samples.assign(duration_ns=apart(side, 0.04).samples["duration_ns"].where(
        side.samples["variant"] == MINE, side.samples["duration_ns"]))) for side in sides]  # fmt: skip
    assert verdicts(*alone) == {MINE: "tied", OTHERS[0]: "tied"}


@pytest.mark.parametrize(("samples_of_b", "verdict"), [(5, "unknown"), (6, "slower")])
def test_fewer_than_six_samples_of_a_side_give_no_verdict(samples_of_b: int, verdict: str) -> None:
    a, b = run("a", {}), run("b", {MINE: 2.0}, source="two")
    b = replace(b, samples=b.samples[b.samples["round"] < samples_of_b])
    assert verdicts(a, b)[MINE] == verdict
    assert verdicts(b, a)[MINE] == verdict.replace("slower", "faster")


def test_equal_code_whose_time_differs_has_drifted() -> None:
    found = compare(Side(run("a", {})), Side(run("b", {MINE: 1.3})))
    assert verdicts(run("a", {}), run("b", {MINE: 1.3})) == {**dict.fromkeys(OTHERS, "tied"), MINE: "drifted"}
    assert sentence(found.changes).startswith("10 tied, 1 drifted; a difference below ")
    # Where no source was recorded, nothing is known to be equal.
    unknown = [replace(side, variants=side.variants.assign(source_sha256="")) for side in (run("a", {}), run("b", {MINE: 1.3}))]
    assert verdicts(*unknown)[MINE] == "slower"


def test_where_no_source_was_recorded_a_common_slowdown_is_no_shift() -> None:
    """All of them took 1.3 times as long, and were tied with differences below 1 % invisible."""
    sides = [run("a", {}), run("b", dict.fromkeys((*OTHERS, MINE), 1.3))]
    found = compare(*(Side(replace(side, variants=side.variants.assign(source_sha256=""))) for side in sides))
    assert len(unseen(found.changes, None)) == 11
    assert [change.ratio.value for change in found.changes] == pytest.approx([1.3] * 11, rel=2e-3)
    assert {page._source(change) for change in found.changes} == {"not recorded"}
    known = compare(Side(run("a", {})), Side(run("b", {}, source="two"))).changes
    assert [page._source(each) for each in known if each.variant in (MINE, OTHERS[0])] in (
        ["differs", "equal"],
        ["equal", "differs"],
    )


def recordings(times: Sequence[float], names: Sequence[str] = (OTHERS[0],)) -> list[Medians]:
    """Runs of one machine, each with all variants as many times slower."""
    every = [run(f"h{place}", dict.fromkeys(names, by)) for place, by in enumerate(times)]
    every = [replace(each, samples=each.samples[each.samples["variant"].isin(names)]) for each in every]
    return [reading(each).medians("w") for each in every]


def test_what_the_machine_has_shown_tells_the_noise_of_a_single_process() -> None:
    a, b = few("a", {}, source="a"), few("b", {MINE: 1.1}, source="b")
    known = recordings([1.0, 1.01, 1.0, 1.01])
    asked: list[str] = []

    def history(workload: str) -> list[Medians]:
        asked.append(workload)
        return known

    found = compare(Side(a), Side(b), history=history)
    assert {change.variant: change.verdict for change in found.changes} == {MINE: "slower", OTHERS[0]: "tied"}
    assert asked == ["w"]
    noise = np.exp(1.6 * 3.182 * np.hypot(np.log(1.01) / 1.1503, OWN**0.5))
    assert [change.noise for change in found.changes] == pytest.approx([noise] * 2, abs=2e-4)
    # Two pairs of runs are too few, and of many cells those of one pair count once; the two runs themselves are no history.
    own = [reading(each).medians("w") for each in (a, b)]
    for few_runs in (known[:3], recordings([1.0, 1.01], OTHERS), own * 4):
        found = compare(Side(a), Side(b), history=lambda workload, runs=few_runs: runs)
        assert {change.verdict for change in found.changes if change.variant == MINE} == {"tied"}


def test_a_drift_of_every_cell_is_a_shift_and_no_change() -> None:
    found = compare(Side(run("a", {})), Side(run("b", dict.fromkeys((*OTHERS, MINE), 1.1), source="two")))
    assert {change.verdict for change in found.changes} == {"tied"}
    assert [change.shift for change in found.changes] == pytest.approx([1.1] * 11, rel=2e-3)
    assert [fact.text for fact in found.facts] == [
        "time of the unchanged variants of w: 1 → 1.10 (left out of the ratios; --absolute judges times as they are)"
    ]


def test_a_shift_that_the_unchanged_variants_share_is_taken_out() -> None:
    a, b = run("a", {}), run("b", dict.fromkeys(OTHERS, 1.1) | {MINE: 1.155}, source="two")
    (mine,) = (change for change in compare(Side(a), Side(b)).changes if change.variant == MINE)
    assert (mine.verdict, mine.shift, mine.ratio.value) == (
        "slower",
        pytest.approx(1.1, rel=1e-3),
        pytest.approx(1.05, rel=1e-3),
    )
    (mine,) = (change for change in compare(Side(a), Side(b), Options(absolute=True)).changes if change.variant == MINE)
    assert math.isnan(mine.shift) and mine.ratio.value == pytest.approx(1.155, rel=1e-3)


@pytest.mark.parametrize(("of_what", "verdict"), [(WHOLE_PROGRAM, "slower"), ("", "tied")])
def test_a_program_that_takes_longer_is_slower_though_its_files_are_equal(of_what: str, verdict: str) -> None:
    """It may load other modules or libraries; of three functions nothing tells which one moved."""
    sides = []
    for name, factor in (("a", 1.0), ("b", 5.5)):
        programs = {"v01_one": 1.0, "v02_two": factor, "v03_three": 1.1 if name == "b" else 1.0}
        declared = [variant(each, kind="host", source=of_what, source_sha256=each) for each in programs]
        timed = [
            row
            for each, more in programs.items()
            for row in samples(each, [round(ns * more) for ns in NEAR], scope="operation", cache="hot", gpus=0)
        ]
        made = run_of(declared, timed)
        sides.append(Side(replace(made, info={**made.info, "run_id": name, "label": name})))
    found = compare(*sides)
    assert {each.variant: each.verdict for each in found.changes} == {
        "v01_one": "tied",
        "v02_two": verdict,
        "v03_three": "tied",
    }
    assert unseen(found.changes, None) == ()


def test_differences_that_make_a_comparison_unlike_are_warnings() -> None:
    facts = compare(
        Side(run("a", {}, collector="cupti", git_commit="1")), Side(run("b", {}, collector="cuda_events", git_commit="2"))
    ).facts
    assert [(fact.what, fact.a, fact.b, bool(fact.warning)) for fact in facts] == [
        ("collector", "cupti", "cuda_events", True),
        ("commit", "1", "2", False),
    ]


@pytest.mark.parametrize(
    ("of_a", "of_b", "told"), [(8, 4, ["threads of the processor: 8 → 4"]), (8, None, []), (None, None, [])]
)
def test_what_an_older_run_does_not_tell_is_no_difference(of_a: int | None, of_b: int | None, told: list[str]) -> None:
    facts = compare(Side(run("a", {}, cpu_threads=of_a)), Side(run("b", {}, cpu_threads=of_b))).facts
    assert [fact.text.partition(" (")[0] for fact in facts] == told


def test_other_devices_and_other_cells_are_not_comparable() -> None:
    other = run("b", {}, device_name="another GPU")
    with pytest.raises(NotComparable, match=r"a was recorded on GPU, b on another GPU; .* --any-device"):
        compare(Side(run("a", {})), Side(other))
    assert verdicts(run("a", {}), other, Options(any_device=True))
    with pytest.raises(NotComparable, match="no cell of scope end_to_end in common; A has the scopes device"):
        compare(Side(run("a", {})), Side(run("b", {})), Options(scope="end_to_end"))


def test_runs_without_a_gpu_are_not_comparable_on_other_processors() -> None:
    sides = [Side(run(name, {}, device_name="", cpu_name=name)) for name in ("a", "b")]
    with pytest.raises(NotComparable, match=r"a was recorded on a, b on b; .* --any-device"):
        compare(*sides)
    assert compare(*sides, Options(any_device=True)).facts[0].text == "processor: a → b"


def test_what_makes_two_runs_answer_other_questions_is_told() -> None:
    """A faster variant in another precision, a case of the same name with more work, and a pair of runs without an unchanged variant."""
    a, b = few("a", {}, "one"), few("b", {MINE: 0.5}, "two")
    work = b.cases.assign(min_bytes=2 * b.cases["min_bytes"])
    tf32 = b.variants.assign(precision=b.variants["precision"].mask(b.variants["variant"] == MINE, "tf32"))
    only = replace(in_three(b), samples=in_three(b).samples[lambda rows: rows["variant"] == MINE], cases=work, variants=tf32)
    assert [fact.text for fact in compare(Side(in_three(a)), Side(only)).facts] == [
        "bytes of w n=1: 100 → 200 (the case has other work under the same name)",
        f"precision of w {MINE}: fp32 → tf32 (the results have other digits)",
        "unchanged variants of w: none (another clock or a busy machine looks like other code)",
    ]


def test_a_run_whose_samples_are_gone_is_named() -> None:
    gone = run("gone", {})
    gone = replace(gone, samples=gone.samples[:0])
    with pytest.raises(NotComparable, match="gone has no times: its table `samples` is missing or empty; record it again"):
        compare(Side(run("a", {})), Side(gone))


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
        rounds = [(700, slowest + step) for step in (0, 1, 2, 3, 4, 5, 6, 3, 3)]
        made = run_of([variant(MINE)], samples(MINE, NEAR, cache="hot", scope="operation"))
        together = [*ranks(MINE, rounds, 2), *ranks(MINE, [(500,) * more] * 6, more)]
        frame = pd.DataFrame(together).assign(twin=0, process=0)
        sides.append(Side(in_three(replace(made, together=frame, info={**made.info, "run_id": run_id}))))
    found = compare(*sides)
    assert [(change.name, change.verdict) for change in found.changes] == [(f"{MINE} on 2 GPUs", "slower"), (MINE, "tied")]
    assert found.changes[0].ratio.value == pytest.approx(1103 / 1003)
    # Four GPUs of A and eight of B have no counterpart.
    assert [(each.name, each.reason) for each in found.lost] == [(f"{MINE} on 4 GPUs", "lost: not recorded in B")]
    assert [name for _, _, name, _ in found.new] == [f"{MINE} on 8 GPUs"]


def test_processes_of_a_host_are_not_called_gpus() -> None:
    sides = []
    for run_id, count in (("a", 2), ("b", 4)):
        both = [*ranks(MINE, [(500, 500)] * 9, 2), *ranks(MINE, [(300,) * count] * 9, count)]
        made = run_of([variant(MINE, role="host", kind="host")], samples(MINE, NEAR, cache="hot", scope="operation", gpus=0))
        frame = pd.DataFrame(both if count > 2 else both[:18]).assign(twin=0, process=0)
        sides.append(Side(replace(made, together=frame, info={**made.info, "run_id": run_id})))
    found = compare(*sides)
    assert {change.name for change in found.changes} == {MINE, f"{MINE} on 2 processes"}
    assert [name for _, _, name, _ in found.new] == [f"{MINE} on 4 processes"]
    lost = compare(*sides[::-1]).lost
    assert [each.name for each in lost] == [f"{MINE} on 4 processes"]


def test_three_quarters_of_the_distances_tell_the_noise_however_far_the_others_moved() -> None:
    near = [0.01, -0.011, 0.012, -0.013, 0.014, 0.015, 0.016]
    # Of nine distances in order, 0 to 8, the one at place 6.
    assert Spread.of(np.array([*near, 0.7, -2.0])) == (pytest.approx((0.016 / 1.1503) ** 2), 9)
    assert Spread.of(np.array([])) == (0, 0)


def test_eight_cells_of_like_times_are_enough_and_the_cells_own_distance_is_left_out() -> None:
    names = [f"v{number:02}" for number in range(20)]
    logs, moved, variances = np.linspace(0, 3, 20), np.linspace(0.001, 0.02, 20), np.full(20, 1e-6)
    cells = [TimedCell("n=1", "device", "cold", name, "", 1) for name in names]
    equal = EqualCode({cell: place for place, cell in enumerate(cells)}, logs, moved, variances)
    like = [place for place in range(20) if place != 10 and abs(logs[place] - logs[10]) <= np.log(3)]
    assert len(like) >= 8 and equal.spread(float(logs[10]), cells[10]) == Spread.of(moved[like])
    assert equal.spread(-9.0).freedom == 20, "no cell is alike, so all count"
    # Of the host: the errors of the others are too small by a factor, and so are those of this cell, whose variance is 4 times as large.
    level, found = Level((float(logs[10]),), (2 * 1e-6) ** 0.5, 0.0, 20), Spread.of(moved[like])
    assert equal.excess(level, level, cells[10]) == pytest.approx((4 * (found.variance - 1e-6), len(like)))


def busy(run_id: str, factor: float, part: float, source: str) -> RunData:
    """A run on a host whose other programs lengthen half of the samples, of each variant other ones; MINE takes longer in a part of its calls."""
    chance = np.random.default_rng(sum(map(ord, run_id)))
    rows = []
    for name in (*OTHERS, MINE):
        ns = 1e6 * (1 + 0.002 * chance.standard_normal(90)) * np.where(chance.random(90) < 1 / 2, 1 + chance.random(90), 1)
        ns *= np.where(chance.random(90) < part, factor, 1) if name == MINE else 1
        rows += samples(name, ns.round().astype(int).tolist(), scope="operation", cache="hot")
    sources = {name: source if name == MINE else name for name in (*OTHERS, MINE)}
    made = run_of([variant(name, source_sha256=sources[name], source_text=sources[name]) for name in sources], rows)
    return replace(made, info={**made.info, "run_id": run_id})


@pytest.mark.parametrize(("factor", "part", "ratio"), [(1.05, 1.0, 1.05), (3.0, 0.6, None)], ids=["all calls", "part of them"])
def test_a_lower_quartile_shows_on_a_busy_host_what_the_median_hides_and_the_median_the_rest(
    factor: float, part: float, ratio: float | None
) -> None:
    found = compare(Side(busy("a", 1.0, 1.0, "one")), Side(busy("b", factor, part, "two"))).changes
    told = {change.variant: change for change in found if change.verdict != "tied"}
    assert {name: change.verdict for name, change in told.items()} == {MINE: "slower"}
    assert ratio is None or told[MINE].ratio.value == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize(("unchanged", "verdict"), [(3, "slower"), (2, "tied")])
def test_three_unchanged_variants_are_enough_for_the_lower_quartile(unchanged: int, verdict: str) -> None:
    kept = [*OTHERS[:unchanged], MINE]
    sides = (busy("a", 1.0, 1.0, "one"), busy("b", 1.05, 1.0, "two"))
    a, b = (replace(side, samples=side.samples[side.samples["variant"].isin(kept)]) for side in sides)
    assert verdicts(a, b)[MINE] == verdict


def test_the_noise_of_two_variants_of_two_runs_is_that_of_equal_code_in_both() -> None:
    """The difference that is planted is in no cell of equal code, so it does not hide itself."""
    sides = []
    for run_id, late in (("a", 1000), ("b", 1002)):
        rows = [row for other in OTHERS for row in samples(other, [late + step for step in range(8)])]
        rows += samples(MINE, [late * 103 // 100 + step for step in range(8)])
        made = run_of([variant(name, source_sha256=name) for name in (*OTHERS, MINE)], rows)
        sides.append(replace(made, info={**made.info, "run_id": run_id}))
    (change,) = compare(Side(sides[0], OTHERS[0]), Side(sides[1], MINE)).changes
    assert not change.same_source and change.noise < 1.01
    assert (change.verdict, change.shift) == ("slower", pytest.approx(1.002, abs=1e-3))


def test_a_ratio_that_few_values_tell_has_a_wide_interval_and_no_error() -> None:
    """The t of half a degree of freedom is in the hundreds: e to its power overflows."""
    level = Level((7.0, 7.5, 8.0), 2.0, 0.25, 9)
    found = levels.ratio(level, level)
    assert found.value == 1 and 0 < found.low < 1e-20 and 1e20 < found.high < math.inf
