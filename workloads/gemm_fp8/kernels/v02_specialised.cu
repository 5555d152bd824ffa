// Idea: One warp asks for stages and goes on into the next tile while the others store; two warpgroups multiply tiles of 128 x 256. A step along k is done
//     in the time of one of `gemm_bf16`, with twice the products.
// Bottleneck: The way out: the tensor cores wait while a tile's 64 KB go to D by stores of 4 bytes. A tile
//     is multiplied in half the time of one of BF16, so that the way out weighs twice as much.
// Next: D by way of shared memory and the TMA.
// Source: Own work; `gemm_bf16` v04_specialised.

#include "../../gemm_bf16/kernels/v04_specialised.cu"
