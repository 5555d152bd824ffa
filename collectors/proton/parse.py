"""Imports a trace that Triton's profiler Proton writes with `backend="instrumentation", data="trace"`: when each block ran, and the time that
its warps spent in each scope.

Proton reads the clock of a multiprocessor at the start and the end of a scope, and the global timer at the start and the end of a block. It
writes a cycle as a nanosecond, so a time in a scope is too long, about twice at 2 GHz. The times of blocks are right.
Source of the format: `StreamChromeTraceWriter` in `third_party/proton/common/lib/TraceDataIO/TraceWriter.cpp` of Triton 3.7.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from warpladder.collectors.core.environment import import_facts
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.trace.compressed import UNREADABLE, NotTheFile, text_blocks
from warpladder.collectors.trace.model import ReportError
from warpladder.collectors.trace.notes import Notes, date_of_file
from warpladder.data import files, naming, schema
from warpladder.data.names import Experiment, Fact, Source
from warpladder.data.naming import CellName, Naming

_BEGIN_BYTES: Final = 1 << 16
_MOST_BYTES: Final = 1 << 30
#: The process and the thread of an event: a block on a multiprocessor, and a warp. Scopes of a warp that overlap lie on several lines.
_BLOCK: Final = re.compile(r"(?P<kernel>.+) Core(?P<multiprocessor>\d{1,9}) CTA(?P<block>\d{1,9})")
_WARP: Final = re.compile(r"warp (?P<warp>\d{1,9}) \(line \d+\)")
_KNOWN: Final = re.compile(rb'"pid"\s*:\s*"[^"]+ Core\d+ CTA\d+[^"]*"')
#: What Triton calls the times of a block, from version 3.7 on.
_START, _END, _AFTERWARDS = "Init Time (ns)", "Post Final Time (ns)", "Finalization Time (ns)"
#: The time of a block in no scope.
OUTSIDE: Final = "outside of scopes"


class Span(NamedTuple):
    """An execution of a scope, in cycles."""

    start: float
    end: float
    scope: str


@dataclass
class Block:
    """A block: its multiprocessor, its times in nanoseconds, and the scopes of each warp."""

    multiprocessor: int
    start_ns: int
    end_ns: int
    warps: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))

    @property
    def cycles(self) -> float:
        """From the start of the first scope to the end of the last."""
        spans = [span for warp in self.warps.values() for span in warp]
        return max(span.end for span in spans) - min(span.start for span in spans)


def is_trace(path: Path) -> bool:
    """Whether a file is a trace from inside kernels, compressed or not."""
    try:
        return path.is_file() and bool(_KNOWN.search(next(text_blocks(path, _BEGIN_BYTES), b"")))
    except (NotTheFile, *UNREADABLE):
        return False


def import_report(
    path: Path, data_dir: Path, label: str, range_naming: Naming | None, arguments: Sequence[str], notes: Notes | None = None
) -> str:
    """Write a trace as a run: each kernel is a variant, and each launch of it a case. Arguments, result and errors are as for
    `nsight_systems.parse.import_report`.
    """
    notes, name = Notes() if notes is None else notes, path.name.split(".")[0]
    if range_naming:
        raise ReportError(f"{path.name}: is from inside kernels and has no ranges of NVTX; leave out --variant-from")
    counts, launches = Counter[str](), dict[CellName, dict[int, Block]]()
    for kernel, blocks in launches_of(_events(path), path.name, notes):
        counts[kernel] += 1
        launches[CellName(name, kernel, "", f"launch={counts[kernel]}")] = blocks
    started = date_of_file(path, notes)
    notes.add(
        "info",
        Source.PROTON,
        "Times of blocks are those of the global timer. Proton counts cycles in scopes; they are nanoseconds at the clock at which the scopes of "
        "a launch's longest block fill it. A warp that has more records than its buffer holds keeps the last ones",
    )
    with open_writer(data_dir, started, label or name) as writer:
        row = {"run_id": writer.run_id, "schema_version": schema.SCHEMA_VERSION, "label": label, "device_count": 1}
        about = {"started_at": started, "collector": "proton", "source": path.name, "source_sha256": files.sha256(path)}
        writer.append("run", [{**import_facts(arguments), **row, **about}])
        variants = naming.variant_rows(list(launches))
        writer.append("variants", [{**row, "source": "scopes in an imported trace of Proton"} for row in variants])
        writer.append("cases", naming.case_rows(list(launches)))
        writer.append("results", naming.result_rows(list(launches)))
        for cell, blocks in launches.items():
            rows = list(block_rows(blocks))
            writer.append("experiment_blocks", [{**cell._asdict(), **row} for row in rows])
            writer.append("experiments", list(_experiments(cell, blocks, rows)))
        writer.append("diagnostics", notes.finish())
        writer.commit()
    return writer.run_id


def _events(path: Path) -> list[Any]:
    """The events of a trace. Raises ReportError."""
    text, size = list[bytes](), 0
    try:
        for block in text_blocks(path):
            text.append(block)
            if (size := size + len(block)) > _MOST_BYTES:
                raise ReportError(
                    f"{path.name}: larger than {_MOST_BYTES >> 30} GB; trace fewer launches, or fewer warps with sampling_options"
                )
        events = json.loads(b"".join(text))["traceEvents"]
    except (*UNREADABLE, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ReportError(
            f"{path.name}: cut off or damaged; let the program reach proton.finalize(), which writes it"
        ) from error
    return events if isinstance(events, list) else []


def launches_of(events: Sequence[Any], file: str, notes: Notes) -> Iterator[tuple[str, dict[int, Block]]]:
    """The launches of a trace in its order: the kernel, and its blocks by their numbers. Proton writes one launch after another, and the
    events of a block together.

    Raises:
        ReportError: it lacks the times of blocks.
    """
    kernel, blocks, last = "", dict[int, Block](), (-1, -1)
    for event in events:
        if (read := _read(event, file)) is None:
            notes.count("warning", Source.PROTON, "{} events are no scopes of a warp, and are left out", 1)
            continue
        name, number, block, warp, span = read
        known = blocks.get(number)
        if name != kernel or (known and (number, block.start_ns) != last):
            if blocks:
                yield kernel, blocks
            kernel, blocks = name, {}
        last = number, block.start_ns
        blocks.setdefault(number, block).warps[warp].append(span)
    if not blocks:
        raise ReportError(f"{file}: has no scope of a kernel that lasts; put scopes of triton.profiler.language into a kernel")
    yield kernel, blocks


def _read(event: Any, file: str) -> tuple[str, int, Block, int, Span] | None:
    """The kernel, the number of the block, the block, the warp and the scope of an event; None for another event."""
    if not isinstance(event, Mapping):
        return None
    of_block, of_warp = _BLOCK.match(str(event.get("pid"))), _WARP.match(str(event.get("tid")))
    start, length, args = event.get("ts"), event.get("dur"), event.get("args")
    if of_block is None or of_warp is None or not isinstance(args, Mapping) or not event.get("name"):
        return None
    if not (
        isinstance(start, int | float) and isinstance(length, int | float) and length >= 0 and math.isfinite(start + length)
    ):
        return None
    begun, ended, afterwards = (_whole(args.get(name)) for name in (_START, _END, _AFTERWARDS))
    if begun is None or ended is None or afterwards is None:
        raise ReportError(f"{file}: lacks the times at which blocks start and end; Triton writes them from version 3.7 on")
    block = Block(int(of_block["multiprocessor"]), begun, max(ended - afterwards, begun))  # Proton writes records afterwards
    span = Span(1e3 * start, 1e3 * (start + length), str(event["name"]))
    return of_block["kernel"], int(of_block["block"]), block, int(of_warp["warp"]), span


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else None


def block_rows(blocks: Mapping[int, Block]) -> Iterator[dict[str, Any]]:
    """Rows of `experiment_blocks` without their cell. A scope has the mean of the block's warps, without the scopes inside it."""
    first = min(block.start_ns for block in blocks.values())
    longest = max(blocks.values(), key=lambda block: block.cycles)
    ns_a_cycle = _ns_a_cycle(longest)
    for number, block in blocks.items():
        scale, length = min(ns_a_cycle, _ns_a_cycle(block)), block.end_ns - block.start_ns
        about = {"multiprocessor": block.multiprocessor, "block": number}
        about |= {"start_ns": block.start_ns - first, "end_ns": block.end_ns - first}
        spent = dict[str, float]()
        for scope, cycles in (each for spans in block.warps.values() for each in own_cycles(spans).items()):
            spent[scope] = spent.get(scope, 0.0) + cycles
        times = {scope: round(cycles * scale / len(block.warps)) for scope, cycles in spent.items()}
        yield from ({**about, "stage": scope, "stage_ns": ns} for scope, ns in times.items())
        yield {**about, "stage": OUTSIDE, "stage_ns": max(length - sum(times.values()), 0)}


def _ns_a_cycle(block: Block) -> float:
    """The time of a cycle at which the scopes of a block fill it. A cycle is not longer than it is written, a nanosecond."""
    return min((block.end_ns - block.start_ns) / max(block.cycles, 1.0), 1.0)


def own_cycles(spans: Sequence[Span]) -> dict[str, float]:
    """The cycles that a warp spent in each scope. Of scopes that are open together, the one that was opened last counts."""
    waiting, opened = sorted(spans, key=lambda span: (-span.start, span.end)), list[Span]()
    spent = {span.scope: 0.0 for span in spans}
    for now, after in pairwise(sorted({time for span in spans for time in (span.start, span.end)})):
        while waiting and waiting[-1].start <= now:
            opened.append(waiting.pop())
        opened = [span for span in opened if span.end > now]
        if opened:
            spent[opened[-1].scope] += after - now
    return spent


def _experiments(cell: CellName, blocks: Mapping[int, Block], rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of `experiments`: the share of each scope, and facts about the launch."""
    shared = {**cell._asdict(), "kernel": cell.variant, "lines": "", "low": None, "high": None}
    spent, passed = Counter[str](), Counter[str]()
    for row in rows:
        spent[row["stage"]] += row["stage_ns"]
    warps = [spans for block in blocks.values() for spans in block.warps.values()]
    for spans in warps:
        passed.update(span.scope for span in spans)
    total = sum(spent.values()) or 1
    facts = {Fact.BLOCKS: len(blocks), Fact.USED_MULTIPROCESSORS: len({block.multiprocessor for block in blocks.values()})}
    found = [(Experiment.STAGE, scope, ns / total, "share", _visits(passed[scope], len(warps))) for scope, ns in spent.items()]
    found += [(Experiment.FACT, fact, float(value), "", "") for fact, value in facts.items()]
    for place, (experiment, what, value, unit, note) in enumerate(found):
        yield {**shared, "place": place, "experiment": experiment, "what": what, "value": value, "unit": unit, "note": note}


def _visits(count: int, warps: int) -> str:
    return f"{count / warps:.4g} times a warp" if count else ""
