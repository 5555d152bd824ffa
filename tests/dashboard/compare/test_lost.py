"""What a run has and a later one lost fails a comparison, with its name and reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from tests.dashboard.core.test_queries_cells import frame, run_of, samples, variant
from warpladder.dashboard.compare.changes import Comparison, NotComparable, Options, Side, compare, loss_lines, sentence, unseen
from warpladder.dashboard.core.run_data import RunData
from warpladder.data.names import Source, diagnostic_row

pytestmark = pytest.mark.slow

TIMES = (100, 101, 99, 100, 102, 98)
BASE, TILE, PEER, PITFALL = "v01_base", "v02_tile", "library", "specimen"
#: Every cell of A: variant, config, case.
CELLS = [(BASE, "", "n=1"), (BASE, "", "n=2"), (TILE, "block=8", "n=1"), (TILE, "block=8", "n=2"), (PEER, "", "n=1")]


def run(
    run_id: str, cells: Sequence[tuple[str, str, str]], failed: Mapping[tuple[str, str, str], tuple[str, str]] = {}, **more: Any
) -> RunData:
    """A run with times of cells, and verdicts about others."""
    names = more.get("names", (BASE, TILE, PEER))
    declared = [variant(name, role="peer" if name == PEER else "rung", source_sha256=name) for name in names if name != PITFALL]
    declared += [variant(PITFALL, role="specimen", source_sha256=PITFALL)] if PITFALL in names else []
    timed = [row for name, config, case in cells for row in samples(name, TIMES, case=case, config=config)]
    rows = {**dict.fromkeys(cells, ("ok", "")), **failed}
    results = [
        {"workload": "w", "variant": name, "config": config, "case": case, "status": status, "detail": detail}
        for (name, config, case), (status, detail) in rows.items()
    ]
    known = dict.fromkeys(case for _, _, case in rows)
    cases = [{"workload": "w", "case": case, "size_rank": place, "params": "{}"} for place, case in enumerate(known)]
    made = run_of(declared, timed, results, cases, more.get("diagnostics", ()))
    return replace(made, info={**made.info, "run_id": run_id, "label": run_id})


A = run("a", CELLS)


def against(b: RunData, **options: Any) -> Comparison:
    return compare(Side(A), Side(b), Options(**options))


def lost_of(found: Comparison) -> list[tuple[str, str, str, bool]]:
    return [(each.case, each.name, each.reason, each.fails) for each in found.lost]


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        ("wrong_result", "relative error 0.3"),
        ("launch_error", "its process crashed"),
        ("timeout", "no end within 60 s"),
        ("out_of_memory", "2 GB more"),
        ("skipped", "CuPy is not installed"),
    ],
)
def test_a_cell_that_became_wrong_or_does_not_run_any_more_fails(status: str, detail: str) -> None:
    failed = {(TILE, "block=8", "n=2"): (status, detail)}
    found = against(run("b", [cell for cell in CELLS if cell not in failed], failed))
    assert lost_of(found) == [("n=2", f"{TILE}[block=8]", f"{status}: {detail}", True)]
    assert sentence(found.changes, found.lost).startswith("1 wrong or lost, 4 ")
    assert loss_lines(found.lost) == [(True, f"w n=2 {TILE}[block=8]: {status}: {detail}")]


def test_of_two_variants_the_one_that_is_wrong_is_named_too() -> None:
    wrong = run("b", [cell for cell in CELLS if cell[0] != PEER], {(PEER, "", "n=1"): ("wrong_result", "off")})
    (lost,) = compare(Side(A, TILE), Side(wrong, PEER), Options(match="best")).lost[:1]
    assert loss_lines([lost]) == [(True, f"w n=1 {TILE}[block=8] → {PEER}: wrong_result: off")]


@pytest.mark.parametrize(
    ("left", "names", "reason"),
    [
        ([cell for cell in CELLS if cell[0] != TILE], (BASE, PEER), "lost: B has no such variant"),
        ([cell for cell in CELLS if cell[2] != "n=2"], (BASE, TILE, PEER), "lost: not recorded in B"),
    ],
)
def test_a_variant_or_a_case_that_is_gone_fails(left: list[tuple[str, str, str]], names: tuple[str, ...], reason: str) -> None:
    found = against(run("b", left, names=names))
    assert {(each.reason, each.fails) for each in found.lost} == {(reason, True)} and len(found.lost) == 2


def test_a_renamed_config_is_lost_and_new() -> None:
    renamed = [(name, config.replace("block=8", "rows=8"), case) for name, config, case in CELLS]
    found = against(run("b", renamed))
    assert lost_of(found) == [(f"n={n}", f"{TILE}[block=8]", "lost: not recorded in B", True) for n in (1, 2)]
    assert [(case, name) for _, case, name, _ in found.new] == [(f"n={n}", f"{TILE}[rows=8]") for n in (1, 2)]
    assert not against(run("b", renamed), match="best").lost, "the fastest config is asked for, whatever its name"


def test_a_case_that_the_time_did_not_suffice_for_is_lost_with_that_reason() -> None:
    text = "1 case not reached within 60 s of measuring; to record them: warpladder record w --case n=2"
    told_by_b = [{"source": Source.NOT_REACHED, "severity": "info", "text": text}]
    found = against(run("b", [cell for cell in CELLS if cell[2] == "n=1"], diagnostics=told_by_b))
    assert {(each.reason, each.fails) for each in found.lost} == {(f"lost: {text}", True)}


def test_a_cell_whose_work_was_not_done_fails_unless_it_was_not_before_or_its_source_is_equal() -> None:
    cell = {"workload": "w", "variant": TILE, "config": "block=8", "case": "n=2"}
    found = diagnostic_row("warning", Source.REPEATS_SKIPPED, "the repeats of a batch are skipped", cell)
    same = run("b", CELLS, diagnostics=[found])
    assert against(same).lost == ()
    mine = same.variants["variant"] == TILE
    doubted = replace(same, variants=same.variants.assign(source_sha256=same.variants["source_sha256"].mask(mine, "new")))
    of_b = against(doubted)
    assert lost_of(of_b) == [("n=2", f"{TILE}[block=8]", "distrusted: repeats_skipped", True)]
    assert sentence(of_b.changes, of_b.lost).startswith("1 wrong or lost, 4 ")
    assert compare(Side(same), Side(doubted)).lost == ()


@pytest.mark.parametrize(
    ("of_a", "of_b", "verdict", "told"),
    [
        ("", "throttling", "unknown", "none → throttling (no verdict: look at Trust)"),
        ("never_synchronized", "", "unknown", "never_synchronized → none (no verdict: look at Trust)"),
        ("waits_inside", "throttling", "unknown", "waits_inside → throttling (no verdict: look at Trust)"),
        ("throttling", "throttling", "slower", "throttling (judged all the same)"),
        ("", "", "slower", ""),
    ],
)
def test_a_time_that_is_distrusted_on_one_side_has_no_verdict(of_a: str, of_b: str, verdict: str, told: str) -> None:
    about = {"workload": "w", "variant": TILE, "config": "block=8", "case": "n=2"}
    sides = []
    for name, source in (("a", of_a), ("b", of_b)):
        made = run(name, CELLS, diagnostics=[diagnostic_row("warning", source, "", about)] if source else [])
        mine = (made.samples["variant"] == TILE) & (made.samples["case"] == "n=2")
        longer = made.samples["duration_ns"].mask(mine, (made.samples["duration_ns"] * (2 if name == "b" else 1)))
        of_source = made.variants["source_sha256"].mask(made.variants["variant"] == TILE, name)
        timed = made.samples.assign(duration_ns=longer, process=made.samples["round"] % 2)
        sides.append(replace(made, samples=timed, variants=made.variants.assign(source_sha256=of_source)))
    found = compare(*map(Side, sides))
    assert {each.case: each.verdict for each in found.changes if each.variant == TILE} == {"n=1": "tied", "n=2": verdict}
    distrust = [fact.text for fact in found.facts if fact.what.startswith("distrust")]
    assert distrust == ([f"distrust of w n=2 {TILE}[block=8]: {told}"] if told else [])
    assert [each.case for each in unseen(found.changes, None)] == (["n=2"] if verdict == "unknown" else [])


def test_what_was_not_ok_before_and_a_specimen_that_is_caught_do_not_fail() -> None:
    bad = {(TILE, "block=8", "n=1"): ("wrong_result", "off"), (PITFALL, "", "n=1"): ("wrong_result", "caught")}
    timed = [cell for cell in CELLS if cell not in bad]
    names = (BASE, TILE, PEER, PITFALL)
    before, after = run("a", timed, bad, names=names), run("b", timed, bad, names=names)
    assert compare(Side(before), Side(after)).lost == ()
    uncaught = run("a", [*timed, (PITFALL, "", "n=1")], {(TILE, "block=8", "n=1"): ("wrong_result", "off")}, names=names)
    assert compare(Side(uncaught), Side(after)).lost == ()


@pytest.mark.parametrize(("name", "fails"), [("v03_new", True), ("new_library", False), (PITFALL, None)])
def test_a_new_variant_that_is_wrong_is_named_and_fails_if_it_is_your_own(name: str, fails: bool | None) -> None:
    made = run("b", CELLS, {(name, "", "n=1"): ("wrong_result", "off")}, names=(BASE, TILE, PEER, PITFALL))
    added = frame("variants", [variant(name, role="peer" if fails is False else "rung")] if name != PITFALL else [])
    made = replace(made, variants=pd.concat([made.variants, added], ignore_index=True))
    expected = [("n=1", name, "wrong_result: off", fails)] if fails is not None else []
    assert lost_of(against(made)) == expected
    assert lost_of(compare(Side(A, BASE), Side(made, BASE))) == []
    assert lost_of(compare(Side(made), Side(made))) == []


def test_a_run_in_which_nothing_ran_any_more_fails_and_is_not_refused() -> None:
    found = against(run("b", [], dict.fromkeys(CELLS, ("wrong_result", "all wrong"))))
    assert len(found.lost) == len(CELLS) and all(each.fails for each in found.lost) and not found.changes
    with pytest.raises(NotComparable, match="no cell in common"):
        against(run("b", [(BASE, "", "n=9")]))


def test_of_a_partial_run_only_what_it_has_a_verdict_about_fails() -> None:
    failed = {(TILE, "block=8", "n=1"): ("launch_error", "crashed")}
    found = against(run("b", [(BASE, "", "n=1")], failed), partial=True)
    assert [(each.name, each.status) for each in found.lost if each.fails] == [(f"{TILE}[block=8]", "launch_error")]
    assert len(found.lost) == 4


def test_only_what_was_asked_for_counts() -> None:
    failed = {(TILE, "block=8", "n=1"): ("wrong_result", "off"), (PEER, "", "n=1"): ("skipped", "not installed")}
    b = run("b", [cell for cell in CELLS if cell not in failed], failed)
    assert compare(Side(A, BASE), Side(b, BASE)).lost == ()
    (lost,) = compare(Side(A, TILE), Side(b, TILE)).lost
    assert (lost.status, lost.fails) == ("wrong_result", True)
    # Of two variants, one that is wrong fails, and one that cannot run in a case does not.
    best = Options(match="best")
    assert [each.fails for each in compare(Side(A, BASE), Side(b, TILE), best).lost] == [True]
    two = run("b", CELLS, {(PEER, "", "n=2"): ("skipped", "too large")})
    assert [(each.status, each.fails) for each in compare(Side(A, BASE), Side(two, PEER), best).lost] == [("skipped", False)]


def test_a_workload_that_is_gone_fails_too() -> None:
    added = {
        "samples": [{**row, "workload": "other"} for row in samples(BASE, TIMES)],
        "variants": [{**variant(BASE), "workload": "other"}],
        "cases": [{"workload": "other", "case": "n=1", "size_rank": 0, "params": "{}"}],
    }
    both = replace(A, **{name: pd.concat([getattr(A, name), frame(name, rows)]) for name, rows in added.items()})
    both = replace(both, samples=both.samples.reset_index(drop=True))
    found = compare(Side(both), Side(run("b", CELLS)))
    assert [(each.workload, each.reason, each.fails) for each in found.lost] == [
        ("other", "lost: B has no such workload", True)
    ]


def test_many_cells_with_one_reason_are_one_line() -> None:
    found = against(run("b", [(BASE, "", "n=1")], dict.fromkeys(CELLS[1:], ("wrong_result", "off"))))
    assert loss_lines(found.lost) == [
        (True, f"w n=2 {BASE}, n=1 {TILE}[block=8], n=2 {TILE}[block=8] and 1 more: wrong_result: off")
    ]
