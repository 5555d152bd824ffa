"""Every kernel under the tools of compute-sanitizer: memcheck, racecheck, synccheck and initcheck find nothing, and find what was planted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.cuda import run_every_kernel
from tests.workloads.declared import CUDA, WORKLOADS, name_of
from warpladder.collectors.core.environment import Tool
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.workloads import registry

PROJECT = Path(__file__).resolve().parents[3]
PLANTED = Path(__file__).parent / "planted_faults.py"
SANITIZER = Tool("compute-sanitizer", "the CUDA toolkit", ("/usr/local/cuda*/bin/compute-sanitizer",))
FOUND = 99  # exit status of the tool where the program itself ended well
TIMEOUT_S = 900  # racecheck slows kernels down by a hundred and more

#: What each tool is given besides its name, what the program is given, and what the tool says at the end where all is well.
TOOLS = {
    # Padding: what an access past the end of a buffer meets is never another buffer.
    "memcheck": (("--padding", "4096"), (), "ERROR SUMMARY: 0 errors"),
    # Its analysis names each pair of accesses once; warnings count, remarks on writes of the same value do not.
    "racecheck": (("--racecheck-report", "analysis"), (), "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
    "synccheck": ((), (), "ERROR SUMMARY: 0 errors"),
    # Memory that is filled with NaN counts as written.
    "initcheck": ((), ("--leave-unwritten",), "ERROR SUMMARY: 0 errors"),
}


def watched(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program's run under a tool, its output and the tool's together in stdout."""
    if SANITIZER.path is None:
        pytest.skip(SANITIZER.problem or "")
    for_tool, for_program, _ = TOOLS[tool]
    # Errors of API calls: packages ask for functions that a driver may lack, as they are imported (34 calls of cuGetProcAddress).
    command = [SANITIZER.path, "--tool", tool, "--error-exitcode", str(FOUND), "--report-api-errors", "no", *for_tool]
    command += [sys.executable, "-m", "tests.collectors.cuda.run_every_kernel", *for_program, *arguments]
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the program too, which would hold the GPU and the pipe
            said, _ = process.communicate()
            pytest.fail(f"{tool} is not done after {TIMEOUT_S} s; the last lines:\n{said[-2000:]}")
    return subprocess.CompletedProcess(command, process.returncode, said)


@pytest.mark.gpu
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_a_tool_finds_nothing_in_any_kernel(workload, tool):
    done = watched(tool, workload.name)
    assert done.returncode == 0, done.stdout[-8000:]
    assert TOOLS[tool][2] in done.stdout
    words = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    assert words.count("right")
    assert words.count("right") + words.count("skipped") >= len(run_every_kernel.cells(workload))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("tool", "variant", "report"),
    [
        ("memcheck", "past_the_end", "Invalid __global__ write of size 4 bytes"),
        ("racecheck", "no_barrier", "Race reported between"),
        ("initcheck", "unwritten", "Uninitialized __global__ memory read of size 4 bytes"),
    ],
)
def test_a_tool_finds_the_fault_that_was_planted_for_it_and_none_in_sound_code(tool, variant, report):
    faulty = watched(tool, str(PLANTED), "--variants", variant)
    assert faulty.returncode != 0
    assert report in faulty.stdout
    sound = watched(tool, str(PLANTED), "--variants", "sound")
    assert sound.returncode == 0, sound.stdout[-8000:]
    assert TOOLS[tool][2] in sound.stdout


@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_every_config_of_every_kernel_is_run_at_odd_sizes_or_at_the_smallest_that_it_serves(workload, variant):
    found = run_every_kernel.cells(workload, [variant.name])
    assert [config for config in variant.configs if not any(config == each for _, _, each in found)] == []
    for case, _, config in found:
        assert variant.skip(case, config) is None
        if case.size_rank is not None:
            assert case.min_bytes == min(each.min_bytes for each in workload.cases if variant.skip(each, config) is None)


@pytest.mark.parametrize("variant", registry.load_file(PLANTED)[0].variants, ids=name_of)
def test_planted_faults_compile_with_line_numbers(variant):
    assert b".debug_line" in compile_variant(variant, [variant.name], "sm_90").cubin


def test_the_program_says_in_one_line_what_it_does_not_know(capsys):
    for arguments, line in (
        (["no_such_workload"], "no_such_workload: no such workload"),
        (["conv2d", "--variants", "numpy"], "numpy: no such CUDA variant of conv2d"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run_every_kernel.main(arguments)
        assert stopped.value.code == 2
        assert line in capsys.readouterr().err
