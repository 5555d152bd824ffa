// Idea: Warpgroups multiply FP16 operands straight out of shared memory, which the TMA fills three stages ahead: the kernel of `gemm_bf16`
//     v03_warpgroups.
// Bottleneck: The tensor cores wait at each step, until the stage is free and the next copy is asked for.
// Next: A warp that does nothing but ask for stages.
// Source: Own work; `gemm_bf16` v03_warpgroups.

#include "../../gemm_bf16/kernels/v03_warpgroups.cu"
