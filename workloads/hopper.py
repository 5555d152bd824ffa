"""Sizes of Hopper's hardware that launches of kernels on warpgroups need; see `hopper.cuh`."""

from typing import Final

#: Multiprocessors of an H100 SXM and an H200. On other GPUs the kernels are correct, but slower.
MULTIPROCESSORS: Final = 132
#: Threads of a warpgroup.
WARPGROUP_THREADS: Final = 128
#: The 128-byte swizzle needs stages that begin at a multiple of this. A block asks for this much dynamic shared memory more, to
#: align them.
ALIGNMENT_BYTES: Final = 1024
