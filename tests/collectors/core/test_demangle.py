"""Short names of kernels, as they stand in traces of PyTorch, vLLM, SGLang, CUTLASS, Triton and CuTe DSL."""

import ctypes

import pytest

from warpladder.collectors.core import demangle
from warpladder.collectors.core.demangle import demangled, short_name
from warpladder.data.kernel_names import function_name

#: A symbol of SGLang whose mangling is newer than the C++ library of many machines.
_NEW_MANGLING = "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i"
_AITER = "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        ("void gemm<float>(float*)", "gemm"),
        (
            "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
            "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, float, int)",
            "fused_add_rms_norm_kernel",
        ),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float, 7>(cublasParams<int>)", "kernel"),
        ("void f<((8)<(9)), float>(int)", "f"),
        ("void f<((1)<<(3)), (g)->(h)>(int)", "f"),
        (_AITER, "add_rmsnorm_quant_kernel"),
        (_NEW_MANGLING, "act_and_mul_kernel"),
        ("_Z3addPf", "add"),
        ("_ZN12_GLOBAL__N_15scaleEPf.kd", "scale"),
        ("aiter::fmha_fwd_hd128_bf16_rtz", "fmha_fwd_hd128_bf16_rtz"),
        ("kernel_unified_attention_2d.kd", "kernel_unified_attention_2d"),
        ("void rocprim::detail::trampoline_kernel<int>(int) [clone .kd]", "trampoline_kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10, true>(float*, bool const*)", "softmax_warp_forward"),
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", "spin_kernel"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::clamp(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
            "const::{lambda(float)#2}, std::array<char*, 2ul> >(int, float, std::array<char*, 2ul>)",
            "vectorized_elementwise_kernel",
        ),
        ("void k<&at::native::nearest_source_index, &ns::operator< <int> >(float*)", "k"),
        ("void k<sum<float>::operator()<double>(int)::{lambda(int)#1}>(int)", "k"),
        ("void my_operator<float>(int)", "my_operator"),
        ("void cutlass::device_kernel<cutlass::gemm::GemmUniversal<cute::tuple<int, int>>>(cutlass::Params)", "device_kernel"),
        ("cudapy::__main__::add[abi:v1][abi:cw51](Array<float, 1>)", "add"),
        ("_attn_fwd_0d1d2d34d5d6de7de8c9", "_attn_fwd"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("triton__0d1d2d", "triton__0d1d2d"),
        ("kernel_01", "kernel_01"),
        (
            "kernel_cutlass_elementwise_add_kernel_tensorptrf32gmemo16128i641i64div16128_tensorptrf32gmemo16128___0",
            "elementwise_add_kernel",
        ),
        (
            "kernel_cutlass_kernel___main__PersistentDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_0",
            "PersistentDenseGemmKernel",
        ),
        ("[CUDA graph]", "[CUDA graph]"),
        ("", ""),
    ],
)
def test_the_short_name_is_the_function_without_all_that_compilers_add(name: str, short: str) -> None:
    assert short_name(name) == short


def test_the_namespaces_of_a_function_are_kept_where_they_are_asked_for() -> None:
    assert function_name("void deep_ep::intranode::dispatch<8, 768>(int4*)") == "deep_ep::intranode::dispatch"
    assert function_name(_AITER) == "aiter::add_rmsnorm_quant_kernel"


def test_a_symbol_with_brain_floats_is_demangled_with_any_library() -> None:
    assert demangled("_Z4scaleIDF16bEvPT_") == "_Z4scaleIDF16bEvPT_"  # of no length that fits: no symbol
    assert demangled("_Z5scaleIDF16bEvPT_") == "void scale<__bf16>(__bf16*)"
    assert demangled("gemm") == "gemm"


def test_a_machine_without_a_demangler_shortens_symbols_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ctypes.CDLL:
        raise OSError(name)

    demangle._library.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", absent)
    try:
        assert demangled(_AITER) == _AITER
        assert short_name(_AITER) == "add_rmsnorm_quant_kernel"
    finally:
        monkeypatch.undo()
        demangle._library.cache_clear()
