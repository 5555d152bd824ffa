// What CUDA C++ has no function for: TF32 products on tensor cores and asynchronous copies to shared memory, by inline PTX.
// Source: PTX ISA, section 9.7: cvt.rna.tf32, mma.m16n8k8 of .tf32, cp.async. The tests' emulator has its own functions of these
// names and types, so that it never sees the PTX.
#ifndef WARPLADDER_EMULATOR

// Rounded to the nearest value with 10 bits of fraction, ties away from zero; the bits of a float.
__device__ __forceinline__ unsigned to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// sums += a * b, a 16x8 by rows and b 8x8 by columns. In lane l, g = l / 4 and t = l % 4: a has rows g and g + 8 of column t, then of
// column t + 4; b has rows t and t + 4 of column g; sums has columns 2t and 2t + 1 of row g, then of row g + 8.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A copy of 4, 8 or 16 bytes from global to shared memory that nobody waits for; zeros where `valid` is false.
template <int bytes>
__device__ __forceinline__ void cp_async(void* shared, const void* global, bool valid = true) {
  const unsigned to = __cvta_generic_to_shared(shared);
  const int from = valid ? bytes : 0;
  if constexpr (bytes == 16)  // past L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(bytes), "r"(from) : "memory");
}

// Makes a group of this thread's copies since the last group.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all of this thread's groups but the last `groups` are there.
template <int groups>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

#endif
