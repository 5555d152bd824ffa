// Idea: The matrices of 100 images on top of one another: one product a layer with 100 times the rows, and as many launches
//     for 100 images as for one. Nothing needs rearranging, since images lie behind one another by rows.
// Bottleneck: The zeros, and the matrix of taps: for the last layer 100 images take 2.6 GB, written and read again for a product
//     with three columns, of which a tile of 64 wastes 61.
// Next: Keep the product where it pays, and the loops over taps where it does not.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.3.3.

#include "v03_matrix_product.cu"
