"""Sizes that kernels on Hopper's warpgroups share with their launches; see `hopper.cuh`."""

from typing import Final

#: Multiprocessors of an H100 SXM and an H200. On others the kernels are as right, and slower.
MULTIPROCESSORS: Final = 132
#: Threads of a block: a warpgroup that fetches and two that multiply.
THREADS: Final = 384
#: Steps along k of a stage: 128 bytes, the span of the swizzle.
DEPTH: Final = 32
#: Rows of one of the boxes that an operand in registers is copied by.
BOX: Final = 32
#: Dynamic shared memory that a block asks for besides its stages, so that they begin at a multiple of it.
ALIGNMENT_BYTES: Final = 1024
