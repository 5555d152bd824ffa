"""Which launch belongs to which cell."""

from tests.collectors.nsight_compute.ncu_reports import launch
from warpladder.collectors.nsight_compute.cells import cells_of
from warpladder.collectors.trace.notes import Notes
from warpladder.data.naming import CellName, Naming

OURS = ("conv2d", "n=512", "v01_naive[block=8]")
CELL = CellName("conv2d", "v01_naive", "block=8", "n=512")


def inside(*texts: str) -> dict[str, list[str]]:
    return {"warpladder": [*OURS, *texts]}


def test_launches_of_one_execution_make_a_cell_in_their_order() -> None:
    first = launch("split", ranges=inside("device.cold.warm_up#0", "executions=1"))
    second = launch("reduce", ranges=inside("device.cold.warm_up#0", "executions=1"))
    placed = cells_of([first, second], "report", None, Notes())
    assert placed.ours
    assert placed.cells == {CELL: [first, second]}


def test_ranges_given_innermost_first_are_read_all_the_same() -> None:
    turned = launch("k", ranges={"warpladder": ["executions=1", "device.cold#0", *reversed(OURS)]})
    assert list(cells_of([turned], "report", None, Notes()).cells) == [CELL]


def test_a_variant_without_a_config_and_without_a_sample_counts_too() -> None:
    bare = launch("k", ranges={"warpladder": ["conv2d", "n=512", "cudnn"]})
    assert list(cells_of([bare], "report", None, Notes()).cells) == [CellName("conv2d", "cudnn", "", "n=512")]


def test_executions_outside_of_a_variants_range_are_no_variant() -> None:
    before = launch("k", ranges={"warpladder": ["conv2d", "n=512", "executions=1"]})
    kept = launch("k", ranges=inside("device.cold#0", "executions=1"))
    assert cells_of([before, kept], "report", None, Notes()).cells == {CELL: [kept]}


def test_what_flushes_the_cache_and_later_executions_are_left_out_and_told() -> None:
    flush = launch("write_lines", ranges=inside("device.cold#0"))
    kept = launch("k", ranges=inside("device.cold#0", "executions=1"))
    later = launch("k", ranges=inside("device.cold#1", "executions=1"))
    batch = launch("k", ranges=inside("device.hot#0", "executions=20"))
    elsewhere = launch("init")
    notes = Notes()
    placed = cells_of([elsewhere, flush, kept, later, batch], "report", None, notes)
    assert placed.cells == {CELL: [kept]}
    texts = [row["text"] for row in notes.finish()]
    assert texts == [
        "3 launches outside of the variants' own executions are left out",
        "1 launches of further executions are left out: one execution per cell is counted",
    ]


def test_an_operation_needs_no_executions_range() -> None:
    whole = launch("k", ranges=inside("operation.hot#0"))
    assert cells_of([whole], "report", None, Notes()).cells == {CELL: [whole]}


def test_of_a_foreign_report_each_kernel_is_a_variant_and_its_shapes_are_configs() -> None:
    small, large = launch("gemm"), launch("gemm", grid=(512, 2, 1), block=(16, 16, 1))
    other = launch("relu", ranges={"NCCL": ["allreduce"]})
    placed = cells_of([small, other, large, small], "train", None, Notes())
    assert not placed.ours
    assert placed.cells == {
        CellName("train", "gemm", "grid=256x1x1,block=64x1x1", "all"): [small, small],
        CellName("train", "relu", "", "all"): [other],
        CellName("train", "gemm", "grid=512x2x1,block=16x16x1", "all"): [large],
    }


def test_a_pattern_names_by_the_innermost_range_it_finds() -> None:
    chosen = Naming.parse(r"nvtx:(?P<variant>step_\w+)")
    named = launch("k", ranges={"": ["epoch 1", "step_outer", "step_inner", "forward"]})
    notes = Notes()
    placed = cells_of([named, launch("init")], "train", chosen, notes)
    assert placed.cells == {CellName("train", "step_inner", "", "all"): [named]}
    assert [row["text"] for row in notes.finish()] == ["1 launches outside of the named ranges are left out"]


def test_a_pattern_that_finds_nothing_is_told_and_kernels_are_variants() -> None:
    notes = Notes()
    placed = cells_of([launch("k")], "train", Naming.parse("nvtx:(?P<variant>absent)"), notes)
    assert list(placed.cells) == [CellName("train", "k", "", "all")]
    assert "each kernel is a variant" in notes.finish()[0]["text"]
