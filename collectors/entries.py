"""The collectors, in the order of the help. A tracer that stands first is taken first."""

from typing import Final

from warpladder.collectors.cuda import entry as cuda
from warpladder.collectors.cupti import entry as cupti
from warpladder.collectors.host import entry as host
from warpladder.collectors.nsight_compute import entry as nsight_compute
from warpladder.collectors.nsight_systems import entry as nsight_systems

#: Each collector by its name. `nsys` sees every library of the process.
ENTRIES: Final = {
    entry.name: entry for entry in (nsight_systems.ENTRY, cupti.ENTRY, cuda.ENTRY, host.ENTRY, nsight_compute.ENTRY)
}
