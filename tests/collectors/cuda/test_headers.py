"""Kernels include what they include for nvcc: CUDA's headers, C++'s, and one's own in folders."""

import os
from pathlib import Path

import pytest

from warpladder.collectors.cuda import headers
from warpladder.collectors.cuda.compiler import CompileError, compilation_of, compile_uncached
from warpladder.data import source_text
from warpladder.workloads.api import CudaVariant, WorkloadError

pytestmark = pytest.mark.slow

needs_headers = pytest.mark.skipif(
    not headers.toolkit_folders(), reason="CUDA's headers are not installed: pip install -r requirements-dev.txt"
)


def variant_of(source: Path | str, *options: str) -> CudaVariant:
    return CudaVariant("v01_own", "own", "rung", source=source, options=options)


def compiled(source: Path | str, *options: str) -> int:
    """Registers of the kernel `f`."""
    return compile_uncached(compilation_of(variant_of(source, *options), ("f",), "sm_90")).kernels["f"].registers


def refused(source: Path | str, *options: str) -> str:
    with pytest.raises(CompileError) as caught:
        compiled(source, *options)
    return str(caught.value)


def key(source: Path | str, *options: str) -> str:
    return compilation_of(variant_of(source, *options), ("f",), "sm_90").key


BODIES = {
    "<cuda_fp16.h>": "__global__ void f(__half* x) { *x = __hadd(*x, *x); }",
    '"cuda_fp16.h"': "__global__ void f(__half* x) { *x = __hadd(*x, *x); }",
    "<cuda_bf16.h>": "__global__ void f(__nv_bfloat16* x) { *x = __hadd(*x, *x); }",
    "<cuda_fp8.h>": "__global__ void f(__nv_fp8_e4m3* x) { *x = __nv_fp8_e4m3(2 * float(*x)); }",
    "<mma.h>": "__global__ void f(half* a, float* c) { using namespace nvcuda::wmma; fragment<matrix_a, 16, 16, 16, half, row_major> A;"
    "fragment<matrix_b, 16, 16, 16, half, col_major> B; fragment<accumulator, 16, 16, 16, float> C; fill_fragment(C, 0.0f);"
    "load_matrix_sync(A, a, 16); load_matrix_sync(B, a, 16); mma_sync(C, A, B, C); store_matrix_sync(c, C, 16, mem_row_major); }",
    "<cooperative_groups.h>": "__global__ void f(float* x) { using namespace cooperative_groups;"
    "auto t = tiled_partition<32>(this_thread_block()); x[t.thread_rank()] = t.shfl_down(x[0], 1); }",
    "<cooperative_groups/reduce.h>": "__global__ void f(float* x) { using namespace cooperative_groups;"
    "auto t = tiled_partition<32>(this_thread_block()); x[0] = reduce(t, x[t.thread_rank()], plus<float>()); }",
    "<cuda/std/type_traits>": "__global__ void f(int* x) { *x = cuda::std::is_same_v<int, int>; }",
    "<cuda/barrier>": "__global__ void f() { __shared__ cuda::barrier<cuda::thread_scope_block> b;"
    "if (!threadIdx.x) init(&b, blockDim.x); __syncthreads(); b.arrive_and_wait(); }",
    "<cub/cub.cuh>": "__global__ void f(float* x) { using R = cub::BlockReduce<float, 128>; __shared__ typename R::TempStorage s;"
    "float sum = R(s).Sum(x[threadIdx.x]); if (!threadIdx.x) *x = sum; }",
    "<cuda_pipeline.h>": "__global__ void f(float* x) { __shared__ float s[32]; __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);"
    "__pipeline_commit(); __pipeline_wait_prior(0); x[threadIdx.x] = s[31 - threadIdx.x]; }",
    "<cuda.h>": "__global__ void f(const __grid_constant__ CUtensorMap map, float* x) { *x = 1.0f; }",
    "<cuda_runtime.h>": "__global__ void f(float4* x) { *x = make_float4(1, 2, 3, 4); }",
    "<device_launch_parameters.h>": "__global__ void f(float* x) { x[threadIdx.x] = 1.0f; }",
    "<cstdint>": "__global__ void f(uint32_t* x, int64_t y) { *x = UINT32_MAX - std::uint8_t(y); }",
    "<stdint.h>": "__global__ void f(uint32_t* x, int64_t y) { *x = UINT32_MAX - uint8_t(y); }",
    "<cmath>": "__global__ void f(float* x) { *x = std::exp(*x) + std::sqrt(expf(*x)); }",
    "<math.h>": "__global__ void f(float* x) { *x = expf(*x); }",
    "<algorithm>": "__global__ void f(float* x) { *x = std::max(*x, 1.0f); }",
    "<limits>": "__global__ void f(float* x) { *x = std::numeric_limits<float>::infinity(); }",
    "<cfloat>": "__global__ void f(float* x) { *x = FLT_MAX; }",
    "<climits>": "__global__ void f(int* x) { *x = INT_MAX; }",
    "<cstdio>": '__global__ void f(float* x) { printf("%f", *x); }',
    "<cassert>": "__global__ void f(float* x) { assert(x); }",
    "<array>": "__global__ void f(float* x) { std::array<float, 2> a{1, 2}; *x = a[threadIdx.x & 1]; }",
    "<utility>": "__global__ void f(int* x) { int a = x[0], b = x[1]; std::swap(a, b); x[0] = std::move(a); x[1] = b; }",
}


@pytest.mark.sampled(1)
@needs_headers
@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_includes_headers_of_cuda_and_of_cpp(name: str) -> None:
    assert compiled(f"#include {name}\n{BODIES[name]}\n") > 0


@pytest.mark.thorough
@needs_headers
def test_all_headers_of_cpp_that_are_said_to_be_there_compile_together() -> None:
    included = "".join(f"#include <{name}>\n" for name in headers.headers_for("#include <cstdint>")[1])
    assert compiled(f"{included}__global__ void f(std::uint32_t* x) {{ *x = 1; }}\n") > 0


def test_a_kernel_without_includes_is_compiled_as_before() -> None:
    assert headers.headers_for("__global__ void f() {}\n// #include <x>\n") == ((), {})
    assert headers.state_of("__global__ void f() {}\n", ("-Ianything",)) == ()


@needs_headers
def test_files_in_nested_folders_and_in_folders_of_the_options_are_found(tmp_path: Path) -> None:
    for folder in ("bench/kit/deep", "common/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bench/kit/tile.cuh").write_text(
        '#pragma once\n#include "deep/size.cuh"\n__device__ int tile() { return kSize; }\n'
    )
    (tmp_path / "bench/kit/deep/size.cuh").write_text("#pragma once\nconstexpr int kSize = 4;\n")
    (tmp_path / "common/twice.cuh").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    (tmp_path / "common/lib/thrice.cuh").write_text('#include "base.cuh"\n__device__ int thrice(int x) { return kBase * x; }\n')
    (tmp_path / "common/lib/base.cuh").write_text("constexpr int kBase = 3;\n")
    kernel = tmp_path / "bench" / "own.cu"
    kernel.write_text(
        '#include "kit/tile.cuh"  // the tile\n  # include "kit/deep/size.cuh"\n#include "twice.cuh"\n#include <lib/thrice.cuh>\n'
        "__global__ void f(int* x) { *x = twice(tile()) + thrice(kSize); }\n"
    )
    assert compiled(kernel, "-I../common") > 0
    assert compiled(kernel, "-I", "../common") > 0
    assert compiled(kernel, f"--include-path={tmp_path / 'common'}") > 0
    with pytest.raises(
        WorkloadError, match=r'own\.cu:3: #include "twice\.cuh": no such file beside it; mend the path, or give options'
    ):
        compiled(kernel)
    with pytest.raises(WorkloadError, match=r"own\.cu: -I\.\./absent: no such folder in .*; mend the path"):
        compiled(kernel, "-I../absent")


def test_text_that_includes_a_file_twice_holds_it_once_if_it_says_so_and_a_circle_ends(tmp_path: Path) -> None:
    (tmp_path / "once.cuh").write_text("#pragma once\nint once;\n")
    (tmp_path / "often.cuh").write_text("int often();\n")
    (tmp_path / "a.cuh").write_text('#ifndef A\n#define A\n#include "b.cuh"\n#endif\n')
    (tmp_path / "b.cuh").write_text('#include "a.cuh"\nint b;\n')
    (tmp_path / "own.cu").write_text(
        '#include "once.cuh"\n#include "often.cuh"\n#include "once.cuh"\n#include "often.cuh"\n#include "a.cuh"'
    )
    text = source_text.read(tmp_path / "own.cu")
    assert [text.count(line) for line in ("int once;\n", "int often();\n", "int b;\n", "#define A\n")] == [1, 2, 1, 1]


@needs_headers
def test_an_error_names_the_file_and_the_line_that_the_user_wrote(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/bad.cuh").write_text("\n__device__ int bad() { return foo; }\n")
    kernel = tmp_path / "own.cu"
    kernel.write_text('#include <cuda_fp16.h>\n#include "kit/bad.cuh"\n__global__ void f(int* x) { *x = bar; }\n')
    said = refused(kernel)
    assert said.startswith("own.cu does not compile for sm_90: ")
    assert 'kit/bad.cuh(2): error: identifier "foo" is undefined' in said
    assert 'own.cu(3): error: identifier "bar" is undefined' in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "vector",
            "own.cu:2: #include of vector: the GPU has no such library; put it between `#ifndef __CUDACC_RTC__` and `#endif`",
        ),
        ("sys/types.h", "own.cu:2: #include of sys/types.h: the GPU has no such library"),
        ("lost/lost.h", "own.cu:2: #include of lost/lost.h: no such file; mend the path, or name its folder: options="),
        (
            "cuda_lost.h",
            "own.cu:2: #include of cuda_lost.h: CUDA's header is not installed; pip install 'nvidia-cuda-runtime==13.0.*', or",
        ),
        (
            "cub/lost.cuh",
            "own.cu:2: #include of cub/lost.cuh: CUDA's header is not installed; pip install 'nvidia-cuda-cccl==13.0.*'",
        ),
        (
            "crt/lost.h",
            "own.cu:2: #include of crt/lost.h: CUDA's header is not installed; pip install 'nvidia-cuda-crt==13.0.*'",
        ),
    ],
)
def test_a_header_that_is_not_there_is_named_with_the_cure(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "own.cu").write_text(f"\n#include <{name}>\n__global__ void f() {{}}\n")
    assert refused(tmp_path / "own.cu").startswith(f"own.cu does not compile for sm_90: {said}")


def test_packages_of_cuda_12_have_other_names() -> None:
    log = 'mma.h(55): catastrophic error: cannot open source file "crt/mma.h"\n'
    assert "pip install 'nvidia-cuda-nvcc-cu12==12.9.*'" in headers.explain(log, "12.9")
    assert headers.explain("own.cu(1): error: foo\n", "12.9") == ""


def test_machine_code_is_kept_until_an_included_file_or_the_toolkit_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "beside.cuh").write_text("constexpr int kOne = 1;\n")
    (tmp_path / "common" / "outer.cuh").write_text("#include <inner.cuh>\n")
    (tmp_path / "common" / "inner.cuh").write_text("constexpr int kTwo = 2;\n")
    kernel = tmp_path / "own.cu"
    kernel.write_text('#include "beside.cuh"\n#include <outer.cuh>\n__global__ void f(int* x) { *x = kOne + kTwo; }\n')
    first = key(kernel, "-Icommon")
    assert key(kernel, "-Icommon") == first
    (tmp_path / "common" / "inner.cuh").write_text("constexpr int kTwo = 3;\n")
    second = key(kernel, "-Icommon")
    (tmp_path / "beside.cuh").write_text("constexpr int kOne = 4;\n")
    third = key(kernel, "-Icommon")
    toolkit = tmp_path / "toolkit"
    toolkit.mkdir()
    (toolkit / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13000\n")
    monkeypatch.setattr(headers, "toolkit_folders", lambda nvrtc: (toolkit,))
    fourth = key(kernel, "-Icommon")
    headers._version_of.cache_clear()
    (toolkit / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13010\n")
    fifth = key(kernel, "-Icommon")
    headers._version_of.cache_clear()
    os.utime(toolkit / "cuda_runtime_api.h", ns=(1, 1))  # installed anew: another patch of the same version
    assert len({first, second, third, fourth, fifth, key(kernel, "-Icommon")}) == 6


def test_without_a_toolkit_the_headers_that_cupy_brings_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda import pathfinder

    bundled = tmp_path / "cupy" / "_core" / "include" / "cupy" / "_cccl"
    for name in ("libcudacxx", "cub", "thrust"):
        (bundled / name).mkdir(parents=True)
    (tmp_path / "cupy" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(pathfinder, "find_nvidia_header_directory", lambda part: None)
    headers.toolkit_folders.cache_clear()
    try:
        assert headers.toolkit_folders() == tuple(bundled / name for name in ("libcudacxx", "cub", "thrust"))
    finally:
        headers.toolkit_folders.cache_clear()
