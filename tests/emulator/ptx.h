// What kernels do by inline PTX, for the emulator: functions of the names and types that the kernels give their own wrappers.
// Included at the end of cuda_emulator.h. Definitions: PTX ISA, section 9.7 (mma.m16n8k8 of .tf32, mma.m16n8k16 of .bf16, cp.async,
// cvt.rna.tf32, cvt.rn.bf16x2, ld.global.nc.L2::256B).
#pragma once

/// cvt.rna.tf32.f32: rounded to the nearest value with 10 bits of fraction, ties away from zero; the bits of a float.
inline unsigned to_tf32(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}

namespace emulator {
struct MmaOperands {
  unsigned a[4], b[2];
};
/// The tensor cores look at the upper 19 bits of an operand only.
inline double tf32_value(unsigned bits) { return __uint_as_float(bits & ~0x1fffu); }
}  // namespace emulator

/// mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: sums += a * b, a 16x8 by rows, b 8x8 by columns, in the fragments of a warp.
inline void mma_m16n8k8_tf32(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const emulator::MmaOperands mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const unsigned group = emulator::lane() / 4, member = emulator::lane() % 4;
  struct Result { float sums[4]; };
  const Result result = emulator::exchange(emulator::full_mask, mine, [&](auto values) {
    Result next;
    for (unsigned i = 0; i < 4; i++) {
      const unsigned row = group + 8 * (i / 2), column = 2 * member + i % 2;
      double sum = sums[i];
      for (unsigned k = 0; k < 8; k++) {
        // Row r, column k of a is in lane 4 (r mod 8) + k mod 4, register r / 8 + 2 (k / 4); of b alike, by columns.
        const double of_a = emulator::tf32_value(values(4 * (row % 8) + k % 4).a[row / 8 + 2 * (k / 4)]);
        const double of_b = emulator::tf32_value(values(4 * column + k % 4).b[k / 4]);
        sum += of_a * of_b;
      }
      next.sums[i] = static_cast<float>(sum);
    }
    return next;
  });
  for (unsigned i = 0; i < 4; i++) sums[i] = result.sums[i];
}

/// cvt.rn.bf16x2.f32: both rounded to the nearest BF16, ties to even; `first` in the lower half.
inline unsigned to_bf16_pair(float first, float second) {
  const auto rounded = [](float x) {
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u) return bits >> 16;
    return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  };
  return rounded(second) << 16 | rounded(first);
}

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: sums += a * b, a 16x16 by rows, b 16x8 by columns, two values a register.
inline void mma_m16n8k16_bf16(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  const emulator::MmaOperands mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const unsigned group = emulator::lane() / 4, member = emulator::lane() % 4;
  struct Result { float sums[4]; };
  const auto value = [](unsigned pair, unsigned k) -> double { return __uint_as_float(k % 2 ? pair & 0xffff0000u : pair << 16); };
  const Result result = emulator::exchange(emulator::full_mask, mine, [&](auto values) {
    Result next;
    for (unsigned i = 0; i < 4; i++) {
      const unsigned row = group + 8 * (i / 2), column = 2 * member + i % 2;
      double sum = sums[i];
      for (unsigned k = 0; k < 16; k++) {
        // Row r, column k of a is in lane 4 (r mod 8) + (k mod 8) / 2, register r / 8 + 2 (k / 8); of b alike, by columns.
        const double of_a = value(values(4 * (row % 8) + k % 8 / 2).a[row / 8 + 2 * (k / 8)], k);
        const double of_b = value(values(4 * column + k % 8 / 2).b[k / 8], k);
        sum += of_a * of_b;
      }
      next.sums[i] = static_cast<float>(sum);
    }
    return next;
  });
  for (unsigned i = 0; i < 4; i++) sums[i] = result.sums[i];
}

/// ldmatrix.sync.aligned.m8n8.x4.shared.b16: lane l has row l % 8 of matrix l / 8.
inline void ldmatrix(unsigned (&fragments)[4], const void* row) {
  struct Result { unsigned fragments[4]; };
  const Result result = emulator::exchange(emulator::full_mask, row, [](auto rows) {
    Result next;
    for (unsigned i = 0; i < 4; i++)
      next.fragments[i] = static_cast<const unsigned*>(rows(8 * i + emulator::lane() / 4))[emulator::lane() % 4];
    return next;
  });
  for (unsigned i = 0; i < 4; i++) fragments[i] = result.fragments[i];
}

/// cp.async of 4, 8 or 16 bytes from global to shared memory, zeros where `valid` is false. It is done at once: a kernel that reads too
/// early is not caught here.
template <int bytes> void cp_async(void* shared, const void* global, bool valid = true) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
  assert(reinterpret_cast<std::uintptr_t>(shared) % bytes == 0);
  if (valid) {
    assert(reinterpret_cast<std::uintptr_t>(global) % bytes == 0);
    std::memcpy(shared, global, bytes);
  } else {
    std::memset(shared, 0, bytes);
  }
}
inline void cp_async_commit() {}
template <int groups> void cp_async_wait() {}

/// tanh.approx.f32, without its error of 2^-11.
inline float tanh_approx(float x) { return std::tanh(x); }

/// ld.global.nc.L2::256B: a load; what it prefetches has no effect here.
template <class T> T load_with_256_bytes(const T* from) { return *from; }

/// st.relaxed.sys and ld.relaxed.sys of four words: in the emulator ranks run one after another.
inline void store_to_rank(uint4* to, uint4 words) { *to = words; }
inline uint4 load_from_rank(const uint4* from) { return *from; }
