"""What changed in variants that were recorded again: slower or faster by how much, and wrong where it is wrong."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare.levels import reading
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import verdict
from warpladder.dashboard.text.verdict import JudgedVariant, verdicts

pytestmark = pytest.mark.slow

NEAR = (1000, 1001, 999, 1000, 1002, 998, 1000, 1001, 1000)
BASE, MINE = "v01_base", "v02_mine"


def run(
    run_id: str, factors: Mapping[tuple[str, str], float], sources: Mapping[str, str] | None = None, **more: Any
) -> RunData:
    """A run of two variants: each cell takes 1000 ns times its factor. A cell without a factor has no samples."""
    source = {BASE: "base", MINE: run_id, **(sources or {})}
    declared = [variant(name, source_text=source[name], source_sha256=source[name]) for name in (BASE, MINE)]
    timed = [
        row
        for (name, case), factor in factors.items()
        for twin in ((0, 1) if name == BASE else (0,))
        for row in samples(name, [round(ns * factor) for ns in NEAR], case=case, twin=twin)
    ]
    known = dict.fromkeys(case for _, case in factors)
    cases = [{"workload": "w", "case": case, "size_rank": rank, "params": "{}"} for rank, case in enumerate(known)]
    results = [{"workload": "w", "variant": name, "case": case, "status": "ok"} for name, case in factors]
    made = run_of(declared, timed, [*results, *more.get("results", ())], cases)
    made = replace(made, samples=made.samples.assign(process=made.samples["round"] % more.get("processes", 3)))
    return replace(made, info={**made.info, "run_id": run_id, "device_name": more.get("device", "GPU")})


def told(monkeypatch: pytest.MonkeyPatch, last: RunData | None, now: RunData, *names: str) -> list[list[str]]:
    """The lines without the headings, each in its columns."""
    monkeypatch.setattr(verdict, "_load", lambda path: last)
    text = verdicts(now, [JudgedVariant("w", name, "runs/last" if last else "") for name in names])
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in text.splitlines()][1:]


def test_a_slower_variant_has_its_ratio_both_times_and_its_speedup(monkeypatch: pytest.MonkeyPatch) -> None:
    last, now = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.5}), run("b", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.65})
    ((name, word, ratio, *rest),) = told(monkeypatch, last, now, MINE)
    assert (name, word, ratio.split(" ")[0]) == (MINE, "slower", "1.30×")
    assert rest == ["n=1", "500 ns", "650 ns", f"1.54× {BASE}"]


def test_a_machine_that_became_slower_as_a_whole_makes_no_variant_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    last, now = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.5}), run("b", {(BASE, "n=1"): 1.3, (MINE, "n=1"): 0.65})
    ((_, word, ratio, *_),) = told(monkeypatch, last, now, MINE)
    assert (word, ratio.split(" ")[0]) == ("tied", "1.00×")


def test_a_baseline_that_changed_too_is_not_what_others_are_judged_by(monkeypatch: pytest.MonkeyPatch) -> None:
    last = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.5})
    now = run("b", {(BASE, "n=1"): 1.3, (MINE, "n=1"): 0.65}, {BASE: "another"})
    lines = told(monkeypatch, last, now, BASE, MINE)
    assert [(line[1], line[2].split(" ")[0]) for line in lines] == [("slower", "1.30×"), ("slower", "1.30×")]
    assert lines[0][-1] == "the baseline itself"


def test_a_difference_within_the_noise_is_tied(monkeypatch: pytest.MonkeyPatch) -> None:
    last, now = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 1}), run("b", {(BASE, "n=1"): 1, (MINE, "n=1"): 1.008})
    ((_, word, *_),) = told(monkeypatch, last, now, MINE)
    assert word == "tied"


def test_of_several_cases_the_largest_change_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [(name, case) for name in (BASE, MINE) for case in ("n=1", "n=2", "n=3")]
    last = run("a", dict.fromkeys(cells, 1.0))
    now = run("b", {**dict.fromkeys(cells, 1.0), (MINE, "n=1"): 1.2, (MINE, "n=2"): 1.5, (MINE, "n=3"): 0.5})
    ((_, word, ratio, case, before, after, over),) = told(monkeypatch, last, now, MINE)
    assert (word, ratio, case) == ("slower in 2, faster in 1 of 3 cases", "1.20× to 1.50×", "n=2")
    assert (before, after, over) == ("1.00 µs", "1.50 µs", f"0.667× {BASE}")
    now = run("b", {**dict.fromkeys(cells, 1.0), **{(MINE, f"n={n}"): 0.4 + n / 10 for n in (1, 2, 3)}})
    ((_, word, ratio, case, *_),) = told(monkeypatch, last, now, MINE)
    assert (word, ratio, case) == ("faster in 3 cases", "0.500× to 0.700×", "n=1")


def test_where_the_samples_scatter_nothing_is_judged_and_the_intervals_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [(name, case) for name in (BASE, MINE) for case in ("n=1", "n=2")]
    last, now = run("a", dict.fromkeys(cells, 1.0)), run("b", dict.fromkeys(cells, 1.0))
    every_other = (now.samples["variant"] == MINE) & (now.samples["round"] % 2 == 0)
    scattered = now.samples.assign(duration_ns=now.samples["duration_ns"].mask(every_other, 1500))
    ((_, word, ratio, *_),) = told(monkeypatch, last, replace(now, samples=scattered), MINE)
    assert word == "tied in 2 cases" and float(ratio.split("×")[0]) <= 1 and float(ratio.split(" ")[2][:-1]) > 1.5


def test_one_process_is_judged_once_other_recordings_show_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file with two variants, a speed-up of two is told at once, and a small one after some recordings."""
    cells = {(BASE, "n=1"): 1.0, (MINE, "n=1"): 1.0}
    last, now = run("a", cells, processes=1), run("b", {**cells, (MINE, "n=1"): 0.5}, processes=1)
    assert told(monkeypatch, last, now, MINE)[0][1] == "faster"
    now = run("b", {**cells, (MINE, "n=1"): 0.85}, processes=1)
    monkeypatch.setattr(verdict, "_load", lambda path: last)
    known = [
        reading(run(f"h{place}", {**cells, (BASE, "n=1"): by})).medians("w") for place, by in enumerate((1, 1.02, 1, 1.02))
    ]
    for history, word in ((known[:3], "tied"), (known, "faster")):
        text = verdicts(now, [JudgedVariant("w", MINE, "runs/last")], lambda _, runs=history: runs)
        assert text.splitlines()[1].split()[:3] == [MINE, word, "0.850×"]


def test_the_same_source_with_another_time_has_drifted_where_others_tell_which_one_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same, cells = {MINE: "same"}, {(BASE, "n=1"): 1.0, (MINE, "n=1"): 1.0}
    moved = {**cells, (MINE, "n=1"): 1.3}
    # Of two variants that are apart by 1.3, either may have moved.
    assert told(monkeypatch, run("a", cells, same), run("b", moved, same), MINE)[0][1] == "tied"
    more: dict[tuple[str, str], float] = {("v03_other", "n=1"): 1.0, ("v04_other", "n=1"): 1.0}
    assert told(monkeypatch, run("a", cells | more, same), run("b", moved | more, same), MINE)[0][1] == "drifted"


def test_a_variant_without_earlier_times_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    now = run("b", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.5})
    assert told(monkeypatch, None, now, MINE) == [[MINE, "new", "–", "n=1", "–", "500 ns", f"2.00× {BASE}"]]
    on_another_gpu = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 1}, device="another")
    assert told(monkeypatch, on_another_gpu, now, MINE)[0][1] == "new"


def test_a_variant_that_was_wrong_in_the_last_run_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"workload": "w", "variant": MINE, "config": "", "case": "n=1", "status": "wrong_result", "detail": "off"}
    last = run("a", {(BASE, "n=1"): 1}, results=[wrong])
    now = run("b", {(BASE, "n=1"): 1, (MINE, "n=1"): 0.5})
    assert told(monkeypatch, last, now, MINE)[0][1] == "mended"


def test_a_wrong_variant_is_told_with_the_first_case_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [
        {
            "workload": "w",
            "variant": MINE,
            "config": "block=8",
            "case": f"n={n}",
            "status": "wrong_result",
            "detail": f"off by {n}",
        }
        for n in (1, 2)
    ]
    now = run("b", {(BASE, "n=1"): 1, (BASE, "n=2"): 1}, results=failed)
    last = run("a", {(BASE, "n=1"): 1, (MINE, "n=1"): 1})
    monkeypatch.setattr(verdict, "_load", lambda path: last)
    assert (
        verdicts(now, [JudgedVariant("w", MINE, "runs/last")])
        == f"{MINE}: wrong_result at n=1 with block=8 and 1 more: off by 1\n"
    )
