"""What the modules of routes share: the workload that is searched, and the route that every compiled peer has."""

from dataclasses import replace
from typing import Final

from warpladder.workloads import registry
from warpladder.workloads.api import LibraryVariant, Workload

#: The mode of `torch.compile` that times more kernels.
AUTOTUNED: Final = ({"mode": "max-autotune-no-cudagraphs"},)


def searched(name: str, *routes: LibraryVariant) -> Workload:
    """The workload with its peers, each peer that `torch.compile` compiles also in its other mode, and further routes, and no rungs."""
    workload = registry.load(name)
    peers = [variant for variant in workload.variants if variant.role == "peer" and isinstance(variant, LibraryVariant)]
    compiled = [
        replace(peer, name=f"{peer.name}_autotuned", title=f"{peer.title}, autotuned", configs=AUTOTUNED)
        for peer in peers
        if peer.name.startswith("torch_compile")
    ]
    return replace(workload, variants=(*peers, *compiled, *routes), baseline=peers[0].name, host_baseline="")
