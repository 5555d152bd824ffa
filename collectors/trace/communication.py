"""Names of communication kernels of NCCL and RCCL, and of what they do."""

import re
from typing import Final

#: Names of kernels that communicate: `ncclDevKernel_*`, older ones `ncclKernel_*`, also within the name of a wrapper.
_KERNEL: Final = re.compile(r"^nccl|nccl(?:Dev)?Kernel")
_OF_KERNEL: Final = re.compile(r"nccl(?:Dev)?Kernel_([A-Za-z]+)")
#: Names that PyTorch and NCCL's kernels have for a collective, in lower case without `_` and `base`, as NCCL's tests name it.
_NAMES: Final = {
    "allgather": "all_gather",
    "allgatherintotensorcoalesced": "all_gather",
    "allreduce": "all_reduce",
    "allreducecoalesced": "all_reduce",
    "alltoall": "alltoall",
    "alltoallv": "alltoall",
    "bcast": "broadcast",
    "broadcast": "broadcast",
    "gather": "gather",
    "recv": "sendrecv",
    "reduce": "reduce",
    "reducescatter": "reduce_scatter",
    "reducescattertensorcoalesced": "reduce_scatter",
    "scatter": "scatter",
    "send": "sendrecv",
    "sendrecv": "sendrecv",
}


def is_communication(kernel: str) -> bool:
    """Whether a kernel of this name communicates with other GPUs."""
    return bool(_KERNEL.search(kernel))


def collective_of(kernel: str, named: str = "") -> str:
    """The collective that a kernel is part of, e.g. `all_reduce`.

    Args:
        kernel: name of the kernel.
        named: the trace's own name for the collective; empty where it has none.
    """
    if not named:
        found = _OF_KERNEL.search(kernel)
        named = found[1] if found else kernel
    plain = named.lower().replace("_", "").removesuffix("base")
    return _NAMES.get(plain, named.lower().strip("_"))


#: Bytes of an element, by the names that PyTorch has for its type.
_ELEMENT_BYTES: Final = {
    **dict.fromkeys(("double", "long", "int64", "float64"), 8),
    **dict.fromkeys(("float", "int", "int32", "float32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "uint8", "int8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
}


def element_bytes(element_type: str) -> int:
    """Bytes of an element, 0 where the type is not known."""
    return _ELEMENT_BYTES.get(element_type.lower(), 0)
