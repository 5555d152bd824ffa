"""The entry of the collector `cuda_events`."""

from typing import Final

from warpladder.collectors.core.entry import Entry, late

ENTRY: Final = Entry("cuda_events", "times", capture=late("warpladder.collectors.cuda.profiler_range:ProfilerRange"))
