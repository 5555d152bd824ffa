// Idea: Each batch of 100 is a part of its own: its images leave in one stream while the next batch is computed in another, and a kernel
//     waits only for the inputs that it names, so that the first layers work while weights of the last are still on their way. The
//     report hid its host's copies behind kernels in the same manner (figure 6).
// Bottleneck: The kernels, which take many times as long as the copies that now hide behind them. Each part rearranges the weights anew.
// Next: Kernels without three zeros in four products.
// Source: S. Yi, "SHPC 2021 Fall Term Project Report", Seoul National University, 2021, section 2.5.2.

#include "v05_mixed.cu"
