// Idea: A last wave that fills less than half of the GPU is cut into narrow tiles, of 64 or 128 columns, so that each cluster has at most one.
// Bottleneck: A step of a narrow tile takes longer than its share of a wide one.
// Next: Sums that keep more bits: those of FP8 products on Hopper have about 14.
// Source: Own work; `gemm_bf16` v09_narrow_last.

#include "../../gemm_bf16/kernels/v09_narrow_last.cu"
