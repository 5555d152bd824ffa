// Idea: A block of 16x16 threads an image. Its threads go through the output image tile by tile and map by map; each
//     computes one output at a time, pixels and weights from global memory.
// Bottleneck: A thread's work is long, 100 outputs of layer 1 and up to 144 of layer 2 one after the other, and each output is
//     a chain of dependent additions: with a block an image, small batches leave most multiprocessors idle, and what
//     is left at the end of a large one waits for its slowest block.
// Next: Let the grid range over maps and tiles too, so that a thread has a single output.
// Source: J. Danner, K. Torng, Y. Deng, "ECE 408 Final Project Report", University of Illinois Urbana-Champaign: milestone 3. The
//     report prints no listing of it; written from its remarks, batches in parallel and "not highly parallel" beyond.

constexpr int kSize = 7;

__global__ void conv_layer(const float* x, const float* k, float* y, int channels, int maps, int height, int width) {
  const int out_height = height - kSize + 1, out_width = width - kSize + 1;
  const float* image = x + (size_t)blockIdx.x * channels * height * width;
  float* result = y + (size_t)blockIdx.x * maps * out_height * out_width;
  for (int m = 0; m < maps; ++m)
    for (int h = threadIdx.y; h < out_height; h += blockDim.y)
      for (int w = threadIdx.x; w < out_width; w += blockDim.x) {
        float sum = 0.0f;
        for (int c = 0; c < channels; ++c)
          for (int p = 0; p < kSize; ++p)
            for (int q = 0; q < kSize; ++q)
              sum += image[(c * height + h + p) * width + w + q] * k[((m * channels + c) * kSize + p) * kSize + q];
        result[(m * out_height + h) * out_width + w] = sum;
      }
}
