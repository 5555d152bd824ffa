"""Imports a job: the profiles of all its ranks, matched and on one clock."""

import glob
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from warpladder.collectors.core.environment import import_facts
from warpladder.collectors.core.new_runs import open_writer
from warpladder.collectors.jobs import clocks, engine, placing, reports, stragglers
from warpladder.collectors.jobs.messages import is_message
from warpladder.collectors.jobs.rank import OF_JOB, Done, Task, import_rank
from warpladder.collectors.kineto import parse as kineto
from warpladder.collectors.kineto.owners import rank_in
from warpladder.collectors.trace.notes import Notes
from warpladder.data import files, schema, store
from warpladder.data.arrays import Int64s, integers, numbered
from warpladder.data.names import Source
from warpladder.data.store import RunWriter
from warpladder.data.store.ranks import FOLDER, folder_of, joined, written
from warpladder.data.words import named_ranks
from warpladder.errors import Error

#: Names of profiles that a folder is searched for.
_REPORTS: Final = re.compile(r".*\.(nsys-rep|qdrep|sqlite)\Z", re.DOTALL)
_DIGITS: Final = re.compile(r"(\d+)")
#: Suffixes of reports of which `nsys export` makes a `.sqlite`, often beside them.
_TO_EXPORT: Final = (".nsys-rep", ".qdrep")
_DONE: Final = "done.json"
_EXPORTS: Final = "exports"
_APART_S: Final = 3600.0
_COMPRESSION_LEVEL: Final = 1
_ROWS_AT_ONCE: Final = 100_000


class JobError(Error):
    """A job cannot be imported. The message is one line: where, what, and what to do."""


def profiles(where: str) -> list[Path]:
    """The profiles in a folder or of a pattern, in the order of the numbers in their names. Of a report and its export,
    the export. Raises JobError: there is none."""
    folder = Path(where)
    of_name = kineto.has_name_of_trace if folder.is_dir() else kineto.is_trace
    found = folder.iterdir() if folder.is_dir() else map(Path, glob.glob(where))  # noqa: PTH207 -- takes any text
    chosen = [path for path in found if path.is_file() and (_REPORTS.match(path.name) or of_name(path))]
    if not chosen:
        raise JobError(
            f"{where}: no profile (.json, .json.gz, .nsys-rep, .sqlite) there; give the folder of a job, or a pattern in quotes"
        )
    exports = {path for path in chosen if path.suffix == ".sqlite"}
    once = [path for path in chosen if path.suffix not in _TO_EXPORT or path.with_suffix(".sqlite") not in exports]
    return sorted(once, key=_numbered)


def _numbered(path: Path) -> list[str | int]:
    """A key that sorts `rank-9` before `rank-10`: texts and numbers in turn."""
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(str(path)))]


@dataclass(frozen=True)
class Request:
    """The files to import, and the workers that import them.

    Attributes:
        paths: the profiles: one a rank, or reports of Nsight Systems of several processes or GPUs.
        workers: processes on this machine; 0 for as many as fit.
        arguments: command line, kept with the run.
    """

    paths: Sequence[Path]
    label: str
    workers: int = 0
    arguments: Sequence[str] = ()


def import_job(
    request: Request, data_dir: Path, notes: Notes, ended: Callable[[int, int, Done], object] = lambda *_: None
) -> str:
    """Write the job as a run. A second call with the same profiles takes over the ranks that an interrupted one had
    finished. Returns the run's id.

    Args:
        ended: called when a rank has ended, with the number of ended ranks, of all, and the rank's result.

    Raises:
        JobError: no rank can be imported, or two profiles are of one rank.
        StoreError: the data folder cannot be written.
    """
    folder = _folder(request.paths, data_dir)
    done = _import_ranks(request, folder, notes, ended)
    good = [each for each in done if each.rank is not None]
    try:
        _check(done, good)
    except JobError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    started = datetime.fromtimestamp(min(each.started for each in good), UTC)
    first = request.paths[0].resolve()
    label = request.label or (first.parent.name if len(request.paths) > 1 else first.name.split(".")[0])
    with open_writer(data_dir, started, label, _COMPRESSION_LEVEL) as writer:
        runs = {each.rank: written(folder_of(folder, each.rank)) for each in good if each.rank is not None}
        _write_tables(writer, folder, done, notes)
        tell({rank: run.records("diagnostics") for rank, run in runs.items()}, notes)
        writer.append("run", [_run_row(writer.run_id, request, runs, started)])
        writer.append("diagnostics", notes.finish())
        (folder / FOLDER).rename(writer.staging.tables / FOLDER)
        writer.commit()
    shutil.rmtree(folder, ignore_errors=True)
    return writer.run_id


def _folder(paths: Sequence[Path], data_dir: Path) -> Path:
    """The folder of the ranks until the job is complete. The same profiles have the same one."""
    listed = "\n".join(sorted(f"{path.resolve()} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths))
    folder = data_dir / f".job-{hashlib.sha256(listed.encode()).hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store.StoreError(
            f"{data_dir}: cannot be written ({error.strerror}); choose another folder with --data-dir"
        ) from error
    return folder


def _import_ranks(request: Request, folder: Path, notes: Notes, ended: Callable[[int, int, Done], object]) -> list[Done]:
    """Import the ranks that no earlier call has finished. Those in a trace of several processes come last, when they are known."""
    tasks, done = _planned(request, folder, notes)
    done = _run(request, folder, tasks, done, ended)
    several = [each for each in done if each.processes]
    if not several:
        return done
    others = [each for each in done if not each.processes]
    return _run(request, folder, _of_processes(request, several, others, folder, notes), others, ended)


def _run(
    request: Request, folder: Path, tasks: list[Task], done: list[Done], ended: Callable[[int, int, Done], object]
) -> list[Done]:
    """The results of tasks, after others that are done."""
    kept = _finished(folder)
    every = len(tasks) + len(done)
    done = done + [kept[task.path, task.number] for task in tasks if (task.path, task.number) in kept]
    tasks = [task for task in tasks if (task.path, task.number) not in kept]
    workers = request.workers or engine.worker_count([task.path for task in tasks])
    for number, each in enumerate(done):
        ended(number + 1, every, each)
    for each in engine.run_all(import_rank, tasks, workers, _lost):
        done.append(each)
        ended(len(done), every, each)
        if each.rank is not None:
            with (folder / _DONE).open("a") as file:
                file.write(json.dumps({**asdict(each), "path": str(each.path)}) + "\n")
    return done


def _of_processes(request: Request, several: Sequence[Done], others: Sequence[Done], folder: Path, notes: Notes) -> list[Task]:
    """The ranks in traces of several processes: their numbers are in the ids of the processes, or follow their order."""
    order = {path.resolve(): place for place, path in enumerate(request.paths)}
    several = sorted(several, key=lambda each: order.get(each.path, 0))
    listed = [(each.path, number, name) for each in several for number, name in enumerate(each.processes)]
    taken = {each.rank for each in others}
    named = [rank_in(name) for _, _, name in listed]
    are_told = None not in named and len({*named}) == len(named) and taken.isdisjoint(named)
    free = (number for number in count() if number not in taken)
    ranks = [rank if are_told and rank is not None else next(free) for rank in named]
    tasks = [
        Task(path, rank, folder.resolve(), number=number, rank=rank, process=name)
        for (path, number, name), rank in zip(listed, ranks, strict=True)
    ]
    _tell_numbers(tasks, "the ids of processes" if are_told else "trace and process", notes)
    return tasks


def _planned(request: Request, folder: Path, notes: Notes) -> tuple[list[Task], list[Done]]:
    """The ranks of the job, and the reports of Nsight Systems that cannot be read."""
    paths, folder = [path.resolve() for path in request.paths], folder.resolve()
    to_list = [
        reports.ToList(path, folder / _EXPORTS / str(place)) for place, path in enumerate(paths) if not kineto.is_trace(path)
    ]
    workers = request.workers or engine.worker_count([task.path for task in to_list])
    found = engine.run_all(reports.list_parts, to_list, workers, reports.lost) if to_list else ()
    listed = {each.path: each for each in found}
    several = [each for each in listed.values() if len(each.parts) > 1]
    ranks = _ranks_by_nccl(list(listed.values())) if len(to_list) == len(paths) else {}
    tasks: list[Task] = []
    place = 0
    for path in paths:
        report = listed.get(path, reports.Listed(path, path))
        for number, part in enumerate(report.parts if several and report.parts else (None,)):
            rank, of = ranks.get((path, number), (place if part else None, 0))
            if not report.why:
                tasks.append(Task(path, place, folder, report.opened, part, number, rank, of))
            place += 1
    if several:
        _tell_numbers(tasks, "NCCL's largest communicator" if ranks else "report, process and GPU", notes)
    for each in several:
        for severity, text in each.remarks:
            notes.add(severity, Source.COLLECTIVES, text)
    return tasks, [Done(each.path, None, each.why) for each in listed.values() if each.why]


def _ranks_by_nccl(listed: Sequence[reports.Listed]) -> dict[tuple[Path, int], tuple[int, int]]:
    """Rank and number of ranks by report and number of its part, if NCCL tells a different rank of one job for each; else nothing."""
    found = {(each.path, number): rank for each in listed for number, rank in enumerate(each.ranks)}
    parts = sum(len(each.parts) for each in listed)
    if len(found) < parts or len({rank for rank, _ in found.values()}) < parts or len({size for _, size in found.values()}) > 1:
        return {}
    return found


def _tell_numbers(tasks: Sequence[Task], order: str, notes: Notes) -> None:
    named = [
        f"{task.rank} is {task.part or f'process {task.process}'} of {task.path.name}"
        for task in tasks
        if task.part or task.process
    ]
    most = clocks.RANKS_NAMED
    listed = "; ".join(named[:most]) + ("; …" if len(named) > most else "")
    notes.add("info", Source.RANKS, f"ranks are numbered in the order of {order}: {listed}")


def _finished(folder: Path) -> dict[tuple[Path, int], Done]:
    """The ranks that an earlier call has finished, by the path of their profile and their number in it."""
    try:
        lines = (folder / _DONE).read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        try:
            each = Done(**{**json.loads(line), "path": Path(json.loads(line)["path"])})
        except (ValueError, TypeError, KeyError):  # the last line of a call that was killed
            continue
        if each.rank is not None and (folder_of(folder, each.rank) / "run.parquet").exists():
            found[each.path, each.number] = each
    return found


def _lost(task: Task) -> Done:
    return Done(task.path, None, f"{task.path.name}: {engine.KILLED}", number=task.number)


def _check(done: Sequence[Done], good: Sequence[Done]) -> None:
    """Raises JobError where no profile could be imported, or they are not those of one job."""
    if not good:
        raise JobError(f"no rank could be imported; the first: {done[0].why}")
    of_rank: dict[int | None, Done] = {}
    for each in good:
        if each.rank in of_rank:
            raise JobError(
                f"{each.path.name}: has rank {each.rank}, as {of_rank[each.rank].path.name} has; give one profile a rank"
            )
        of_rank[each.rank] = each
    sizes = Counter(each.ranks for each in good if each.ranks)
    if len(sizes) > 1:
        usual = sizes.most_common(1)[0][0]
        odd = next(each for each in good if each.ranks not in (0, usual))
        raise JobError(
            f"{odd.path.name}: is of a job of {odd.ranks} ranks, and others are of a job of {usual}; give the profiles of one job"
        )
    first, last = min(good, key=lambda each: each.started), max(good, key=lambda each: each.started)
    if last.started - first.started > _APART_S:
        raise JobError(
            f"{last.path.name}: begins {(last.started - first.started) / 3600:.1f} hours after {first.path.name}; give the profiles of one job"
        )


def _write_tables(writer: RunWriter, folder: Path, done: Sequence[Done], notes: Notes) -> None:
    """Write the tables of the job from those of its ranks."""
    numbers = sorted(each.rank for each in done if each.rank is not None)
    tables = {name: joined(folder, numbers, name) for name in OF_JOB}
    ranks = tables["ranks"].to_pylist()
    iterations = tables["iterations"].to_pylist()
    collectives = _aligned(tables, ranks, iterations, _shared_clocks(done), _hosts(tables["rank_devices"], done), notes)
    for begin in range(0, len(collectives), _ROWS_AT_ONCE):  # the writer writes their texts out
        writer.append("collectives", collectives.slice(begin, _ROWS_AT_ONCE))
    writer.append("ranks", [*ranks, *_without_profile(done, numbers, notes)])
    writer.append("iterations", iterations)
    _tell_differing_steps(iterations, notes)
    for name in ("rank_devices", "rank_kernels", "idle"):
        writer.append(name, tables[name])


def _shared_clocks(done: Sequence[Done]) -> dict[int, int]:
    """A number for the clock of each rank: the ranks of a report have the clock of the host that wrote it. Those of a trace that tools
    merged may be of several hosts."""
    merged = {each.path for each in done if each.number and kineto.is_trace(each.path)}
    of = {each.rank: (each.path, each.number if each.path in merged else 0) for each in done if each.rank is not None}
    number = {clock: place for place, clock in enumerate(dict.fromkeys(of.values()))}
    return {rank: number[clock] for rank, clock in of.items()}


def _aligned(
    tables: Mapping[str, pa.Table],
    ranks: list[dict[str, Any]],
    iterations: list[dict[str, Any]],
    clock_of: Mapping[int, int],
    host_of: Mapping[int, int],
    notes: Notes,
) -> pa.Table:
    """The collectives with their matches and waits. Completes the rows of ranks and iterations."""
    table = tables["collectives"]
    if not table.num_rows or len(ranks) == 1:
        text = "no rank has communication kernels, so that no rank can be late and no clock is aligned"
        alone = "a single rank has a profile; with those of all ranks, the import tells which one is late"
        notes.add("info", Source.COLLECTIVES, alone if table.num_rows else text)
        return table
    placed = placing.place(table, clock_of, host_of)
    for severity, text in placed.notes:
        notes.add(severity, Source.COLLECTIVES, text)
    fitted, waits = placed.clocks, placed.waits
    if waits is None:
        return placed.collectives
    table, known = placed.collectives, placed.known
    rank = integers(table["rank"])
    iteration = integers(table["iteration"], -1)
    _complete(ranks, [rank], known, waits, [(row["rank"],) for row in ranks])
    _complete(iterations, [rank, iteration], known, waits, [(row["rank"], row["iteration"]) for row in iterations])
    totals = {
        row["rank"]: stragglers.Totals(row["exposed_ns"], row["copy_calls_ns"], row["host_wait_ns"], row["span_ns"])
        for row in ranks
    }
    together = table.filter(pa.array(~is_message(table)))
    found = stragglers.find(together, fitted, tables["iterations"], tables["rank_kernels"], totals)
    if found.reason:
        notes.add("info", Source.COLLECTIVES, found.reason)
    of_rank = {number: place for place, number in enumerate(fitted.ranks.tolist())}
    for row in ranks:
        place = of_rank.get(row["rank"])
        if place is not None and np.isfinite(fitted.uncertainty_ns[place]):
            row.update(
                offset_ns=float(fitted.offset_ns[place]),
                offset_at_ns=fitted.t0_ns,
                drift_ppm=float(1e6 * fitted.drift[place]),
                uncertainty_ns=float(fitted.uncertainty_ns[place]),
                wait_uncertainty_ns=float(found.uncertainty_ns[place]),
                lateness_ns=int(found.lateness_ns[place]),
                lateness_exposed_ns=int(found.exposed_ns[place]),
                lateness_limit_ns=float(found.limit_ns[place]) if np.isfinite(found.limit_ns[place]) else None,
                late=row["rank"] in found.late,
                cause=found.cause[place],
            )
    return table


def _hosts(devices: pa.Table, done: Sequence[Done]) -> dict[int, int]:
    """The host of each rank, where the numbers of GPUs tell it: rank r has GPU r modulo the number of GPUs that each rank sees."""
    seen = {each.gpus for each in done if each.rank is not None}
    count = max(seen, default=0)
    of = list(zip(devices["rank"].to_pylist(), devices["device"].to_pylist(), strict=True))
    is_told = count > 1 and len(seen) == 1 and all(device == rank % count for rank, device in of)
    return {rank: rank // count for rank, _ in of} if is_told else {}


def _complete(
    rows: list[dict[str, Any]], keys: Sequence[Int64s], known: Any, waits: clocks.Waits, wanted: Sequence[tuple[int, ...]]
) -> None:
    """Add the collectives, the time waited and how often it came last to rows that have the same keys."""
    number, first = numbered(*(key[known] for key in keys))
    waited = np.bincount(number, waits.wait_ns[known].astype(float), len(first))
    last, count = np.bincount(number, waits.is_last[known], len(first)), np.bincount(number, minlength=len(first))
    place_of = {each: place for place, each in enumerate(zip(*(key[known][first].tolist() for key in keys), strict=True))}
    for row, key in zip(rows, wanted, strict=True):
        place = place_of.get(key)
        if place is not None:
            row.update(collectives=int(count[place]), wait_ns=int(waited[place]), last=int(last[place]))


def _without_profile(done: Sequence[Done], numbers: Sequence[int], notes: Notes) -> Iterable[dict[str, Any]]:
    """Rows of `ranks` for profiles that are broken and ranks that have none."""
    broken = [each for each in done if each.rank is None]
    for each in broken:
        notes.add("error", Source.RANKS, f"not imported: {each.why}")
    expected = max([each.ranks for each in done] + [numbers[-1] + 1])
    absent = [number for number in range(expected) if number not in set(numbers)]
    for place, number in enumerate(absent):
        status, detail, file = ("missing", "no profile has this rank", "")
        if len(broken) == len(absent):
            status, detail, file = "broken", broken[place].why, broken[place].path.name
        yield _empty_rank(number, status, detail, file)
    if absent:
        notes.add(
            "warning",
            Source.RANKS,
            f"the figures are of {named_ranks(numbers, clocks.RANKS_NAMED)} only, of {expected}: {_absent(absent, len(broken))}",
        )


def _absent(absent: Sequence[int], broken: int) -> str:
    """What is wrong with ranks without a usable profile, and what to do."""
    ranks = named_ranks(absent, clocks.RANKS_NAMED)
    if not broken:
        return "the others have no profile here; give a folder with the profiles of all ranks"
    if broken == len(absent):
        return f"the profile{'s' if broken > 1 else ''} of {ranks} cannot be read; make {'them' if broken > 1 else 'it'} again"
    return f"{ranks} have none, or one of the {broken} that cannot be read"


def _empty_rank(number: int, status: str, detail: str, file: str) -> dict[str, Any]:
    return {**schema.TABLES["ranks"].blank_row(), "rank": number, "status": status, "detail": detail, "file": file}


def _tell_differing_steps(iterations: Sequence[dict[str, Any]], notes: Notes) -> None:
    numbers: dict[int, set[int]] = {}
    for row in iterations:
        numbers.setdefault(row["rank"], set()).add(row["iteration"])
    if not numbers:
        notes.add("info", Source.RANKS, "no rank has numbered iterations (ProfilerStep#N, or ranges such as `step 3`)")
        return
    common = set.intersection(*numbers.values())
    every = set.union(*numbers.values())
    if common != every:
        notes.add("warning", Source.RANKS, f"ranks have different iterations: {len(every)} in all, {len(common)} on every rank")


def _run_row(run_id: str, request: Request, runs: dict[int, store.Run], started: datetime) -> dict[str, Any]:
    infos = [run.info for run in runs.values()]
    first = infos[0]
    single = request.paths[0] if len(request.paths) == 1 else None
    of_gpu = ("device_name", "compute_capability", "sm_count", "l2_bytes", "memory_bytes", "driver_version", "cuda_version")
    return {
        "run_id": run_id,
        "schema_version": schema.SCHEMA_VERSION,
        "label": request.label,
        **import_facts(request.arguments),
        **{name: first[name] for name in (*of_gpu, "cpu_name", "cpu_threads", "os")},
        "device_count": min(sum(info["device_count"] for info in infos), 1 << 14),
        "kind": "job",
        "started_at": started,
        "collector": first["collector"],
        "collector_version": first["collector_version"],
        "source": single.name if single else request.paths[0].resolve().parent.name,
        "source_sha256": files.sha256(single) if single else None,
    }


#: A count at the begin of a text, and all its numbers.
_COUNT: Final = re.compile(r"(\d[\d,]*) (?=\D)")
_NUMBER: Final = re.compile(r"\d[\d,.]*")
_SERIOUS: Final = ("warning", "error")


def tell(of_ranks: Mapping[int, Iterable[Mapping[Any, Any]]], notes: Notes) -> None:
    """Add the warnings and errors of the ranks to those of their job.

    Texts that differ by their numbers are one: with the sum, where they begin with a count and differ by nothing else, else with the numbers
    of the first rank that has them.

    Args:
        of_ranks: rows of `diagnostics` by rank.
        notes: receives them; what it has already is not told twice.
    """
    told = {row["text"] for row in notes.rows}
    found: dict[tuple[str, str, str], dict[int, list[str]]] = {}
    for rank, rows in sorted(of_ranks.items()):
        for row in rows:
            if row["severity"] in _SERIOUS and row["text"] not in told:
                key = row["severity"], row["source"], _NUMBER.sub("#", row["text"])
                found.setdefault(key, {}).setdefault(rank, []).append(row["text"])
    for (severity, source, _), texts in found.items():
        text = _joined([text for each in texts.values() for text in each])
        same = [rank for rank, own in texts.items() if text in own] or list(texts)
        others = [rank for rank in texts if rank not in same]
        of = _named(same, len(of_ranks)) + (f"; with other numbers on {_named(others, len(of_ranks))}" if others else "")
        notes.add(severity, source, text if len(of_ranks) == 1 else f"{text} ({of})")


def _joined(texts: Sequence[str]) -> str:
    """One text for several that differ by their numbers."""
    if len(set(texts)) == 1 and not _COUNT.match(texts[0]):
        return texts[0]
    counts = [_COUNT.match(text) for text in texts]
    rests = {text[count.end() :] for text, count in zip(texts, counts, strict=True) if count}
    if len(rests) == 1 and all(counts):
        return f"{sum(int(count[1].replace(',', '')) for count in counts if count):,} {rests.pop()}"
    return texts[0]


def _named(ranks: Sequence[int], of: int) -> str:
    """The ranks by number, or `all 8 ranks`."""
    return f"all {of} ranks" if len(ranks) == of else named_ranks(ranks, clocks.RANKS_NAMED)
