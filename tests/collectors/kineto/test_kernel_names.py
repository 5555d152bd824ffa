"""The names of the kernels of a trace: full names are demangled, short names are those of the function."""

from pathlib import Path

from tests.collectors.kineto.made import imported, kernel

_AITER = "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib"
_VLLM = "std::enable_if<(((8)>(0)))&&vllm::has<T>::exists, void>::type vllm::fused_add_rms_norm_kernel<T, 8>(T*, long)"


def test_a_symbol_is_demangled_and_a_result_is_no_part_of_a_short_name(tmp_path: Path) -> None:
    run = imported([kernel(_AITER, 0, 5), kernel(_VLLM, 10, 5), kernel("_attn_fwd_0d1d2de3", 20, 5)], tmp_path)
    kernels = run.table("kernels", ["name", "full_name"])
    assert kernels["name"].tolist() == ["add_rmsnorm_quant_kernel", "fused_add_rms_norm_kernel", "_attn_fwd"]
    assert kernels["full_name"][0].startswith("void aiter::add_rmsnorm_quant_kernel<__bf16, __bf16, 256, 16, false")
    assert kernels["full_name"].tolist()[1:] == [_VLLM, "_attn_fwd_0d1d2de3"]
