"""Which bytes an operation from end to end copies to the device: small inputs in one copy, and no resident input."""

import ctypes
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import install, install_events
from tests.collectors.cuda.test_transfers import FakeEvent, FakeStream
from warpladder.collectors.core.bench import Unavailable
from warpladder.collectors.core.plan import BufferRows, case_row
from warpladder.collectors.cuda.transfers import BoundCall, BoundCopy, BoundPart, Overlap, PartPlan, plan_parts
from warpladder.workloads import registry
from warpladder.workloads.api import (
    Buffer,
    Case,
    CudaVariant,
    Launch,
    LibraryVariant,
    Overlapped,
    Part,
    Workload,
    WorkloadError,
)
from warpladder.workloads.declare.launches import TensorMap
from warpladder.workloads.gan_tconv.problem import make_case
from warpladder.workloads.gan_tconv.rungs import parts_of

pytestmark = pytest.mark.slow

GAN = registry.load("gan_tconv")
LAUNCHES = [
    Launch("first", (1, 1, 1), (1, 1, 1), ("x", "even", "y")),
    Launch("second", (1, 1, 1), (1, 1, 1), ("odd", "large", "even_too", "odder", "y")),
]


def case_of(n: int, resident: tuple[str, ...] = ()) -> Case:
    return Case({"n": n}, flops=n, min_bytes=4 * n, resident=resident)


def workload_of(variant: CudaVariant, case: Case) -> Workload:
    """x (n rows of 256 bytes) and small inputs of 256, 512, 12 and 20 bytes, a large one of 4,000; y out."""
    inputs = {"odd": (5,), "even": (64,), "large": (1000,), "even_too": (128,), "odder": (3,)}
    return Workload(
        name="scaled",
        title="Scaled",
        cases=(case,),
        variants=(variant,),
        buffers=lambda case: (
            {"x": Buffer((case.params["n"], 64)), **{name: Buffer(shape) for name, shape in inputs.items()}},
            {"y": Buffer((case.params["n"],))},
        ),
        make_inputs=lambda case, rng: {},
        reference=lambda case, inputs: {},
    )


def planned(
    together_bytes: int,
    *,
    gathered: tuple[str, ...] = (),
    resident: tuple[str, ...] = (),
    constants: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PartPlan, ...]:
    """Two parts of 4 rows of x in two streams."""
    how = Overlapped(
        lambda case, config: [Part(case_of(4), 0), Part(case_of(4), 4)],
        streams=2,
        gathered=gathered,
        together_bytes=together_bytes,
    )
    variant = CudaVariant(
        "v01_scaled", "Scaled", "rung", launches=lambda case, config: LAUNCHES, end_to_end=how, constants=constants
    )
    case = case_of(8, resident)
    return plan_parts(workload_of(variant, case), case, variant, {})


def names(rows: tuple[BufferRows, ...]) -> list[str]:
    return [each.name for each in rows]


def test_small_inputs_come_together_and_only_the_last_of_them_has_uneven_bytes() -> None:
    first, second = planned(512)
    assert names(first.together) == ["even", "even_too", "odd"]
    assert names(first.copies_in) == ["x", "large", "odder"]  # a second uneven input would leave a gap
    assert (second.together, second.copies_in) == ((), (BufferRows("x", 4, 8),))


def test_an_input_that_comes_together_is_copied_whole_and_kernels_of_each_stream_wait_for_it_once() -> None:
    first, second = planned(2048)
    x = BufferRows("x", 0, 8)
    assert first.together[0] == x
    assert x in first.waits[0] and x in second.waits[0]
    assert not {x} & {*first.waits[1], *second.waits[1]}
    assert (first.rows["x"], second.rows["x"]) == (BufferRows("x", 0, 4), BufferRows("x", 4, 8))  # as the kernels use it
    assert names(first.copies_in) == ["large", "odder"] and second.copies_in == ()


def test_a_single_small_input_is_copied_by_itself() -> None:
    assert [names(planned(most)[0].together) for most in (0, 20, 256)] == [[], [], ["even", "odd"]]


def test_inputs_that_are_gathered_resident_or_held_by_constants_do_not_come_together() -> None:
    assert names(planned(512, gathered=("even",))[0].together) == ["even_too", "odd"]
    assert names(planned(512, constants={"filter": "odd"})[0].together) == ["even", "even_too", "odder"]
    first, second = planned(512, resident=("even", "odd", "large"))
    assert names(first.together) == ["even_too", "odder"]
    assert names(first.copies_in) == ["x"]
    waited = {name for part in (first, second) for waits in part.waits for name in names(waits)}  # type: ignore[arg-type]
    assert waited == {"x", "even_too", "odder"}


@pytest.fixture
def log() -> list[Any]:
    return []


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch, log: list[Any]) -> Iterator[ModuleType]:
    """The module with memory of the host in the place of page-locked memory and of the device's."""
    module = install(monkeypatch, log, "pinned")
    monkeypatch.setattr(module, "pinned_like", lambda array: np.empty_like(array))
    monkeypatch.setattr(
        module.cupy, "empty", lambda shape, dtype: SimpleNamespace(data=Address(np.zeros(shape, dtype).ctypes.data))
    )
    monkeypatch.setattr(module.cupy, "ndarray", lambda shape, dtype, memptr: (shape, memptr))
    monkeypatch.setattr(module.runtime, "memcpyAsync", lambda *arguments: log.append(arguments))
    yield module


class Address(int):
    """Of the device."""

    ptr = property(int)

    def __add__(self, offset: int) -> "Address":
        return Address(int(self) + offset)


def test_one_copy_has_the_bytes_of_all_inputs_side_by_side(pinned: ModuleType, log: list[Any]) -> None:
    inputs = {
        "a": np.arange(64, dtype=np.float32),
        "b": np.arange(128, dtype=np.float32).reshape(2, 64),
        "c": np.ones(3, "int32"),
    }
    together = pinned.Together(inputs)
    together.copy(SimpleNamespace(ptr=7))
    ((to, source, nbytes, kind, stream),) = log
    assert (nbytes, stream, kind) == (256 + 512 + 12, 7, pinned.runtime.memcpyHostToDevice)
    assert ctypes.string_at(source, nbytes) == b"".join(array.tobytes() for array in inputs.values())
    assert {name: (shape, at - to) for name, (shape, at) in together.device.items()} == {
        "a": ((64,), 0),
        "b": ((2, 64), 256),
        "c": ((3,), 768),
    }


def test_other_values_of_the_inputs_are_copied_next(pinned: ModuleType, log: list[Any]) -> None:
    inputs = {"a": np.zeros(64, np.float32), "b": np.zeros(3, np.float32), "large": np.zeros(9, np.float32)}
    buffers = pinned.PinnedBuffers(inputs, {"y": np.zeros(2, np.float32)})
    assert buffers.outputs == {}
    together = buffers.together(["a", "b"])
    assert buffers.together(["a", "b"]) is together
    buffers.load({name: array + 1 for name, array in inputs.items()})
    assert together.host["b"].tolist() == [1, 1, 1] and set(together.host) == {"a", "b"}
    assert buffers.arrays["large"].tolist() == [1] * 9
    buffers.load({name: array + 2 for name, array in inputs.items()})
    assert buffers.arrays["large"].tolist() == [2] * 9 and together.host["a"].tolist() == [2] * 64
    assert set(buffers.outputs) == {"y"}


RESIDENT = make_case({"images": 300, "channels": 64, "weights": "resident"})
COPIED = make_case({"images": 300, "channels": 64})


def bench_of(cuda_events: ModuleType, case: Case) -> Any:
    return cuda_events.CudaBench(GAN, case, GAN.make_inputs(case, np.random.default_rng(0)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["v07_overlapped", "v09_graph", "v13_warpgroups_tf32"])
@pytest.mark.parametrize("case", [COPIED, RESIDENT], ids=["all", "resident"])
def test_overlapped_copies_have_the_bytes_of_the_case(
    monkeypatch: pytest.MonkeyPatch, log: list[Any], name: str, case: Case
) -> None:
    cuda_events = install_events(monkeypatch, log)
    monkeypatch.setitem(cuda_events.load.__globals__, "encode", lambda *arguments: None)
    copies = cuda_events.overlap.__globals__["runtime"]
    variant = replace(GAN.variant(name), graph=False)  # type: ignore[type-var]
    operation = bench_of(cuda_events, case).prepare(variant, variant.configs[0])  # type: ignore[attr-defined]
    copies.memcpyAsync.reset_mock()
    operation.overlapped()
    calls = [call.args for call in copies.memcpyAsync.call_args_list]
    moved = {kind: sum(nbytes for _, _, nbytes, its, _ in calls if its is kind) for kind in {each[3] for each in calls}}
    row = case_row(GAN, case)
    assert moved == {copies.memcpyHostToDevice: row["h2d_bytes"], copies.memcpyDeviceToHost: row["d2h_bytes"]}


@pytest.mark.parametrize(("case", "copied"), [(COPIED, 14), (RESIDENT, 1)])
def test_copies_before_the_kernels_leave_resident_inputs_out(
    monkeypatch: pytest.MonkeyPatch, log: list[Any], case: Case, copied: int
) -> None:
    cuda_events = install_events(monkeypatch, log)
    bench = bench_of(cuda_events, case)
    operation = bench.prepare(GAN.variant("v06_pinned"), {})
    log.clear()
    bench.sample(operation, cuda_events.END_TO_END, 0)
    assert log.count(" in") == copied


def test_copies_on_the_host_wait_for_work_that_starts_there(monkeypatch: pytest.MonkeyPatch, log: list[Any]) -> None:
    bench = bench_of(cuda_events := install_events(monkeypatch, log), COPIED)
    monkeypatch.setattr(cuda_events, "allocators", tuple)
    operation = bench.prepare(GAN.variant("v06_pinned"), {})
    bench.sample(operation, cuda_events.END_TO_END, None)
    before = {name: array.copy() for name, array in bench._pinned.arrays.items()}
    bench.load(other := GAN.make_inputs(COPIED, np.random.default_rng(1)))
    bench.poison(again=False)
    bench.run(operation)
    assert all(np.array_equal(array, before[name], equal_nan=True) for name, array in bench._pinned.arrays.items())
    bench.sample(operation, cuda_events.END_TO_END, None)
    assert all(np.array_equal(bench.inputs[name].values, array) for name, array in other.items())


def test_new_inputs_cross_to_the_device_once_for_all_variants(monkeypatch: pytest.MonkeyPatch, log: list[Any]) -> None:
    bench = bench_of(install_events(monkeypatch, log), COPIED)
    asarray, placed = sys.modules["cupy"].asarray, []
    monkeypatch.setattr(sys.modules["cupy"], "asarray", lambda array: placed.append(array) or asarray(array))
    for seed in (1, 2):
        new = GAN.make_inputs(COPIED, np.random.default_rng(seed))
        for _ in range(3):
            bench.load(new)
            assert all(np.array_equal(bench.inputs[name].values, array) for name, array in new.items())
        assert placed == list(new.values()) and " in" not in log
        placed.clear()


def test_outputs_on_the_host_are_poisoned_before_the_way_that_ends_there(
    monkeypatch: pytest.MonkeyPatch, log: list[Any]
) -> None:
    cuda_events = install_events(monkeypatch, log)
    monkeypatch.setitem(cuda_events.load.__globals__, "encode", lambda *arguments: None)
    monkeypatch.setattr(cuda_events, "allocators", tuple)
    bench = bench_of(cuda_events, COPIED)
    operation = bench.prepare(replace(GAN.variant("v13_warpgroups_tf32"), graph=False), {})  # type: ignore[type-var]
    for again, holds in ((False, np.isnan), (True, lambda values: values == np.finfo(np.float32).max)):
        bench.poison(again)
        assert not any(holds(array).all() for array in bench._pinned.outputs.values())
        operation.from_end_to_end()
        assert all(holds(array).all() for array in bench._pinned.outputs.values())


def test_verification_spoils_no_resident_input(monkeypatch: pytest.MonkeyPatch, log: list[Any]) -> None:
    cuda_events = install_events(monkeypatch, log)
    monkeypatch.setitem(cuda_events.load.__globals__, "encode", lambda *arguments: None)
    bench, spoilt = bench_of(cuda_events, RESIDENT), set[str]()
    operation = bench.prepare(GAN.variant("v13_warpgroups_tf32"), {})
    monkeypatch.setattr(cuda_events, "poison", lambda arrays, again=False: spoilt.update(arrays))
    operation.from_end_to_end()
    assert spoilt == {"z"}


def test_a_program_that_takes_its_inputs_on_the_host_is_not_compared_where_some_are_resident(
    monkeypatch: pytest.MonkeyPatch, log: list[Any]
) -> None:
    program = LibraryVariant("program", "Program", "peer", device_only=False)
    with pytest.raises(Unavailable, match="takes all its inputs on the host, and the case has some on the device"):
        bench_of(install_events(monkeypatch, log), RESIDENT).prepare(program, {})


def test_a_case_with_resident_weights_copies_z_alone_and_still_reads_the_weights() -> None:
    whole, resident = (case_row(GAN, GAN.case(name)) for name in ("images=1000", "images=1000,weights=resident"))
    assert (resident["h2d_bytes"], resident["d2h_bytes"]) == (1000 * 100 * 4, whole["d2h_bytes"])
    assert (resident["min_bytes"], resident["flops"]) == (whole["min_bytes"], whole["flops"])


def test_the_shares_of_a_case_with_resident_weights_have_them_resident_too() -> None:
    case = GAN.case("images=1000,weights=resident")
    assert GAN.shares is not None
    assert {part.case.resident for part in GAN.shares(case, 4)} == {case.resident}
    first, *others = plan_parts(GAN, case, GAN.variant("v13_warpgroups_tf32"), {})  # type: ignore[arg-type]
    assert {name for part in (first, *others) for name in names((*part.together, *part.copies_in))} == {"z"}


def test_a_resident_input_that_does_not_exist_is_refused() -> None:
    variant = CudaVariant("v01_scaled", "Scaled", "rung")
    case = case_of(8, ("weights", "x"))
    message = "scaled/n=8: weights is resident, but no input; name some of x, odd, even, large, even_too, odder"
    with pytest.raises(WorkloadError, match=message):
        case_row(workload_of(variant, case), case)


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize(("streams", "together_bytes"), [(1, 0), (2, 1 << 19), (3, 1 << 19), (3, 0)])
@pytest.mark.parametrize("name", ["v09_graph", "v13_warpgroups_tf32"])
def test_every_launch_comes_after_all_that_it_reads_was_copied_or_made(
    name: str, streams: int, together_bytes: int, resident: bool
) -> None:
    """1,000 images in eight parts, by the launches of the ladder; and scratch is free again when the next part takes it."""
    how = Overlapped(parts_of(128), streams=streams, together_bytes=together_bytes)
    variant: Any = replace(GAN.variant(name), end_to_end=how)  # type: ignore[call-arg]
    case = GAN.case("images=1000" + (",weights=resident" if resident else ""))
    plan = plan_parts(GAN, case, variant, variant.configs[0])
    log: list[tuple[Any, frozenset[Any]]] = []
    inward, outward, gathers = (FakeStream(each, log) for each in ("in", "out", "gathers"))
    kernels = [FakeStream(f"kernels {slot}", log) for slot in range(streams)]
    overlap = Overlap([bound(number, part) for number, part in enumerate(plan)], inward, kernels, outward, gathers, FakeEvent)
    overlap.enqueue()
    after = dict(log)
    inputs, _ = GAN.buffers(case)
    once = [(at, launch) for at, launch in enumerate(plan[0].launches) if launch.once]
    made_by = {buffer: at for at, launch in once for buffer in names_of(launch) if buffer not in inputs and buffer != "next"}
    assert len(made_by) in {5, 6}  # scales, and the weights of four or five layers
    for number, part in enumerate(plan):
        copied = {rows.name: (copy, rows) for each in plan[: number + 1] for copy in copies_of(each) for rows in copy}
        before = max((earlier for earlier in range(number) if plan[earlier].stream == part.stream), default=None)
        for at, launch in enumerate(part.launches):
            found = after[number, at]
            assert {copied[buffer][0] for buffer in names_of(launch) if buffer in copied} <= found
            assert {(number, earlier) for earlier in range(at)} <= found
            if number:
                assert {(0, made_by[buffer]) for buffer in names_of(launch) if buffer in made_by} <= found
            assert before is None or {(before, earlier) for earlier in range(len(plan[before].launches))} <= found
        assert {(number, at) for at in range(len(part.launches))} <= after["out", number]
    assert kernels[0].after == set(after)


def copies_of(part: PartPlan) -> list[tuple[BufferRows, ...]]:
    """The rows that each copy of a part brings."""
    return [*([part.together] if part.together else []), *((rows,) for rows in part.copies_in)]


def names_of(launch: Launch) -> list[str]:
    """The buffers that a launch takes."""
    return [getattr(argument, "buffer", argument) for argument in launch.args if isinstance(argument, str | TensorMap)]


def bound(number: int, part: PartPlan) -> BoundPart:
    """A part whose steps are logged: copies as their rows, launches as numbers of the part and of the launch."""

    def log(what: Any) -> Any:
        return lambda stream: stream.enqueue(what)

    calls = [
        BoundCall(waits, log((number, at)), makes) for at, (waits, makes) in enumerate(zip(part.waits, part.makes, strict=True))
    ]
    return BoundPart([BoundCopy(rows, log(rows)) for rows in copies_of(part)], calls, [log(("out", number))], part.stream)
