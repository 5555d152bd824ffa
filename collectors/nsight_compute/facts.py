"""Facts about the machine of a report of Nsight Compute, as columns of table `run`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from warpladder.collectors.core.environment import NO_GPU, host_facts
from warpladder.collectors.nsight_compute.cells import ProfiledLaunch
from warpladder.collectors.nsight_compute.header import read_header
from warpladder.collectors.nsight_compute.metrics import CAPABILITY, DEVICE_ID, L2_BYTES, MEMORY_BYTES, SM_COUNT
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.data import files
from warpladder.data.store import to_json

#: Values for a report that lacks these facts; the values of this machine would be wrong.
_UNKNOWN: Final = dict.fromkeys(("cpu_name", "os", "driver_version", "cuda_version", "collector_version"), "")


def run_facts(path: Path, launches: Sequence[ProfiledLaunch], arguments: Sequence[str], notes: Notes) -> dict[str, Any]:
    """Return the columns of `run` except run_id, schema_version and label.

    Args:
        path: the report. Its modification time is used if it does not hold the time of the capture.
        launches: the report's launches, at least one.
        arguments: command line of the import.
        notes: receives a note if the report does not hold the time of the capture.
    """
    header = read_header(path)
    return {
        **host_facts(arguments),
        **NO_GPU,
        **_UNKNOWN,
        "cpu_threads": None,
        **header.columns,
        **_device(launches),
        "packages": to_json({"ncu-report": metadata.version("ncu-report")}),
        "kind": "import",
        "started_at": header.created or date_of_file(path, notes),
        "collector": "nsight_compute",
        "source": path.name,
        "source_sha256": files.sha256(path),
    }


def _device(launches: Sequence[ProfiledLaunch]) -> dict[str, Any]:
    """Return the facts about the GPU with the most launches, and the number of GPUs."""
    devices = Counter(launch.values.get(DEVICE_ID, 0.0) for launch in launches)
    busiest = devices.most_common(1)[0][0]
    of_it = next(launch for launch in launches if launch.values.get(DEVICE_ID, 0.0) == busiest)
    major, minor = (_whole(of_it.values, name) for name in CAPABILITY)
    sm_count = _whole(of_it.values, SM_COUNT)
    return {
        "device_name": of_it.device,
        "device_count": min(len(devices), 1 << 14),
        "compute_capability": f"{major}.{minor or 0}" if major else "",
        "sm_count": sm_count if sm_count and sm_count < 1 << 31 else None,
        "l2_bytes": _whole(of_it.values, L2_BYTES) or None,
        "memory_bytes": _whole(of_it.values, MEMORY_BYTES) or None,
    }


def _whole(values: Mapping[str, float], name: str) -> int | None:
    value = values.get(name)
    return None if value is None or not 0 <= value < 1 << 62 else int(value)
