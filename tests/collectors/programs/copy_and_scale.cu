// Copies 4 MiB to the device, scales it ROUNDS times, copies it back, and prints one element.
#include <cstdio>
#include <vector>

#ifndef ROUNDS
#define ROUNDS 10
#endif

__global__ void scale(float *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = values[i] * 1.5f - 0.5f;  // 1 stays 1
}

int main() {
    const int n = 1 << 20;
    std::vector<float> values(n, 1.0f);
    float *device = nullptr;
    if (cudaMalloc(&device, n * sizeof(float)) != cudaSuccess) {
        std::fprintf(stderr, "no device memory\n");
        return 1;
    }
    cudaMemcpy(device, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    for (int round = 0; round < ROUNDS; round++) scale<<<(n + 255) / 256, 256>>>(device, n);
    cudaMemcpy(values.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(device);
    std::printf("%g\n", values[n / 2]);
    return 0;
}
