// Idea: The way out of v04_specialised keeps the tensor cores waiting. Here each warp writes 16 x 64 rounded elements of D to shared memory, without
//     bank conflicts, and has the TMA store them: it goes on to the next 64 columns, and to the next tile, while the TMA stores. With two boxes
//     a warp there is room for four stages of operands.
// Bottleneck: The tensor cores, and the power that they draw, where tiles fill the multiprocessors many times over. At n = 1024 there are 32 tiles
//     of 128 x 256 for 132 multiprocessors, and tiles of 64 columns are faster, for which L2 has to bring twice as much.
// Next: Blocks that share what they fetch.
// Source: Own work; PTX ISA, cp.async.bulk.tensor from shared to global memory.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"
#include "staged.cuh"
