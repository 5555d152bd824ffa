"""Floors of extracted operations: bytes and arithmetic in the precision used, and what is said where a ceiling is lacking."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.test_extract import Made, run, tensor
from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.core.operations import aten
from warpladder.dashboard.core.operations.aten import Tensor, Work
from warpladder.dashboard.core.operations.hot_operations import floor_ns

#: 3000 GB/s, and TFLOP/s.
H100 = {
    "device_copy": 3000.0,
    "fp32_fma": 60.0,
    "tf32_mma": 300.0,
    "tf32_wgmma": 450.0,
    "bf16_wgmma": 800.0,
    "fp8_wgmma": 1600.0,
}
#: A product of 8192 x 8192 x 8192 in a type of two bytes.
PRODUCT = Work(2 * 2 * 8192**2, 2 * 8192**2, 2 * 8192**3)


@pytest.mark.parametrize(
    ("precision", "us"),
    # 1,099,511,627,776 operations; 402,653,184 bytes at 3000 GB/s take 134 us.
    [("bf16", 1374.39), ("fp8", 687.19), ("tf32", 2443.36), ("fp32", 18325.19)],
)
def test_the_floor_of_a_product_is_its_arithmetic_in_its_precision(precision: str, us: float) -> None:
    floor, lacks = floor_ns(PRODUCT, precision, H100)
    assert (floor / 1000, lacks) == (pytest.approx(us, abs=0.01), "")


def test_a_product_of_few_rows_is_bounded_by_memory() -> None:
    # 16 x 8192 times 8192 x 8192: 134.7 MB take 44.9 us, the arithmetic 2.7 us.
    floor, _ = floor_ns(Work(2 * (16 * 8192 + 8192**2), 2 * 16 * 8192, 2 * 16 * 8192**2), "bf16", H100)
    assert floor == pytest.approx(44_914, abs=1)


@pytest.mark.parametrize(
    ("least", "precision", "lacks"),
    [
        (PRODUCT, "fp16", "fp16 ceiling"),
        (PRODUCT, "", "ceiling of its type"),
        (Work(100, 100, None), "bf16", "count of operations"),
    ],
)
def test_arithmetic_that_is_not_known_leaves_no_floor(least: Work, precision: str, lacks: str) -> None:
    floor, what = floor_ns(least, precision, H100)
    assert np.isnan(floor) and what == lacks


def test_an_operation_without_products_is_bounded_by_memory_in_any_type() -> None:
    assert floor_ns(Work(3000, 3000, 0), "", H100) == (2.0, "")
    assert floor_ns(Work(3000, 3000, 0), "bf16", {}) == (pytest.approx(np.nan, nan_ok=True), "")
    # No kernel is shorter than an empty one of 0.6 us.
    assert floor_ns(Work(3000, 3000, 0), "bf16", {**H100, "graph_node": 0.6}) == (600.0, "")


@pytest.mark.parametrize(
    ("dtype", "kernel", "precision"),
    [
        ("float32", "ampere_sgemm_128x64_tn", "fp32"),
        ("float32", "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(Params)", "fp32"),
        ("float32", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", "tf32"),
        ("float32", "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_cublas", "tf32"),
        ("float32", "an_unknown_kernel", "tf32"),
        ("bfloat16", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_NTT", "bf16"),
        ("float8_e4m3fn", "nvjet_qqtst_128x256", "fp8"),
        ("int8", "i8gemm", "int8"),
        ("uint8", "mine", ""),
        ("complex64", "cgemm", ""),
    ],
)
def test_the_precision_is_the_one_of_the_types_and_kernels(dtype: str, kernel: str, precision: str) -> None:
    assert aten.precision(dtype, [kernel]) == precision


@pytest.mark.parametrize(
    ("name", "arguments", "flops"),
    [
        ("aten::mv", (Tensor((8, 4), "float32", (4, 1)), Tensor((4,), "float32", (1,))), 64),
        ("aten::_int_mm", (Tensor((8, 4), "int8", (4, 1)), Tensor((4, 2), "int8", (2, 1))), 128),
        ("aten::lstm", (Tensor((8, 4), "float32", (4, 1)),), None),
        ("aten::relu", (Tensor((8, 4), "float32", (4, 1)),), 0),
    ],
)
def test_operations_are_counted_or_not_known(name: str, arguments: tuple[Any, ...], flops: int | None) -> None:
    assert aten.work(name, arguments).flops == flops


def _trace(folder: Path) -> Path:
    """A product in bf16 of 1.4 ms, a product in fp16 of 1.2 ms, and a sum of 0.6 ms."""
    made = Made()
    for number, (name, kind, extents, us) in enumerate(
        (
            ("aten::mm", "c10::BFloat16", (8192, 8192, 8192), 1400),
            ("aten::mm", "c10::Half", (8192, 8192, 8192), 1200),
            ("aten::add_", "float", (1 << 14, 1 << 14, 0), 1500),
        )
    ):
        start = 10 * number
        rows, inner, columns = extents
        second = tensor(inner, columns, of=kind) if columns else tensor(rows, inner, of=kind)
        made.operator(name, start, start + 5, tensor(rows, inner, of=kind), second)
        made.kernel("a_kernel", start + 1, 100 + 2000 * number, us)
    return made.write(folder)


def _ceilings(folder: Path, run_id: str, device: str, values: dict[str, float]) -> None:
    rows = [row("ceilings", name=name, device="cuda:0", value=value) for name, value in values.items()]
    info = {"kind": "recording", "collector": "cuda_events", "device_name": device, "source": ""}
    write_tables(folder, run_row(run_id, run_id) | info, {"ceilings": rows})


def test_extract_ranks_by_the_time_above_the_floor_and_by_the_whole_time_where_no_ceiling_is_known(tmp_path: Path) -> None:
    _ceilings(tmp_path, "measured", "GPU of the test", H100)
    _ceilings(tmp_path, "another-model", "Other GPU", {"fp16_wgmma": 1.0})
    lines = run(str(_trace(tmp_path)), "--data-dir", str(tmp_path)).output.splitlines()
    rows = [line.split() for line in lines if line.startswith("aten::")]
    # bf16: 1374 of 1400 us. fp16 has no ceiling. 2 GiB read and 1 GiB written at 3000 GB/s take 1074 of 1500 us.
    assert [(row[1], *row[8:]) for row in rows] == [
        ("aten_mm_fp16", "no", "fp16", "ceiling", "–"),
        ("aten_add_in_place", "1.07", "ms", "426", "µs"),
        ("aten_mm_bf16", "1.37", "ms", "25.6", "µs"),
    ]
    assert "floors: ceilings of GPU of the test from measured" in lines
    assert "no fp16 ceiling was measured on GPU of the test: warpladder record on it measures all that it has" in lines


def test_a_model_that_was_never_measured_here_has_the_ceilings_of_the_shipped_runs(tmp_path: Path) -> None:
    path = _trace(tmp_path)
    import gzip

    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"GPU of the test", b"NVIDIA H200")))
    output = run(str(path), "--data-dir", str(tmp_path)).output
    assert "floors: ceilings of NVIDIA H200 from 2026" in output and "(shipped)" in output
