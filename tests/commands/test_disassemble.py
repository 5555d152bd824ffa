"""`warpladder disassemble`: kernels of sources, workloads, cubins and programs, without a GPU; and one line for each mistake."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("cuda.bindings")

from tests.commands.test_json import fits
from warpladder.__main__ import command
from warpladder.collectors.core.demangle import demangled, without_parameters
from warpladder.collectors.cuda import compiler, disassembly, kernels_of_file
from warpladder.collectors.cuda.kernels_of_file import known_architectures, runs_on
from warpladder.installation import ROOT
from warpladder.workloads.api import CudaVariant

SOURCE = """
namespace own {
__global__ void reversed(float* x) {
  __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = part[63 - threadIdx.x];
}
}
template <int N> __global__ void many(float* x) { for (int i = 0; i < N; ++i) x[i] += 1; }
extern "C" __global__ void horner(float* x, int n) {
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < n; ++i) sum = sum * x[0] + 3;
  x[0] = sum;
}
// __global__ void not_a_kernel() {}
__global__ void __launch_bounds__(256) scale(float* x, float by) { x[threadIdx.x] *= by; }
"""
KERNELS = {"own::reversed", "horner", "scale"}
HOST = "int main() { scale<<<1, 32>>>(nullptr, 2); many<3><<<1, 1>>>(nullptr); }\n"

needs_nvdisasm = pytest.mark.skipif(disassembly.problem() is not None, reason="needs nvdisasm")
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc") or not shutil.which("g++"), reason="needs nvcc and g++")


def disassemble(*arguments: object) -> Result:
    return CliRunner().invoke(command(), ["disassemble", *map(str, arguments)])


def kernels(*arguments: object) -> list[dict[str, Any]]:
    done = disassemble(*arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    facts: list[dict[str, Any]] = fits("disassemble", done.stdout)
    return facts


def refused(*arguments: object) -> str:
    """The line of a command that ends with 2."""
    done = disassemble(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.output
    return done.stderr


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "own.cu"
    file.write_text(SOURCE)
    return file


# -- sources -------------------------------------------------------------------------------------------------------------------


@needs_nvdisasm
def test_a_source_has_all_kernels_that_are_no_templates(source: Path) -> None:
    facts = {each["kernel"]: each for each in kernels(source)}
    assert facts.keys() == KERNELS
    assert {each["architecture"] for each in facts.values()} == {"sm_90"}
    assert facts["own::reversed"]["static_shared_bytes"] == 256
    assert facts["horner"]["hot_loop"]["mix"]["FFMA"] == 4
    assert facts["scale"]["hot_loop"] is None
    for each in facts.values():
        assert each["registers"] > 0 and each["spill_bytes"] == 0
        assert each["instructions"] == len(each["sass"])
        assert each["sass"][-1]["text"] == "EXIT"
        assert "ptx" not in each and each["occupancy"] is None


@needs_nvdisasm
def test_a_line_names_the_templates_of_which_the_compiler_makes_no_kernel(source: Path) -> None:
    source.write_text(
        f"{SOURCE}template<typename T, int N = sizeof(T)>\nstatic __global__ void __launch_bounds__(128, 2) wide(T* x) {{}}\n"
        "template <int N> __device__ int helper() { return N; }\n// template <int N> __global__ void gone() {}\n"
    )
    line = "own.cu: without many, wide: of a template, name the arguments, as in --kernel 'many<4>'\n"
    assert disassemble(source).stderr.endswith(line)
    assert not disassemble(source, "--kernel", "scale").stderr


@needs_nvdisasm
def test_a_template_is_named_with_its_arguments_for_each_architecture(source: Path) -> None:
    facts = kernels(source, "--kernel", "many<5>", "--kernel", "scale", "--arch", "sm_75,sm_100", "--ptx")
    assert [(each["architecture"], each["kernel"]) for each in facts] == [
        (arch, name) for arch in ("sm_75", "sm_100") for name in ("many<5>", "scale")
    ]
    assert sum("FADD" in each["text"] for each in facts[0]["sass"]) == 5
    assert all(".entry" in each["ptx"] for each in facts)


@needs_nvdisasm
def test_a_listing_has_the_lines_of_the_source(source: Path) -> None:
    lines = disassemble(source, "--kernel", "scale", "--format", "sass").stdout.splitlines()
    assert lines[0] == f"scale  sm_90  NVRTC {compiler.version()}"
    assert lines[3].startswith("    // 18: __global__ void __launch_bounds__(256) scale(")
    assert lines[4].split()[0] == "0000" and lines[-1].split()[1] == "EXIT"


@needs_nvdisasm
def test_a_table_has_resources_loops_and_the_occupancy_of_a_block(source: Path) -> None:
    lines = disassemble(source, "--kernel", "horner", "--block", "1024").stdout.splitlines()
    assert "bytes of static shared memory, no spills, " in lines[1]
    assert lines[2].startswith("  hot loop: instructions ") and "4 FFMA" in lines[2]
    assert lines[3] == "  occupancy with 1024 threads: 100 %, 2 blocks an SM, limited by warps"
    (facts,) = kernels(source, "--kernel", "horner", "--block", "1024")
    assert facts["occupancy"] == {"block": 1024, "blocks": 2, "warps": 64, "percent": 100, "limiters": ["warps"]}
    text = disassemble(source, "--kernel", "horner", "--block", "32", "--arch", "sm_110").stdout
    assert "occupancy: the limits of sm_110 are not known" in text


@needs_nvdisasm
def test_a_file_of_python_has_the_kernels_of_its_variants() -> None:
    facts = kernels(ROOT / "docs" / "examples" / "row_sum.py", "--kernel", "row_sum<32, 1000>")
    assert facts and {each["kernel"] for each in facts} == {"row_sum<32, 1000>"}
    assert facts[0]["variant"] == "row_sum/v02_warp"
    assert any("+=" in each["place"] for each in facts[0]["sass"])


# -- cubins and programs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", known_architectures())
def test_a_cubin_has_the_resources_that_the_compiler_reports(source: Path, arch: str) -> None:
    names = ["own::reversed", "horner", "scale", "many<3>"]
    module = compiler.compile_variant(CudaVariant("own", "own", "rung", source=source), names, arch)
    header = kernels_of_file.read_cubin(module.cubin)
    assert header.architecture == arch
    assert header.kernels == {
        each.symbol: kernels_of_file.Resources(each.registers, each.static_shared_bytes) for each in module.kernels.values()
    }


@needs_nvdisasm
def test_a_cubin_is_read_as_it_is(source: Path, tmp_path: Path) -> None:
    module = compiler.compile_variant(CudaVariant("own", "own", "rung", source=source), ["many<3>"], "sm_86")
    file = tmp_path / "own.cubin"
    file.write_bytes(module.cubin)
    facts = kernels(file, "--ptx")
    assert {each["kernel"] for each in facts} == KERNELS | {"many<3>"}
    assert {(each["architecture"], each["spill_bytes"], each["ptx"]) for each in facts} == {("sm_86", None, None)}
    assert any(place.startswith("own.cu:") for place in (each["place"] for each in facts[0]["sass"]))
    assert "no PTX: the file has machine code alone" in disassemble(file, "--ptx").stdout


@needs_nvcc
@needs_nvdisasm
@pytest.mark.thorough
def test_a_program_has_the_kernels_of_every_architecture(source: Path, tmp_path: Path) -> None:
    source.write_text(SOURCE + HOST)
    program = tmp_path / "program"
    codes = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in (80, 90)]
    subprocess.run(["nvcc", *codes, "-o", program, source], check=True)
    assert {(each["architecture"], each["kernel"]) for each in kernels(program)} == {
        (arch, name) for arch in ("sm_80", "sm_90") for name in (*KERNELS, "many<3>")
    }
    assert [each["architecture"] for each in kernels(program, "--arch", "sm_90", "--kernel", "scale")] == ["sm_90"]
    assert "has no code for it; choose sm_80, sm_90" in refused(program, "--arch", "sm_75")
    assert "no kernel absent; its kernels: " in refused(program, "--kernel", "absent")


# -- mistakes ------------------------------------------------------------------------------------------------------------------


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "absent.cu: no such file; give a .cu, a .py" in refused(tmp_path / "absent.cu")
    assert ": a folder; give a .cu, a .py" in refused(tmp_path)


@needs_nvdisasm
def test_a_source_that_does_not_compile_has_the_message_of_the_compiler(source: Path) -> None:
    source.write_text("__global__ void broken() { absent(); }\n")
    assert 'own.cu: does not compile: own.cu(1): error: identifier "absent" is undefined' in refused(source)
    source.write_text('#include "absent.cuh"\n')
    assert "absent.cuh" in refused(source)


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_42", "90", "sm_75a", ""])
def test_an_unknown_architecture_is_refused_with_the_known_ones(source: Path, arch: str) -> None:
    if arch:
        assert f"--arch {arch}: NVRTC {compiler.version()} has no such architecture; choose sm_75, " in refused(
            source, "--arch", arch
        )
    else:
        assert kernels(source, "--arch", arch)


@needs_nvdisasm
def test_a_kernel_that_is_not_there_is_refused_with_those_that_are(source: Path) -> None:
    line = refused(source, "--kernel", "absent<3>")
    assert "own.cu: no kernel absent<3>; its kernels: " in line and all(name in line for name in KERNELS)
    assert "no kernel absent; its kernels: row_sum<" in refused(ROOT / "docs/examples/row_sum.py", "--kernel", "absent")


@needs_nvdisasm
def test_a_template_whose_instance_does_not_compile_has_the_message_of_the_compiler(source: Path) -> None:
    source.write_text("template <int N> __global__ void many(float* x) { float own[N]; x[0] = own[0]; }\n")
    assert "own.cu: many<0> does not compile: own.cu(1): error: " in refused(source, "--kernel", "many<0>")
    assert "own.cu: no kernel many<Absent>;" in refused(source, "--kernel", "many<Absent>")


@needs_nvdisasm
def test_a_source_of_templates_alone_asks_for_a_name(source: Path) -> None:
    source.write_text("template <int N> __global__ void many(float* x) { x[0] += N; }\n")
    assert "has no kernel that is no template; name one, such as --kernel" in refused(source)


@needs_nvdisasm
def test_a_benchmark_without_cuda_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bench.py"
    file.write_text(
        "import warpladder\nbench = warpladder.Benchmark('sums', n=[4])\nbench.inputs(lambda n, rng: rng.random(n))\n"
        "bench.reference(lambda x: x + x)\n@bench.variant(baseline=True)\ndef twice(x):\n    return 2 * x\n"
    )
    assert "bench.py: has no variant in CUDA C++ for sm_90; its variants are Python" in refused(file)


@needs_nvdisasm
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", b"not a program", "is neither source, cubin nor program"),
        ("own.cubin", b"not a cubin", "not an ELF file; give a .cubin"),
        ("own.cubin", b"\x7fELF" + bytes(100), "an ELF file for a processor"),
        ("own.cubin", b"\x7fELF" + bytes(14) + b"\xbe\0" + b"\xff" * 80, "a damaged ELF file"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert words in refused(tmp_path / name)


@needs_nvdisasm
def test_a_program_without_kernels_is_refused() -> None:
    if disassembly.program_path("cuobjdump") is None:
        pytest.skip("needs cuobjdump")
    assert "/bin/true: has no machine code of a GPU; build it with nvcc" in refused("/bin/true")


def test_without_a_disassembler_the_package_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "program_path", lambda program: None)
    assert "there is no nvdisasm; install nvidia-cuda-nvdisasm: pip install" in refused(source)


# -- names ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z4manyILi4EEvPf", "many<4>"),
        ("_ZN3own7shiftedEPf", "own::shifted"),
        ("_ZN12_GLOBAL__N_14lostEPFviE", "(anonymous namespace)::lost"),
        ("plain", "plain"),
    ],
)
def test_a_name_is_without_result_and_parameters(symbol: str, name: str) -> None:
    assert without_parameters(demangled(symbol)) == name


def test_a_variant_runs_from_its_least_architecture_on_or_on_its_only_one() -> None:
    every = CudaVariant("v", "v", "rung", source="", min_compute_capability=(8, 0))
    hopper = CudaVariant("v", "v", "rung", source="", only_architecture="sm_90a")
    assert [runs_on(every, arch) for arch in ("sm_75", "sm_80", "sm_100")] == [False, True, True]
    assert [runs_on(hopper, arch) for arch in ("sm_89", "sm_90", "sm_90a", "sm_100")] == [False, True, True, False]
    assert not runs_on(object(), "sm_90")
