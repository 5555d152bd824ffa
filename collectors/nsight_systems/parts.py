"""Finds the ranks in a report of several processes or GPUs.

Each process with device work is a rank. A process that drives several GPUs is one rank a GPU: those that it communicates on, else those
that it runs kernels on. Work on a further GPU, such as a set before the program chooses its own, belongs to the first of them.
"""

import numpy as np

from warpladder.collectors.trace.device_tables import KERNEL
from warpladder.collectors.trace.parts import WORK, Part, pairs
from warpladder.collectors.trace.report import Report
from warpladder.collectors.trace.strings import Strings
from warpladder.data.communication import is_communication


def parts_of(report: Report) -> list[Part]:
    """The ranks of a report in the order of process and GPU.

    Raises:
        ReportError: the file is damaged.
    """
    devices: dict[int, set[int]] = {}
    for table in WORK:
        for process, device in _owners(report, table):
            devices.setdefault(process, set()).add(device)
    ranks_of = _ranking_devices(report) if any(len(each) > 1 for each in devices.values()) else {}
    parts = []
    for process, every in sorted(devices.items()):
        ranking = sorted(ranks_of.get(process, set()))
        if len(ranking) < 2:
            parts.append(Part(process, tuple(sorted(every))))
            continue
        rest = sorted(every - set(ranking))
        for place, device in enumerate(ranking):
            own = (device, *rest) if place == 0 else (device,)
            parts.append(Part(process, own, tuple(sorted(every - set(own)))))
    return parts


def _owners(report: Report, table: str) -> set[tuple[int, int]]:
    """The pairs of process and CUDA ordinal that have rows in a table of device work."""
    found: set[tuple[int, int]] = set()
    for batch in report.batches(table, ["globalPid", "deviceId"]):
        found.update(map(tuple, np.unique(pairs(batch), axis=1).T.tolist()))
    return found


def _ranking_devices(report: Report) -> dict[int, set[int]]:
    """By process, the GPUs that it communicates on, else those that it runs kernels on."""
    strings = Strings(report)
    running: dict[int, set[int]] = {}
    communicating: dict[int, set[int]] = {}
    for batch in report.batches(KERNEL, ["globalPid", "deviceId", "shortName", "demangledName"]):
        names = strings.of(batch.column("demangledName" if report.has(KERNEL, "demangledName") else "shortName"))
        communicates = np.array([is_communication(name) for name in names.dictionary.to_pylist()], bool)
        owners = pairs(batch)
        for found, chosen in ((running, slice(None)), (communicating, communicates[names.indices.to_numpy()])):
            for process, device in np.unique(owners[:, chosen], axis=1).T.tolist():
                found.setdefault(process, set()).add(device)
    return {process: communicating.get(process) or devices for process, devices in running.items()}
