// Idea: The better method layer by layer: matrix products for the first layers, whose many channels fill tiles, and one thread
//     an output for the rest. The config says how many are products; the report found three best, as its last layer has
//     three channels only.
// Bottleneck: Both methods keep their own: three zeros in four products, or an input and a weight loaded for each multiply-add; and batch
//     normalisation and activation still pass over all pixels.
// Next: From end to end: copies that do not keep the kernels waiting.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.4 and figures 2 to 5.

#include "v02_stride_two.cu"
#include "v03_matrix_product.cu"
