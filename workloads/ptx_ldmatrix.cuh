// Fragments of matrices of 16-bit elements from shared memory. The tests' emulator has its own function of this name.
// Source: PTX ISA, section 9.7: ldmatrix.
#ifndef WARPLADDER_EMULATOR

// Four matrices of 8 x 8. Lane l gives the 16 bytes of row l % 8 of matrix l / 8, and gets two neighbours, 2 (l % 4) and the next, of row l / 4 of
// each matrix.
__device__ __forceinline__ void ldmatrix(unsigned (&fragments)[4], const void* row) {
  const unsigned address = __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
               : "r"(address)
               : "memory");
}

#endif
