from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import warpladder
from warpladder.collectors.cuda import assembly, compiler
from warpladder.collectors.cuda.disassembly import disassemble
from warpladder.collectors.inside import ablation, marks, ptx
from warpladder.data.names import Work

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def module_of(body: str, registers: str = "") -> ptx.Module:
    declared = "".join(f"\t.reg {each};\n" for each in registers.split(";") if each)
    return ptx.parse(f"{HEAD}.visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n{declared}{body}\n}}\n")


def function_of(module: ptx.Module) -> ptx.Function:
    return next(module.functions)


def compiled(source: str) -> ptx.Module:
    return ptx.parse(compiler.ptx_with_lines(compiler.Compilation(source, "k.cu", ("k",), (), "sm_90", ())))


def body_of(module: ptx.Module) -> list[str]:
    return [str(each).strip() for each in function_of(module).body]


@pytest.fixture(scope="module")
def summed() -> ptx.Module:
    return compiled(
        """extern "C" __global__ void k(const float* __restrict__ x, float* y, int n) {
  __shared__ float s[256];
  float sum = 0.0f;
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
    s[threadIdx.x] = x[threadIdx.x + j];
    __syncthreads();
    sum += s[threadIdx.x ^ 1];
    __syncthreads();
  }
  y[threadIdx.x] = sum;
}"""
    )


def test_what_the_compiler_writes_is_read_with_the_lines_of_its_source(summed: ptx.Module) -> None:
    function = function_of(summed)
    work = {str(ablation.work_of(each)): each.place for each in function.instructions if ablation.work_of(each)}
    assert function.name == "k" and function.is_kernel and summed.target == "sm_90"
    assert work["loads from global memory"] == ("k.cu", 6)
    assert work["stores to global memory"] == ("k.cu", 11)
    assert len(ptx.loop_heads(function)) == 1


def test_a_module_that_is_written_is_read_as_the_same(summed: ptx.Module) -> None:
    again = function_of(ptx.parse(str(summed)))
    assert list(map(str, again.body)) == list(map(str, function_of(summed).body))


def test_predicates_vectors_labels_blocks_and_comments_are_told_apart() -> None:
    module = module_of(
        "L1: // here; and { there\n@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-8]; /* ; */ { .reg .b32 t; mov.b32 t, 0; }"
        '\n.pragma "a;b // c";',
        ".pred %p<2>",
    )
    _, label, load, opening, declared, move, closing, pragma = function_of(module).body
    assert (str(label), str(opening).strip(), str(closing).strip()) == ("L1:", "{", "}")
    assert load == ptx.Instruction("!%p1", "ld.global.nc.v2.f32", ("{%f1, %f2}", "[%rd1+-8]"))
    assert isinstance(load, ptx.Instruction) and load.results == ("%f1", "%f2") and load.address == "%rd1+-8"
    assert str(declared).strip() == ".reg .b32 t;" and isinstance(move, ptx.Instruction) and "a;b // c" in str(pragma)


def test_blanks_in_an_address_do_not_count() -> None:
    (load,) = ptx.lines("ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];")  # as Triton writes it
    assert isinstance(load, ptx.Instruction) and load.address == "%rd1+0" and load.results == ("%r1", "%r2")


@pytest.mark.parametrize("text", ["{", ".entry k() {", ".global .b8 x = {1", "/* no end"])
def test_a_text_that_is_cut_off_is_no_ptx(text: str) -> None:
    with pytest.raises(ptx.PtxError):
        ptx.parse(HEAD + text)


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("ld.global.nc.f32 %f1, [%rd1];", Work.GLOBAL_LOADS),
        ("ld.f32 %f1, [%rd1];", Work.GLOBAL_LOADS),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16;", Work.GLOBAL_LOADS),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];", None),
        ("ld.volatile.global.u32 %r1, [%rd1];", None),
        ("ld.param.u64 %rd1, [k_param_0];", None),
        ("st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", Work.GLOBAL_STORES),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", Work.SHARED),
        ("st.local.u32 [%rd1], %r1;", Work.LOCAL),
        ("red.global.add.f32 [%rd1], %f1;", Work.ATOMICS),
        ("bar.sync 0;", Work.BARRIERS),
        ("barrier.sync.aligned 1, 128;", Work.BARRIERS),
        ("bar.warp.sync -1;", None),
        ("cvt.f64.f32 %fd1, %f1;", Work.CONVERSIONS),
        ("cvt.rn.f32.s32 %f1, %r1;", Work.CONVERSIONS),
        ("cvt.s64.s32 %rd1, %r1;", None),
        ("div.rn.f32 %f1, %f2, %f3;", Work.SPECIAL),
        ("rem.u32 %r1, %r2, %r3;", Work.INTEGER_DIVISION),
        ("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;", Work.FP64),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", None),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};", Work.TENSOR),
        ("wgmma.commit_group.sync.aligned;", None),
    ],
)
def test_the_class_of_an_instruction(text: str, work: Work | None) -> None:
    (instruction,) = ptx.lines(text)
    assert isinstance(instruction, ptx.Instruction)
    assert ablation.work_of(instruction) is work


def test_the_switch_chooses_the_address_of_a_load() -> None:
    far, near = (
        body_of(ablation.without(module_of(f"{load};", ".f32 %f<2>;.b64 %rd<2>"), work))
        for load, work in (
            ("@%p1 ld.global.f32 %f1, [%rd1+-8]", Work.GLOBAL_LOADS),
            ("ld.shared.v2.f32 {%f0, %f1}, [%rd1]", Work.SHARED),
        )
    )
    assert far[-2:] == ["selp.b64 %wl_copy_0, %rd1, %wl_sink, %wl_on;", "@%p1 ld.global.f32 %f1, [%wl_copy_0+-8];"]
    assert near[-3:] == [
        "and.b64 %wl_copy_0, %rd1, -16777216;",  # the block's own memory, where several are a cluster
        "selp.b64 %wl_copy_0, %rd1, %wl_copy_0, %wl_on;",
        "ld.shared.v2.f32 {%f0, %f1}, [%wl_copy_0];",
    ]


def test_an_atomic_operation_keeps_its_own_predicate_and_what_it_overwrites() -> None:
    module = module_of("@!%p1 atom.global.add.u64 %rd1, [%rd1+8], 1;", ".pred %p<2>;.b64 %rd<2>")
    switched = ablation.without(module, Work.ATOMICS)
    assert body_of(switched)[-5:] == [
        "@!%p1 mov.b64 %wl_copy_0, %rd1;",
        "@!%p1 mov.b64 %rd1, 0;",
        "not.pred %wl_both, %p1;",
        "and.pred %wl_both, %wl_both, %wl_on;",
        "@%wl_both atom.global.add.u64 %rd1, [%wl_copy_0+8], 1;",
    ]
    assert function_of(switched).head.split() == [
        *(".visible", ".entry", "k(", ".param", ".u64", "k_param_0,", ".param", ".b32", "warpladder_switch", ")")
    ]


def test_what_an_instruction_overwrites_is_copied_where_it_is_a_whole_operand() -> None:
    module = module_of("atom.global.exch.b64 %rd1, [%rd10], %rd1;", ".b64 %rd<11>")
    written = [each for each in body_of(ablation.without(module, Work.ATOMICS)) if "atom" in each]
    assert written == ["@%wl_on atom.global.exch.b64 %rd1, [%rd10], %wl_copy_0;"]


def test_a_copy_takes_the_place_of_arithmetic_and_other_operands_stay_needed() -> None:
    module = module_of("fma.rn.f64 %fd1, %fd2, 0d3FF0000000000000, %fd3; cvt.rn.f32.f64 %f1, %fd1;", ".f64 %fd<4>;.f32 %f<2>")
    fp64, conversions = (body_of(ablation.without(module, work)) for work in (Work.FP64, Work.CONVERSIONS))
    assert fp64[-3:-1] == ["@%wl_never st.global.b64 [warpladder_sink], %fd2;", "mov.b64 %fd1, %fd3;"]
    assert conversions[-1] == "mov.b64 {_, %f1}, %fd1;"


DIVISION = "ld.global.u32 %r1, [%rd1]; rem.u32 %r2, %r1, 12; cvt.u64.u32 %rd2, %r2; "


def test_a_division_that_chooses_an_address_is_done_twice() -> None:
    registers = ".b32 %r<4>;.b64 %rd<4>;.pred %p<2>"
    steers = ("add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;", "setp.eq.u64 %p1, %rd2, 0; @%p1 ret;")
    for end in steers:
        module = module_of(DIVISION + end, registers)
        assert ablation.is_doubled(module, Work.INTEGER_DIVISION)
    assert body_of(ablation.without(module_of(DIVISION + steers[0], registers), Work.INTEGER_DIVISION))[-7:-3] == [
        "rem.u32 %wl_copy_0, %r1, 12;",
        "and.b32 %wl_zb32, %wl_copy_0, %wl_0b32;",
        "xor.b32 %wl_copy_1, %r1, %wl_zb32;",
        "rem.u32 %r2, %wl_copy_1, 12;",
    ]
    harmless = module_of(DIVISION + "st.global.u32 [%rd1], %r2;", registers)
    assert not ablation.is_doubled(harmless, Work.INTEGER_DIVISION)


def test_addresses_stay_valid_and_loops_end() -> None:
    registers = ".b32 %r<4>;.b64 %rd<4>;.pred %p<2>"
    pointer = module_of("ld.global.u64 %rd1, [%rd0]; ld.global.u32 %r1, [%rd1+4]; st.global.u32 [%rd0], %r1;", registers)
    assert [each.address for each in ablation.works(pointer)[Work.GLOBAL_LOADS]] == ["%rd1+4"]
    assert "\tld.global.u64 %rd1, [%rd0];" in str(ablation.without(pointer, Work.GLOBAL_LOADS))
    taken = module_of("L: atom.global.add.u32 %r1, [%rd0], 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;", registers)
    assert Work.ATOMICS not in ablation.works(taken)
    index = module_of("ld.shared.u32 %r1, [%r0]; mul.wide.u32 %rd1, %r1, 4; ld.global.u32 %r2, [%rd1];", registers)
    assert "selp.b32 %r1, %r1, 0, %wl_on;" in body_of(ablation.without(index, Work.SHARED))


def test_what_the_compiler_removed_besides_is_told() -> None:
    before = ablation.counts(
        ["F2F.F64.F32 R1, R2", "@P0 DFMA R1, R2, R3, R4", "LDG.E R1", "@!P1 I2F.RP R1, R2", "MUFU.RCP R1, R2"]
    )
    assert {work: count for work, count in before.items() if count} == {
        Work.CONVERSIONS: 2,
        Work.FP64: 1,
        Work.GLOBAL_LOADS: 1,
        Work.SPECIAL: 1,
    }
    none = dict.fromkeys(before, 0)
    assert ablation.changed_besides(Work.FP64, before, {**before, Work.FP64: 0, Work.CONVERSIONS: 1}) == (
        "conversions between number types went from 2 to 1 too"
    )
    assert ablation.changed_besides(Work.INTEGER_DIVISION, before, {**before, Work.CONVERSIONS: 0, Work.SPECIAL: 0}) == ""
    assert ablation.changed_besides(Work.FP64, none, {**none, Work.GLOBAL_STORES: 3}) == ""


def test_a_chain_of_loads_is_found_and_a_gather_is_none() -> None:
    chain = "L1: mul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r1, [%rd3]; bra L1;"
    gather = "ld.global.u32 %r1, [%rd1]; mul.wide.s32 %rd2, %r1, 4; ld.global.u32 %r2, [%rd2];"
    assert [each.results for each in ablation.chased(function_of(module_of(chain)))] == [("%r1",)]
    assert ablation.chased(function_of(module_of(gather))) == []


def test_bytes_at_consecutive_addresses_are_one_group() -> None:
    loads = "".join(f"ld.global.u8 %rs{n}, [%rd1+{n}];" for n in (2, 0, 1, 9)) + "ld.global.u32 %r1, [%rd1+4];"
    groups = ablation.split_accesses(function_of(module_of(loads)))
    assert [[each.address for each in group] for group in groups] == [["%rd1+0", "%rd1+1", "%rd1+2"]]


def test_marks_are_loops_and_barriers_or_those_that_the_source_names(summed: ptx.Module) -> None:
    named = compiled(marks.MACRO + 'extern "C" __global__ void k(float* y) { WARPLADDER_MARK("load"); y[0] = 1; }')
    assert [mark.text for mark in marks.marks(function_of(summed))] == [
        "loop at line 6",
        "barrier at line 7",
        "barrier at line 9",
    ]
    assert [mark.text for mark in marks.marks(function_of(named))] == ["load at line 2"]


# -- with an assembler ---------------------------------------------------------------------------------------------------------

assembled = pytest.mark.skipif(
    assembly.problem() is not None, reason="needs nvJitLink, which the packages of the tests bring on Linux, or ptxas"
)


def mix(module: ptx.Module) -> Counter[str]:
    code = disassemble(assembly.assemble(str(module), module.target))["k"]
    words = (each.text.split() for each in code)
    return Counter((word[1] if word[0].startswith("@") else word[0]).partition(".")[0] for word in words)


@assembled
def test_the_machine_code_keeps_every_access_behind_the_predicate(summed: ptx.Module) -> None:
    before = mix(summed)
    for work in (Work.GLOBAL_LOADS, Work.SHARED, Work.BARRIERS):
        after = mix(ablation.without(summed, work))
        assert {name: after[name] for name in ("LDG", "LDS", "STS", "BAR", "FADD")} == {
            name: before[name] for name in ("LDG", "LDS", "STS", "BAR", "FADD")
        }


@assembled
def test_arithmetic_is_gone_from_the_machine_code_and_what_it_needs_is_not() -> None:
    module = compiled(
        'extern "C" __global__ void k(const float* x, float* y) { float v = x[threadIdx.x]; v = v * 1.1 + 0.3; y[threadIdx.x] = v; }'
    )
    after = mix(ablation.without(module, Work.CONVERSIONS))
    assert mix(module)["F2F"] == 2 and after["F2F"] == 0
    assert (after["DFMA"], after["LDG"], after["STG"]) == (1, 1, 1)


@assembled
def test_the_machine_code_has_the_division_twice() -> None:
    module = compiled(
        'extern "C" __global__ void k(float* y, int n, double d) { int i = threadIdx.x; y[i / n * 3 + i % n] = y[(int)(i * d)]; }'
    )
    assert ablation.is_doubled(module, Work.CONVERSIONS) and ablation.is_doubled(module, Work.FP64)
    once = mix(module)
    assert (
        mix(ablation.without(module, Work.INTEGER_DIVISION))["I2F"] == once["I2F"] + 1
    )  # the remainder comes from the quotient


@assembled
def test_every_alteration_is_accepted_by_the_assembler(summed: ptx.Module) -> None:
    found = marks.marks(function_of(summed))
    probes = marks.probed(summed, "k", 10, 8)
    assert probes.stages[:2] == ("up to the loop at line 6", "up to the barrier at line 7")
    assert mix(probes.module)["EXIT"] >= 1
    for module in (marks.counted(summed, "k")[0], *(marks.delayed(summed, "k", mark) for mark in found)):
        assert assembly.assemble(str(module), module.target).startswith(b"\x7fELF")


@assembled
def test_a_kernel_may_be_given_as_ptx(tmp_path: Path) -> None:
    body = "ld.param.u64 %rd1, [k_param_0]; st.global.u32 [%rd1], 7; ret;"
    text = "// Idea: Sevens.\n" + str(module_of(body, ".b64 %rd<2>"))
    (tmp_path / "k.ptx").write_text(text)
    bench = warpladder.Benchmark("sevens", n=[4])
    bench.inputs(lambda n, rng: rng.random(n, dtype=np.float32))
    bench.reference(lambda x: x)
    bench.cuda(tmp_path / "k.ptx", kernel="k", grid=1, block=1, args=("out",))
    variant = bench.workload.variant("k")
    module = compiler.compiled(compiler.compilation_of(variant, ["k"], "sm_90"))
    assert module.kernels["k"].registers > 0 and module.cubin.startswith(b"\x7fELF") and not compiler.is_ptx("// .version\n")
    assert "st.global.u32" in compiler.ptx_with_lines(compiler.compilation_of(variant, ["k"], "sm_90"))
