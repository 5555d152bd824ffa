"""A run with machine code and counters by instruction that were written by hand, so that a test can count them by hand."""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.synthetic import made_runs
from tests.synthetic.made_runs import row
from tests.synthetic.made_sweeps import add
from warpladder.data import store

WORKLOAD, CASE = "conv2d", "n=1024"
SOURCE = """// Idea: Two loops.
__global__ void conv2d(const float* a, float* c, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < 25; ++j)
      sum += a[i] * a[j];
  }
  c[threadIdx.x] = sum;
}
"""
#: Line of the source, and instruction. The outer loop is 3 to 11, the inner one 4 to 9; the last branch but one leads to itself.
NAIVE = (
    (2, "LDC R1, c[0x0][0x28]"),
    (2, "S2R R0, SR_TID.X"),
    (3, "MOV R5, RZ"),
    (4, "LDG.E R2, desc[UR4][R2.64]"),
    (6, "LDG.E.128 R8, desc[UR4][R4.64]"),
    (6, "FFMA R5, R2, R8, R5"),
    (6, "FFMA R5, R2, R9, R5"),
    (5, "IADD3 R6, R6, 0x1, RZ"),
    (5, "ISETP.NE.AND P0, PT, R6, 0x19, PT"),
    (5, "@P0 BRA 0x40"),
    (4, "IADD3 R7, R7, 0x1, RZ"),
    (4, "@P1 BRA 0x30"),
    (8, "STL [R1], R5"),
    (8, "LDL R5, [R1]"),
    (8, "STG.E desc[UR4][R2.64], R5"),
    (9, "EXIT"),
    (0, "BRA 0x100"),
    (0, "NOP"),
)
#: As `NAIVE`, but without the spill, with a load from shared memory, and with another last index.
TILED = tuple(
    (line, text.replace("0x19", "0x18")) for line, text in (*NAIVE[:4], (6, "LDS.128 R8, [R4]"), *NAIVE[5:12], *NAIVE[14:])
)
#: As `NAIVE`, in other registers and at other addresses.
RENAMED = tuple((line, text.replace("R5", "R15").replace("BRA 0x100", "BRA 0x108")) for line, text in NAIVE)
#: Metric -> place of an instruction of `NAIVE` -> reading.
COUNTS: dict[str, dict[int, int]] = {
    "inst_executed": {place: 250 if 4 <= place <= 9 else 10 if 3 <= place <= 11 else 1 for place in range(16)},
    "smsp__pcsamp_sample_count": {5: 30, 6: 10},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {5: 25},
    "smsp__pcsamp_warps_issue_stalled_wait": {5: 5, 6: 10},
    "smsp__pcsamp_warps_issue_stalled_wait_not_issued": {5: 4},
    "memory_l2_theoretical_sectors_global": {3: 80, 4: 4000, 14: 4},
    "memory_l2_theoretical_sectors_global_ideal": {3: 80, 4: 1000, 14: 4},
}
#: Variant and config -> its kernels, each with its code.
CODES = {
    ("v01_naive", "block=8"): (("conv2d<8>", NAIVE),),
    ("v01_naive", "block=16"): (("conv2d<16>", RENAMED),),
    ("v02_shared", "block=8"): (("zero", NAIVE[:1] + NAIVE[15:]), ("conv2d<8>", TILED)),
    ("v03_register_tile", ""): (("conv2d", TILED),),
    ("cudnn", ""): (("cudnn::kernel<float>", ()),),
}


def write(data_dir: Path, run_id: str = "code", *, counted: bool = True) -> Path:
    """Write a run with the launches of some cells of one case of conv2d, their code, and counters of one. Returns its folder."""
    path = made_runs.write(data_dir, run_id, rounds=8, workloads=(WORKLOAD,))
    _set_sources(path)
    add_to(path, counted=counted)
    return path


def add_to(path: Path, *, counted: bool = True) -> None:
    """Add launches, code, counters and a rule to a run that is on disk, for its variants of conv2d."""
    own = set(pq.read_table(path / "variants.parquet", columns=["variant"])["variant"].to_pylist())
    launches: list[dict[str, Any]] = []
    codes: dict[str, dict[str, Any]] = {}
    for (variant, config), kernels in ((cell, kernels) for cell, kernels in CODES.items() if cell[0] in own):
        for index, (kernel, code) in enumerate(kernels):
            made = code_row(kernel, code) if code else None
            if made:
                codes[made["code"]] = made
            launches.append(_launch(variant, config, index, kernel, made["code"] if made else None))
    add(path, "cell_launches", launches)
    add(path, "machine_code", list(codes.values()))
    if counted:
        cell = _cell("v01_naive", "block=8")
        rows = [
            {**cell, "launch_index": 0, "metric": metric, "instruction": place, "value": value}
            for metric, values in COUNTS.items()
            for place, value in values.items()
        ]
        add(path, "instruction_counters", rows)
        found = {"section": "SpeedOfLight", "rule": "SOLBottleneck", "severity": "warning", "title": "Bound by memory"}
        add(path, "rules", [row("rules", **cell, launch_index=0, text="Use fewer bytes.", **found)])


def code_row(kernel: str, code: tuple[tuple[int, str], ...]) -> dict[str, Any]:
    """A row of `machine_code`."""
    sass, lines = "\n".join(text for _, text in code), "\n".join(str(line) for line, _ in code)
    return row(
        "machine_code",
        code=hashlib.sha256(f"{kernel}{sass}".encode()).hexdigest()[:16],
        kernel=kernel,
        architecture="sm_90",
        compiler="NVRTC 13.0",
        registers=32,
        static_shared_bytes=1024,
        spill_bytes=4 if "STL" in sass else 0,
        sass=sass,
        lines=lines,
        ptx=".visible .entry conv2d() {\n  ret;\n}",
    )


def _cell(variant: str, config: str) -> dict[str, str]:
    return {"workload": WORKLOAD, "variant": variant, "config": config, "case": CASE}


def _launch(variant: str, config: str, index: int, kernel: str, code: str | None) -> dict[str, Any]:
    sizes = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"} | {"grid_x": 8, "block_x": 128}
    return row(
        "cell_launches",
        **_cell(variant, config),
        launch_index=index,
        count=1,
        kernel=kernel,
        code=code,
        dynamic_shared_bytes=512,
        **sizes,
    )


def _set_sources(path: Path) -> None:
    """Give the rungs a source with a line for each instruction's number."""
    file = path / "variants.parquet"
    variants = pq.read_table(file).to_pylist()
    for variant in variants:
        if variant["role"] == "rung":
            variant |= {"source_text": SOURCE, "source_sha256": hashlib.sha256(SOURCE.encode()).hexdigest()}
    pq.write_table(store.conform("variants", variants), file)
