// Idea: Warpgroups multiply FP8 (E4M3) operands straight out of shared memory, which the TMA fills three stages ahead: the kernel of `gemm_bf16`
//     v03_warpgroups. A stage of 128 bytes a row has 128 steps along k in place of 64, and an
//     instruction multiplies twice as many.
// Bottleneck: The tensor cores wait at each step, until the stage is free and the next copy is asked for.
// Next: A warp that does nothing but ask for stages.
// Source: Own work; `gemm_bf16` v03_warpgroups.

#include "../../gemm_bf16/kernels/v03_warpgroups.cu"
