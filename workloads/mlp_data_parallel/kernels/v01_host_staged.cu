// Idea: Each rank takes the fused step of `mlp_training` on its own rows, as if they were the batch; then its new weights are copied to
//     page-locked host memory, averaged over all ranks by MPI_Allreduce, and copied back. The update is linear in the gradient: the average
//     of the ranks' new weights is the step of the whole batch.
// Bottleneck: 3.2 MB over PCIe in both directions and a sum on the processor, while the GPU waits, and the launches after each wait.
// Next: Sums between the GPUs, by NCCL.
// Source: M. L. Wong, "CME213 Final Project Report", section 1.2, which sums the gradients so; kernels: `mlp_training` v04_fused.

#include "../../mlp_training/kernels/v04_fused.cu"
