// Memory of a GPU that kernels of the other ranks write into, over NVLink, and a way to send through it: without flags and without fences.
//
// A word that is 0 has not come yet; what is sent is never 0. The receiver of a word takes it and leaves 0 for the next. So a word arrives as soon
// as a store can, and nothing else is waited for. A sender that is a step ahead must not write over what has not been taken: words of two steps in a
// row lie in different places. Two are enough, as it ends a step only when all ranks have begun it.
// Source: PTX ISA, section 8 (memory consistency model: relaxed at the scope of the system); own work, after the "low latency" protocols of NCCL.

constexpr int kMostRanks = 8;

// As `PeerMemory` of the launches gives it; parameters are `const __grid_constant__ PeerMemory`.
struct PeerMemory {
  void* of[kMostRanks];  // where each rank has its memory, which is as large for each sender as the scratch is declared
  int rank, ranks;
};

// Each word of 4 bytes arrives whole.
__device__ __forceinline__ void store_to_rank(uint4* to, uint4 words) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

__device__ __forceinline__ uint4 load_from_rank(const uint4* from) {
  uint4 words;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
  return words;
}

// Sends four words, none of which is all ones: no pair of BF16 numbers and no float that arithmetic gives is.
__device__ __forceinline__ void send(uint4* to, uint4 words) { store_to_rank(to, make_uint4(~words.x, ~words.y, ~words.z, ~words.w)); }

// Takes `count` times four words, `stride` apart, as soon as they are there; only those for which is_sent(i) is true.
template <int count, class IsSent>
__device__ __forceinline__ void take(uint4 (&words)[count], uint4* from, int stride, IsSent is_sent) {
  bool waits;
  do {
    waits = false;
#pragma unroll
    for (int i = 0; i < count; ++i) words[i] = is_sent(i) ? load_from_rank(from + i * stride) : make_uint4(1, 1, 1, 1);
#pragma unroll
    for (int i = 0; i < count; ++i) waits |= words[i].x == 0 || words[i].y == 0 || words[i].z == 0 || words[i].w == 0;
  } while (waits);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (is_sent(i)) from[i * stride] = make_uint4(0, 0, 0, 0);
    words[i] = make_uint4(~words[i].x, ~words[i].y, ~words[i].z, ~words[i].w);
  }
}

// Which of the two places this step uses, by all lanes of a warp. `turns` counts the steps of the warp; that of a rank without others stays 0.
__device__ __forceinline__ unsigned next_turn(unsigned* turns, const PeerMemory& peers) {
  if (peers.ranks == 1) return 0;
  const unsigned turn = *turns;
  __syncwarp();
  if (threadIdx.x % 32 == 0) *turns = turn + 1;
  return turn % 2;
}
