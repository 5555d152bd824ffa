"""The numbers of CUPTI that reports of Nsight Systems take over, in the words of `data/schema.py`."""

from typing import Final

#: CUpti_ActivityMemcpyKind; other numbers are unknown. CUDA arrays count as device memory; 13 is a migration between devices.
COPY_KINDS: Final = dict(
    enumerate(
        ("h2d", "d2h", "h2d", "d2h", "d2d", "d2d", "d2d", "d2d", "h2h", "p2p", "unified_h2d", "unified_d2h", "p2p"),
        start=1,
    )
)
#: Kinds of copies that are migrations of unified memory; no API call launches them.
MIGRATIONS: Final = (11, 12, 13)
#: ENUM_CUDA_MEM_KIND, which some versions of Nsight Systems leave out. 7 is unknown. CUPTI counts from 1.
MEMORY_KINDS: Final = dict(enumerate(("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static")))
