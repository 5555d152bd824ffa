"""Every kernel under the tools of compute-sanitizer: memcheck, racecheck, synccheck and initcheck find nothing, and find what was planted."""

from pathlib import Path

import pytest

from tests.collectors.cuda import run_every_kernel
from tests.workloads.declared import CUDA, WORKLOADS, name_of
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.collectors.sanitizer.record import TOOLS, UNWRITTEN, Watched, watch
from warpladder.collectors.sanitizer.report import SANITIZER
from warpladder.workloads import registry

PLANTED = Path(__file__).parent / "planted_faults.py"
TIMEOUT_S = 900


def watched(tool: str, *arguments: str) -> Watched:
    """The program's run under a tool."""
    if SANITIZER.path is None:
        pytest.skip(SANITIZER.problem or "")
    unwritten = ["--leave-unwritten"] if tool == UNWRITTEN else []
    return watch(tool, ["-m", "tests.collectors.cuda.run_every_kernel", *unwritten, *arguments], TIMEOUT_S)


@pytest.mark.gpu
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("workload", WORKLOADS, ids=name_of)
def test_a_tool_finds_nothing_in_any_kernel(workload, tool):
    done = watched(tool, workload.name)
    assert done.is_clean, done.printed[-8000:]
    words = [line.partition(" ")[0] for line in done.printed.splitlines()]
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
    assert not faulty.is_clean
    assert report in faulty.printed
    sound = watched(tool, str(PLANTED), "--variants", "sound")
    assert sound.is_clean, sound.printed[-8000:]


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
