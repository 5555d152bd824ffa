// Idea: what tells whether a variant changed an input, without a second copy of it on the device.
// Bottleneck: none of this is timed.
// Next: nothing.
// Source: ours; the mixing follows the finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).

// Adds up a mix of each word of 8 bytes and of its place: the same words in another order give another sum.
__device__ unsigned long long mixed(unsigned long long word, unsigned long long place) {
    unsigned long long bits = word ^ (place * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull);
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return bits ^ (bits >> 31);
}

// The fingerprint of count words and of the rest, less than a word, that follows them, added to *sum. It reads from the end, as most
// kernels write from the start: one that runs beside it has then not written all that is read first.
extern "C" __global__ void fingerprint(const unsigned long long* words, unsigned long long count, int rest, unsigned long long* sum) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long first = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long own = 0;
    for (unsigned long long i = first; i < count; i += stride) own += mixed(words[count - 1 - i], count - 1 - i);
    if (first == 0 && rest > 0) {
        unsigned long long last = 0;
        for (int i = 0; i < rest; ++i) last = last << 8 | ((const unsigned char*)(words + count))[i];
        own += mixed(last, count);
    }
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(0xffffffffu, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}
