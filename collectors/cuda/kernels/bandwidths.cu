// Idea: the most bytes a second that device memory moves, of READS arrays read for each WRITES arrays written.
// Bottleneck: device memory, and that is its purpose.
// Next: nothing.
// Source: ours; accesses of 16 bytes, ACCESSES of each array in flight a thread, as in STREAM. Cache hints made a copy of 2 GiB slower on an
// H200; arrays of about the size of the L2 may gain by them.

// What STREAMED says to have no further use of the L2.
constexpr int STREAM_READS = 1;
constexpr int STREAM_WRITES = 2;

// Arrays of `tiles` tiles of THREADS * ACCESSES accesses lie one after another. Each element written is the sum of those read.
template <int READS, int WRITES, int ACCESSES, int THREADS, int STREAMED>
__global__ void __launch_bounds__(THREADS) move_bytes(
    const float4* __restrict__ in, float4* __restrict__ out, unsigned tiles) {
    const unsigned long long stride = (unsigned long long)tiles * (THREADS * ACCESSES);
    float total = 0.0f;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const unsigned long long first = (unsigned long long)tile * (THREADS * ACCESSES) + threadIdx.x;
        float4 values[READS > 0 ? READS : 1][ACCESSES];
#pragma unroll
        for (int r = 0; r < READS; ++r) {
#pragma unroll
            for (int k = 0; k < ACCESSES; ++k) {
                const float4* from = in + r * stride + first + k * THREADS;
                values[r][k] = STREAMED & STREAM_READS ? __ldcs(from) : *from;
            }
        }
#pragma unroll
        for (int k = 0; k < ACCESSES; ++k) {
            float4 sum = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
#pragma unroll
            for (int r = 0; r < READS; ++r) {
                const float4 value = values[r][k];
                sum = r == 0 ? value : make_float4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
            }
#pragma unroll
            for (int w = 0; w < WRITES; ++w) {
                float4* to = out + w * stride + first + k * THREADS;
                if (STREAMED & STREAM_WRITES) {
                    __stcs(to, sum);
                } else {
                    *to = sum;
                }
            }
            if (WRITES == 0) total += sum.x + sum.y + sum.z + sum.w;
        }
    }
    if (WRITES == 0 && total == 1.0e30f) out->x = total;
}
