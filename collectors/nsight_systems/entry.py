"""The entry of the collector `nsight_systems`."""

from typing import Final

from warpladder.collectors.core.entry import Entry, late
from warpladder.collectors.nsight_systems.tool import NSYS

ENTRY: Final = Entry(
    "nsight_systems",
    "times and traces, under nsys",
    (NSYS,),
    traces=True,
    inside="cuda_events",
    record=late("warpladder.collectors.nsight_systems.record:record"),
)
