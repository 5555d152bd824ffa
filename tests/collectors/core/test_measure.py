"""Measuring a case on a bench made for the test: which operations are sampled how, and what is verified before."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import count_frozen
from warpladder.collectors.core.bench import FirstUse, Operation, Pass, Reading, classify
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.measure import measure_case
from warpladder.collectors.core.plan import LIMITS, Job, WorkloadRef
from warpladder.collectors.core.rounds import Turn
from warpladder.collectors.core.verify import poison
from warpladder.data.names import Source
from warpladder.workloads.api import Buffer, Case, HostVariant, Variant, Workload

DEVICE, END_TO_END = Pass("device", "cold"), Pass("end_to_end", "hot")


class TwoPasses:
    """Computes on the host and says that it took 100 ns; a variant named `program` has no device time, and `overlapped` and `torn`
    have copies of their own, of which the latter's are wrong."""

    gpus = 1
    on_device = None
    passes = (DEVICE, END_TO_END)

    def __init__(self, workload: Workload, case: Case, inputs: Mapping[str, np.ndarray]) -> None:
        self.inputs, self.outputs = inputs, {"y": np.empty(3, np.float32)}

    def prepare(self, variant: Variant, config: Mapping[str, Any]) -> Operation:
        passes = (END_TO_END,) if variant.name == "program" else None
        copied = {"overlapped": lambda: {"y": self.inputs["x"].copy()}, "torn": lambda: {"y": self.inputs["x"][::-1].copy()}}
        from_end_to_end = copied.get(variant.name)
        return Operation(lambda: np.copyto(self.outputs["y"], self.inputs["x"]), passes=passes, from_end_to_end=from_end_to_end)

    def run(self, operation: Operation) -> Mapping[str, np.ndarray]:
        operation.run()
        return self.outputs

    def poison(self, again: bool) -> None:
        poison(self.outputs, again)

    def changed(self) -> tuple[str, ...]:
        return ()

    def keep(self, sets: Sequence[Mapping[str, np.ndarray]]) -> None:
        self.sets = sets

    def use(self, number: int) -> None:
        self.inputs = self.sets[number]

    def load(self, inputs: Mapping[str, np.ndarray]) -> None:
        self.inputs = inputs

    def last_outputs(self) -> Mapping[str, np.ndarray]:
        return self.outputs

    def release(self) -> None:
        pass

    def place(self, references: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return references

    def has_room(self, size_bytes: int) -> bool:
        return True

    def draw(self, operation: Operation, seed: int | None) -> None:
        pass

    def alter(self, operation: Operation, part: float) -> bool:
        return False

    def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
        return Reading(100)

    def close(self) -> None:
        pass


class Kept:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def working_on(self, cell: Cell) -> None: ...

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self.tables[table] += rows


def measured(*variants: str, bench: type[TwoPasses] = TwoPasses, process: int = 0) -> Kept:
    case = Case({"n": 3}, flops=0, min_bytes=24)
    workload = Workload(
        name="copy",
        title="Copy",
        cases=(case,),
        variants=tuple(HostVariant(name, name, "host") for name in variants),
        buffers=lambda case: ({"x": Buffer((3,))}, {"y": Buffer((3,))}),
        make_inputs=lambda case, rng: {"x": rng.random(3, np.float32)},
        reference=lambda case, inputs: {"y": inputs["x"].astype(np.float64)},
    )
    cells = tuple(Cell("copy", name, "", case.name) for name in variants)
    kept = Kept()
    measure_case(
        Job(WorkloadRef("copy"), case.name, cells, 0), workload, {"host": bench}, Turn(process, 0, LIMITS["quick"]), kept
    )
    return kept


def scopes_of(*variants: str) -> dict[str, set[str]]:
    kept = measured(*variants)
    assert [row["status"] for row in kept.tables["results"]] == ["ok"] * len(variants)
    return {name: {row["scope"] for row in kept.tables["samples"] if row["variant"] == name} for name in variants}


def test_a_program_without_device_time_is_sampled_from_end_to_end_alone() -> None:
    assert scopes_of("kernel", "program") == {"kernel": {"device", "end_to_end"}, "program": {"end_to_end"}}


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False])
def test_what_the_process_has_frozen_for_its_garbage_collector_stays_frozen(
    frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", count_frozen)
    before = gc.get_freeze_count() > 0
    gc.freeze() if frozen else gc.unfreeze()
    try:
        measured("kernel")
        assert (gc.get_freeze_count() > 0) is frozen
    finally:
        gc.freeze() if before else gc.unfreeze()


def test_a_pass_that_no_operation_takes_is_left_out_and_the_next_one_is_not() -> None:
    assert scopes_of("program") == {"program": {"end_to_end"}}


def test_what_copies_by_itself_is_verified_as_its_outputs_come_to_the_host() -> None:
    kept = measured("overlapped", "torn")
    statuses = {row["variant"]: (row["status"], row["detail"].split(":")[0]) for row in kept.tables["results"]}
    assert statuses["overlapped"][0] == "ok"
    assert statuses["torn"] == ("wrong_result", "from end to end")
    assert {row["variant"] for row in kept.tables["samples"]} == {"overlapped"}


def test_a_failure_in_a_user_s_file_is_told_with_its_line_and_one_elsewhere_without(tmp_path: Path) -> None:
    text = "def run(x):\n    if x == 'memory':\n        raise MemoryError('64 GiB')\n    return int(x)\n"
    namespace: dict[str, Any] = {}
    exec(compile(text, str(tmp_path / "bench.py"), "exec"), namespace)
    found = []
    for given in ("memory", "tile"):
        with pytest.raises((MemoryError, ValueError)) as caught:
            namespace["run"](given)
        found.append(classify(caught.value))
    assert found == [
        ("out_of_memory", "bench.py:3: MemoryError: 64 GiB"),
        ("launch_error", "bench.py:4: ValueError: invalid literal for int() with base 10: 'tile'"),
    ]
    assert classify(ValueError("no such tile")) == ("launch_error", "ValueError: no such tile")


FIRST = (FirstUse(0, "cold", {"phase:import": 5, "phase:compile": 70}), FirstUse(1, "hot", {"phase:compile": 9}))


def with_first_uses(first_uses: Callable[[], Iterable[FirstUse]]) -> type[TwoPasses]:
    class Bench(TwoPasses):
        def prepare(self, variant: Variant, config: Mapping[str, Any]) -> Operation:
            operation = super().prepare(variant, config)
            operation.first_uses = first_uses
            return operation

    return Bench


def test_the_steps_of_a_first_use_are_samples_by_process_and_state_of_the_caches() -> None:
    rows = [
        row
        for row in measured("kernel", bench=with_first_uses(lambda: FIRST)).tables["samples"]
        if row["scope"].startswith("phase:")
    ]
    assert [(row["scope"], row["cache"], row["round"], row["duration_ns"]) for row in rows] == [
        ("phase:import", "cold", 0, 5),
        ("phase:compile", "cold", 0, 70),
        ("phase:compile", "hot", 1, 9),
    ]
    assert all(row["sm_clock_mhz"] is None for row in rows)


def test_a_later_process_of_the_run_does_not_time_the_first_use_again() -> None:
    rows = measured("kernel", bench=with_first_uses(lambda: FIRST), process=1).tables["samples"]
    assert rows and not [row for row in rows if row["scope"].startswith("phase:")]


@pytest.mark.parametrize(("process", "where"), [(0, "device cold"), (2, "device cold in process 2")])
def test_what_makes_samples_of_a_later_process_doubtful_names_the_process(process: int, where: str) -> None:
    class Throttled(TwoPasses):
        def sample(self, operation: Operation, how: Pass, seed: int | None) -> Reading:
            return Reading(100, throttled=True)

    texts = [row["text"] for row in measured("kernel", bench=Throttled, process=process).tables["diagnostics"]]
    assert any(text.startswith(f"copy/n=3, {where}: samples that stayed throttled, and were kept: ") for text in texts), texts


def test_a_first_use_that_fails_is_a_finding_and_leaves_the_verdict() -> None:
    def first_uses() -> Iterator[FirstUse]:
        yield FIRST[0]
        raise RuntimeError("a fresh process ended with status 1")

    kept = measured("kernel", bench=with_first_uses(first_uses))
    assert [row["status"] for row in kept.tables["results"]] == ["ok"]
    assert sum(row["scope"] == "phase:import" for row in kept.tables["samples"]) == 1
    (found,) = (row for row in kept.tables["diagnostics"] if row["source"] == "first_use")
    assert (found["severity"], found["variant"]) == ("warning", None)  # the other times of the variant are not in doubt
    text = found["text"]
    assert text.startswith("the first use of copy/kernel/n=3 could not be timed to the end: ")
    assert text.endswith("RuntimeError: a fresh process ended with status 1")


class Rowwise(TwoPasses):
    """Gives the sum of the inputs, which are nearly the same in all sets."""

    def prepare(self, variant: Variant, config: Mapping[str, Any]) -> Operation:
        return Operation(lambda: self.outputs["y"].fill(self.inputs["x"].sum()))


def test_a_reference_that_hardly_depends_on_the_inputs_is_told_before_and_only_of_those_whose_tolerance_cannot_tell() -> None:
    case = Case({"n": 3}, flops=0, min_bytes=24)

    def findings(*precisions: Any) -> list[tuple[str, Any]]:
        workload = Workload(
            name="copy",
            title="Copy",
            cases=(case,),
            variants=tuple(HostVariant(each, each, "host", precision=each) for each in precisions),
            buffers=lambda case: ({"x": Buffer((3,))}, {"y": Buffer((3,))}),
            make_inputs=lambda case, rng: {"x": 1 + rng.random(3, np.float32) / 100},
            reference=lambda case, inputs: {"y": np.full(3, inputs["x"].sum(dtype=np.float64))},
        )
        kept = Kept()
        cells = tuple(Cell("copy", each, "", case.name) for each in precisions)
        turn = Turn(0, 0, LIMITS["quick"])
        measure_case(Job(WorkloadRef("copy"), case.name, cells, 0), workload, {"host": Rowwise}, turn, kept)
        about = ("workload", "variant", "config", "case")
        rows = [row for row in kept.tables["diagnostics"] if row["source"] == Source.CONSTANT_REFERENCE]
        return [(row["text"], {name: row[name] for name in about if row[name]}) for row in rows]

    assert findings("fp32") == []
    ((text, about),) = findings("bf16", "fp16")
    assert text.startswith("the reference's y hardly depends on the inputs: ") and about == {"workload": "copy", "case": "n=3"}
    ((_, about),) = findings("fp32", "bf16")
    assert about == {"workload": "copy", "case": "n=3", "variant": "bf16"}
