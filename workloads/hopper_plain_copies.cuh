// Copies of an operand's rows to shared memory without a tensor map, as the TMA would leave them: rows of 128 bytes, whose 16-byte pieces are
// exchanged within eight rows. After ptx.cuh.

// A thread's pieces of an operand: one of every kDown rows, in the same column.
template <int threads>
struct Pieces {
  static constexpr int kRow = 128, kAcross = kRow / 16, kDown = threads / kAcross;
  static_assert(kDown % 8 == 0, "the pieces of a thread are exchanged alike");

  const unsigned char* from;  // first row that the tile needs
  unsigned pitch;             // bytes
  int rows;                   // of the operand, from that row on
  int row, along;             // of the thread's first piece: row, and byte within it
  unsigned to;                // byte in shared memory

  __device__ __forceinline__ Pieces(const void* operand, int first, int end, unsigned pitch)
      : from(static_cast<const unsigned char*>(operand) + (size_t)first * pitch),
        pitch(pitch),
        rows(end - first),
        row(threadIdx.x / kAcross),
        along(threadIdx.x % kAcross * 16),
        to(row * kRow + (along ^ row % 8 * 16)) {}

  // Asks for `count` rows, `below` rows further down, from byte `start` of them on; zeros beyond the operand.
  template <int count>
  __device__ __forceinline__ void copy(void* shared, int below, unsigned start) const {
    const unsigned char* piece = from + (size_t)(below + row) * pitch + start + along;
#pragma unroll
    for (int i = 0; i < count / kDown; ++i) {
      const bool inside = below + row + i * kDown < rows && start + along < pitch;
      cp_async<16>(at<unsigned char>(shared, i), inside ? piece + (size_t)i * kDown * pitch : from, inside);
    }
  }

  // The thread's i-th piece of those that it copied to `shared`.
  template <class T>
  __device__ __forceinline__ T* at(void* shared, int i) const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(shared) + to + i * kDown * kRow);
  }
};
