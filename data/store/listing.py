"""Lists the runs of some folders by their table `run`, and opens a run with a check of all its values."""

import errno
import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warpladder.data import checks, files, schema
from warpladder.data.columns import Table
from warpladder.data.files import kind_problem, one_line, state_of
from warpladder.data.store import index
from warpladder.data.store.errors import NoSuchRun, StoreError, TooLarge, cure, first_line, unreadable
from warpladder.data.store.run import BadRun, Run
from warpladder.data.store.tables import LONG_TABLES, SUFFIX, check_columns, opened, with_later
from warpladder.data.words import joined

_AT_ONCE: Final = 4  # runs that are listed side by side
_MOST_NAMES: Final = 20  # of runs in a message
_MOST_ALIKE: Final = 3  # of these, which are named first
_ALIKE: Final = 0.6  # how alike names are, as `difflib` counts it
_LEAST_INDEXED: Final = 100  # runs of a folder; fewer are read faster than they are waited for


def folder(text: str | Path) -> Path:
    """A data folder as a user wrote it. Raises StoreError: it is empty, which would stand for the working directory, or
    a link that leads to itself."""
    if not str(text).strip():
        raise StoreError('--data-dir "": names no folder; write --data-dir . for the working directory')
    path = Path(text)
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"--data-dir {text}: is a link that leads to itself; choose another folder") from error
    except ValueError as error:
        raise StoreError(f"--data-dir {text}: names no folder ({error})") from error
    return path


class _CachedRun(NamedTuple):
    """A run or bad run that was found, with the states of its folder and files at that time."""

    now: Hashable
    run: Run | BadRun
    files: Hashable = None


#: Folder -> what was found in it, with the states that show a later change.
_cached_runs: Final[dict[Path, _CachedRun]] = {}
_opened_before: Final[dict[Path, tuple[Hashable, Run | BadRun]]] = {}
_listed: Final[dict[Path, dict[str, Path]]] = {}
#: Folders whose index is read, with the number of runs that it lacks.
_indexed: Final[dict[Path, int]] = {}


def open_run(path: Path) -> Run:
    """Open one run and check all of it: columns, values, keys, and the checksums of pages.

    The check is remembered until a file of the run changes. What an index has of a run is compared with its table `run`. A table that is larger than may be read is left out of the run, if
    the rest can be shown without it.

    Raises:
        StoreError: the folder has no readable table `run`, or a table of another schema version, or a foreign file, or a table has
            damaged pages or values that `schema` does not allow.
    """
    if not files.is_folder(path):
        raise StoreError(f"{path}: no such run; `warpladder runs` lists those there are")
    run = glance(path)
    if isinstance(run, BadRun):
        raise StoreError(run.reason)
    now = state_of(path)
    earlier = _opened_before.get(path)
    if earlier is None or earlier[0] != now:
        try:
            run = _as_written(run)
            earlier = (now, _checked(run))
        except StoreError as error:
            earlier = (now, BadRun(path, str(error), run))
            if files.is_passing(error.__cause__):
                raise
        _opened_before[path] = earlier
    if isinstance(earlier[1], BadRun):
        raise StoreError(earlier[1].reason)
    return earlier[1]


def list_runs(folders: Iterable[Path]) -> tuple[list[Run], list[BadRun]]:
    """Every run below the folders, newest first, and every folder that should be one and cannot be opened.

    Only table `run` is read, and only once, also by another process where the folder has an `index`; of other tables the file's ends
    are checked. So a run may turn out to be bad when `open_run` checks it, and counts as bad from then on. A folder that does not exist
    holds no run, and one that is named twice is read once. Staging folders of unfinished runs start with a dot and are passed over.
    """
    listed: list[Run | BadRun] = []
    once: dict[Path, Path] = {}
    for folder in folders:
        once.setdefault(folder.resolve(), folder)
    for folder in once.values():
        try:
            paths = _run_folders(folder)
        except OSError as error:
            listed.append(BadRun(folder, one_line(f"{folder}: cannot be read ({error.strerror}); choose another --data-dir")))
            continue
        _take_from_index(folder, len(paths))
        with ThreadPoolExecutor(_AT_ONCE) as pool:  # which starts no thread for what is known
            new = [path for path in paths if path not in _cached_runs]
            list(pool.map(glance, new))
        listed += [_as_opened(glance(path)) for path in paths]
        keep_index(folder)
    good = [each for each in listed if isinstance(each, Run)]
    bad = [each for each in listed if isinstance(each, BadRun)]
    good.sort(key=lambda run: run.info["started_at"], reverse=True)
    bad.sort(key=lambda run: run.path)
    return good, bad


def _take_from_index(folder: Path, runs: int) -> None:
    """Take what the index of a folder has, once."""
    if folder in _indexed:
        return
    _indexed[folder] = 0
    if runs < _LEAST_INDEXED:
        return
    for entry in index.read(folder, _listed[folder]):
        if entry.run.path not in _cached_runs:
            _cached_runs[entry.run.path] = _CachedRun(entry.state, entry.run)


def keep_index(folder: Path) -> None:
    """Write the index of a folder that was listed, where the folder has many runs, and the index lacks many runs or notes."""
    paths = _listed.get(folder, {}).values()
    if len(paths) >= _LEAST_INDEXED and _indexed.get(folder, 0) + index.lacks(folder) >= index.LEAST_NEW:
        found = [_cached_runs[path] for path in paths if path in _cached_runs]
        index.write(folder, [(cached.now, cached.run) for cached in found if isinstance(cached.run, Run)])
        _indexed[folder] = 0


def _as_written(run: Run) -> Run:
    """The run as its files are, which is the run itself unless an index was wrong about it. Raises StoreError."""
    now = _now(run.path)
    written = _read_run(run.path)
    if written == run:
        return run
    _cached_runs[run.path] = _CachedRun(now, written)
    return written


def import_of(file: Path, folder: Path) -> Run | None:
    """The newest run of a folder that was imported from a file with these bytes, in the schema of today; None if there is none."""
    named = [
        run
        for run in list_runs([folder])[0]
        if run.info["source"] == file.name and run.info["schema_version"] == schema.SCHEMA_VERSION and run.info["source_sha256"]
    ]
    digest = files.sha256(file) if named else None
    return max((run for run in named if run.info["source_sha256"] == digest), key=_written_at, default=None)


def _written_at(run: Run) -> float:
    """When a run was recorded or imported, in seconds since 1970. An imported one has the time of its profile in `started_at`."""
    if run.info["kind"] == "recording":
        return float(run.info["started_at"].timestamp())
    try:
        return (run.path / f"run{SUFFIX}").stat().st_mtime
    except OSError:
        return 0.0


def find_run(name: str, folders: Sequence[Path]) -> Run:
    """The run of that id or label, or at that path. Of several with one label, the one that was recorded or imported
    last. Raises StoreError: there is none, or it cannot be opened."""
    places = [Path(name), *(folder / name for folder in folders)] if "\0" not in name else []
    for path in places:
        if os.path.lexists(path / f"run{SUFFIX}"):
            return open_run(path)
    good, bad = list_runs(folders)
    named = [run for run in good if name and name in (run.info["label"], run.run_id)]
    if named:
        return open_run(max(named, key=_written_at).path)
    for each in bad:
        if name and name in (each.path.name, each.name):
            raise StoreError(each.reason)
    if name and places and files.is_folder(places[0]):
        return open_run(places[0])
    if places and os.path.isfile(name):  # noqa: PTH113 - of any text
        makes = "record" if name.endswith(".py") else "import"
        raise StoreError(f"{name}: a file, and no run; `warpladder {makes} {name}` makes a run of it")
    names = _by_likeness(name, dict.fromkeys(run.info["label"] or run.run_id for run in good))
    raise NoSuchRun(name, names[:_MOST_NAMES], max(len(names) - _MOST_NAMES, 0))


def _by_likeness(name: str, names: Iterable[str]) -> list[str]:
    """The names that one may have been meant for, and after them the others in their order."""
    alike = {each.casefold(): each for each in names}
    near = [alike[each] for each in get_close_matches(name.casefold(), alike, _MOST_ALIKE, cutoff=_ALIKE)] if name else []
    holds = [each for each in names if name and name.casefold() in each.casefold()]
    return list(dict.fromkeys([*near, *holds, *names]))


def _run_folders(folder: Path) -> list[Path]:
    """Folders of runs, by name. Results that were kept for folders that are gone are removed."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = {entry.name for entry in entries if not entry.name.startswith((".", "_")) and _may_be_run(entry)}
    known_folders = _listed.get(folder, {})
    for removed in known_folders.keys() - names:
        index.forget(known_folders[removed])
        _cached_runs.pop(known_folders[removed], None)
        _opened_before.pop(known_folders[removed], None)
    # The same paths as before: with thousands of runs, to make them takes longer than to look at the folders.
    _listed[folder] = {name: known_folders.get(name) or folder / name for name in sorted(names)}
    return list(_listed[folder].values())


def _may_be_run(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a data folder is a folder, or cannot be looked at: its own line in the list then says why."""
    try:
        return entry.is_dir()
    except OSError:
        return True


def _as_opened(run: Run | BadRun) -> Run | BadRun:
    """Give back what `open_run` found of a run that has not changed since; the run itself where it was not opened."""
    earlier = _opened_before.get(run.path)
    return earlier[1] if isinstance(run, Run) and earlier and earlier[0] == state_of(run.path) else run


def glance(path: Path) -> Run | BadRun:
    """The run by its table `run`, after a check of the ends of its other files. The result is kept until the folder changes."""
    now = _now(path)
    cached = _cached_runs.get(path)
    # Any file of a bad run may be repaired.
    if cached and cached.now == now and (isinstance(cached.run, Run) or cached.files == state_of(path)):
        return cached.run
    try:
        cached = _CachedRun(now, _read_run(path))
    except Exception as error:  # whatever it is, it must not hide the other runs
        reason = error if isinstance(error, StoreError) else unreadable(path, error)
        cached = _CachedRun(now, BadRun(path, str(reason)), state_of(path))
        if files.is_passing(error.__cause__ or error):
            return cached.run
    _cached_runs[path] = cached
    if path.parent in _indexed:
        _indexed[path.parent] += isinstance(cached.run, Run)
    return cached.run


def _now(path: Path) -> Hashable:
    """A value that changes when the folder of a run or its table `run` changes. It is asked of thousands of runs for a page."""
    try:
        folder, file = os.stat(path), os.stat(f"{path}/run{SUFFIX}")  # noqa: PTH116
    except OSError as error:
        return error.errno
    return folder.st_mtime_ns, folder.st_ino, file.st_size, file.st_mtime_ns, file.st_ino, file.st_mode


def _read_run(path: Path) -> Run:
    file = path / f"run{SUFFIX}"
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX))
    if file.name not in names:
        raise StoreError(f"{path}: has no run{SUFFIX}, so it is not a complete run; record or import it again")
    tables = []
    for name in names:
        try:
            problem = files.ends_problem(path / name)
        except OSError as error:
            raise unreadable(path / name, error) from error
        if problem:
            raise StoreError(f"{path / name}: {problem}; {cure(path / name)}")
        tables.append(name.removesuffix(SUFFIX))
    with opened(file) as parquet:
        columns = parquet.schema_arrow
        if "schema_version" not in columns.names:
            raise StoreError(f"{file}: lacks column schema_version, so Warpladder did not write it; remove the folder")
        if parquet.metadata.num_rows != 1:
            raise StoreError(f"{file}: has {parquet.metadata.num_rows} rows where a run has one; record or import it again")
        # The table has one row: starting threads would take longer than reading it.
        read = parquet.read(use_threads=False)
        written = read.column(columns.names.index("schema_version"))[0].as_py()
        if written not in schema.READABLE_VERSIONS:
            raise StoreError(
                f"{file}: column schema_version is {written}, and this Warpladder reads {joined(schema.READABLE_VERSIONS)}; "
                "open it with the Warpladder that wrote it, or record the run again"
            )
        check_columns(file, schema.RUN, columns)
        foreign = next((name for name in tables if name not in schema.TABLES), None)
        if foreign is not None:
            raise StoreError(f"{path / foreign}{SUFFIX}: not a table of schema version {written}; remove the file")
        read = with_later(read, schema.RUN)
        if wrong := checks.first_problem(schema.RUN, read):
            raise StoreError(f"{file}: {wrong}; {cure(file)}")
        started_us = read["started_at"].cast(pa.int64())[0].as_py()
        info = {**read.drop_columns(["started_at"]).to_pylist()[0], "started_at": index.time_of(started_us)}
        return Run(path, info, tuple(name for name in schema.TABLES if name in tables))


def _checked(run: Run) -> Run:
    """The run without the tables that are too large to be read. Raises StoreError: something is wrong with a table, or
    a table without which nothing can be shown is too large."""
    checker = checks.Checker()
    left_out: dict[str, str] = {}
    for name in run.tables:
        try:
            _check_table(run.path / f"{name}{SUFFIX}", schema.TABLES[name], checker)
        except TooLarge as error:
            if name not in LONG_TABLES:
                raise
            left_out[name] = str(error)
    if not left_out:
        return run
    return replace(run, tables=tuple(name for name in run.tables if name not in left_out), left_out=left_out)


def _check_table(file: Path, table: Table, checker: checks.Checker) -> None:
    with opened(file, table) as parquet:
        check_columns(file, table, parquet.schema_arrow)
        if not parquet.metadata.num_rows:
            raise StoreError(f"{file}: has no rows, and a table without rows has no file; {cure(file)}")
        for group in range(parquet.num_row_groups):
            rows = with_later(parquet.read_row_group(group), table)
            if problem := checker.piece(table, rows):
                raise StoreError(f"{file}: {problem}; {cure(file)}")
        if problem := checker.end(table):
            raise StoreError(f"{file}: {problem}; {cure(file)}")


_TEXT_BYTES_A_GROUP: Final = 1_000_000_000


def foreign_columns(file: Path) -> tuple[frozenset[str], int]:
    """Names of the columns of a parquet file that is not a run's, and how many rows it has. Raises StoreError: the file
    is not parquet."""
    try:
        if problem := kind_problem(file):  # opening a FIFO would wait for a writer
            raise StoreError(f"{file.name}: {problem}; export the report again")
        metadata = pq.read_metadata(file)
        return frozenset(metadata.schema.to_arrow_schema().names), int(metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: not a readable parquet file ({first_line(error)}); export the report again") from error


def scan_foreign(
    file: Path, integers: Sequence[str], texts: Sequence[str], batch_rows: int, text_limit: int
) -> Iterator[pa.RecordBatch]:
    """Rows of a parquet file that is not a run's, batch by batch, its texts cut to `text_limit` characters. Raises
    StoreError: the file is damaged, or a text column unpacks to more than it should.

    Texts come as dictionaries, so that a text in a million rows is stored once.
    """
    names = [*integers, *texts]
    try:
        with pq.ParquetFile(file, read_dictionary=list(texts), pre_buffer=False) as parquet:
            _refuse_text_bombs(parquet.metadata, set(texts), file)
            for batch in parquet.iter_batches(batch_size=batch_rows, columns=names):
                arrays = [batch.column(name) for name in integers]
                arrays += [_cut(batch.column(name), text_limit) for name in texts]
                yield pa.record_batch(arrays, names=names)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{file.name}: damaged ({first_line(error)}); export the report again") from error


def _refuse_text_bombs(metadata: pq.FileMetaData, texts: set[str], file: Path) -> None:
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            if column.path_in_schema in texts and column.total_uncompressed_size > _TEXT_BYTES_A_GROUP:
                raise StoreError(f"{file.name}: column {column.path_in_schema} unpacks to over 1 GB; export the report again")


def _cut(texts: pa.Array, limit: int) -> pa.Array:
    if not pa.types.is_dictionary(texts.type):
        return pc.utf8_slice_codeunits(texts.cast(pa.string()), 0, limit)
    values = pc.utf8_slice_codeunits(texts.dictionary.cast(pa.string()), 0, limit)
    return pa.DictionaryArray.from_arrays(texts.indices, values)
