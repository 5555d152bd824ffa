// What both rungs with a turned B share: how much a block turns, and the product of a tile. After v07_warp_tile.cu and hopper.cuh.

constexpr int kTurned = 32;  // steps of B that a block turns; in v17_turned_columns columns, too

// The product of a tile over `count` stages, from number `first` along k on. The TMA brings a stage of A and of B with one request each. Half a
// stage after a stage has been read, the first thread asks for another in its place. kApart: how far apart the rows are whose multiply-adds
// follow one another.
template <class Tile, int kRows, int kColumns, int kDepth, int kStages, int kApart>
struct TurnedProduct {
  struct Stage {
    float a[kDepth][kRows], b[kDepth][kColumns];
  };

  const TensorMap &a, &b;
  Stage* const stages;
  Pipeline<kStages>& pipeline;
  const Tile& tile;  // for the place of this thread
  const int first, count;

  __device__ __forceinline__ void fetch(int number, int to) const {
    Mbarrier* full = &pipeline.full[to];
    mbarrier_arrive_expect(full, sizeof(Stage));
    tma_load(stages[to].a, a, tile.first_row, (first + number) * kDepth, full);
    tma_load(stages[to].b, b, tile.first_column, (first + number) * kDepth, full);
  }

  // Asks for the first stages, when nobody reads any.
  __device__ __forceinline__ void begin(const Ring<kStages>& ring) const {
    if (threadIdx.x == 0)
      for (int i = 0; i < min(kStages, count); ++i) fetch(i, (ring.stage + i) % kStages);
  }

  // Adds the products to the sums. `ring` is the next stage, and `before` the stage read last. The caller has both, for all its tiles: if
  // `before` is a variable of this function, up to 17 % more multiply-adds have three reads. Sums in `tile` get registers of one bank 1.1 to
  // 1.4 times as often.
  template <int kThreadColumns, int kThreadRows>
  __device__ __forceinline__ void multiply(float (&sums)[kThreadColumns][kThreadRows], Ring<kStages>& ring,
                                           Ring<kStages>& before) const {
    float values[2][kThreadRows], weights[2][kThreadColumns];
    const float *of_a = &stages[ring.stage].a[0][tile.row], *of_b = &stages[ring.stage].b[0][tile.column];
    const auto load = [&](int fragment, int p) {
#pragma unroll
      for (int i = 0; i < kThreadRows; i += kFour)
        *(float4*)&values[fragment][i] = *(const float4*)(of_a + p * kRows + i / kFour * Tile::kRowsApart);
#pragma unroll
      for (int j = 0; j < kThreadColumns; j += kFour)
        *(float4*)&weights[fragment][j] = *(const float4*)(of_b + p * kColumns + j / kFour * Tile::kColumnsApart);
    };
    mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
    load(0, 0);

#pragma unroll 1
    for (int number = 0; number < count; ++number) {
#pragma unroll
      for (int p = 0; p < kDepth; ++p) {
        if (p == kDepth / 2 && threadIdx.x == 0 && number > 0 && number - 1 + kStages < count) {
          mbarrier_wait(&pipeline.empty[before.stage], before.parity);
          fetch(number - 1 + kStages, before.stage);
        }
        if (p + 1 < kDepth) {
          load((p + 1) % 2, p + 1);
        } else {
          pipeline.release(ring.stage);
          before = ring;
          ring.next();
          if (number + 1 < count) mbarrier_wait(&pipeline.full[ring.stage], ring.parity);
          of_a = &stages[ring.stage].a[0][tile.row], of_b = &stages[ring.stage].b[0][tile.column];
          load(0, 0);  // after the last step nobody uses it
        }
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j)
#pragma unroll
          for (int t = 0; t < kThreadRows; ++t) {
            const int turn = j % 2 ? kThreadRows - 1 - t : t;  // down one column and up the next
            const int i = turn * kApart % kThreadRows + turn * kApart / kThreadRows;
            sums[j][i] = fmaf(values[p % 2][i], weights[p % 2][j], sums[j][i]);
          }
      }
    }
  }
};
