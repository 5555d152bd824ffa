// Tiles of 64 rows, for one warpgroup. After tiles.cuh.

constexpr int kSmallRows = 64;
constexpr int kThreads = 128;  // that multiply

template <int columns>
struct SmallStage {
  unsigned char a[kSmallRows * kRowBytes];
  unsigned char b[columns * kRowBytes];
};

// sums = (add ? sums : 0) + a * b of a stage, under way when it returns.
template <class Element, int columns>
__device__ __forceinline__ void start_product(float (&sums)[columns / 2], const SmallStage<columns>& stage, bool add) {
  const unsigned long long a = wgmma_operand(stage.a), b = wgmma_operand(stage.b);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i) wgmma(Element{}, sums, a + 2 * i, b + 2 * i, add || i > 0);
  wgmma_commit();
}
