// Idea: Blocks of a cluster fetch a share each of the rows that they all need, and the TMA writes it into the shared memory of all of them.
// Bottleneck: The tensor cores and their power. Tiles that do not fill the last wave leave multiprocessors idle.
// Next: The tiles of the last wave in equal shares along k.
// Source: Own work; `gemm_bf16` v06_clusters.

#include "../../gemm_bf16/kernels/v06_clusters.cu"
