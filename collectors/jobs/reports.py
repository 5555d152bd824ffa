"""Finds the ranks in reports of Nsight Systems before they are imported, and exports the reports that need it, each once."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpladder.collectors.jobs.engine import KILLED
from warpladder.collectors.nsight_systems.payloads import Payloads, read_payloads
from warpladder.collectors.nsight_systems.source import exported, open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.trace.model import KERNELS, WORK, Trace, as_dictionary, process_of
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import Part, pairs
from warpladder.data.communication import is_communication
from warpladder.errors import Error


@dataclass(frozen=True)
class ToList:
    """A report whose ranks are wanted.

    Attributes:
        path: the report.
        folder: that its export is written to, if it needs one.
    """

    path: Path
    folder: Path


@dataclass(frozen=True)
class Listed:
    """The ranks in a report.

    Attributes:
        path: the report.
        opened: what is read: the report, or its export.
        parts: the ranks in the order of process and GPU.
        ranks: their numbers in NCCL's largest communicator, and its size; empty where NCCL's payloads do not tell.
        remarks: severity and text of what is told about the report.
        why: the reason why it cannot be read; empty if it can.
    """

    path: Path
    opened: Path
    parts: tuple[Part, ...] = ()
    ranks: tuple[tuple[int, int], ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    why: str = ""


def list_parts(task: ToList) -> Listed:
    """List the ranks of a report. Runs in a worker, which sees the same paths."""
    try:
        shutil.rmtree(task.folder, ignore_errors=True)  # of a call that was interrupted
        task.folder.mkdir(parents=True)
        opened = exported(task.path, task.folder)
        with open_report(opened, task.path.name) as report:
            parts, notes = parts_of(NsightTrace(report)), Notes()
            ranks = _ranks(parts, read_payloads(report, notes)) if len(parts) > 1 else ()
            remarks = tuple((row["severity"], f"{task.path.name}: {row['text']}") for row in notes.finish())
            return Listed(task.path, opened, tuple(parts), ranks, remarks)
    except Error as error:
        return Listed(task.path, task.path, why=str(error))
    except (MemoryError, OSError) as error:
        return Listed(task.path, task.path, why=f"{task.path.name}: {type(error).__name__}: {error}")


def _ranks(parts: Sequence[Part], payloads: Payloads) -> tuple[tuple[int, int], ...]:
    """The number of each part in the largest communicator that it is in, with the size of this; empty where one has none."""
    made = (payloads.ranks > 0) & (payloads.rank >= 0) & (payloads.rank < payloads.ranks)
    process = process_of(payloads.thread)
    found = []
    for part in parts:
        own = made & (process == part.process)
        if part.others:
            own &= np.isin(payloads.device, part.devices)
        at = np.flatnonzero(own)
        if not len(at):
            return ()
        largest = at[np.argmax(payloads.ranks[at])]
        found.append((int(payloads.rank[largest]), int(payloads.ranks[largest])))
    return tuple(found)


def lost(task: ToList) -> Listed:
    """The result for a report whose worker died each time."""
    return Listed(task.path, task.path, why=f"{task.path.name}: {KILLED}")


def parts_of(trace: Trace) -> list[Part]:
    """The ranks of a trace in the order of process and GPU. Raises ReportError: the file is damaged."""
    devices: dict[int, set[int]] = {}
    for table in WORK:
        for process, device in _owners(trace, table):
            devices.setdefault(process, set()).add(device)
    ranks_of = _ranking_devices(trace) if any(len(each) > 1 for each in devices.values()) else {}
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


def _owners(trace: Trace, table: str) -> set[tuple[int, int]]:
    """The pairs of process and CUDA ordinal that have rows in a table of device work."""
    found: set[tuple[int, int]] = set()
    for batch in trace.batches(table, ("process", "device")):
        found.update(map(tuple, np.unique(pairs(batch), axis=1).T.tolist()))
    return found


def _ranking_devices(trace: Trace) -> dict[int, set[int]]:
    """By process, the GPUs that it communicates on, else those that it runs kernels on."""
    running: dict[int, set[int]] = {}
    communicating: dict[int, set[int]] = {}
    named = "full_name" if trace.has(KERNELS, "full_name") else "name"
    for batch in trace.batches(KERNELS, ("process", "device", named)):
        names = as_dictionary(batch[named].fill_null(""))
        communicates = np.array([is_communication(name) for name in names.dictionary.to_pylist()], bool)
        owners = pairs(batch)
        for found, chosen in ((running, slice(None)), (communicating, communicates[names.indices.to_numpy()])):
            for process, device in np.unique(owners[:, chosen], axis=1).T.tolist():
                found.setdefault(process, set()).add(device)
    return {process: communicating.get(process) or devices for process, devices in running.items()}
