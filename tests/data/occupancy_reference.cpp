// Reads points from stdin, one a line, and prints what NVIDIA's cuda_occupancy.h computes for each.
#include <climits>
#include <cstddef>
#include <cstdio>

#include "cuda_occupancy.h"

int main() {
  int major, minor, threads, shared, optin, reserved, block, registers, bytes;
  while (scanf("%d %d %d %d %d %d %d %d %d", &major, &minor, &threads, &shared, &optin, &reserved, &block, &registers, &bytes) == 9) {
    cudaOccDeviceProp gpu;
    gpu.computeMajor = major;
    gpu.computeMinor = minor;
    gpu.maxThreadsPerBlock = 1024;
    gpu.maxThreadsPerMultiprocessor = threads;
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.warpSize = 32;
    gpu.sharedMemPerBlock = 49152;
    gpu.sharedMemPerMultiprocessor = shared;
    gpu.sharedMemPerBlockOptin = optin;
    gpu.reservedSharedMemPerBlock = reserved;
    gpu.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = bytes;
    cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, block, bytes) != CUDA_OCC_SUCCESS) return 1;
    printf("%d %d %d %d %d %zu\n", result.activeBlocksPerMultiprocessor, result.blockLimitRegs, result.blockLimitSharedMem,
           result.blockLimitWarps, result.blockLimitBlocks, result.allocatedSharedMemPerBlock);
  }
}
