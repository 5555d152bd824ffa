// Idea: The launch of the way back starts while the way forward ends (programmatic dependent launch): its blocks make their barriers, ask L2 for
//     the old weights and load samples as soon as a multiprocessor has room, and only then wait for the gradients of the hidden units.
// Bottleneck: At few rows what every launch costs, the first bytes from memory and the way out: 37 rows take 16 us on an H200. 8192 rows take 99 us.
//     By count each tile of 128 samples asks L2 for all weights, whose rows of 2000 bytes begin within a line of 128; not measured by itself.
// Next: Weights that two tiles of samples share.
// Source: CUDA programming guide, programmatic dependent launch; PTX ISA, griddepcontrol.

#include "step.cuh"
