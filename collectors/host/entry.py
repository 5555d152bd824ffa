"""The entry of the collector `host_clock`."""

from typing import Final

from warpladder.collectors.core.entry import Entry

ENTRY: Final = Entry("host_clock", on_gpu=False)
