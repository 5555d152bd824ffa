// Idea: The best mix, three products and one loop over taps, with z, weights and images in page-locked host memory: the device copies from
//     and to it by itself, without a detour through the driver's own buffers. The kernels are the same; what changes is `end_to_end`.
// Bottleneck: Copies and kernels take turns: while one part of the device works, the other waits.
// Next: Copy the images of one batch while the next is computed.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.5.1.

#include "v05_mixed.cu"
