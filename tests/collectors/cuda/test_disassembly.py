"""Machine code without a GPU: what the disassembler prints, and that line information changes no instruction."""

import dataclasses
from pathlib import Path

import pytest

from tests.why import planted_pairs
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.core.code_rows import Instruction, code_row, launch_rows
from warpladder.collectors.core.plan import Request, make_plan
from warpladder.collectors.cuda import compiler, disassembly
from warpladder.collectors.cuda.machine_code import ptx_of, rows_of
from warpladder.data import source_text
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant

LISTING = """
	.target	sm_90
.text._Z1kPf:
        .weak           _Z1kPf
_Z1kPf:
	//## File "/somewhere/ptx.cuh", line 9 inlined at "/somewhere/k.cu", line 15
	//## File "/somewhere/k.cu", line 15
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
	//## File "/somewhere/k.cu", line 8
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   FADD R9, R8,   R7 ;
.L_x_1:
        /*0030*/               @P0 BRA `(.L_x_0) ;
.text.other:
        /*0000*/                   EXIT ;
"""


def test_a_listing_has_functions_instructions_and_places() -> None:
    functions = dict(disassembly.parse(LISTING))
    assert list(functions) == ["_Z1kPf", "other"]
    first, second, third, last = functions["_Z1kPf"]
    assert first == Instruction("LDC R1, c[0x0][0x28]", (("ptx.cuh", 9), ("k.cu", 15)))
    assert second == Instruction("@!P0 BRA 0x30", (("k.cu", 8),))
    assert (third.text, last.text) == ("FADD R9, R8, R7", "@P0 BRA 0x10")
    assert functions["other"] == (Instruction("EXIT"),)


def test_a_row_has_the_lines_of_the_source_and_no_padding() -> None:
    code = [Instruction("EXIT", (("ptx.cuh", 1), ("k.cu", 3))), Instruction("BRA 0x10"), Instruction("NOP"), Instruction("NOP")]
    row = code_row("k", "sm_90", "NVRTC", code, {("k.cu", 3): 12}, registers=8, static_shared_bytes=0, spill_bytes=0, ptx=None)
    assert (row["sass"], row["lines"]) == ("EXIT", "12")


def test_launches_that_are_alike_are_one_row() -> None:
    def launch(index: int, kernel: str, blocks: int) -> dict[str, object]:
        return {"workload": "w", "launch_index": index, "kernel": kernel, "grid_x": blocks}

    launches = [launch(0, "split", 8), launch(1, "join", 1), launch(2, "split", 8), launch(3, "split", 4)]
    assert launch_rows(launches) == [
        {**launch(0, "split", 8), "count": 2},
        {**launch(1, "join", 1), "count": 1},
        {**launch(3, "split", 4), "count": 1},
    ]
    longer = [{**launch(index, "split", 8), "scalars": (steps,)} for index, steps in enumerate((1, 9, 1))]
    assert launch_rows(longer) == [{**launch(0, "split", 8), "count": 2}, {**launch(1, "split", 8), "count": 1}]


def test_lines_of_included_files_are_lines_of_the_text_that_was_compiled(tmp_path: Path) -> None:
    (tmp_path / "a.cuh").write_text("int one;\nint two;\n")
    (tmp_path / "k.cu").write_text('// idea\n#include "a.cuh"\nint last;\n')
    text = source_text.read(tmp_path / "k.cu")
    places = source_text.places(text, "folder/k.cu")
    lines = text.split("\n")
    assert lines[places["a.cuh", 2] - 1] == "int two;"
    assert lines[places["k.cu", 3] - 1] == "int last;"
    assert lines[places["k.cu", 1] - 1] == "// idea"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["conv2d", "mlp_elementwise", "tensor_transpose", "mlp_gemm", "cnn_conv", "gan_tconv", "mlp_training"]
)
def test_line_information_changes_no_instruction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = registry.load(name)
    variants = [each for each in workload.variants if isinstance(each, CudaVariant)]
    variant = variants[len(variants) // 2]
    case = next(each for each in workload.cases if variant.skip(each, variant.configs[0]) is None)
    kernels = list(dict.fromkeys(step.kernel for step in variant.launches(case, variant.configs[0]) if hasattr(step, "kernel")))
    what = compiler.compilation_of(variant, kernels, "sm_90")
    with_lines = compiler.compile_uncached(what)
    monkeypatch.setattr(compiler, "_OPTIONS", tuple(each for each in compiler._OPTIONS if each != "--generate-line-info"))
    without = compiler.compile_uncached(dataclasses.replace(what))
    assert b".debug_line" in with_lines.cubin and b".debug_line" not in without.cubin

    def texts(module: compiler.CompiledModule) -> dict[str, list[str]]:
        return {symbol: [each.text for each in code] for symbol, code in disassembly.disassemble(module.cubin).items()}

    assert texts(with_lines) == texts(without)
    assert [kernel.registers for kernel in with_lines.kernels.values()] == [
        kernel.registers for kernel in without.kernels.values()
    ]


def test_every_instruction_of_a_run_s_kernels_has_its_line() -> None:
    plan = make_plan(Request(names=["conv2d"], cases=["n=512"], variants=["v05_constant_shared"]))
    rows = rows_of(plan, [cell for job in plan.jobs for cell in job.cells], "sm_90")
    assert len(rows["cell_launches"]) == len(plan.jobs[0].cells)
    for row in rows["machine_code"]:
        lines = [int(line) for line in row["lines"].split("\n")]
        assert len(lines) == len(row["sass"].split("\n"))
        source = plan.workloads[0].variant("v05_constant_shared").source_text.split("\n")
        assert all(1 <= line <= len(source) for line in lines)
        assert row["ptx"].startswith((".visible .entry", ".entry", ".weak")) and ".loc" not in row["ptx"]
        assert str(Path.cwd()) not in row["ptx"], "no path of the machine that compiled it"


def test_variants_of_libraries_have_no_rows_here() -> None:
    plan = make_plan(Request(names=["conv2d"], cases=["n=512"]))
    assert rows_of(plan, [Cell("conv2d", "numpy", "", "n=512")], "sm_90") == {"cell_launches": [], "machine_code": []}


def test_ptx_of_one_kernel_is_cut_out_of_its_module() -> None:
    variant = planted_pairs.WORKLOAD.variants[0]
    module = compiler.compile_variant(variant, ["scale_add<0>", "scale_add<1>"], "sm_90")
    text = ptx_of(module.ptx, module.kernels["scale_add<1>"].symbol)
    assert text and text.count(".entry") == 1 and text.endswith("}")
    assert ptx_of(module.ptx, "none") is None


def test_without_a_disassembler_one_line_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "program_path", lambda program: None)
    assert "install nvidia-cuda-nvdisasm" in str(disassembly.problem())
    with pytest.raises(disassembly.DisassemblyError, match=r"there is no nvdisasm; pip install nvidia-cuda-nvdisasm"):
        disassembly._run("nvdisasm", "--version")
