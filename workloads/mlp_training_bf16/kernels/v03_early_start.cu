// Idea: The launch of the way back starts while the way forward ends (programmatic dependent launch): its blocks make their barriers, ask L2 for
//     the old weights and load samples as soon as a multiprocessor has room, and only then wait for the gradients of the hidden units.
// Bottleneck: Sigmoid and output layer, behind the product of each tile, keep the tensor cores waiting. At few rows what every launch costs: the
//     first bytes from memory, and the way out.
// Next: -
// Source: CUDA programming guide, programmatic dependent launch; PTX ISA, griddepcontrol.

#include "step.cuh"
