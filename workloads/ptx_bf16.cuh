// Products of a warp in BF16: 16 steps along k in the time of 8 in TF32. The tests' emulator has its own functions of these names.
// Source: PTX ISA, section 9.7: cvt.rn.bf16x2, mma.m16n8k16 of .bf16.
#ifndef WARPLADDER_EMULATOR

// Two numbers rounded to BF16, `first` in the lower half.
__device__ __forceinline__ unsigned to_bf16_pair(float first, float second) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

// sums += a * b, a 16x16 by rows and b 16x8 by columns. In lane l, g = l / 4 and t = l % 4: a has rows g and g + 8 of columns 2t and
// 2t + 1, then of columns 2t + 8 and 2t + 9; b has rows 2t and 2t + 1, then 2t + 8 and 2t + 9, of column g; sums as for TF32.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
