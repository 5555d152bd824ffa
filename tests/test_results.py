"""The figures of README and docs/results.md, recomputed from the shipped runs. A test of README compares its rows with docs/results.md."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import pandas as pd
import pytest

from tests.doc_pages import ROOT
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.cells import best_config, cells, is_trusted
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.views.devices.gpus.query import scaling
from warpladder.data import store

pytestmark = pytest.mark.slow

RESULTS: Final = (ROOT / "docs" / "results.md").read_text()
DEVICES: Final = ("H200", "H100")
FP32, ALL = ("fp32",), ("fp32", "3xtf32", "tf32")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_UNITS: Final = {"µs": 1e3, "ms": 1e6}


@dataclass(frozen=True)
class Row:
    """A row of the table of one GPU.

    Attributes:
        start: its beginning.
        run: whose label begins with the device.
        cases: the cases of the figures, in their order.
        precisions: of the figures of each case.
        peers: the groups of ratios, each with a peer for every figure; empty where the row has no ratio to it.
        ranges: the figures are the least and the largest of the cases, in the columns or groups named: `time`, `floor`, or the place of a
            group.
        stronger: times in microseconds of peers that no shipped run has, for the last figures of the row.
    """

    start: str
    run: str
    workload: str
    cases: tuple[str, ...]
    precisions: tuple[str, ...] = FP32
    peers: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[str | int, ...] = ()
    stronger: tuple[str, ...] = ()

    @property
    def device(self) -> str:
        return self.run.split()[0]


def _lines(device: str) -> list[str]:
    """The rows of the table of one GPU."""
    table = RESULTS.partition(f"## One {device}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    return table.splitlines()[2:]


def _perms(n: int, *names: str) -> tuple[str, ...]:
    return tuple(f"n={n},perm={name}" for name in names)


SIX: Final = ("012", "021", "102", "120", "201", "210")
CUDNN3, COMPILED3 = ("cudnn", "cudnn", "cudnn_nhwc_tf32"), ("torch_compile", "torch_compile", "torch_compile_tf32")
GENERATOR: Final = (COMPILED3, ("cudnn", "cudnn", "cudnn_nhwc_tf32"))
CUBLAS3: Final = ("cublas", "cublas", "cublas_tf32")
CUBLASLT3: Final = ("cublaslt_own_d", "cublaslt_own_d", "cublaslt_own_d_tf32")
LIBRARY3, TORCH3 = ("cublaslt",) * 3, ("torch",) * 3
SMALL: Final = ("n=128", "n=256", "n=512")
COMPILED, AUTOTUNED = ("torch_compile",) * 3, ("torch_compile_autotuned",) * 3
CONVOLUTION: Final = (("npp",), ("cupy_ndimage",), ("cudnn",))
ROWS: Final = (
    Row("transpose 512³, (0,1,2)", "H200 tensor_transpose", "tensor_transpose", _perms(512, *SIX[:4]),
        peers=(("torch_compile",) * 4, ("torch",) * 4), ranges=(1,)),
    Row("transpose 512³, (2,0,1)", "H200 tensor_transpose", "tensor_transpose", _perms(512, *SIX[4:]),
        peers=(("torch_compile",) * 2, ("torch", "")), stronger=("", "257")),
    Row("transpose 64³", "H200 tensor_transpose", "tensor_transpose", _perms(64, *SIX),
        peers=(("torch_compile",) * 6, ("cupy",) * 6, ("torch",) * 6), ranges=("time", "floor", 0, 1, 2)),
    *(Row(f"5x5 convolution, {n}²", "H200 conv2d", "conv2d", (f"n={n}",), peers=CONVOLUTION) for n in (8192, 2048, 512)),
    Row("CNN layer 1", "H200 cnn_conv", "cnn_conv", ("layer=1,batch=10000",), peers=(("cudnn",),)),
    Row("CNN layer 2", "H200 cnn_conv", "cnn_conv", ("layer=2,batch=10000",), ALL, (CUDNN3,)),
    *(Row(f"training step, {n:,} rows", "H200 mlp_training", "mlp_training", (f"batch={n}",), ALL, (COMPILED3,)) for n in (800, 8192)),
    Row("matrix product 128³, 256³, 512³, fp32", "H200 mlp_gemm", "mlp_gemm", SMALL, FP32, (CUBLASLT3[:1] * 3, CUBLAS3[:1] * 3)),
    Row("matrix product 128³, 256³, 512³, TF32", "H200 mlp_gemm", "mlp_gemm", SMALL, ("tf32",),
        (CUBLASLT3[2:] * 3, CUBLAS3[2:] * 3)),
    *(Row(f"matrix product {n}³", "H200 mlp_gemm", "mlp_gemm", (f"n={n}",), ALL, (CUBLASLT3, CUBLAS3)) for n in (1024, 4096, 8192)),
    *(Row(f"matrix product in {kind.upper()}, {sizes}", f"H200 gemm_{kind}", f"gemm_{kind}", cases, (kind,), peers)
      for kind in ("bf16", "fp16", "fp8")
      for sizes, cases, peers in (
          ("256³, 512³, 2048³", tuple(f"n={n}" for n in (256, 512, 2048)), (LIBRARY3, TORCH3)),
          ("1024³, 4096³, 8192³", tuple(f"n={n}" for n in (1024, 4096, 8192)), (LIBRARY3, TORCH3)),
          ("4096x4096x14336, 3000³", ("shape=4096x4096x14336", "shape=3000x3000x3000"),
           (LIBRARY3[:2], TORCH3[:2] if kind != "fp8" else ("torch", ""))),
      )),
    Row("training in BF16", "H200 mlp_training_bf16", "mlp_training_bf16", tuple(f"batch={n}" for n in (100, 800, 8192)), ("bf16",),
        (COMPILED,)),
    Row("convolution in BF16, CNN layer 2", "H200 cnn_conv_bf16", "cnn_conv_bf16", tuple(f"layer=2,batch={n}" for n in (100, 1000, 10000)),
        ("bf16",), (CUDNN3[2:] * 3, COMPILED)),
    Row("GAN generator in BF16", "H200 gan_tconv_bf16", "gan_tconv_bf16", tuple(f"images={n}" for n in (10, 100, 1000)), ("bf16",),
        (COMPILED, ("cudnn_nhwc",) * 3)),
    Row("element-wise operations, 8192²: softmax", "H200 mlp_elementwise", "mlp_elementwise",
        tuple(f"op={op},n=8192" for op in ("softmax", "transpose", "column_sum")), peers=(COMPILED, AUTOTUNED, ("torch",) * 3)),
    Row("element-wise operations, 8192²: subtract", "H200 mlp_elementwise", "mlp_elementwise",
        tuple(f"op={op},n=8192" for op in ("subtract", "multiply", "sigmoid")), peers=(COMPILED, AUTOTUNED, ("torch", "", ""))),
    *(Row(f"GAN generator, {n:,} images", "H200 gan_tconv, torch.compile", "gan_tconv", (f"images={n}",), ALL, GENERATOR)
      for n in (1000, 100, 10)),
    Row("transpose 512³, (0,1,2)", "H100 tensor_transpose", "tensor_transpose", _perms(512, *SIX[:4]),
        peers=(("torch_compile",) * 4, ("torch",) * 4), ranges=(1,)),
    Row("transpose 512³, (2,0,1)", "H100 tensor_transpose", "tensor_transpose", _perms(512, *SIX[4:]), peers=(("torch_compile",) * 2,)),
    Row("transpose 64³", "H100 tensor_transpose", "tensor_transpose", _perms(64, *SIX),
        peers=(("torch_compile",) * 6, ("cupy",) * 6, ("torch",) * 6), ranges=("time", "floor", 0, 1, 2)),
    *(Row(f"5x5 convolution, {n}²", "H100 conv2d", "conv2d", (f"n={n}",), peers=CONVOLUTION) for n in (8192, 2048, 512)),
    Row("CNN layer 1", "H100 cnn_conv", "cnn_conv", ("layer=1,batch=10000",), peers=(("cudnn",),)),
    Row("CNN layer 2", "H100 cnn_conv", "cnn_conv", ("layer=2,batch=10000",), ALL, (CUDNN3,)),
    *(Row(f"training step, {n:,} rows", "H100 mlp_training", "mlp_training", (f"batch={n}",), ALL, (COMPILED3,)) for n in (800, 8192)),
    *(Row(f"matrix product {n}³", "H100 mlp_gemm", "mlp_gemm", (f"n={n}",), ALL, (CUBLASLT3, CUBLAS3)) for n in (1024, 4096, 8192)),
    Row("element-wise operations, 8192²: softmax", "H100 mlp_elementwise", "mlp_elementwise",
        tuple(f"op={op},n=8192" for op in ("softmax", "transpose", "column_sum")),
        peers=(COMPILED, AUTOTUNED)),
    Row("element-wise operations, 8192²: subtract", "H100 mlp_elementwise", "mlp_elementwise",
        tuple(f"op={op},n=8192" for op in ("subtract", "multiply", "sigmoid")),
        peers=(COMPILED, AUTOTUNED)),
    *(Row(f"GAN generator, {n:,} images", "H100 gan_tconv", "gan_tconv", (f"images={n}",), ALL, GENERATOR) for n in (1000, 100, 10)),
)  # fmt: skip


@cache
def _cells(run: str) -> pd.DataFrame:
    every = cells(load(store.find_run(run, [store.RECORDED])))
    every = every[(every["scope"] == "device") & (every["cache"] == "cold")]
    return best_config(every[is_trusted(every)])


def _entries(row: Row) -> list[tuple[pd.Series, dict[str, float]]]:
    """The best rung of each case and precision, and the times of the case's variants."""
    found = []
    for case in row.cases:
        of_case = _cells(row.run)
        of_case = of_case[(of_case["workload"] == row.workload) & (of_case["case"] == case)]
        times = dict(zip(of_case["variant"], of_case["median_ns"], strict=True))
        for precision in row.precisions:
            rungs = of_case[(of_case["role"] == "rung") & (of_case["precision"] == precision)]
            found.append((rungs.loc[rungs["median_ns"].idxmin()], times))
    return found


def _agree(printed: Sequence[str], values: Sequence[float]) -> None:
    """Each figure is the value, rounded to its digits; a half may go either way."""
    assert len(printed) == len(values), (printed, values)
    for text, value in zip(printed, values, strict=True):
        digits = len(text.partition(".")[2])
        assert abs(float(text.replace(",", "")) - value) <= 0.5001 * 10.0**-digits, (text, value)


def _times(column: str) -> tuple[list[str], list[float]]:
    """The figures of a column, and the nanoseconds of the unit that follows each."""
    printed = list(_NUMBER.finditer(column))
    units = [next(unit for unit in re.findall("µs|ms", column[each.end() :])) for each in printed]
    return [each.group() for each in printed], [_UNITS[unit] for unit in units]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.device} {row.start}")
def test_every_figure_of_a_row_is_that_of_the_shipped_run(row: Row) -> None:
    (line,) = (line for line in _lines(row.device) if line.startswith(f"| {row.start}"))
    _, _, time, share, ratios, _ = line.split("|")
    entries = _entries(row)

    def ends(values: list[float], of: str | int) -> list[float]:
        return [min(values), max(values)] if of in row.ranges else values

    figures, units = _times(time)
    _agree(
        figures, [ns / unit for ns, unit in zip(ends([best["median_ns"] for best, _ in entries], "time"), units, strict=True)]
    )
    assert share.endswith(" % ")
    _agree(_NUMBER.findall(share), ends([best["percent_of_floor"] for best, _ in entries], "floor"))
    recorded, _, apart = ratios.partition(";") if "†" in ratios.partition(";")[2] else (ratios, "", "")
    recorded = re.sub(r"5x5|3xTF32|in TF32", "", recorded)
    expected = [
        value
        for place, peers in enumerate(row.peers)
        for value in ends(
            [times[peer] / best["median_ns"] for (best, times), peer in zip(entries, peers, strict=True) if peer], place
        )
    ]
    _agree(_NUMBER.findall(recorded), expected)
    if row.stronger:
        assert all(text in RESULTS.partition("### Stronger peers")[2] for text in row.stronger)
        known = [
            (1e3 * float(text.replace(",", "")), best) for text, (best, _) in zip(row.stronger, entries, strict=True) if text
        ]
        _agree(_NUMBER.findall(apart), [ns / best["median_ns"] for ns, best in known])


@pytest.mark.parametrize("device", DEVICES)
def test_each_row_of_one_gpu_is_recomputed(device: str) -> None:
    lines, starts = _lines(device), [f"| {row.start}" for row in ROWS if row.device == device]
    assert len(lines) == len(starts) and all(line.startswith(tuple(starts)) for line in lines)


@cache
def _on_gpus(run: str, workload: str, scope: str = "device", cache: str = "cold") -> pd.DataFrame:
    return scaling(load(store.find_run(run, [store.RECORDED])), workload, Timing(scope, cache))


def _fastest(frame: pd.DataFrame, case: str, ranks: int, precision: str = "fp32", role: str = "rung") -> float:
    chosen = (frame["case"] == case) & (frame["ranks"] == ranks) & (frame["precision"] == precision) & (frame["role"] == role)
    return float(frame.loc[chosen, "median_ns"].min())


#: Run of the generator on several GPUs -> the beginning of its section, and its numbers of GPUs.
SEVERAL: Final = {"4 H200: gan_tconv": ("## Four H200s", (2, 4)), "2 H100: gan_tconv": ("## Two and four H100s", (2,))}


def _of_gpus(section: str, start: str) -> tuple[list[str], list[str], list[str]]:
    """The figures of the columns for one, two and four GPUs."""
    lines = RESULTS.partition(section)[2].partition("\n## ")[0].splitlines()
    (line,) = (line for line in lines if line.startswith(f"| {start}"))
    one, two, four = (_NUMBER.findall(column) for column in line.split("|")[2:5])
    return one, two, four


@pytest.mark.parametrize("run", SEVERAL)
@pytest.mark.parametrize("name", ["fp32", "3xTF32", "TF32"])
def test_the_generator_on_several_gpus(run: str, name: str) -> None:
    section, counts = SEVERAL[run]
    one, *several = _of_gpus(section, f"generator, 5,248 images, {name} |")
    found = _on_gpus(run, "gan_tconv")
    alone = _fastest(found, "images=5248", 1, name.lower())
    _agree(one, [alone / 1e6])
    for ranks, printed in zip((2, 4), several, strict=True):
        together = _fastest(found, "images=5248", ranks, name.lower())
        _agree(printed, [together / 1e6, alone / together] if ranks in counts else [])


@pytest.mark.parametrize("run", SEVERAL)
def test_the_generator_on_several_gpus_with_its_copies(run: str) -> None:
    section, counts = SEVERAL[run]
    one, *several = _of_gpus(section, "the same with overlapped copies")
    found = _on_gpus(run, "gan_tconv", "end_to_end", "hot")
    alone = [_fastest(found, "images=5248", 1, precision) for precision in ALL]
    _agree(one, [ns / 1e6 for ns in alone])
    for ranks, printed in zip((2, 4), several, strict=True):
        of_ranks = [_fastest(found, "images=5248", ranks, precision) for precision in ALL] if ranks in counts else []
        _agree(printed, [ns / together for ns, together in zip(alone, of_ranks, strict=False)])


@pytest.mark.parametrize(("rows", "precision"), [(8192, "fp32"), (8192, "3xTF32"), (400, "fp32")])
def test_training_on_four_gpus(rows: int, precision: str) -> None:
    one, *several = _of_gpus("## Two and four H100s", f"training, {rows:,} rows a GPU, {precision} |")
    found = _on_gpus("4 H100: mlp_data_parallel", "mlp_data_parallel")
    alone = _fastest(found, f"batch={rows}", 1, precision.lower())
    _agree(one, [alone / 1e3])
    for ranks, printed in zip((2, 4), several, strict=True):
        together = _fastest(found, f"batch={ranks * rows}", ranks, precision.lower())
        _agree(printed, [together / 1e3, 100 * alone / together])


def test_distributed_data_parallel() -> None:
    found = _on_gpus("4 H100: mlp_data_parallel", "mlp_data_parallel")
    table = RESULTS.partition("| batch | 2 GPUs")[2].splitlines()[2:5]
    for line in table:
        batch, *ratios = (_NUMBER.findall(column)[0] for column in line.split("|")[1:4])
        case = f"batch={batch.replace(',', '')}"
        _agree(ratios, [_fastest(found, case, ranks, role="peer") / _fastest(found, case, ranks) for ranks in (2, 4)])
