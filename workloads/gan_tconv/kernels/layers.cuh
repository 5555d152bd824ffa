// What the report's rungs have in common: the dense layer and what follows a convolution, one kernel each, one thread an element.
#ifndef GAN_TCONV_LAYERS
#define GAN_TCONV_LAYERS

constexpr int kLatent = 100;
constexpr int kSize = 5;  // rows and columns of a weight
constexpr int kTaps = kSize * kSize;
constexpr float kEpsilon = 1e-5f;

__global__ void dense(const float* __restrict__ z, const float* __restrict__ w, float* __restrict__ out, int first, int images,
                      int outputs) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n >= images * outputs) return;
  const float* latent = z + (first + n / outputs) * kLatent;
  const float* weights = w + n % outputs * kLatent;
  float sum = 0.0f;
  for (int c = 0; c < kLatent; ++c) sum += latent[c] * weights[c];
  out[n] = sum;
}

// bn: scale, shift, mean and variance, `channels` of each.
__global__ void batch_norm(float* __restrict__ x, const float* __restrict__ bn, int count, int channels) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n >= count) return;
  const int k = n % channels;
  x[n] = bn[k] * (x[n] - bn[2 * channels + k]) / sqrtf(bn[3 * channels + k] + kEpsilon) + bn[channels + k];
}

__global__ void relu(float* __restrict__ x, int count) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n < count) x[n] = fmaxf(x[n], 0.0f);
}

__global__ void tanh_layer(const float* __restrict__ x, float* __restrict__ images, int first, int image_size, int count) {
  const int n = blockDim.x * blockIdx.x + threadIdx.x;
  if (n < count) images[(size_t)first * image_size + n] = tanhf(x[n]);
}

#endif
