"""`warpladder versus --toolchain`: what changed in the code under another NVRTC, with its times where there are some."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

pytest.importorskip("cuda.bindings")

from tests.collectors.cuda.test_nvrtc import beside
from tests.commands.test_disassemble import needs_nvdisasm
from tests.commands.test_json import fits
from warpladder.__main__ import command
from warpladder.collectors import choice
from warpladder.collectors.cuda import compiler, toolchains
from warpladder.collectors.cuda.nvrtc import Nvrtc, nvrtc
from warpladder.dashboard.core import run_data
from warpladder.dashboard.text.toolchain import pairs, render
from warpladder.data import store
from warpladder.data.names import diagnostic_row
from warpladder.installation import ROOT
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant

__all__ = ["beside"]

VERSION = nvrtc().version
FILE = """
import numpy as np
import warpladder

bench = warpladder.Benchmark("polynomials", n=[4096])


@bench.inputs
def inputs(n):
    return np.ones(n, np.float32)


@bench.variant
@bench.reference
def ones(x):
    return x * 1


bench.cuda("many.cu", kernel="many", grid=16, block=256)
bench.cuda("plain.cu", kernel="plain", grid=16, block=256)
"""
#: A kernel that needs more registers than the older compiler of this test gives it.
MANY = """extern "C" __global__ void many(const float* x, float* y) {
  float own[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) own[k] = x[(threadIdx.x * 48 + k) % 4096];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 48; ++k) sum += own[k] * own[47 - k] / 48;
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}"""
PLAIN = """extern "C" __global__ void plain(const float* x, float* y) {
  y[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
}"""


class Older(Nvrtc):
    """The installed NVRTC, as a version that keeps to 32 registers."""

    version = "9.9"

    def compile(self, *arguments: Any) -> Any:
        *others, options = arguments
        return super().compile(*others, [*options, "--maxrregcount=32"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "bench.py").write_text(FILE)
    (folder / "many.cu").write_text(MANY)
    (folder / "plain.cu").write_text(PLAIN)
    return folder / "bench.py"


@pytest.fixture
def older(beside: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of the older compiler."""
    made = Older(str(beside))
    for module in (compiler, toolchains):
        monkeypatch.setattr(module, "nvrtc", lambda path="": made if path == str(beside) else nvrtc(path))
    monkeypatch.setattr(toolchains, "find", lambda name: made if name == str(beside) else nvrtc())
    compiler.compiled.cache_clear()
    yield str(beside)
    compiler.compiled.cache_clear()


def versus(*arguments: str) -> Any:
    return CliRunner(env={"COLUMNS": "200"}).invoke(command(), ["versus", *arguments])


@needs_nvdisasm
def test_without_a_gpu_the_code_is_compared(file: Path, older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "gpu_problem", lambda: "no GPU here")
    done = versus("--toolchain", older, str(file))
    assert done.exit_code == 0, done.output
    lines = done.stdout.replace("\n  ", " ").splitlines()
    assert lines[0] == f"NVRTC 9.9 → {VERSION}, sm_90"
    assert done.stderr.startswith("no times: ")
    assert lines[2].split()[:3] == ["variant", "kernel", "registers"] and lines[3].split()[:5] == [
        "many",
        "many",
        "32",
        "→",
        lines[3].split()[4],
    ]
    sentence = next(line for line in lines if line.startswith("many many: registers 32 → "))
    assert " in place of 8 on a multiprocessor; " in sentence and " → 0 bytes; " in sentence
    assert lines[-1] == "the same instructions in kernels of plain"
    answer = fits("versus-toolchain", versus("--toolchain", older, str(file), "--format", "json").stdout)
    (facts,) = (each for each in answer["kernels"] if each["changes"])
    assert (
        facts["before"]["registers"] == 32 < facts["after"]["registers"]
        and facts["before"]["spill_bytes"] > facts["after"]["spill_bytes"] == 0
    )
    assert facts["times"] == [] and facts["changes"][0]["lengthens"] and not facts["changes"][1]["lengthens"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--toolchain", VERSION, "FILE"], f"--toolchain: both are NVRTC {VERSION} ("),
        (["--toolchain", "OLDER"], "versus --toolchain: no workload; name one"),
        (["--toolchain", "OLDER", "--toolchain", VERSION, "--toolchain", "9.8", "FILE"], "--toolchain 9.8: one too many"),
        (
            ["--toolchain", "OLDER", "--variants", "ones", "FILE"],
            "--variants ones: NVRTC compiles no such variant; choose many, plain",
        ),
        (["--toolchain", "OLDER", "--check", "true", "FILE"], "--check: is for programs; leave it out"),
        (["--toolchain", "OLDER", "--format", "csv", "FILE"], "--toolchain --format csv: choose table or json"),
        (["--arch", "sm_90", "true", "false"], "--arch: is for --toolchain; leave it out"),
        (["--toolchain", "OLDER", "--arch", "sm_1", "FILE"], "no kernel compiles for sm_1 with both versions"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(arguments: list[str], problem: str, file: Path, older: str) -> None:
    names = {"FILE": str(file), "OLDER": older}
    refused = versus(*(names.get(each, each) for each in arguments))
    assert refused.exit_code == 2
    assert problem in refused.stderr.splitlines()[-1]


def test_a_child_loads_both_variants_of_a_kernel(file: Path, beside: Path) -> None:
    workload = toolchains.TwoCompilers("polynomials", file, str(beside), nvrtc().path).load()
    names = [each.name for each in workload.variants]
    assert names == ["ones", f"many@nvrtc-{VERSION}", "many", f"plain@nvrtc-{VERSION}", "plain"]
    kernels = [each for each in workload.variants if isinstance(each, CudaVariant)]
    assert [each.nvrtc for each in kernels[:2]] == [str(beside), nvrtc().path]
    assert kernels[0].rung == kernels[1].rung


def test_the_sentence_has_the_verdict_and_the_changes_that_can_be_why(tmp_path: Path) -> None:
    data = run_data.load(store.open_run(planted_pairs(tmp_path)))
    text = render(pairs(data.code, "@nvrtc-12.4", data), ("12.4", "13.0"), "run", "table").replace("\n  ", " ").splitlines()
    (times,) = (line.split() for line in text if " cause=spills " in line)
    assert times[0] == "v02_fast" and times[-1] == "faster"
    (sentence,) = (line for line in text if ": faster at cause=spills: " in line)
    assert "spills " in sentence and " → 0 bytes" in sentence
    about = {"workload": data.workloads[0], "variant": "v02_fast", "case": "cause=spills"}
    distrusted = pd.concat([data.diagnostics, pd.DataFrame([diagnostic_row("warning", "throttling", "", about)])])
    timed = [each for pair in pairs(data.code, "@nvrtc-12.4", replace(data, diagnostics=distrusted)) for each in pair.times]
    assert {each.judged.verdict for each in timed if each.cell.case == "cause=spills"} == {"unknown"}


def planted_pairs(folder: Path) -> Path:
    """The run of planted pairs, whose slower kernels are named as if an older compiler had made them."""
    run = folder / "run"
    shutil.copytree(ROOT / "tests" / "fixtures" / "planted-pairs" / "run", run)
    for name in ("variants", "results", "samples", "counters", "cell_launches", "instruction_counters", "rules", "diagnostics"):
        file = run / f"{name}.parquet"
        table = pq.read_table(file)
        place = table.schema.get_field_index("variant")
        names = table["variant"].cast(pa.string())
        renamed = pc.if_else(pc.equal(names, "v01_slow"), "v02_fast@nvrtc-12.4", names)
        kind = table.schema.field(place)
        pq.write_table(table.set_column(place, kind, renamed.cast(kind.type)), file)
    return run


@pytest.mark.gpu
def test_both_are_verified_and_timed_in_the_same_rounds(
    file: Path, beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchains, "found", lambda names: (nvrtc(str(beside)), nvrtc()))
    done = versus("--toolchain", "beside", str(file), "--runs", "20", "--data-dir", str(tmp_path), "--format", "json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    for each in answer["kernels"]:
        (timed,) = each["times"]
        assert each["changes"] == [] and timed["speedup_low"] < 1.1 and timed["speedup_high"] > 0.9
    results = store.open_run(tmp_path / answer["run"]).table("results")
    assert set(results["status"]) == {"ok"} and f"many@nvrtc-{VERSION}" in set(results["variant"])
    assert registry.load_file(file)[0].variants[1].name == "many"
