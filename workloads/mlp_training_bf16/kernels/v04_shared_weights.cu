// Idea: A cluster has two tiles of 128 samples. Each block fetches half of the weights of its hidden units, and the TMA writes them into the
//     shared memory of both blocks with these units: L2 is asked for half as many weights. At few rows, where tiles have 64 samples and a cluster eight blocks
//     already, it is v03_early_start.
// Bottleneck: Not measured yet. By structure: sigmoid and output layer, behind the product of each tile, keep the tensor cores waiting.
// Next: -
// Source: PTX ISA, cp.async.bulk.tensor with .multicast::cluster; as v06_clusters of gemm_bf16.

#include "step.cuh"
