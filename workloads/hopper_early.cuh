// A launch that starts while the one before it ends (compute capability 9.0), as `Launch.early` of workloads.api asks for it. After hopper.cuh.
// Source: PTX ISA, section 9.7.13 (griddepcontrol); CUDA programming guide, "Programmatic Dependent Launch and Synchronization".

// The next launch may start when all blocks have said so, or have ended.
__device__ __forceinline__ void let_next_launch_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until the launch before has ended and what it wrote is there; returns at once in a launch that is not early.
__device__ __forceinline__ void wait_for_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
