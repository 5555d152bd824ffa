"""The runs that the pages can show, and the results of queries about them, which are kept until a file of the run changes.

A run is checked when it is first loaded. `listing` no longer has a bad run, and `load`, `ask` and `share` raise `StoreError`
for it. `app` shows the error in place of the page.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import streamlit as st

from warpladder.dashboard.compare import versions
from warpladder.dashboard.core import run_data, run_index
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.run_index import Facts, ListedRun, Need, facts_of
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Lanes
from warpladder.dashboard.ui.template import Look, Theme, look
from warpladder.data import files, store

DATA_DIR_VARIABLE: Final = "WARPLADDER_DATA_DIR"
_Further = ParamSpec("_Further")
_Answer = TypeVar("_Answer")
_CHOSEN: Final = "chosen run"
_PATIENCE_S: Final = 0.2  # for checks of runs that are already read
_AT_ONCE: Final = 4  # runs that are read side by side
_MOST_GLANCED: Final = 1_000  # results from runs that are only read in part
_NAME: Final = "name of the chosen run"
_CONTEXT: Final = "context of the chosen run"


@dataclass(frozen=True)
class Listing:
    """The runs of the data folders, by their names in a URL: the id, or `id@folder` where several runs have one id.

    Attributes:
        runs: runs that can be shown, before their check.
        bad: runs that cannot be opened, with the error.
        refused: bad runs whose table `run` can be read, but whose check failed.
        index: the facts of each run of `runs`, by the same names.
        every: the runs of `index`.
    """

    runs: dict[str, store.Run]
    bad: tuple[store.BadRun, ...]
    refused: dict[str, store.Run]
    index: dict[str, ListedRun]
    every: run_index.Runs


def data_dirs() -> tuple[Path, ...]:
    """Folders that hold runs: of `--data-dir` and WARPLADDER_DATA_DIR, of this machine, and the shipped one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--data-dir", type=store.folder, action="append", default=[])
    options, _ = parser.parse_known_args(sys.argv[1:])
    folders = [
        *options.data_dir,
        *(store.folder(part) for part in os.environ.get(DATA_DIR_VARIABLE, "").split(os.pathsep) if part),
    ]
    return tuple(dict.fromkeys(folder.resolve() for folder in (*folders, store.LOCAL, store.RECORDED)))


def listing(folders: tuple[Path, ...]) -> Listing:
    """The runs of the folders, see `_kept_listing`. Streamlit's cache raises KeyError where an entry expires between two of its looks at it."""
    try:
        return _kept_listing(folders)
    except KeyError:
        return _kept_listing(folders)


@st.cache_resource(show_spinner=False, ttl=3)
def _kept_listing(folders: tuple[Path, ...]) -> Listing:
    """Every run of the folders, folder by folder, the newest first. It is shared between sessions: never change it.

    The facts of a run are kept until its folder or its table `run` changes, so that a further look only reads modification
    times. With thousands of runs the look takes longer than a click may. A page then gets the listing of the look before, and
    the next page the new listing.
    """
    if folders not in _listed:
        return _look(folders)
    looking = Thread(target=_look, args=(folders,), daemon=True)
    looking.start()
    looking.join(_PATIENCE_S)
    return _listed[folders].listing


class _Look(NamedTuple):
    """One look at some folders: the runs and bad runs of each folder, and the facts of each run, by its `id`."""

    of_folders: list[tuple[list[store.Run], list[store.BadRun]]]
    facts: dict[int, Facts | str]
    listing: Listing


_listed: Final[dict[tuple[Path, ...], _Look]] = {}


def _look(folders: tuple[Path, ...]) -> Listing:
    """The listing as it is now; the same object as before where nothing has changed."""
    of_folders = [store.list_runs([folder]) for folder in folders]
    every = [run for good, bad in of_folders for run in (*good, *(each.run for each in bad if each.run))]
    facts = {id(run): _facts(run) for run in every}
    for folder in folders:
        store.keep_index(folder)
    before = _listed.get(folders)
    if before is None or _ids(before.of_folders, before.facts) != _ids(of_folders, facts):
        before = _listed[folders] = _Look(of_folders, facts, _listing(folders, of_folders, facts))
    return before.listing


def _ids(
    of_folders: Sequence[tuple[Sequence[store.Run], Sequence[store.BadRun]]], facts: Mapping[int, Facts | str]
) -> list[Any]:
    return [[*map(id, each)] for of_folder in of_folders for each in of_folder] + [[*facts], [*map(id, facts.values())]]


def _listing(
    folders: Sequence[Path],
    of_folders: Sequence[tuple[Sequence[store.Run], Sequence[store.BadRun]]],
    facts: Mapping[int, Facts | str],
) -> Listing:
    names: dict[str, store.Run] = {}
    every_bad: list[store.BadRun] = []
    for folder, (good, bad) in zip(folders, of_folders, strict=True):
        every_bad += bad
        for run in (*good, *(each.run for each in bad if each.run)):
            names[_name(run, folder, names)] = run
    refused = {each.path for each in every_bad if each.run}
    index = {}
    for name, run in names.items():
        if run.path not in refused:
            has = facts[id(run)]
            if isinstance(has, Facts):
                index[name] = ListedRun(name, run, has, run.path.parent == store.RECORDED)
            else:
                every_bad.append(store.BadRun(run.path, has, run))
    return Listing(
        {name: each.run for name, each in index.items()},
        tuple(sorted(every_bad, key=lambda each: each.path)),
        {name: run for name, run in names.items() if name not in index},
        index,
        run_index.Runs(index.values()),
    )


def forget_listing() -> None:
    """Make the next page look at all runs again, because a run failed its check."""
    _listed.clear()
    _kept_listing.clear()


#: Folder of a run -> the run, and its facts, or the error of reading them.
_facts_of_path: Final[dict[Path, tuple[store.Run, Facts | str]]] = {}


def _facts(run: store.Run) -> Facts | str:
    """The facts of a run, or the error of reading them; read once until the run changes."""
    cached = _facts_of_path.get(run.path)
    if cached is None or cached[0] is not run:
        try:
            cached = (run, facts_of(run))
        except store.StoreError as error:
            cached = (run, str(error))
            if files.is_passing(error.__cause__):
                return cached[1]
        _facts_of_path[run.path] = cached
    return cached[1]


def _name(run: store.Run, folder: Path, names: Container[str]) -> str:
    """The name of a run in a URL: its id, with as much of its path as makes the name unique."""
    name = files.one_line(run.run_id)
    for more in (folder.name, f"{folder.name}/{run.path.name}", run.path):
        if name not in names:
            break
        name = files.one_line(f"{run.run_id}@{more}")
    return name


def choose(run: store.Run | None, name: str = "") -> None:
    """Set the run that the pages of this session show.

    Args:
        name: what the URL calls the run.
    """
    st.session_state[_CHOSEN] = run
    st.session_state[_NAME] = name


def chosen_name() -> str:
    """The name in the URL of the run that the pages of this session show; empty where there is no run."""
    return str(st.session_state.get(_NAME, ""))


@dataclass(frozen=True)
class Context:
    """The criteria by which the run of the page was chosen.

    Attributes:
        need: what the section that the page shows needs of a run.
        every: all runs that can be shown.
    """

    device: str
    need: Need
    every: run_index.Runs

    def having(self, need: Need, workload: str = "") -> tuple[ListedRun, ...]:
        """The runs that have what is needed. Runs of the device and workload come first."""
        return run_index.having(self.every, need, self.device, workload)


def how_to_record(run: store.Run | RunData, workload: str, options: str = "") -> str:
    """The command that records a workload of a run, with these options: by the name of its file where it was recorded from one."""
    return f"warpladder record {recorded_as(run, workload) or workload}{f' {options}' if options else ''}"


def recorded_as(run: store.Run | RunData, workload: str) -> str:
    """What the commands call a workload of a run: the files that the run was recorded from, unless it was recorded by its name.

    Empty for a workload that only a report names.
    """
    named, _ = run_index.recorded_words(str(run.info["command"]))
    files = [each for each in named if each.endswith(".py")]
    if files and workload not in named:
        return shlex.join(files)
    ships = any(each.shipped and workload in each.facts.workloads for each in context().every)
    return workload if ships or run.info["kind"] == "recording" else ""


def set_context(context: Context) -> None:
    """Store the criteria by which the run of the page was chosen."""
    st.session_state[_CONTEXT] = context


def context() -> Context:
    """The criteria by which the run of the page was chosen."""
    value: Context = st.session_state[_CONTEXT]
    return value


def chosen() -> store.Run | None:
    """The run that the pages of this session show; None where there is no run."""
    run: store.Run | None = st.session_state.get(_CHOSEN)
    return run


def opens(run: store.Run) -> bool:
    """Whether a run passes its check. Pages that show several runs call this, so that a bad run does not hide the others.

    After a check that finds a run bad, or a table too large to be read, `listing` is made again.
    """
    try:
        checked = store.open_run(run.path)
    except store.StoreError:
        forget_listing()
        return False
    if checked.left_out and not run.left_out:
        forget_listing()
    return True


def has_other_version(run: store.Run) -> bool:
    """Whether a run measured another version of its file; the first recording of `record --watch` has none."""
    return run_index.has_versions(run.info) and len(load(OtherVersion(run)).variants) > 0


@dataclass(frozen=True)
class OtherVersion:
    """The other version of the file in a run of `record --against`, and not the file's own; see `run_index.has_versions`."""

    run: store.Run


AnyRun = store.Run | OtherVersion


def run_of(run: AnyRun) -> store.Run:
    """The run, whichever version of its file is meant."""
    return run.run if isinstance(run, OtherVersion) else run


def load(run: AnyRun) -> RunData:
    """The run's tables, read once. They are shared between sessions: never change a frame of them.

    Of a run with two versions of a file, these are of the file's own version, unless the other one is named.

    Args:
        run: a run, or its other version.

    Raises:
        StoreError: the run does not pass its check.
    """
    its_run = run_of(run)
    data: RunData = _load(its_run, *_key(its_run))
    return _version(data, isinstance(run, OtherVersion), *_key(its_run)) if run_index.has_versions(data.info) else data


def ask(
    run: AnyRun,
    query: Callable[Concatenate[RunData, _Further], _Answer],
    *args: _Further.args,
    **options: _Further.kwargs,
) -> _Answer:
    """The result of a query about a run, computed once for the same arguments.

    Args:
        run: see `load`.
        query: a function of a module `query` whose first parameter is the `RunData`.
        args: its further arguments.
    """
    answer: _Answer = _query_answer(query, run, _asked(query, run, args, options))
    return answer


def ask_both(
    run: AnyRun,
    other: AnyRun,
    query: Callable[Concatenate[RunData, RunData, _Further], _Answer],
    *args: _Further.args,
    **options: _Further.kwargs,
) -> _Answer:
    """The same as `ask` for a query about two runs."""
    both = lambda data, other, *args, **options: query(data, load(other), *args, **options)  # noqa: E731
    answer: _Answer = _query_answer(both, run, _asked(query, run, (other, *args), options))
    return answer


def share(
    run: AnyRun,
    make: Callable[Concatenate[Traces, _Further], _Answer],
    *args: _Further.args,
    **options: _Further.kwargs,
) -> _Answer:
    """The same as `ask` for a result that is too large to be copied: never change it. The last few results are kept.

    Args:
        run: see `load`.
        make: a function whose first parameter is the `Traces` of the run.
    """
    answer: _Answer = _shared(make, run, _asked(make, run, args, options))
    return answer


def glance(
    every: Sequence[store.Run],
    read: Callable[Concatenate[store.Run, _Further], _Answer],
    *args: _Further.args,
    **options: _Further.kwargs,
) -> list[_Answer | store.StoreError]:
    """The result of a function for each of many runs, without their check and without loading them.

    A run is read again when it changes. The results are shared between sessions: never change them. For a run that cannot be
    read, the result is the error.

    Args:
        read: a function whose first parameter is a run.
        args: its further parameters.
    """
    answers_by_key, lock = _glanced()
    keys = [(_name_of(read), *_key(run), args, tuple(options.items())) for run in every]
    with lock:
        answers = {key: answers_by_key[key] for key in keys if key in answers_by_key}
    new = {key: run for key, run in zip(keys, every, strict=True) if key not in answers}

    def answer(run: store.Run) -> _Answer | store.StoreError:
        try:
            return read(run, *args, **options)
        except store.StoreError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:  # so that kept results start no thread
        answers |= zip(new, pool.map(answer, new.values()), strict=True)
    with lock:
        for key in keys:
            answers_by_key.pop(key, None)  # so that the order is the order of use
            if not (isinstance(answers[key], store.StoreError) and files.is_passing(answers[key].__cause__)):
                answers_by_key[key] = answers[key]
        while len(answers_by_key) > _MOST_GLANCED:
            answers_by_key.pop(next(iter(answers_by_key)))
    return [answers[key] for key in keys]


@st.cache_resource(show_spinner=False)
def _glanced() -> tuple[dict[Hashable, Any], Lock]:
    """The results of `glance` by their keys, and the lock for reading or changing them."""
    return {}, Lock()


def look_of(run: store.Run, theme: Theme) -> Look:
    """Colours and symbols of the run's variants."""
    return look(load(run), theme)


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _asked(function: Callable[..., Any], about: AnyRun, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """What tells the result of a function about a run from other results; its arguments are the last two parts."""
    return _name_of(function), isinstance(about, OtherVersion), *_key(run_of(about)), args, options


def _key(run: store.Run) -> tuple[bytes, Hashable]:
    """A key of a run that changes when one of its files changes. A path need not be UTF-8."""
    ranks = run.ranks if isinstance(run, store.RanksOfJob) else ()
    return os.fsencode(run.path), (files.state_of(run.path), ranks)


@st.cache_resource(show_spinner="Reading the run …", max_entries=16)
def _load(_run: store.Run, path: bytes, state: Hashable) -> RunData:
    try:
        opened = store.open_run(_run.path)
        return run_data.load(store.ranks_of(opened, _run.ranks) if isinstance(_run, store.RanksOfJob) else opened)
    except store.StoreError:
        forget_listing()  # the run is bad from now on
        raise


@st.cache_resource(show_spinner=False, max_entries=16)
def _version(_data: RunData, is_other: bool, path: bytes, state: Hashable) -> RunData:
    return versions.other_version(_data) if is_other else versions.own_version(_data)


@st.cache_data(show_spinner="Comparing …", max_entries=512)
def _query_answer(_query: Callable[..., Any], _run: AnyRun, asked: tuple[Any, ...]) -> Any:
    *_, args, options = asked
    return _query(load(_run), *args, **options)


@st.cache_resource(show_spinner="Reading the trace …", max_entries=6, hash_funcs={Lanes: id})
def _shared(_make: Callable[..., Any], _run: AnyRun, asked: tuple[Any, ...]) -> Any:
    *_, args, options = asked
    return _make(load(_run).traces, *args, **options)
