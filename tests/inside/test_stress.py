"""Random delays in kernels: where they are put, what the runs with them tell, and the pass of a recording."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.inside import planted_races
from tests.inside.test_ptx import assembled, body_of, compiled, function_of, module_of
from tests.workloads.declared import CUDA, name_of
from warpladder.collectors import further_passes
from warpladder.collectors.core.checked import cells_of
from warpladder.collectors.core.environment import CollectorError
from warpladder.collectors.core.judge import Problems
from warpladder.collectors.core.plan import PlanError, Request, make_plan
from warpladder.collectors.cuda import assembly, compiler
from warpladder.collectors.cuda.disassembly import disassemble
from warpladder.collectors.inside import delays, ptx, stress
from warpladder.collectors.inside import program as programs
from warpladder.collectors.inside.stress import Numbers, Outcome, outcome
from warpladder.workloads.api import Case, CudaVariant, Params, Workload, kernels_of

#: Kinds of the sites of a kernel, whose registers are declared.
REGISTERS = ".b32 %r<9>;.b64 %rd<9>;.f32 %f<9>;.pred %p<9>"


def sites(body: str) -> list[tuple[int, str]]:
    return [(each.at, each.kind) for each in delays.stressed(module_of(body))[1]]


def kernels(workload: Workload, variant: CudaVariant) -> ptx.Module:
    """The kernels of the first config of a variant at its smallest case."""
    case, _, config = cells_of(workload, [variant.name])[0]
    names = sorted({each.kernel for each in kernels_of(variant.launches(case, config))})
    return ptx.parse(compiler.ptx_with_lines(compiler.compilation_of(variant, names, "sm_90")))


# -- where ---------------------------------------------------------------------------------------------------------------------


def test_a_delay_is_at_each_barrier_and_at_the_first_access_of_a_kind() -> None:
    body = (
        "ld.param.u64 %rd1, [k_param_0]; ld.global.f32 %f1, [%rd1]; fma.rn.f32 %f1, %f1, %f1, %f1; ld.global.f32 %f2, [%rd1+4];"
        "st.shared.f32 [%r1], %f1; bar.sync 0; bar.sync 0; @%p1 bra L; atom.shared.add.u32 %r2, [%r1], 1; L:"
        "red.global.add.u32 [%rd1], 1; cp.async.wait_all; wgmma.fence.sync.aligned; st.local.u32 [%rd1], %r1; ret;"
    )
    assert sites(body) == [
        *((0, ""), (1, "load of global memory"), (4, "store of shared memory"), (5, "barrier"), (6, "barrier")),
        *((8, "atomic operation"), (10, "atomic operation"), (11, "asynchronous copy"), (12, "product of a warpgroup")),
    ]


ACCESSES = "st.shared.f32 [%r1], %f1; ld.shared.f32 %f1, [%r2];"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (f"mov.b32 %r1, %r2; {ACCESSES} bar.sync 0;", [(0, 3)]),
        (f"st.shared.f32 [%r1], %f1; bar.warp.sync -1; {ACCESSES} ret;", [(2, 4)]),
        ("st.shared.f32 [%r1], %f1; shfl.sync.down.b32 %r1, %r2, 1, 31, -1; ld.shared.f32 %f1, [%r2]; ret;", []),
        (f"@%p1 bra L; {ACCESSES} L: mov.b32 %r1, %r2; ret;", [(0, 5)]),
        (f"@%p1 bra L; {ACCESSES} L: bar.sync 0;", [(0, 4)]),
        (f"bar.sync 0; L: {ACCESSES} @%p1 bra L; ret;", [(1, 5)]),
        (f"@%p1 bra E; {ACCESSES} bar.sync 0; E: ret;", [(1, 3)]),
        (f"L: bar.sync 0; {ACCESSES} @%p1 bra L; ret;", [(2, 4)]),
        (f"{{ {ACCESSES} }} ret;", []),
        ("st.shared.f32 [%r1], %f1; ld.global.f32 %f1, [%rd2]; ret;", []),
        (f"wgmma.fence.sync.aligned; {ACCESSES} bar.sync 0;", []),
    ],
)
def test_lanes_run_one_after_another_where_nothing_needs_all_and_no_branch_leaves(
    body: str, parts: list[tuple[int, int]]
) -> None:
    found = delays.stressed(module_of(body))[1]
    assert [(each.at, each.end) for each in found if each.kind == "lanes"] == parts


@pytest.mark.parametrize(
    ("between", "flag", "is_late"),
    [
        ("", "atom.global.add.u32 %r1, [%rd3], 1;", True),
        ("mov.b32 %r3, %r4;", "st.volatile.global.u32 [%rd3], %r3;", True),
        ("ld.shared.u32 %r3, [%r4];", "red.relaxed.gpu.global.add.u32 [counter], 1;", True),
        ("fence.acq_rel.gpu;", "atom.global.add.u32 %r1, [%rd3], 1;", False),
        ("", "atom.release.gpu.global.add.u32 %r1, [%rd3], 1;", False),
        ("", "atom.shared.add.u32 %r1, [%r3], 1;", False),
        ("bar.sync 0;", "atom.global.add.u32 %r1, [%rd3], 1;", False),
        ("L:", "atom.global.add.u32 %r1, [%rd3], 1;", False),
        ("ld.global.u32 %r3, [%rd3];", "atom.global.add.u32 %r1, [%rd3], 1;", False),
        ("mov.b32 %r2, %r4;", "atom.global.add.u32 %r1, [%rd3], 1;", False),
        ("", "st.global.u32 [%rd3], %r1;", False),
    ],
)
def test_a_store_comes_late_where_nothing_keeps_it_before_what_follows(between: str, flag: str, *, is_late: bool) -> None:
    found = delays.stressed(module_of(f"st.global.u32 [%rd1], %r2; {between} {flag} ret;"))[1]
    assert any(each.kind == "late" for each in found) is is_late


def test_a_late_store_stays_before_an_operation_at_its_own_address() -> None:
    module, _ = delays.stressed(module_of("st.global.u32 [%rd1+8], %r2; atom.global.add.u32 %r1, [%rd3], 1; ret;"))
    body = body_of(module)
    stores = [(at, each.split()[0]) for at, each in enumerate(body) if "st.global.u32 [%rd1+8], %r2" in each]
    (flag,) = (at for at, each in enumerate(body) if "atom.global" in each)
    assert [(at < flag, guard) for at, guard in stores] == [(True, "@!%wl_late"), (True, "@%wl_p"), (False, "@%wl_late")]
    assert "add.s64 %wl_d, %wl_d, 40;" in body and "setp.lt.and.u64 %wl_p, %wl_d, 64, %wl_late;" in body


def test_labels_of_a_part_that_is_written_twice_are_its_own() -> None:
    body = body_of(delays.stressed(module_of(f"L: {ACCESSES} @%p1 bra L; @%p2 bra M; M: bar.sync 0;"))[0])
    labels = [each.removesuffix(":") for each in body if each.endswith(":")]
    assert len(labels) == len(set(labels)) == 2 * 2 + 2
    targets = {
        name: [each.split()[-1].rstrip(";") for each in body if each.startswith(f"@%{name} bra")] for name in ("p1", "p2")
    }
    assert targets["p1"][0] == "L" and targets["p2"][0] == "M"
    assert len({*targets["p1"], *targets["p2"]}) == 4 and {*targets["p1"], *targets["p2"]} <= set(labels)


# -- what is written -----------------------------------------------------------------------------------------------------------


def check_altered(module: ptx.Module) -> None:
    """Every instruction of a kernel is still there, what was added writes registers of its own, and the assembler takes it."""
    altered, found = delays.stressed(module)
    assert found and max(each.bit for each in found) < delays.MOST
    for before, after in zip(module.functions, altered.functions, strict=True):
        own = {str(each) for each in before.instructions}
        added = [each for each in after.instructions if str(each) not in own]
        written = {register for each in added if each.name not in ("st", "bra") for register in each.results}
        assert all(each.startswith("%wl_") for each in written - {"%laneid"})
        kept = (each.opcode for each in after.instructions)
        assert all(each.opcode in kept for each in before.instructions)
    code, log = assembly.assembled(str(altered), altered.target)
    assert code.startswith(b"\x7fELF")
    assert "serialized" not in log or "serialized" in assembly.assembled(str(module), module.target)[1]


@assembled
@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("workload", "variant"), CUDA, ids=name_of)
def test_shipped_kernels_assemble_with_delays(workload: Workload, variant: CudaVariant) -> None:
    check_altered(kernels(workload, variant))


@assembled
@pytest.mark.parametrize("variant", planted_races.WORKLOAD.variants, ids=name_of)
def test_planted_races_assemble_with_delays(variant: CudaVariant) -> None:
    module = kernels(planted_races.WORKLOAD, variant)
    check_altered(module)
    found = {each.kind for each in delays.stressed(module)[1]}
    assert ("late" in found) is (variant.name == "fence_races")
    assert ("lanes" in found) is (variant.name in ("warp_races", "block_races"))


def words(module: ptx.Module) -> Counter[str]:
    """How often each instruction is in the machine code, without modifiers and predicates."""
    (code,) = disassemble(assembly.assemble(str(module), module.target)).values()
    texts = (each.text.split() for each in code)
    return Counter((word[1] if word[0].startswith("@") else word[0]).partition(".")[0] for word in texts)


ROTATED = """extern "C" __global__ void k(const float* x, float* y, int n) {{
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  {between}
  y[threadIdx.x] = s[n];
}}"""


@assembled
def test_the_machine_code_has_a_part_twice_where_lanes_run_one_after_another() -> None:
    altered, _ = delays.stressed(compiled(ROTATED.format(between="")))
    after = words(altered)
    assert (after["STS"], after["LDS"]) == (2, 2)


@assembled
def test_a_wait_is_no_branch_so_that_the_lanes_of_a_warp_stay_together() -> None:
    module = compiled(ROTATED.format(between="__syncthreads();"))
    altered, found = delays.stressed(module)
    before, after = words(module), words(altered)
    assert after["NANOSLEEP"] == len(found) == 6
    assert all(before[each] == after[each] for each in ("BRA", "BSSY", "BSYNC", "BAR", "LDS", "STS", "LDG", "STG"))


# -- what the runs tell --------------------------------------------------------------------------------------------------------

SITES = [delays.Site("k", at, kind, ("k.cu", at), bit=at % 3) for at, kind in enumerate(["load", "barrier", "store", "store"])]


class Fake:
    """A kernel whose outputs are wrong where `is_wrong`, and have other bits where `differs`."""

    def __init__(self, is_wrong: Callable[[Numbers], bool], differs: Callable[[Numbers], bool] = lambda numbers: False) -> None:
        self.is_wrong, self.differs, self.last = is_wrong, differs, (0, 0, 0)

    def run(self, numbers: Numbers) -> bytes:
        self.last = numbers
        return f"{self.is_wrong(numbers)}{self.differs(numbers)}".encode()

    def fault(self) -> str:
        return "off by 2" if self.is_wrong(self.last) else ""

    @property
    def outcome(self) -> Outcome:
        return outcome(self.run, self.fault, SITES)


def test_a_wrong_run_is_narrowed_down_to_the_sites_that_are_enough() -> None:
    found = Fake(lambda numbers: bool(numbers[1] & 0b001) and numbers[2] > 1023).outcome
    assert found.runs == 60 and 0 < found.wrong < 60 and 0 < found.first <= 60
    assert found.row("") == (
        "error",
        f"wrong in {found.wrong} of 60 runs with random delays, first in run {found.first}: off by 2; enough is a delay before the load at "
        "k.cu:0 or at 1 place behind it",
    )
    both = Fake(lambda numbers: numbers[1] & 0b110 == 0b110).outcome  # no site is enough
    assert both.wrong and both.row("") == (
        "error",
        f"wrong in {both.wrong} of 60 runs with random delays, first in run {both.first}: off by 2",
    )


def test_other_bits_within_the_tolerance_are_no_finding() -> None:
    right = Fake(lambda numbers: False)
    assert right.outcome.row("") is None
    found = Fake(lambda numbers: False, lambda numbers: numbers[0] % 2 == 1).outcome
    assert found.row("") == (
        "info",
        "within the tolerance, and other bits in 30 of 60 runs: they depend on the order of its threads",
    )
    told = found.row("k.cu:7")
    assert told and told[1].endswith("on the order in which atomic operations add numbers of floating point (k.cu:7)")


def test_a_kernel_that_is_wrong_without_a_delay_runs_once() -> None:
    found = Fake(lambda numbers: True)
    assert found.outcome.row("") == ("error", "wrong without a delay, where unwritten memory holds NaN: off by 2")
    assert found.last == (0, 0, 0)


@pytest.mark.parametrize(
    ("text", "adds"),
    [
        ("red.global.add.f32 [%rd1], %f1;", True),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;", True),
        ("atom.global.add.u32 %r1, [%rd1], 1;", False),
        ("red.global.max.s32 [%rd1], %r1;", False),
    ],
)
def test_atomic_sums_of_floating_point_are_known(text: str, *, adds: bool) -> None:
    module = module_of("")
    (instruction,) = (ptx.Instruction(each.predicate, each.opcode, each.operands, ("k.cu", 3)) for each in ptx.lines(text))  # type: ignore[union-attr]
    function = ptx.Function(function_of(module).head, (instruction,))
    assert delays.adds_floats(ptx.Module((function,))) == ("k.cu:3" if adds else "")


class FakeRuns:
    """Runs of a case without a GPU: all are wrong."""

    def __init__(self, workload: Workload, case: Case, problems: Problems) -> None:
        assert list(problems.sets[0].references)

    def row(self, variant: CudaVariant, config: Params, built: stress._Built, tell: Callable[[str], None]) -> tuple[str, str]:
        tell("runs")
        return "error", f"wrong at {len(built.sites)} sites"


@assembled
def test_the_process_tells_each_step_and_why_kernels_cannot_be_altered(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(current_device=lambda: SimpleNamespace(arch="sm_90"))
    monkeypatch.setitem(sys.modules, "warpladder.collectors.cuda.device", device)
    monkeypatch.setattr(stress, "_Runs", FakeRuns)
    workload = planted_races.WORKLOAD
    broken = replace(workload.variant("warp_right"), source="none", options=("--std=c++17",))
    cells = [(workload.cases[0], each, {}) for each in (workload.variant("block_races"), broken)]
    steps = list[str]()
    first, second = stress.run_cells(workload, cells, steps.append)  # type: ignore[arg-type]
    assert (first["variant"], first["severity"], first["text"]) == ("block_races", "error", "wrong at 7 sites")
    assert (second["variant"], second["severity"]) == ("warp_right", "info")
    assert second["text"].startswith("no runs with random delays: warp_right does not compile for sm_90")
    assert list(dict.fromkeys(steps)) == ["0 while they were assembled", "0 runs", "1 while they were assembled"]


# -- the pass ------------------------------------------------------------------------------------------------------------------

#: In place of Python: the first variant has a finding, the second one breaks with delays, the third one without, the fourth one hangs.
PROGRAM = """#!/bin/sh
echo '"start"'
case "$3" in
  *block_races*) echo '"0 without a delay"'; echo '{"variant": "block_races", "severity": "error", "text": "wrong"}'
    echo '"1 without a delay"'; echo '"1 in a run with random delays"'; echo 'illegal address' >&2; exit 1;;
  *warp_races*) echo '"0 without a delay"'; echo 'too few registers' >&2; exit 1;;
  *warp_right*) echo '"0 in a run with random delays"'; exec sleep 60;;
esac
"""


class Timed:
    """A run in which all variants of a workload were measured."""

    def records(self, table: str) -> list[dict[str, Any]]:
        about = {"workload": "planted_races", "kind": "cuda", "role": "rung", "status": "ok"}
        return [{**about, "variant": variant.name} for variant in planted_races.WORKLOAD.variants]


def planted() -> stress.Pass:
    """The pass over the planted races."""
    return stress.Pass(make_plan(Request(files=[Path(planted_races.__file__)], cases=["n=8192"])), Timed())  # type: ignore[arg-type]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program"
    file.write_text(PROGRAM)
    file.chmod(0o755)
    monkeypatch.setattr(programs.sys, "executable", str(file))
    monkeypatch.setattr(stress, "_SECONDS_A_STEP", 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("program")
def test_a_variant_that_breaks_or_hangs_costs_the_others_nothing() -> None:
    first, *found = planted().rows()
    assert first["text"] == (
        "11 variants with random delays, each config up to 60 times at the smallest case that it serves: 3 findings"
    )
    assert [(row["severity"], row["variant"], row["text"]) for row in found] == [
        ("error", "block_races", "wrong"),
        ("warning", "block_right", "its altered kernels broke in a run with random delays (illegal address)"),
        ("info", "warp_races", "its altered kernels broke without a delay (too few registers)"),
        ("warning", "warp_right", "its altered kernels broke in a run with random delays (took longer than 1 s)"),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("program")
def test_a_signal_ends_the_pass_and_breaks_no_variant() -> None:
    checks = planted()
    checks.stop.number = 2
    (told,) = checks.rows()
    assert told["severity"] == "info" and told["text"].endswith(": 0 findings, and ended early")


def test_what_cannot_be_delayed_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        PlanError, match="--stress: host_clock times no work of a GPU that could be delayed; leave out --stress"
    ):
        further_passes.stress_by("host_clock", 1)
    of_host = make_plan(Request(names=["conv2d"], variants=["numpy"]))
    with pytest.raises(PlanError, match=r"--stress: no variant here has kernels in CUDA C\+\+ or PTX; choose one that has, or"):
        further_passes.check_kinds([further_passes.stress_by("cuda_events", 1)], of_host)
    monkeypatch.setattr(assembly, "problem", lambda: "there is neither nvJitLink nor ptxas")
    with pytest.raises(CollectorError, match="--stress: there is neither nvJitLink nor ptxas"):
        further_passes.stress_by("cuda_events", 1)


# -- on a GPU ------------------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_races_are_found_with_their_place_and_right_kernels_are_clean() -> None:
    _, *found = planted().rows()
    told = {row["variant"]: (row["severity"], row["text"]) for row in found}
    for kernel in planted_races.RACES:
        severity, text = told.pop(f"{kernel}_races")
        print(kernel, severity, text)
        assert severity == "error" and text.startswith("wrong in "), (kernel, text)
        assert "enough is " in text, (kernel, text)
    severity, text = told.pop("floats_right")
    print("floats", severity, text)
    assert severity == "info" and "atomic operations add numbers of floating point" in text
    assert not told
