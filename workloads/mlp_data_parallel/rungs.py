"""The ladder: how ranks average their weights. What each rung tries stands at the head of its `.cu` file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from warpladder.workloads.api import AllReduce, Case, CudaVariant, Launch, Params, Step
from warpladder.workloads.mlp_data_parallel import overlapped
from warpladder.workloads.mlp_training import fused, wgmma
from warpladder.workloads.mlp_training.problem import OUTPUTS

KERNELS: Final = Path(__file__).resolve().parent / "kernels"

_BLOCKS: Final = {"blocks": 528}  # as `mlp_training` has it
_WARPGROUPS: Final = "sm_90a"


def _then(launches: Callable[[Case, Params], Sequence[Launch]], step: AllReduce) -> Callable[[Case, Params], Sequence[Step]]:
    return lambda case, config: (*launches(case, config), step)


CUDA_VARIANTS: Final = (
    CudaVariant(
        name="v01_host_staged",
        title="Averaged on the host, MPI",
        role="rung",
        configs=(_BLOCKS,),
        source=KERNELS / "v01_host_staged.cu",
        launches=_then(fused.launches, AllReduce(OUTPUTS, "mpi")),
        scratch=fused.scratch,
        min_compute_capability=(8, 0),
    ),
    CudaVariant(
        name="v02_nccl",
        title="Averaged by NCCL",
        role="rung",
        configs=(_BLOCKS,),
        source=KERNELS / "v02_nccl.cu",
        launches=_then(fused.launches, AllReduce(OUTPUTS)),
        scratch=fused.scratch,
        min_compute_capability=(8, 0),
        graph=True,
    ),
    CudaVariant(
        name="v03_overlapped",
        title="NCCL beside the backward pass",
        role="rung",
        configs=tuple({**_BLOCKS, "chunks": chunks} for chunks in (1, 2, 3)),
        source=KERNELS / "v03_overlapped.cu",
        launches=overlapped.launches,
        scratch=overlapped.scratch,
        min_compute_capability=(8, 0),
        graph=True,
    ),
    CudaVariant(
        name="v04_warpgroups_3xtf32",
        title="NCCL, warpgroups, 3xTF32",
        role="rung",
        precision="3xtf32",
        source=KERNELS / "v04_warpgroups_3xtf32.cu",
        launches=_then(wgmma.launches, AllReduce(OUTPUTS)),
        scratch=wgmma.scratch,
        skip=wgmma.skip,
        min_compute_capability=(9, 0),
        only_architecture=_WARPGROUPS,
        graph=True,
    ),
)
