// C and D in boxes in the stages of a pipeline, on their way in and out by the TMA. After tf32_product.cuh.

constexpr int kBox = 32;  // rows and columns of C and D in a box

// C in a stage: boxes of 32 x 32, four one below the other, then those of the next columns.
template <int columns>
struct Parts {
  static constexpr int kColumns = (kRows + columns) * kDepth / kRows / kBox * kBox;  // that fit into a stage
  static constexpr int kCount = (columns + kColumns - 1) / kColumns;

  // Calls visit(box, rows below the tile's first, columns right of its first) for each box of a part.
  template <class Visit>
  static __device__ __forceinline__ void for_each_box(int part, Stage<columns>& stage, Visit visit) {
    const int across = min(kColumns, columns - part * kColumns) / kBox;
    for (int x = 0; x < across; ++x)
      for (int y = 0; y < kRows / kBox; ++y) visit(box(stage, y, x), y * kBox, part * kColumns + x * kBox);
  }
  static __device__ __forceinline__ float* box(Stage<columns>& stage, int down, int across) {
    return reinterpret_cast<float*>(&stage) + (across * (kRows / kBox) + down) * kBox * kBox;
  }
  static __device__ __forceinline__ int bytes(int part) { return min(kColumns, columns - part * kColumns) * kRows * sizeof(float); }
};

// A thread's 16 elements of a box. Lanes of the upper rows take the two columns of a pair in the other order, so that all lanes of a warp meet
// different banks.
struct BoxShare {
  int at[2][2];  // first or second column, first or second row
  bool upper;

  __device__ __forceinline__ explicit BoxShare(int thread) {
    const int warp = thread / 32, group = thread % 32 / 4, step = thread % 4;
    upper = group >= 4;
#pragma unroll
    for (int turn = 0; turn < 2; ++turn)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = 2 * step + (upper ? 1 - turn : turn), piece = 4 * (group / 4) + 2 * (warp % 2) + half;
        at[turn][half] = column * kBox + 4 * (piece ^ column) + group % 4;
      }
  }

  // alpha * sums + beta * C over C.
  __device__ __forceinline__ void replace(float* box, const float* sums, float alpha, float beta) const {
    float old[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) old[i] = box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float sum = upper ? sums[i ^ 1] : sums[i];
      box[i / 4 * 8 * kBox + at[i % 2][i / 2 % 2]] = alpha * sum + beta * old[i];
    }
  }
};
