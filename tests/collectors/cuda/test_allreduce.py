"""Allreduces among launches: what waits for what in two streams, what is asked of NCCL and MPI, and how many bytes that moves."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.collectors.cuda.fake_cuda import FakeArray, FakeCommunicator, install, install_events
from tests.collectors.cuda.test_transfers import FakeEvent, FakeStream
from warpladder.collectors.core.bench import OneProcess, Unavailable
from warpladder.collectors.core.plan import LIMITS, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.steps import BoundStep, TwoStreams, averaged_bytes, joined, rows_taken, sizes_of
from warpladder.collectors.ranks.launchers import Launcher
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Phase
from warpladder.workloads import registry
from warpladder.workloads.api import Launch, TensorMap, kernels_of
from warpladder.workloads.declare.launches import AllReduce, RowsOf

pytestmark = pytest.mark.slow

TRAINING = registry.load("mlp_data_parallel")
OVERLAPPED = TRAINING.variant("v03_overlapped")
GRADIENT_BYTES = 3_180_040  # 4 * (784 * 1000 + 1000 + 1000 * 10 + 10)


# -- streams -----------------------------------------------------------------------------------------------------------


def after(*steps: tuple[str, object]) -> tuple[dict[str, frozenset[str]], FakeStream]:
    """What each named step comes after, by `TwoStreams`, and the stream of kernels with all that it has waited for."""
    log: list[tuple[str, frozenset[str]]] = []
    kernels, beside = FakeStream("kernels", log), FakeStream("beside", log)
    bound = [
        BoundStep(
            rows_taken(step),
            lambda stream, name=name: stream.enqueue(name),
            isinstance(step, AllReduce),
            getattr(step, "beside", False),
        )
        for name, step in steps
    ]
    TwoStreams(bound, kernels, beside, FakeEvent).enqueue()
    return dict(log), kernels


def launch(*args: object) -> Launch:
    return Launch("kernel", (1, 1, 1), (1, 1, 1), args)


def test_what_stands_beside_comes_after_all_before_it_and_before_nothing_that_takes_other_rows() -> None:
    order, kernels = after(
        ("first half", launch("x", RowsOf("w", 0, 4))),
        ("its average", AllReduce((RowsOf("w", 0, 4),), beside=True)),
        ("second half", launch("x", RowsOf("w", 4, 4))),
        ("the other average", AllReduce((RowsOf("w", 4, 4),), beside=True)),
        ("more", launch("y")),
    )
    assert order["its average"] == {"first half"}
    assert order["second half"] == {"first half"}
    assert order["the other average"] == {"first half", "its average", "second half"}
    assert order["more"] == {"first half", "second half"}
    assert kernels.after == set(order)  # the operation ends after all


@pytest.mark.parametrize("taken", ["w", RowsOf("w", 3, 1), TensorMap("w", (4,))])
def test_a_launch_that_takes_what_is_averaged_waits_for_it(taken: object) -> None:
    order, _ = after(
        ("write", launch("w", "v")),
        ("v's average", AllReduce(("v",), beside=True)),
        ("w's average", AllReduce((RowsOf("w", 0, 4),), beside=True)),
        ("v again", launch("v")),
        ("use", launch(taken)),
    )
    assert order["v again"] == {"write", "v's average"}
    assert order["use"] == {"write", "v's average", "w's average", "v again"}


def test_rows_that_only_touch_are_others() -> None:
    order, _ = after(("average", AllReduce((RowsOf("w", 2, 2),), beside=True)), ("below", launch(RowsOf("w", 0, 2))))
    assert order["below"] == frozenset()


def test_allreduces_keep_their_order_whichever_stream_they_are_in() -> None:
    order, _ = after(("beside", AllReduce(("v",), beside=True)), ("in line", AllReduce(("w",))))
    assert order["in line"] == {"beside"}


def test_what_is_staged_through_the_host_cannot_run_beside() -> None:
    with pytest.raises(ValueError, match="waits for the device"):
        AllReduce(("w",), "mpi", beside=True)


# -- the overlapped rung -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_the_backward_product_waits_for_no_average_and_the_averages_are_each_weight_once(chunks: int) -> None:
    config = {"blocks": 528, "chunks": chunks}
    steps = OVERLAPPED.launches(TRAINING.case("batch=800"), config)  # type: ignore[attr-defined]
    order, kernels = after(*((str(number), step) for number, step in enumerate(steps)))
    averages = {str(number) for number, step in enumerate(steps) if isinstance(step, AllReduce)}
    assert len(averages) == 1 + chunks
    assert not any(order[str(number)] & averages for number, step in enumerate(steps) if isinstance(step, Launch))
    assert kernels.after == set(order)
    rows = [value for step in steps if isinstance(step, AllReduce) for value in step.buffers if isinstance(value, RowsOf)]
    assert [(each.first, each.count) for each in rows] == {
        1: [(0, 784)],
        2: [(0, 448), (448, 336)],  # 13 tiles of 64 rows, the last of 16: 7 and 6
        3: [(0, 320), (320, 256), (576, 208)],  # 5, 4 and 4
    }[chunks]


@pytest.mark.parametrize("name", ["v02_nccl", "v03_overlapped", "v04_warpgroups_3xtf32"])
def test_bytes_that_are_averaged_are_those_of_the_gradient(name: str) -> None:
    variant = TRAINING.variant(name)
    assert averaged_bytes(TRAINING, TRAINING.case("batch=400"), variant, variant.configs[-1]) == GRADIENT_BYTES  # type: ignore[arg-type]


def test_the_plan_says_what_is_averaged_by_nccl_among_how_many() -> None:
    plan = make_plan(Request(["mlp_data_parallel", "gan_tconv"], cases=["batch=400", "batch=37", "images=3"], gpus=(1, 2, 4)))
    assert sizes_of(plan) == {2: (GRADIENT_BYTES,), 4: (GRADIENT_BYTES,)}
    on_the_host = Request(["mlp_data_parallel"], cases=["batch=400"], variants=["v01_host_staged", "numpy"], gpus=(2,))
    assert sizes_of(make_plan(on_the_host)) == {}


# -- what is asked of NCCL and MPI ---------------------------------------------------------------------------------------


def test_arrays_next_to_each_other_are_one_piece_and_others_are_not() -> None:
    near, far, elsewhere = (1, 1000, 40), (1, 2000, 8), (2, 1300, 8)
    assert joined([(1, 1256, 16), near, elsewhere, far], 256) == [(1, 272), (3, 8), (2, 8)]
    assert joined([elsewhere, near, far, (1, 1256, 16)], 256) == [(0, 8), (1, 272), (2, 8)]  # as they appear, not by address
    assert joined([(1, 1256, 16), near], 216) == [(1, 40), (0, 16)]
    assert joined([], 256) == []


@pytest.fixture
def log() -> list[object]:
    return []


@pytest.fixture
def cuda_allreduce(monkeypatch: pytest.MonkeyPatch, log: list[object]) -> ModuleType:
    return install(monkeypatch, log, "allreduce")


def array(name: str, values: list[float], log: list[object]) -> FakeArray:
    return FakeArray(log, (len(values),), name=name, values=values)


def test_arrays_are_averaged_in_one_group_by_a_communicator_that_is_made_once(
    cuda_allreduce: ModuleType, log: list[object]
) -> None:
    communicator, stream = FakeCommunicator(log), SimpleNamespace(ptr=99)
    arrays = [array("w", [2.0, 4.0], log), array("b", [6.0], log)]
    for _ in range(2):
        cuda_allreduce.BoundAllReduce(AllReduce(("w", "b")), arrays, communicator).enqueue(stream)
    group = ["start", *((16 * hash(name), 16 * hash(name), count, 7, 4, 99) for name, count in (("w", 2), ("b", 1))), "end"]
    assert log == [("broadcast", None), (2, b"rank 0's", 1), *group, *group]  # 7: float32, 4: ncclAvg


def test_through_the_host_the_device_is_waited_for_before_mpi_reads(cuda_allreduce: ModuleType, log: list[object]) -> None:
    arrays = [array("w", [2.0, 4.0], log), array("b", [6.0], log)]
    one = cuda_allreduce.BoundAllReduce(AllReduce(("w", "b"), "mpi"), arrays, FakeCommunicator(log))
    one.enqueue(SimpleNamespace(synchronize=lambda: log.append("wait")))
    assert log == ["w out", "b out", "wait", "average", "w in", "b in"]
    assert one.waits
    assert [list(each.values) for each in arrays] == [[1.0, 2.0], [3.0]]


def test_events_stand_around_it_only_where_it_is_timed(cuda_allreduce: ModuleType, log: list[object]) -> None:
    one = cuda_allreduce.BoundAllReduce(AllReduce(("w",), "mpi"), [array("w", [2.0], log)], FakeCommunicator(log))
    one.timed = True
    one.enqueue(SimpleNamespace(synchronize=lambda: None))
    assert log == ["event", "w out", "average", "w in", "event"]
    assert one.elapsed_ns() == 33_000


def test_without_nccl_the_cell_is_skipped_with_the_cure(cuda_allreduce: ModuleType, log: list[object]) -> None:
    cuda_allreduce.cupy.cuda.nccl.available = False
    with pytest.raises(Unavailable, match="pip install nvidia-nccl-cu13"):
        cuda_allreduce.BoundAllReduce(AllReduce(("w",)), [array("w", [2.0], log)], FakeCommunicator(log))


def test_a_process_alone_averages_nothing(cuda_allreduce: ModuleType, log: list[object]) -> None:
    streams, allreduces = cuda_allreduce.bound_steps(
        [AllReduce(("w",))], {}, {"w": None}, OneProcess(), FakeStream("kernels", [])
    )
    streams.enqueue()
    assert (allreduces, log) == ((), [])


def test_the_ceiling_is_the_median_of_the_rank_that_waits_least_less_what_the_events_take(cuda_allreduce: ModuleType) -> None:
    row = cuda_allreduce.ceiling_row([[40_000, 31_000, 50_000], [33_000, 35_000, 90_000]], 2_000.0, GRADIENT_BYTES)
    assert (row["name"], row["device"], row["value"], row["unit"]) == ("nccl_allreduce_3180040_bytes", "2 GPUs", 31.0, "us")


# -- samples that ranks take together ------------------------------------------------------------------------------------


@pytest.fixture
def cuda_events(monkeypatch: pytest.MonkeyPatch, log: list[object]) -> ModuleType:
    return install_events(monkeypatch, log)


def prepared(cuda_events: ModuleType, name: str, communicator: FakeCommunicator):  # type: ignore[no-untyped-def]
    case = TRAINING.shares(TRAINING.case("batch=400"), 2)[1].case  # type: ignore[misc]
    bench = cuda_events.CudaBench(TRAINING, case, TRAINING.make_inputs(case, np.random.default_rng(0)))
    bench.join(communicator)
    return bench, bench.prepare(TRAINING.variant(name), {"blocks": 528})


def test_ranks_that_measured_other_times_execute_as_often(cuda_events: ModuleType, log: list[object]) -> None:
    """33 us are 6 executions in a batch of 200 us; the other rank has seen 99 us, which are 2."""
    for slower, hot in ((1, 6), (3, 2)):
        bench, operation = prepared(cuda_events, "v02_nccl", FakeCommunicator(log, slower))
        bench.sample(operation, cuda_events.HOT, 0)
        assert operation.batch == hot


def test_all_have_queued_their_work_before_any_lets_its_stream_go(cuda_events: ModuleType, log: list[object]) -> None:
    communicator = FakeCommunicator(log)
    bench, operation = prepared(cuda_events, "v02_nccl", communicator)
    bench.sample(operation, cuda_events.HOT, 0)
    known, flags = communicator.waits, bench.device._flags
    communicator.wait = lambda: log.append(("ranks meet", int(flags[0])))  # type: ignore[method-assign]
    log.clear()
    bench.sample(operation, cuda_events.HOT, 0)
    assert known == 1 + 3 + 1  # before the sample, at each of three trials, and at the batch
    assert log[0] == ("ranks meet", 1)
    assert log[log.index("hold_stream") :] == [
        "hold_stream", "read_clocks", "graph", "event", "graph", "event", "read_clocks", ("ranks meet", 0),
    ]  # fmt: skip
    assert flags[0] == 1


def test_all_weights_are_averaged_in_one_piece(cuda_events: ModuleType, log: list[object]) -> None:
    """The gradient's 795,010 floats, and what fills b1 and w2 up to 256 bytes: 96 bytes and 192, 72 floats."""
    prepared(cuda_events, "v02_nccl", FakeCommunicator(log))
    assert {call[2] for call in log if isinstance(call, tuple) and len(call) == 6} == {795_010 + 72}


def test_rows_between_those_that_are_averaged_are_left_alone(cuda_allreduce: ModuleType, log: list[object]) -> None:
    whole = FakeArray(log, (3, 10), name="w")
    step = AllReduce((RowsOf("w", 0, 1), RowsOf("w", 2, 1)))
    one = cuda_allreduce.BoundAllReduce(step, [whole[0:1], whole[2:3]], FakeCommunicator(log))
    one.enqueue(SimpleNamespace(ptr=99))
    start = 16 * hash("w")
    assert log[2:] == ["start", (start, start, 10, 7, 4, 99), (start + 80, start + 80, 10, 7, 4, 99), "end"]


def test_where_another_rank_could_not_capture_none_replays_a_graph(cuda_events: ModuleType, log: list[object]) -> None:
    communicator = FakeCommunicator(log)
    bench, operation = prepared(cuda_events, "v02_nccl", communicator)
    bench.sample(operation, cuda_events.COLD, 0)
    communicator.largest = lambda value: 1  # type: ignore[method-assign]
    bench.sample(operation, cuda_events.HOT, 0)
    log.clear()
    operation.replay()
    assert log == ["graph"] * 6
    assert operation.note == "hot: 6 queued launches, as no CUDA graph could be captured"


def test_an_operation_that_waits_inside_has_no_device_time_and_a_timed_allreduce(
    cuda_events: ModuleType, log: list[object]
) -> None:
    bench, operation = prepared(cuda_events, "v01_host_staged", FakeCommunicator(log))
    assert not operation.takes(cuda_events.COLD)
    log.clear()
    reading = bench.sample(operation, cuda_events.OPERATION, 0)
    overhead_ns = bench.device.event_overhead_ns
    assert reading.phases_ns == {Phase.ALLREDUCE: round(33_000 - overhead_ns)}
    assert "hold_stream" not in log  # nothing would let it go


def test_a_process_alone_times_no_allreduce(cuda_events: ModuleType, log: list[object]) -> None:
    bench, operation = prepared(cuda_events, "v02_nccl", OneProcess())  # type: ignore[arg-type]
    assert bench.sample(operation, cuda_events.OPERATION, 0).phases_ns == {}
    assert operation.takes(cuda_events.COLD)


# -- shares ------------------------------------------------------------------------------------------------------------


def test_each_rank_s_learning_rate_is_in_proportion_to_its_rows() -> None:
    assert TRAINING.shares
    parts = TRAINING.shares(TRAINING.case("batch=37"), 3)
    assert [(part.first, part.case.params["batch"]) for part in parts] == [(0, 13), (13, 12), (25, 12)]
    assert [part.case.params["rate"] for part in parts] == pytest.approx([32 * 3 * n / 37 for n in (13, 12, 12)])
    assert {part.case.params["rate"] for part in TRAINING.shares(TRAINING.case("batch=800"), 4)} == {32.0}


def test_steps_of_a_variant_are_its_launches_and_what_ranks_average() -> None:
    steps = TRAINING.variant("v02_nccl").launches(TRAINING.case("batch=400"), {"blocks": 528})  # type: ignore[attr-defined]
    assert [type(step).__name__ for step in steps] == ["Launch"] * 4 + ["AllReduce"]
    assert kernels_of(steps) == steps[:4]


# -- two GPUs ----------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
def test_two_gpus_average_to_the_right_weights_in_little_more_than_nccl_s_own_time(tmp_path: Path) -> None:
    limits = replace(LIMITS["report"], seconds=1.0, cell_timeout_s=60.0)
    wanted = Request(["mlp_data_parallel"], cases=["batch=37", "batch=800"], gpus=(1, 2))
    run_id, _ = Recorder(make_plan(wanted, limits), collector_of("cuda_events"), start_ranks=Launcher().start).record(
        tmp_path, "", []
    )
    run = store.open_run(tmp_path / run_id)
    results = run.table("results")
    failed = results.query("status != 'ok' and variant != 'v04_warpgroups_3xtf32'")[["variant", "case", "status", "detail"]]
    assert failed.empty, "\n".join(map(str, failed.itertuples(index=False)))
    samples = run.table("samples").query("gpus == 2 and twin == 0")
    # The library peers average within their own call, so they have no phase.
    peers = {each.name for each in registry.load("mlp_data_parallel").variants if each.role == "peer"}
    with_phase = set(results.query("status == 'ok'")["variant"]) - peers
    assert set(samples.query("scope == 'phase:allreduce'")["variant"]) == with_phase
    assert set(samples.query("variant == 'v01_host_staged'")["scope"]) >= {"operation", "end_to_end"}
    assert "device" not in set(samples.query("variant == 'v01_host_staged'")["scope"])
    (nccl_us,) = run.table("ceilings").query("name == 'nccl_allreduce_3180040_bytes' and device == '2 GPUs'")["value"]
    for variant in ("v02_nccl", "v04_warpgroups_3xtf32"):
        ours = samples.query("scope == 'phase:allreduce' and case == 'batch=800' and variant == @variant")
        if len(ours):
            assert ours.groupby("round")["duration_ns"].min().median() <= 1.3 * 1000 * nccl_us, variant
