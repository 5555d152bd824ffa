"""What each run has, and which run a page shows of a workload."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.limits import cpu_seconds, no_hang
from tests.synthetic import made_runs, made_sweeps, made_traces
from warpladder.dashboard.core import run_index
from warpladder.dashboard.core.run_index import Coverage, Facts, ListedRun, Need
from warpladder.dashboard.ui import runs
from warpladder.data import store


def listed(name: str, day: int, cases: int, cells: int, **other: Any) -> ListedRun:
    """A run of `w` on the GPU `h200`, recorded on a day of January."""
    facts: dict[str, Any] = {"device": "h200", "collector": "cuda_events", "imported": False, "gpus": 1}
    facts |= {"tables": frozenset({"samples"}), "workloads": {"w": Coverage(cases, cells)}}
    started_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    return ListedRun(name, None, Facts(started_at=started_at, **(facts | other)), shipped=False)  # type: ignore[arg-type]


def names(found: tuple[ListedRun, ...]) -> list[str]:
    return [each.name for each in found]


@pytest.mark.parametrize(
    ("cases", "cells", "first"),
    [(8, 80, "new"), (4, 40, "new"), (3, 40, "full"), (8, 39, "full"), (1, 10, "full")],
)
def test_the_newest_run_is_shown_unless_it_has_less_than_half_of_the_fullest(cases: int, cells: int, first: str) -> None:
    every = [listed("old", 1, 8, 80), listed("full", 2, 8, 80), listed("new", 3, cases, cells)]
    assert run_index.suitable(every, "h200", "w")[0].name == first
    assert set(names(run_index.suitable(every, "h200", "w"))) == {"old", "full", "new"}, "the others can still be chosen"


def test_times_come_from_one_process_then_several_gpus_then_imports_and_never_from_another_device() -> None:
    every = [
        listed("imported", 9, 8, 80, imported=True),
        listed("several", 8, 8, 80, gpus=4),
        listed("one", 1, 2, 20),
        listed("counted", 7, 8, 80, tables=frozenset({"counters"})),
        listed("elsewhere", 9, 8, 80, device="t4"),
        listed("empty", 9, 0, 0),
    ]
    assert names(run_index.suitable(every, "h200", "w")) == ["one", "several", "imported"]
    assert names(run_index.suitable(every, "h200", "w", Need.COUNTERS)) == ["counted"]
    assert names(run_index.having(every, Need.GPUS, "h200", "w")) == ["several"]
    assert run_index.devices(every)[0] in ("h200", "t4")
    assert run_index.workloads(every, "h200") == ("w",)


def test_runs_of_other_workloads_and_devices_follow_those_that_fit() -> None:
    trace = {"tables": frozenset({"kernels"})}
    every = [
        listed("elsewhere", 9, 8, 80, device="t4", **trace),
        listed("other workload", 8, 0, 0, workloads={"v": Coverage(1, 1)}, **trace),
        listed("fits", 1, 1, 1, **trace),
    ]
    assert names(run_index.having(every, Need.TRACE, "h200", "w")) == ["fits", "other workload", "elsewhere"]


def test_of_runs_of_other_workloads_the_first_choice_of_a_workload_comes_before_a_newer_small_part_of_it() -> None:
    other = [("part", 9, Coverage(1, 2)), ("full", 8, Coverage(8, 80)), ("older", 7, Coverage(8, 80))]
    every = [listed(name, day, 0, 0, workloads={"v": coverage}) for name, day, coverage in other]
    assert names(run_index.having(every, Need.TIMES, "h200", "w")) == ["full", "part", "older"]


def test_a_page_of_two_devices_needs_a_workload_that_another_device_has_too() -> None:
    other = {"workloads": {"v": Coverage(1, 1)}}
    every = [
        listed("a", 3, 8, 80),
        listed("alone", 4, 0, 0, **other),
        listed("b", 2, 1, 8, device="h100"),
        listed("counted", 5, 8, 80, device="t4", tables=frozenset({"counters"})),
        listed("several", 1, 8, 80, device="h100", workloads={"w": Coverage(8, 80), "u": Coverage(2, 2)}),
    ]
    assert run_index.devices_of(every, "w") == ("h200", "h100") and run_index.devices_of(every, "v") == ("h200",)
    assert run_index.workloads(every, "h200", Need.DEVICES) == ("w",), "v is of one device alone"
    assert run_index.workloads(every, "h100", Need.DEVICES) == ("w",)
    assert names(run_index.suitable(every, "h200", "w", Need.DEVICES)) == ["a"]
    assert run_index.suitable(every, "h200", "v", Need.DEVICES) == ()
    assert names(run_index.having(every, Need.DEVICES, "h200", "w")) == ["a", "several", "b"], "b is a small part of several"
    having = {each.facts.device for each in run_index.having(every, Need.DEVICES, "t4")}
    assert having == {"h200", "h100"}, "the t4 has counters alone"


def test_facts_are_those_of_the_tables_and_samples_are_not_read(tmp_path: Path) -> None:
    run = store.open_run(made_runs.write(tmp_path, "gpu", rounds=3))
    (run.path / "samples.parquet").write_bytes(b"PAR1 damaged PAR1")
    facts = run_index.facts_of(run)
    # Of 18 cases of 11 variants with a verdict ok, one cell of one config failed; of 5 cases the failed cells.
    assert list(facts.workloads) == ["tensor_transpose", "conv2d"]
    assert facts.workloads["tensor_transpose"].cases == 18
    assert facts.workloads["conv2d"].cases == 5
    assert (facts.has(Need.TIMES), facts.has(Need.TRACE), facts.marks) == (True, False, ())


@pytest.mark.slow
def test_marks_name_a_trace_counters_and_several_gpus(tmp_path: Path) -> None:
    made_traces.write(tmp_path)
    made_sweeps.write_counted(tmp_path)
    made_sweeps.write_scaling(tmp_path)
    good, _ = store.list_runs([tmp_path])
    marks = {run.run_id: run_index.facts_of(run).marks for run in good}
    assert marks == {"trace": ("trace",), "counted": ("counters",), "scaling": ("4 GPUs",)}


def test_a_run_with_a_damaged_table_is_bad_and_hides_no_other(tmp_path: Path) -> None:
    made_runs.write_host_run(tmp_path, "good", rounds=3)
    cases = made_runs.write_host_run(tmp_path, "bad", rounds=3) / "cases.parquet"
    content = bytearray(cases.read_bytes())
    content[4:-100] = bytes(len(content) - 104)
    cases.write_bytes(content)
    found = runs._kept_listing.__wrapped__((tmp_path,))  # type: ignore[attr-defined]
    assert (list(found.index), list(found.refused)) == (["good"], ["bad"])
    assert "cases.parquet" in found.bad[0].reason


@pytest.mark.slow
def test_ten_thousand_runs_are_asked_in_a_moment() -> None:
    every = run_index.Runs(listed(f"r{day}", day, cases=8, cells=80) for day in range(10_000))
    with cpu_seconds(2):
        assert run_index.suitable(every, "h200", "w")[0].name == "r9999"
    first = run_index.workloads(every, "h200")
    with cpu_seconds(1):
        for _ in range(1_000):
            assert run_index.workloads(every, "h200") is first


def test_runs_that_have_not_changed_are_the_same_listing(tmp_path: Path) -> None:
    made_runs.write_host_run(tmp_path, "a", rounds=6)
    first = runs._look((tmp_path,))
    assert runs._look((tmp_path,)) is first
    made_runs.write_host_run(tmp_path, "b", rounds=6)
    second = runs._look((tmp_path,))
    assert list(second.runs) != list(first.runs) and second.runs["a"] is first.runs["a"]
    shutil.rmtree(tmp_path / "a")
    assert list(runs._look((tmp_path,)).runs) == ["b"]


def test_a_page_does_not_wait_long_for_a_look_at_known_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_runs.write_host_run(tmp_path, "a", rounds=6)
    runs._look((tmp_path,))
    goes_on = Event()
    real = runs._look

    def slow(folders: tuple[Path, ...]) -> runs.Listing:
        goes_on.wait()
        return real(folders)

    monkeypatch.setattr(runs, "_look", slow)
    made_runs.write_host_run(tmp_path, "b", rounds=6)
    with no_hang(5):
        assert list(runs._kept_listing.__wrapped__((tmp_path,)).runs) == ["a"]
    goes_on.set()
