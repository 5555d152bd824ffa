// Idea: Blocks of a cluster have tiles one below the other, side by side, or both. Those of a row need the same rows of A, those of a column the same
//     rows of B: each fetches a share, and the TMA writes it into the shared memory of all of them (multicast). A pair of blocks with tiles of
//     128 x 256 asks L2 for 32 KB a stage and block in place of 48.
// Bottleneck: The tensor cores and their power at large sizes. Tiles that do not fill the last wave leave multiprocessors idle.
// Next: The tiles of the last wave in equal shares along k.
// Source: PTX ISA, cp.async.bulk.tensor with .multicast::cluster; clusters alike in NVIDIA's CUTLASS 3.

#include "../../hopper.cuh"
#include "../../hopper_clusters.cuh"
#include "../../hopper_cluster_stores.cuh"
#include "../../hopper_stores.cuh"
#include "../../hopper_low_precision.cuh"
#include "tiles.cuh"
#include "pad.cuh"
#include "staged.cuh"
