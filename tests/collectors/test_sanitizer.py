"""What compute-sanitizer prints, as findings; and the pass of a recording under it. The tool here is a script."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.cuda import planted_faults
from warpladder.collectors import further_passes
from warpladder.collectors.core.environment import CollectorError, Tool
from warpladder.collectors.core.plan import PlanError, Request, make_plan
from warpladder.collectors.sanitizer import record as sanitizer
from warpladder.collectors.sanitizer.child import stores_by_tma
from warpladder.collectors.sanitizer.report import findings, is_clean

#: As versions of 2025, 2023 and 2021 print them.
MEMCHECK = """right planted_faults n=1024 sound
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at void scale<(int)2>(float *, int)+0x50 in /home/me/scale.cu:14
=========     by thread (287,0,0) in block (3906,0,0)
=========     Address 0x7f2a1c003c9c is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2a1c000000 of size 15516 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x1754] in scale
=========
========= Invalid __global__ write of size 4 bytes
=========     at void scale<(int)2>(float *, int)+0x50 in /home/me/scale.cu:14
=========     by thread (288,0,0) in block (3906,0,0)
=========     Address 0x7f2a1c003ca0 is out of bounds
=========
========= Invalid __global__ read of size 1 bytes
=========     at 0x60 in Iota(unsigned char*)
=========     by thread (63,0,0) in block (0,0,0)
=========     Address 0x7f004700004f is out of bounds
=========
========= Invalid __shared__ read of size 4 bytes
=========     at 0x578 in C:/hw/task1.cu:120:MatMulKernel(Matrix, Matrix, Matrix)
=========
========= Program hit unspecified launch failure (error 719) on CUDA API call to cudaDeviceSynchronize.
========= ERROR SUMMARY: 5 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at ka_race(int *)+0x90 in probe.cu:13
=========     and Read access at ka_race(int *)+0xa0 in probe.cu:14 [2048 hazards]
=========
========= Warning: Race reported between Write access at no_lines(int *)+0x140
=========     and Write access at no_lines(int *)+0x140 [5 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
SYNCCHECK = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at ka_divergent(int *)+0xb0 in probe.cu:20
=========     by thread (0,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at vectorAdd(int *)+0x70 in /samples/memset_error.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
========= ERROR SUMMARY: 1 error
"""
#: What 2025.3.1 prints about a kernel of NVRTC, whose source is named after it; host frames cut.
PAST_THE_END = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at past_the_end+0x120 in past_the_end:9
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7f063ba06200 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f063ba05200 of size 4,096 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: enqueue in launch.py:47
=========         Host Frame: main in run_every_kernel.py:116
=========
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorLaunchFailure: unspecified launch failure
========= Target application returned an error
========= ERROR SUMMARY: 1 error
"""
NO_BARRIER = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at no_barrier+0xf0 in no_barrier:14
=========     and Read access at no_barrier+0x100 in no_barrier:15 [4096 hazards]
=========
right planted_faults n=1024 no_barrier
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_findings_are_read_with_kernel_and_line_and_counted() -> None:
    assert {str(each): times for each, times in findings(MEMCHECK).items()} == {
        "Invalid __global__ write of size 4 bytes at scale.cu:14 in scale<(int)2>": 2,
        "Invalid __global__ read of size 1 bytes in Iota": 1,
        "Invalid __shared__ read of size 4 bytes at task1.cu:120 in MatMulKernel": 1,
    }
    assert [(str(each), each.doubted) for each in findings(RACECHECK)] == [
        ("race of a write and a read at probe.cu:13 in ka_race and at probe.cu:14 in ka_race", False),
        ("race of a write and a write in no_lines", True),
    ]
    barrier = "Barrier error detected. Divergent thread(s) in warp at probe.cu:20 in ka_divergent"
    assert list(map(str, findings(SYNCCHECK))) == [barrier]
    read = "Uninitialized __global__ memory read of size 4 bytes at memset_error.cu:41 in vectorAdd"
    assert list(map(str, findings(INITCHECK))) == [read]
    past = {"Invalid __global__ write of size 4 bytes at past_the_end:9 in past_the_end": 1}
    assert {str(each): times for each, times in findings(PAST_THE_END).items()} == past
    race = "race of a write and a read at no_barrier:14 in no_barrier and at no_barrier:15 in no_barrier"
    assert list(map(str, findings(NO_BARRIER))) == [race]
    assert not any(map(is_clean, (MEMCHECK, RACECHECK, SYNCCHECK, INITCHECK, "right planted_faults n=1024 sound\n")))
    assert is_clean("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")


class Timed:
    """A run in which all variants of the planted faults were measured, one with wrong results."""

    def records(self, table: str) -> list[dict[str, Any]]:
        names = [variant.name for variant in planted_faults.WORKLOAD.variants]
        about = {"kind": "cuda", "role": "specimen"}
        statuses = {"past_the_end": "wrong_result"}
        return [{"workload": "planted_faults", "variant": name, "status": statuses.get(name, "ok"), **about} for name in names]


def test_a_finding_is_of_the_variant_that_has_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = {"memcheck": ("past_the_end", MEMCHECK), "racecheck": ("no_barrier", RACECHECK)}
    for tool, (_, printed) in faults.items():
        (tmp_path / tool).write_text(printed)
    script = tmp_path / "tool"
    cases = "".join(
        f'case "$2$*" in {tool}*\\"{variant}\\"*) cat {tmp_path / tool}; exit 99;; esac\n'
        for tool, (variant, _) in faults.items()
    )
    broken = 'case "$2$*" in synccheck*\\"sound\\"*) echo "RuntimeError: no device"; exit 1;; esac\n'
    clean = 'echo "========= ERROR SUMMARY: 0 errors"'
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo Version 2025.3.1.0 && exit 0\n{cases}{broken}{clean}\n')
    script.chmod(0o755)
    monkeypatch.setattr(sanitizer, "SANITIZER", Tool("no-such-tool-on-path", "the CUDA toolkit", (str(script),)))
    checked = sanitizer.Pass(make_plan(Request(files=[Path(planted_faults.__file__)], cases=["n=1024"])), Timed())  # type: ignore[arg-type]
    assert [cell for cells in checked.cells.values() for cell in cells] == [
        (name, "", "n=1024") for name in ("sound", "past_the_end", "no_barrier", "unwritten")
    ]
    first, *found = checked.rows()
    assert first["text"].startswith("compute-sanitizer 2025.3.1 checked 4 variants under memcheck, racecheck")
    assert [(row["severity"], row["variant"], row["text"]) for row in found] == [
        (
            "error",
            "past_the_end",
            "memcheck: Invalid __global__ write of size 4 bytes at scale.cu:14 in scale<(int)2>, 2 times",
        ),
        ("error", "past_the_end", "memcheck: Invalid __global__ read of size 1 bytes in Iota"),
        ("error", "past_the_end", "memcheck: Invalid __shared__ read of size 4 bytes at task1.cu:120 in MatMulKernel"),
        (
            "error",
            "no_barrier",
            "racecheck: race of a write and a read at probe.cu:13 in ka_race and at probe.cu:14 in ka_race",
        ),
        ("warning", "no_barrier", "racecheck: race of a write and a write in no_lines"),
        ("warning", "sound", "synccheck could not watch it: RuntimeError: no device"),
    ]
    assert all(row["config"] is None and row["case"] is None for row in found)


def test_the_tool_is_asked_for_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match="--sanitize: host_clock times no work of a GPU that could be checked"):
        further_passes.sanitizer_by("host_clock", 1)
    monkeypatch.setattr(further_passes, "SANITIZER", Tool("no-such-tool", "the CUDA toolkit", ()))
    with pytest.raises(CollectorError, match="--sanitize: no no-such-tool on PATH or in the usual folders; install the CUDA"):
        further_passes.sanitizer_by("cuda_events", 1)


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "command", lambda tool, program: [sys.executable, *program])
    watched = sanitizer.watch("memcheck", ["-c", "print('began', flush=True); import time; time.sleep(60)"], 0.3)
    assert (watched.printed, watched.code, watched.is_clean) == ("began\n", None, False)
    assert watched.broken == "it did not end within 600 s"


@pytest.mark.parametrize(
    ("line", "stores"),
    [
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 128;", True),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];", True),
        ("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1, %r2, %r3}], [%r4];", True),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
            False,
        ),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r4];", False),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16;", False),
        ("st.global.f32 [%rd1], %f1;", False),
    ],
)
def test_code_that_stores_with_the_tma_is_known_by_its_instruction(line: str, stores: bool) -> None:
    assert stores_by_tma(f".visible .entry f() {{\n  {line}\n  ret;\n}}") is stores
