"""What belongs to one of the source reports alone: its own tables and figures, from our samples or by computation."""

from typing import Final

from warpladder.dashboard.reports import blocks, conflicts, copies, generator, matrices, overheads, phases
from warpladder.dashboard.reports.detail import Detail

#: What the page Details offers, in its order.
DETAILS: Final[tuple[Detail, ...]] = (
    copies.DETAIL,
    overheads.DETAIL,
    blocks.DETAIL,
    conflicts.DETAIL,
    matrices.DETAIL,
    phases.DETAIL,
    generator.DETAIL,
)
