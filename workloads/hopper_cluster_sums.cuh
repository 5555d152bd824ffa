// Sums that the blocks of a cluster have parts of: each block adds up a share of them, which comes to its shared memory. After
// hopper_cluster_stores.cuh.

// What comes to a block: `share` sums of each of `threads` threads, from each of the other `parts` - 1 blocks.
template <int parts, int share, int threads>
struct OthersSums {
  static_assert(share % 4 == 0);
  float4 fours[parts - 1][share / 4][threads];  // of the next block by number, then of the one after it

  // Makes the barrier that tells when all is there, by one thread. Then all threads call cluster_arrive_relaxed().
  __device__ __forceinline__ void expect(Mbarrier* there) const {
    mbarrier_init(there, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(there, sizeof fours);
  }

  // Hands the other blocks their shares of `sums`, and adds what they have of this block's to it. `part`: number of this block. Other threads
  // of the block may come later.
  __device__ __forceinline__ void add(const float (&sums)[parts * share], float (&mine)[share], Mbarrier* there, int part) {
    cluster_wait();  // the other blocks have their barriers
#pragma unroll
    for (int to = 0; to < parts; ++to) {
      const float* of = sums + to * share;
      if (to == part) {
#pragma unroll
        for (int i = 0; i < share; ++i) mine[i] = of[i];
      } else {
        float4* place = &fours[(part - to + parts) % parts - 1][0][threadIdx.x];
#pragma unroll
        for (int i = 0; i < share; i += 4)
          store_remote(place + i / 4 * threads, make_float4(of[i], of[i + 1], of[i + 2], of[i + 3]), there, to);
      }
    }
    mbarrier_wait_of_cluster(there, 0);
#pragma unroll
    for (int other = 0; other < parts - 1; ++other)
#pragma unroll
      for (int i = 0; i < share; i += 4) {
        const float4 four = fours[other][i / 4][threadIdx.x];
        mine[i] += four.x, mine[i + 1] += four.y, mine[i + 2] += four.z, mine[i + 3] += four.w;
      }
  }
};
