"""The transcription of the reports, checked against itself: a slipped digit breaks one of these relations."""

import math
from pathlib import Path

import pandas as pd
import pytest

from warpladder.data import figures
from warpladder.data.figures import COLUMNS, FiguresError
from warpladder.workloads import registry
from warpladder.workloads.api import format_params

#: 2 x 4 bytes x 64^3: each element of the report's tensor read once and written once.
TENSOR_BYTES = 2_097_152
KERNELS = [
    "C simple",
    "D simple, template",
    "E shared memory",
    "F shared memory, template",
    "G bank-conflict-free, template",
]
MASK_OPERATIONS = {"n=512": 6_553_600, "n=1024": 26_214_400, "n=2048": 104_857_600}


def grid(report: str, table: str, quantity: str) -> pd.DataFrame:
    """One quantity of one table: variants down; cases across, and block sizes where the report has them."""
    rows = figures.read(report)
    rows = rows[(rows["table"] == table) & (rows["quantity"] == quantity)]
    across = ["case", "config"] if rows["config"].str.startswith("block=").all() else ["case"]
    return rows.pivot(index="variant", columns=across, values="value")


def test_bandwidth_times_time_is_the_tensors_bytes_in_all_thirty_cells() -> None:
    gigabytes_per_second = grid("tensor_transpose", "1", "bandwidth").loc[KERNELS]
    milliseconds = grid("tensor_transpose", "3", "time").loc[KERNELS]
    moved = gigabytes_per_second * 1e9 * milliseconds * 1e-3
    assert moved.size == 30
    assert (moved / TENSOR_BYTES - 1).abs().to_numpy().max() < 1e-5


def test_speedups_of_table_4_are_host_over_kernel_time_of_table_3() -> None:
    milliseconds = grid("tensor_transpose", "3", "time")
    printed = grid("tensor_transpose", "4", "speedup").loc[KERNELS]
    counted = milliseconds.loc["host"] / milliseconds.loc[KERNELS]
    assert printed.size == 30
    assert (counted / printed - 1).abs().to_numpy().max() < 1e-5


def test_speedups_of_table_5_imply_the_same_copy_time_everywhere() -> None:
    milliseconds = grid("tensor_transpose", "3", "time")
    printed = grid("tensor_transpose", "5", "speedup")
    copies = milliseconds.loc["host"] / printed - milliseconds.loc[printed.index]
    assert copies.size == 18
    # 2 MiB over PCIe 3: 0.32 ms and up, whatever the kernel; a slipped digit would leave this band.
    assert 0.315 < copies.to_numpy().min() <= copies.to_numpy().max() < 0.345


def test_shared_memory_makes_bandwidth_depend_less_on_the_permutation() -> None:
    bandwidth = grid("tensor_transpose", "1", "bandwidth")
    spread = bandwidth.max(axis=1) / bandwidth.min(axis=1)
    assert spread["C simple"] == pytest.approx(192.3 / 77.9596)
    assert spread["G bank-conflict-free, template"] == pytest.approx(169.818 / 164.895)


def test_copies_through_the_host_are_no_faster_than_the_plain_copy() -> None:
    bandwidth = grid("tensor_transpose", "1", "bandwidth")
    assert bandwidth.loc["A copy"].min() == 215.352
    assert bandwidth.loc["B copy through shared memory"].between(168.838, 172.827).all()


def test_the_2_d_speedup_of_section_0_3_is_host_over_kernel() -> None:
    rows = figures.read("call_routes")
    rows = rows[rows["table"] == "section 0.3"].set_index(["variant", "quantity"])["value"]
    counted = rows["host", "time"] / rows["2-D kernel, C++", "time"]
    assert counted == pytest.approx(rows["2-D kernel, C++", "speedup"], rel=1e-5)


def test_the_report_prints_no_bank_conflict_once_the_tile_is_padded() -> None:
    rows = figures.read("tensor_transpose")
    rows = rows[rows["quantity"] == "bank_conflicts"]
    padded = rows[rows["variant"].str.startswith("G")]
    assert (padded["value"] == 0).all()
    assert sorted(rows.loc[rows["variant"].str.startswith("F"), "value"]) == [0.0, 5.1, 5.3, 16.0, 16.0, 16.0]
    assert set(padded["config"]) == {"tile=8x8x8", "tile=8x8x12", "tile=8x9x8", "tile=8x10x10", "tile=8x8x9", "tile=8x12x9"}


def test_convolution_speedups_are_serial_over_kernel_time() -> None:
    seconds = grid("conv2d", "1", "time")
    printed = grid("conv2d", "1", "speedup")
    counted = seconds.loc["serial"] / seconds.loc[["naive", "optimized"]]
    assert printed.size == 18
    assert (counted - printed).abs().to_numpy().max() < 1e-3


def test_convolution_rates_count_25_operations_a_point_at_block_16() -> None:
    seconds = grid("conv2d", "1", "time")
    printed = grid("conv2d", "5", "rate")
    for (case, config), rates in printed.items():
        assert config == "block=16"
        counted = MASK_OPERATIONS[str(case)] / seconds[case, config][["naive", "optimized"]] / 1e9
        assert counted["naive"] == pytest.approx(rates["naive"], rel=1e-5)
        assert counted["optimized"] == pytest.approx(rates["optimized"], rel=1e-5)
    operations = figures.read("conv2d").query("quantity == 'operations'").set_index("case")["value"]
    assert operations.to_dict() == MASK_OPERATIONS


@pytest.mark.parametrize(("table", "variant"), [("2", "naive"), ("3", "optimized")])
def test_changes_with_the_block_are_differences_of_the_times(table: str, variant: str) -> None:
    seconds = grid("conv2d", "1", "time").loc[variant]
    printed = grid("conv2d", table, "time_change").loc[variant]
    assert len(printed) == 6
    for (case, config), change in printed.items():
        before, after = config.removeprefix("block=").split("->")
        counted = seconds[case, f"block={after}"] - seconds[case, f"block={before}"]
        assert counted == pytest.approx(change, abs=1e-9)


def test_changes_a_thread_divide_by_the_blocks_side_but_for_three_that_say_so() -> None:
    rows = figures.read("conv2d")
    changes = rows[rows["quantity"] == "time_change"].set_index(["variant", "case", "config"])["value"]
    odd = []
    for row in rows[rows["quantity"] == "time_change_per_thread"].to_dict("records"):
        added = 8 if row["config"] == "block=8->16" else 16
        ratio = row["value"] * added / changes[row["variant"], row["case"], row["config"]]
        if row["note"]:
            odd.append((row["variant"], row["case"], row["config"]))
            assert ratio == pytest.approx(10)
        else:
            assert ratio == pytest.approx(1)
    assert odd == [
        ("naive", "n=512", "block=8->16"),
        ("optimized", "n=1024", "block=8->16"),
        ("optimized", "n=1024", "block=16->32"),
    ]


def test_overhead_fractions_divide_by_the_run_time_of_the_block_that_is_noted() -> None:
    rows = figures.read("conv2d")
    seconds = rows[(rows["quantity"] == "time")].set_index(["variant", "case", "config"])["value"]
    overheads = rows[rows["quantity"] == "overhead"].set_index(["variant", "case"])["value"]
    fractions = rows[rows["quantity"] == "overhead_fraction"]
    assert len(fractions) == 6
    for row in fractions.to_dict("records"):
        counted = overheads[row["variant"], row["case"]] / seconds[row["variant"], row["case"], row["config"]]
        assert counted == pytest.approx(row["value"], rel=1e-4)
    assert list(fractions.loc[fractions["config"] == "block=32", "case"]) == ["n=512"]


def cnn_clock(clock: str) -> pd.DataFrame:
    """One of the three clocks of the cnn report, in ms: variants down, layers across."""
    return grid("cnn_conv", f"figures 1 to 10, {clock}", "time")


def test_each_clock_of_the_cnn_report_is_longer_than_the_one_within_it() -> None:
    kernel, operation, layer = (cnn_clock(clock) for clock in ("GPUTime", "OpTime", "LayerTime"))
    assert kernel.shape == operation.shape == layer.shape == (5, 2)
    # A launch and a synchronisation: 15 to 50 µs, whatever the kernel.
    launch = (operation - kernel).to_numpy()
    assert 0.015 < launch.min() <= launch.max() < 0.05
    # 2.2 GiB over PCIe at 10 GB/s and less, and the allocations.
    copies = (layer - operation).sum(axis=1).to_numpy()
    assert 950 < copies.min() <= copies.max() < 1200


def test_the_kernels_of_a_profile_of_the_cnn_report_add_up_to_the_total_that_it_prints() -> None:
    totals = {
        "milestone 3 baseline": 213_850_804, "optimization 1: parallel": 79_117_459, "optimization 2: constant memory": 206_752_832,
        "optimization 3: shared memory": 185_507_293,
    }  # fmt: skip
    profiled = grid("cnn_conv", "profiles, kernels", "time")
    assert profiled.sum(axis=1).to_dict() == totals
    # Those of the same kernel without a profiler, in ms, are within a few percent.
    printed = cnn_clock("GPUTime").loc[list(totals)]
    assert (profiled.loc[list(totals)] / 1e6 / printed - 1).abs().to_numpy().max() < 0.03


def test_what_the_cnn_report_copies_is_its_inputs_weights_and_outputs() -> None:
    rows = figures.read("cnn_conv").query("quantity == 'bytes'").set_index("variant")["value"]
    inputs = 10_000 * (86 * 86 + 4 * 40 * 40) * 4 + (4 + 16 * 4) * 49 * 4
    outputs = 10_000 * (4 * 80 * 80 + 16 * 34 * 34) * 4
    assert rows["optimization 1: parallel, copies in"] == int(inputs / 1024) == 538_919
    assert set(rows[rows.index.str.endswith("copies out")]) == {outputs / 1024}
    assert len(rows) == 8


def test_the_gan_report_takes_as_long_for_an_image_more_at_every_number_of_images() -> None:
    rows = figures.read("gan_tconv").query("table == '4'")
    rows = rows.assign(images=rows["case"].str.removeprefix("images=").astype(int))
    seconds = rows.pivot(index="images", columns="variant", values="value")
    assert seconds.index.tolist() == [10, 100, 880, 1000, 2224, 2512, 4856, 5248]
    per_image_ms = 1e3 * seconds.diff().dropna().div(seconds.index.to_series().diff().dropna(), axis=0)
    assert per_image_ms["1 GPU a node"].between(0.14, 0.3).all()
    assert per_image_ms["2 GPUs a node"].between(0.09, 0.23).all()
    # With 8 GPUs in all the last step is 2 ms down.
    assert per_image_ms["4 GPUs a node"].iloc[:-1].between(0.01, 0.11).all()
    assert per_image_ms["4 GPUs a node"].iloc[-1] == pytest.approx(-2 / 392)


def test_only_one_gpu_a_node_has_times_of_ours_beside_it() -> None:
    rows = figures.read("gan_tconv").query("table == '4'")
    assert set(rows.loc[rows["our_variant"] != "", "variant"]) == {"1 GPU a node"}
    assert rows["note"].str.contains("two nodes").all()


def test_speedups_of_the_element_wise_steps_are_quotients_of_their_rounded_times() -> None:
    seconds, printed = grid("mlp_elementwise", "1", "time"), grid("mlp_elementwise", "1", "speedup").loc["GPU"]
    counted = seconds.loc["CPU, Armadillo"] / seconds.loc["GPU"]
    assert len(printed) == 6
    assert (counted / printed - 1).abs().max() < 0.01


def test_the_perceptron_is_right_in_97_to_98_of_100_digits() -> None:
    rows = figures.read("mlp_training")
    assert rows["value"].between(0.966, 0.978).all() and len(rows) == 10
    sequential, parallel = rows.loc[rows["table"] == "section 2", "value"]
    assert sequential == parallel, "the report's check that both do the same"


@pytest.mark.parametrize("report", ["cnn_conv", "conv2d", "gan_tconv", "mlp_elementwise", "mlp_training"])
def test_a_report_that_does_not_name_its_hardware_is_said_not_to(report: str) -> None:
    assert set(figures.read(report)["hardware"]) == {"GPU not named in the report", "CPU not named in the report"}


def test_the_one_report_that_names_its_hardware_has_it() -> None:
    rows = pd.concat(map(figures.read, figures.reports()), ignore_index=True)
    assert set(rows.loc[rows["report"] == "tensor_transpose", "hardware"]) == {
        "NVIDIA GeForce GTX 1070",
        "Intel Core i5-4690K",
        "computed",
    }


def test_the_variants_cases_and_configs_named_as_ours_are_ours() -> None:
    rows = pd.concat(map(figures.read, figures.reports()), ignore_index=True)
    rows = rows[(rows["our_variant"] != "") & (rows["quantity"] != "bank_conflicts")]
    for name, group in rows.groupby("workload"):
        workload = registry.load(str(name))
        assert set(group["our_variant"]) <= {variant.name for variant in workload.variants}
        assert set(group["case"]) <= {case.name for case in workload.cases}
        for variant, config in group[["our_variant", "config"]].drop_duplicates().itertuples(index=False):
            if workload.variant(variant).kind == "cuda" and config:
                assert config in {format_params(params) for params in workload.variant(variant).configs}


def test_only_the_memory_error_has_no_value() -> None:
    rows = pd.concat(map(figures.read, figures.reports()), ignore_index=True)
    missing = rows[rows["value"].isna()]
    assert missing[["case", "note"]].to_numpy().tolist() == [["100000x100000", "MemoryError"]]
    assert math.isfinite(rows["value"].sum())


def write(folder: Path, *lines: str) -> None:
    (folder / "made.csv").write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")


def test_an_unknown_report_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        FiguresError,
        match="no such report; known: call_routes, cnn_conv, conv2d, gan_tconv, mlp_elementwise, mlp_training, tensor_transpose",
    ):
        figures.read("gemm")


def test_a_missing_column_a_foreign_unit_and_a_bare_gap_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "made.csv").write_text("report,value\nr,1\n")
    with pytest.raises(FiguresError, match=r"made\.csv: columns are"):
        figures.read("made", tmp_path)
    write(tmp_path, "r,1,time,v,w,,,c,device,3,GB/s,h,")
    with pytest.raises(FiguresError, match=r"made\.csv:2: time in 'GB/s'"):
        figures.read("made", tmp_path)
    write(tmp_path, "r,1,time,v,w,,,c,device,3,ms,h,", "r,1,time,v,w,,,c,device,,ms,h,")
    with pytest.raises(FiguresError, match=r"made\.csv:3: has neither a value nor a note"):
        figures.read("made", tmp_path)
    write(tmp_path, "r,1,time,v,w,,,c,device,3.x,ms,h,")
    with pytest.raises(FiguresError, match=r"made\.csv: .*3\.x"):
        figures.read("made", tmp_path)


def test_the_report_of_training_has_accuracies_alone_which_no_variant_of_ours_has() -> None:
    assert set(figures.reports()) - figures.compared() == {"mlp_training"}
