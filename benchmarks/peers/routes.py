"""What the modules of routes share: the workload that is searched, and the route that every compiled peer has."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Final

from warpladder.workloads import registry, torch_bridge
from warpladder.workloads.api import Buffers, Case, LibraryVariant, Workload

#: The mode of `torch.compile` that times more kernels.
AUTOTUNED: Final = ({"mode": "max-autotune-no-cudagraphs"},)


def searched(name: str, *routes: LibraryVariant) -> Workload:
    """The workload with its peers, each peer that `torch.compile` compiles also in its other mode, and further routes, and no rungs."""
    workload = registry.load(name)
    declared = [variant for variant in workload.variants if variant.role == "peer" and isinstance(variant, LibraryVariant)]
    peers = [replace(variant, draft=False) for variant in declared]
    compiled = [
        replace(
            peer,
            name=f"{peer.name}_autotuned",
            title=f"{peer.title}, autotuned",
            configs=AUTOTUNED,
            prepare=_in_mode(peer.prepare),
        )
        for peer in peers
        if peer.name.startswith("torch_compile")
    ]
    return replace(workload, variants=(*peers, *compiled, *routes), baseline=peers[0].name, host_baseline="")


def _in_mode(prepare: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(prepare)
    def prepared(case: Case, inputs: Buffers, outputs: Buffers, mode: str) -> Any:
        with torch_bridge.compile_mode(mode):
            return prepare(case, inputs, outputs)

    return prepared
