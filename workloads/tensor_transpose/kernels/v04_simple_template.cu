// Idea: The permutation is a template argument: indices stay in registers and the address is three multiply-adds.
// Bottleneck: Still the scattered writes. Arithmetic was not what held the simple kernel back, except where the writes
//     are whole rows already, (0,1,2) and (1,0,2).
// Next: Go through shared memory, so that writes follow the output's rows too.
// Source: Kernel D of E. Sgarbanti, Advanced Computer Architectures report, section 0.4.2: 79 GB/s for (2,1,0) as before, but
//     221 instead of 192 for (1,0,2).

template <int P0, int P1, int P2>
__global__ void __launch_bounds__(512) transpose(const float* __restrict__ in, float* __restrict__ out, int dim0, int dim1, int dim2) {
  const int dim[3] = {dim0, dim1, dim2};
  const int index[3] = {int(blockIdx.z * blockDim.z + threadIdx.z), int(blockIdx.y * blockDim.y + threadIdx.y),
                        int(blockIdx.x * blockDim.x + threadIdx.x)};
  if (index[0] >= dim0 || index[1] >= dim1 || index[2] >= dim2) return;
  const int from = (index[0] * dim1 + index[1]) * dim2 + index[2];
  const int to = (index[P0] * dim[P1] + index[P1]) * dim[P2] + index[P2];
  out[to] = in[from];
}
