"""Copies that overlap kernels: the plan of the parts, and what runs after what in three streams."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.collectors.cuda import fake_cuda
from warpladder.collectors.core.plan import BufferRows, Request, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.cuda.transfers import BoundCall, BoundCopy, BoundPart, Overlap, plan_parts
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Overlapped, Part, TensorMap, Workload, WorkloadError


def case_of(n):
    return Case({"n": n}, flops=n, min_bytes=4 * n)


def workload_of(variant):
    """x (n rows) and two weights in, y (n rows) and a total out."""
    return Workload(
        name="scaled",
        title="Scaled",
        cases=(case_of(10),),
        variants=(variant,),
        buffers=lambda case: (
            {"x": Buffer((case.params["n"], 3)), "late": Buffer((5,)), "w": Buffer((7,))},
            {"y": Buffer((case.params["n"], 2)), "total": Buffer((1,))},
        ),
        make_inputs=lambda case, rng: {},
        reference=lambda case, inputs: {},
    )


def launches(case, config):
    n = np.int32(case.params["n"])
    return [
        Launch("first", (1, 1, 1), (1, 1, 1), ("x", TensorMap("w", (4,)), "scratch", n)),
        Launch("second", (1, 1, 1), (1, 1, 1), ("scratch", "late", "w", "y", "total", n)),
    ]


def variant_of(*parts, constants=None):
    return CudaVariant(
        "v01_scaled",
        "Scaled",
        "rung",
        launches=launches,
        scratch=lambda case, config: {"scratch": Buffer((case.params["n"], 4))},
        end_to_end=Overlapped(lambda case, config: [Part(case_of(n), first) for n, first in parts]) if parts else Overlapped(),
        constants=constants or {},
    )


def overlapped(variant, **changes):
    return replace(variant, end_to_end=replace(variant.end_to_end, **changes))


def planned(*parts, constants=None):
    variant = variant_of(*parts, constants=constants)
    return plan_parts(workload_of(variant), case_of(10), variant, {})


def test_weights_are_copied_once_as_kernels_need_them_and_each_part_s_own_rows_with_it():
    first, second, third = planned((4, 0), (4, 4), (2, 8))
    assert first.copies_in == (BufferRows("x", 0, 4), BufferRows("w", 0, 7), BufferRows("late", 0, 5))
    assert second.copies_in == (BufferRows("x", 4, 8),)
    assert third.copies_in == (BufferRows("x", 8, 10),)


def test_a_kernel_waits_only_for_copies_that_no_kernel_before_it_waited_for():
    first, second, _ = planned((4, 0), (4, 4), (2, 8))
    assert first.waits == ((BufferRows("x", 0, 4), BufferRows("w", 0, 7)), (BufferRows("late", 0, 5),))
    assert second.waits == ((BufferRows("x", 4, 8),), ())


def test_inputs_of_constants_are_waited_for_by_the_first_kernel():
    assert planned(constants={"filter": "late"})[0].waits == (
        (BufferRows("late", 0, 5), BufferRows("x", 0, 10), BufferRows("w", 0, 7)),
        (),
    )


def test_rows_leave_with_their_part_and_what_all_parts_write_leaves_with_the_last():
    first, second, third = planned((4, 0), (4, 4), (2, 8))
    assert first.copies_out == (BufferRows("y", 0, 4),)
    assert second.copies_out == (BufferRows("y", 4, 8),)
    assert third.copies_out == (BufferRows("y", 8, 10), BufferRows("total", 0, 1))


def test_kernels_are_launched_for_the_part_s_own_case():
    assert [[int(launch.args[-1]) for launch in part.launches] for part in planned((4, 0), (6, 4))] == [[4, 4], [6, 6]]


def test_what_is_the_same_for_all_parts_is_launched_with_the_first_alone():
    def prepared(case, config):
        first, *others = launches(case, config)
        return [replace(first, once=True), *others]

    variant = replace(variant_of((4, 0), (4, 4), (2, 8)), launches=prepared)
    planned = plan_parts(workload_of(variant), case_of(10), variant, {})
    assert [[launch.kernel for launch in part.launches] for part in planned] == [["first", "second"], ["second"], ["second"]]
    # x goes to `first` alone: its rows are copied, and nobody waits for them.
    assert [len(part.waits) for part in planned] == [2, 1, 1]


def in_two_streams(*parts):
    """x and w in, y out; `weights` is made once of w, `own` by each part."""

    def steps(case, config):
        return [
            Launch("prepare", (1, 1, 1), (1, 1, 1), ("w", "weights", "counter"), once=True),
            Launch("first", (1, 1, 1), (1, 1, 1), ("x", "weights", "own", "counter")),
            Launch("second", (1, 1, 1), (1, 1, 1), ("own", "late", "w", "y")),
        ]

    def buffers(case):
        return {"x": Buffer((case.params["n"],)), "late": Buffer((5,)), "w": Buffer((7,))}, {"y": Buffer((case.params["n"],))}

    variant = replace(
        variant_of(*parts),
        launches=steps,
        scratch=lambda case, config: {
            "weights": Buffer((7,)),
            "own": Buffer((case.params["n"],)),
            "counter": Buffer((1,), "int32", zeroed=True),
        },
    )
    variant = overlapped(variant, streams=2)
    return plan_parts(replace(workload_of(variant), buffers=buffers), case_of(10), variant, {})


def test_the_first_kernel_of_each_stream_waits_for_copies_and_for_what_is_made_once():
    first, second, third = in_two_streams((4, 0), (4, 4), (2, 8))
    assert [part.stream for part in (first, second, third)] == [0, 1, 0]
    w, late = BufferRows("w", 0, 7), BufferRows("late", 0, 5)
    assert first.waits == ((w,), (BufferRows("x", 0, 4),), (late,))
    assert first.makes == (("weights",), (), ())
    assert second.waits == ((BufferRows("x", 4, 8), "weights"), (late, w))
    assert third.waits == ((BufferRows("x", 8, 10),), ())
    assert second.makes == third.makes == ((), ())
    assert [part.copies_in for part in (first, second, third)] == [
        (w, BufferRows("x", 0, 4), late),
        (BufferRows("x", 4, 8),),
        (BufferRows("x", 8, 10),),
    ]


@pytest.mark.parametrize(
    ("gathered", "message"),
    [
        (("w", "v"), "gathers v, which is no input; name some of x, late, w"),
        (("w", "x"), "gathers x, but each part uses other rows of it"),
    ],
)
def test_only_an_input_that_all_parts_need_is_gathered(gathered, message):
    variant = overlapped(variant_of((4, 0), (6, 4)), gathered=gathered)
    with pytest.raises(WorkloadError, match=f"scaled v01_scaled n=10: {message}"):
        plan_parts(workload_of(variant), case_of(10), variant, {})


def test_parts_in_two_streams_may_not_write_the_same_output():
    variant = overlapped(variant_of((4, 0), (6, 4)), streams=2)
    with pytest.raises(WorkloadError, match="every part writes all of total; with that, give it streams=1"):
        plan_parts(workload_of(variant), case_of(10), variant, {})


def test_scratch_has_the_shape_that_the_part_s_own_case_asks_for():
    assert [part.scratch["scratch"].shape for part in planned((4, 0), (6, 4))] == [(4, 4), (6, 4)]


def test_a_part_that_wants_more_scratch_than_the_case_is_refused():
    variant = replace(variant_of((4, 0), (6, 4)), scratch=lambda case, config: {"scratch": Buffer((20 - case.params["n"],))})
    with pytest.raises(
        WorkloadError, match="scaled v01_scaled n=10: the part n=4 needs more scratch scratch than the whole case"
    ):
        plan_parts(workload_of(variant), case_of(10), variant, {})


def test_without_parts_the_case_is_one():
    (only,) = planned()
    assert (only.case, only.copies_out) == (case_of(10), (BufferRows("y", 0, 10), BufferRows("total", 0, 1)))


def test_copies_of_all_parts_are_the_case_s_bytes():
    copies = [rows for part in planned((4, 0), (4, 4), (2, 8)) for rows in part.copies_in]
    width = {"x": 3, "late": 1, "w": 1}
    assert sum((rows.stop - rows.start) * width[rows.name] for rows in copies) == 10 * 3 + 5 + 7


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(4, 0), (4, 4)], "the parts of x end at row 8 of 10"),
        ([(4, 0), (5, 5)], "a part of x begins at row 5, not at 4"),
        ([(6, 0), (6, 4)], "a part of x begins at row 4, not at 6"),
    ],
)
def test_parts_that_are_not_the_case_are_refused(parts, message):
    with pytest.raises(WorkloadError, match=f"scaled v01_scaled n=10: {message}"):
        planned(*parts)


@dataclass
class FakeStream:
    """Keeps what was enqueued in it, with what must be done before."""

    name: str
    log: list
    after: set = field(default_factory=set)

    def enqueue(self, what):
        self.log.append((what, frozenset(self.after)))
        self.after.add(what)

    def wait_event(self, event):
        self.after |= event.marked


class FakeEvent:
    def __init__(self):
        self.marked = frozenset()

    def record(self, stream):
        self.marked = frozenset(stream.after)


def enqueued(*others, gathered=()):
    """Two parts, x0 and x1 with a weight w; what each step comes after. The second is in a stream of its own where it waits for others."""
    log = []
    inward, kernels, outward, gathers = (FakeStream(name, log) for name in ("in", "kernels", "out", "gather"))
    rows = {name: BufferRows(name, 0, 1) for name in ("x0", "w", "x1")}

    def into(name):
        return lambda stream: stream.enqueue(f"{stream.name} {name}")

    def copy(name):
        return BoundCopy((rows[name],), into(name), into(name) if name in gathered else None)

    def call(name, *waits, makes=()):
        return BoundCall(waits, lambda stream: stream.enqueue(name), makes)

    parts = [
        BoundPart(
            [copy("x0"), copy("w")],
            [call("a0", rows["x0"], makes=["s"]), call("b0", rows["w"], makes=["t"]), call("c0")],
            [into("y0")],
        ),
        BoundPart([copy("x1")], [call("a1", rows["x1"], *others), call("b1", rows["w"])], [into("y1")], len(others) and 1),
    ]
    kernels.enqueue("before")
    streams = [kernels, FakeStream("beside", log)][: len({part.stream for part in parts})]
    Overlap(parts, inward, streams, outward, gathers, FakeEvent).enqueue()
    return dict(log), kernels


def test_a_kernel_comes_after_its_own_copies_and_before_its_part_s_copies_out():
    after, _ = enqueued()
    assert after["a0"] == {"before", "in x0"}
    assert after["b0"] == {"before", "in x0", "in w", "a0"}
    assert after["out y0"] == {"before", "in x0", "in w", "a0", "b0", "c0"}
    assert after["a1"] == after["out y0"] | {"c0", "in x1"}


def test_a_part_in_a_stream_of_its_own_waits_for_what_the_first_makes_for_all_and_for_no_other_kernel():
    after, kernels = enqueued("s")
    assert after["a1"] == {"before", "in x0", "in w", "in x1", "a0"}
    assert "c0" not in after["b1"] and "in w" in after["b1"]
    assert kernels.after == set(after)


def test_copies_overlap_the_kernels_of_other_parts():
    after, _ = enqueued()
    assert after["in x1"] == {"before", "in x0", "in w"}  # after no kernel of the first part
    assert "out y0" not in after["a1"] | after["b1"]  # nor do kernels wait for what leaves


def test_what_ranks_gather_comes_after_their_own_pieces_and_before_the_kernels_that_need_it_and_holds_up_no_copy():
    after, kernels = enqueued(gathered=["w"])
    assert after["gather w"] == {"before", "in x0", "in w"}
    assert "gather w" not in after["a0"] | after["in x1"]
    assert "gather w" in after["b0"]
    assert kernels.after == set(after)


def test_nothing_begins_before_what_was_in_the_stream_and_the_stream_ends_after_all():
    after, kernels = enqueued()
    assert all("before" in earlier for what, earlier in after.items() if what != "before")
    assert kernels.after == set(after)


def test_a_stream_beside_has_scratch_of_its_own_but_for_what_is_made_once(monkeypatch):
    log, taken = [], []
    cuda_overlap = fake_cuda.install(monkeypatch, log, "overlap")
    loaded = {
        name: lambda grid, block, args, name=name, stream=None, **_: taken.append((name, args, stream.name))
        for name in ("prepare", "first", "second")
    }
    shapes = {"x": (10,), "late": (5,), "w": (7,), "y": (10,), "weights": (7,), "own": (10,), "counter": (1,)}
    on_device = {name: fake_cuda.FakeArray(log, shape, name=name) for name, shape in shapes.items()}
    host = {name: np.zeros(shapes[name], np.float32) for name in ("x", "late", "w", "y")}
    scratch = {name: on_device[name] for name in ("weights", "own", "counter")}
    parts = in_two_streams((4, 0), (4, 4), (2, 8))
    first = fake_cuda.FakeStream(log, "first")
    copies = cuda_overlap.Copies(host, on_device, on_device)
    cuda_overlap.overlap(parts, loaded, copies, scratch, lambda: log.append("refresh"), first)()
    assert [name for name, *_ in taken] == ["prepare", "first", "second", "first", "second", "first", "second"]
    memory = [[array.data.mem for array in args[1:]] for name, args, _ in taken if name == "first"]
    (weights, own, counter), (same, other, another), last = memory
    assert same is weights and last == [weights, own, counter]
    assert other is not own and another is not counter
    assert [stream for *_, stream in taken] == [*["first"] * 3, *["another"] * 2, *["first"] * 2]
    assert log.count("refresh") == 1


@pytest.mark.gpu
def test_a_thousand_images_from_end_to_end_take_little_longer_than_their_kernels_or_their_copies(tmp_path):
    """Right as they come to the host, in two parts, captured in a graph; within 1.25 of what takes longest."""
    plan = make_plan(Request(["gan_tconv"], cases=["images=1000"], variants=["v08_phases", "v09_graph"]))
    run_id, _ = Recorder(plan, collector_of("cuda_events")).record(tmp_path, "", [])
    run = store.open_run(tmp_path / run_id)
    assert set(run.table("results")["status"]) == {"ok"}
    ceilings = run.table("ceilings").set_index("name")["value"]
    (case,) = run.table("cases").to_dict("records")
    copies_ns = max(case["h2d_bytes"] / ceilings["h2d_pinned"], case["d2h_bytes"] / ceilings["d2h_pinned"])  # GB/s: bytes a ns
    samples = run.table("samples").query("twin == 0 and cache == 'hot' and config == 'tile=128'")
    medians = samples.groupby(["variant", "scope"])["duration_ns"].median()
    for variant in ("v08_phases", "v09_graph"):
        assert medians[variant, "end_to_end"] <= 1.25 * max(medians[variant, "device"], copies_ns)
