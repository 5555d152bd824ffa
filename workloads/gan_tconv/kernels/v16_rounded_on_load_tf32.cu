// Idea: The TMA rounds z and the weights to TF32 as it loads them, for its tensor maps are of TF32. No launch prepares the weights: 20.5 MB less are read
//     and written, and six launches are left of eleven.
// Bottleneck: As of v13_warpgroups_tf32. On an H200 the launches that are gone took 11 to 15 us: of 0.19 ms for 10
//     images, and of 0.96 ms for 1000.
// Next: -
// Source: CUDA driver API, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32.

#include "v13_warpgroups_tf32.cu"
