// Idea: The tiles beyond the full waves lie behind one another along k, and each cluster has an equal share of that line. A second kernel adds the
//     parts of each tile.
// Bottleneck: Sums of 128 KB a part, which go through L2 twice, and the second launch.
// Next: Few tiles are left with their fixed cost: nothing before the first loads.
// Source: Own work; `gemm_bf16` v07_equal_shares.

#include "../../gemm_bf16/kernels/v07_equal_shares.cu"
