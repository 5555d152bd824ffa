"""The ladder: how ranks average their weights. What each rung tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import AllReduce, Case, Launch, Params, Step
from warpladder.workloads.ladder import HOPPER, rungs_in
from warpladder.workloads.mlp_data_parallel import overlapped
from warpladder.workloads.mlp_training import fused, wgmma
from warpladder.workloads.mlp_training.problem import OUTPUTS

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_BLOCKS: Final = {"blocks": 528}  # as `mlp_training` has it


def _then(launches: Callable[[Case, Params], Sequence[Launch]], step: AllReduce) -> Callable[[Case, Params], Sequence[Step]]:
    return lambda case, config: (*launches(case, config), step)


_rung: Final = rungs_in(KERNELS)

CUDA_VARIANTS: Final = (
    _rung(
        *("v01_host_staged", "Averaged on the host, MPI", _then(fused.launches, AllReduce(OUTPUTS, "mpi")), (_BLOCKS,)),
        scratch=fused.scratch,
        min_compute_capability=(8, 0),
    ),
    _rung(
        *("v02_nccl", "Averaged by NCCL", _then(fused.launches, AllReduce(OUTPUTS)), (_BLOCKS,)),
        scratch=fused.scratch,
        min_compute_capability=(8, 0),
        graph=True,
    ),
    _rung(
        *("v03_overlapped", "NCCL beside the backward pass", overlapped.launches),
        configs=[{**_BLOCKS, "chunks": chunks} for chunks in (1, 2, 3)],
        scratch=overlapped.scratch,
        min_compute_capability=(8, 0),
        graph=True,
    ),
    _rung(
        *("v04_warpgroups_3xtf32", "NCCL, warpgroups, 3xTF32", _then(wgmma.launches, AllReduce(OUTPUTS))),
        precision="3xtf32",
        scratch=wgmma.scratch,
        skip=fused.skip,
        graph=True,
        **HOPPER,
    ),
)
