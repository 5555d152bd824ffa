"""Which kernels communicate, by the names that they have in the sources and traces of the libraries."""

import pytest

from warpladder.data.communication import collective_of, communication_of, is_one_sided

#: Names of NCCL 2.19 to 2.29 and RCCL, of symmetric memory, of serving engines and of exchanges between experts.
COMMUNICATES = {
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_reduce",
    "ncclDevKernel_AllGatherV_RING_SIMPLE(ncclDevKernelArgsStorage<4096ul>)": "all_gather",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "broadcast",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>) [clone .kd]": "generic",
    "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)": "all_gather",
    "void ncclKernel_SendRecv(ncclWorkElem)": "sendrecv",
    "ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_f32(ncclSymDevArgs)": "all_reduce",
    "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymkDevWorkArgs4K)": "all_reduce",
    "ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_bf16(ncclSymkDevWorkArgs4K)": "reduce_scatter",
    "ncclSymkDevKernel_AllGather_RailRing_LsaSTMC(ncclSymkDevWorkArgs4K)": "all_gather",
    "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)": "mscclKernel_Sum_half_Simple_false",
    "void mscclpp::collective::allreduceNvls<float>(int)": "all_reduce",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)": "all_reduce",
    "void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*)": "all_gather",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**)": "all_reduce",
    "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8, false, false>(x)": "all_reduce",
    "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8, true, false>(x)": "reduce_scatter",
    "c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)": "barrier",
    "c10d::symmetric_memory::put_signal_kernel(unsigned int**, int, int)": "put_signal_kernel",
    "nvshmemi_transfer_rma": "nvshmemi_transfer_rma",
    "void alltoall_on_stream_kernel<float>(int)": "alltoall",
    "void c10d::nvshmem_extension::allToAllV(void*, void*)": "alltoall",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*, RankSignals)": "all_reduce",
    "void aiter::cross_device_reduce_2stage_write_mode<hip_bfloat16, 8>(RankData*)": "all_reduce",
    "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 4>, true>, __half>(int)": "all_reduce",
    "void aiter::allreduce_fusion_kernel_1stage<float>(RankData*)": "all_reduce",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0>(int)": "all_reduce",
    "void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<8, float>(int)": "all_reduce",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(int)": "all_reduce",
    "void tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel<half>(int)": "alltoall",
    "void deep_ep::intranode::dispatch<8, 768>(int4*)": "dispatch",
    "void deep_ep::internode_ll::combine<true, 7168>(void*)": "combine",
    "void EpDispatchIntraNodeKernel<hip_bfloat16>(int)": "dispatch",
    "void userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int)": "userbuffers_fp16_sum_inplace_gpu_rw_ag",
    "oneccl_allreduce_pcie": "all_reduce",
}
COMPUTES = (
    "",
    "ampere_sgemm_128x64_tn",
    "[CUDA graph]",
    "void at::native::NcclLike()",
    "triton_poi_fused_add_all_reduce_4",
    "void block_all_reduce_sum_f32_f32_kernel<256>(float*)",
    "void warpAllReduceKernel<float>(float*)",
    "void small_gather_kernel<float>(float*)",
    "smallreduce_kernel",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<all_reduce_kernel>>(int)",
    "void k<&ncclDevKernel_AllReduce_Sum_f32_RING_LL>(int)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)",
    "void flash_fwd_splitkv_mla_combine_kernel<float>(int)",
    "void vllm::moe::moe_combine_kernel<float>(int)",
    "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(int)",
    "void gemm_allreduce_kernel<float>(int)",
    "void tensorrt_llm::kernels::moe_alltoall::moeA2APrepareDispatchKernel(int*)",
    "void flashinfer::trtllm_alltoall::computeSendRecvIndicesKernel(int)",
    "void broadcast_kernel<float>(float*)",
)


@pytest.mark.parametrize("kernel", COMMUNICATES)
def test_a_kernel_of_a_library_that_communicates_has_its_collective(kernel: str) -> None:
    assert communication_of(kernel) == COMMUNICATES[kernel]


@pytest.mark.parametrize("kernel", COMPUTES)
def test_a_kernel_that_only_sounds_like_it_computes(kernel: str) -> None:
    assert communication_of(kernel) == ""


@pytest.mark.parametrize(
    ("named", "collective"),
    [
        ("allreduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "alltoall"),
        ("send", "sendrecv"),
        ("symm_mem::barrier", "barrier"),
        ("coalesced", "coalesced"),
    ],
)
def test_the_name_of_a_collective_in_the_trace_comes_before_that_of_its_kernel(named: str, collective: str) -> None:
    assert collective_of("void any::kernel<int>(int)", named) == collective


def test_puts_and_signals_need_no_other_rank() -> None:
    assert is_one_sided("put_signal_kernel")
    assert is_one_sided("nvshmemi_transfer_rma")
    assert not is_one_sided("all_reduce")
    assert not is_one_sided("compute_input")
