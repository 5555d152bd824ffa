// Idea: The same kernels in one CUDA graph: an operation is one call of the host instead of twelve, and from end to end, copies and all,
//     one instead of some forty a case; the device starts each kernel without asking the host.
// Bottleneck: The multiply-add units, as before. What a graph saves is the time between kernels, some microseconds each: it counts for
//     ten images and is lost in the noise of a thousand.
// Next: Tensor cores.
// Source: Own work.

#include "v08_phases.cu"
