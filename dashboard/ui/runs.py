"""The runs that the pages can show, and what they ask of one, remembered until a file of the run changes.

A run is checked when it is first asked for. One that is found bad is no longer among those of `listing`; `load` and all that asks for it
raise `StoreError`, which `app` shows in place of the page.
"""

import argparse
import os
import sys
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import streamlit as st

from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.core.traces import Traces
from warpladder.dashboard.trace.lanes import Lanes
from warpladder.dashboard.trace.picked import pick
from warpladder.dashboard.ui.template import Look, Theme, look
from warpladder.data import files, store
from warpladder.data.naming import Naming, NamingError

PROJECT: Final = Path(__file__).resolve().parents[2]
DATA_DIR_VARIABLE: Final = "WARPLADDER_DATA_DIR"
_Further = ParamSpec("_Further")
_Answer = TypeVar("_Answer")
_CHOSEN: Final = "chosen run"
_PICKED: Final = "chosen naming"


@dataclass(frozen=True)
class Listing:
    """What the data folders hold. Runs are keyed by what the URL calls them: their id, or `id@folder` where several share it.

    Attributes:
        runs: those that can be shown, as far as is known.
        bad: those that cannot be opened, and why.
        refused: those of them whose check failed, though their table `run` can be read.
    """

    runs: dict[str, store.Run]
    bad: tuple[store.BadRun, ...]
    refused: dict[str, store.Run]


def data_dirs(arguments: Sequence[str] | None = None) -> tuple[Path, ...]:
    """Folders that hold runs: those given after `--data-dir`, that of WARPLADDER_DATA_DIR, this machine's, the shipped ones.

    Args:
        arguments: what follows `--` on the command line; that of this process when None.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--data-dir", type=store.folder, action="append", default=[])
    given, _ = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    named = [*given.data_dir, *(Path(part) for part in os.environ.get(DATA_DIR_VARIABLE, "").split(os.pathsep) if part)]
    return tuple(dict.fromkeys(folder.resolve() for folder in (*named, store.LOCAL, store.RECORDED)))


@st.cache_resource(show_spinner=False, ttl=3)
def listing(folders: tuple[Path, ...]) -> Listing:
    """Every run of the folders: those of an earlier folder first, each folder's newest first, of those that ship the longest.

    Shared between sessions: never change it.
    """
    names: dict[str, store.Run] = {}
    every_bad: list[store.BadRun] = []
    for folder in folders:
        good, bad = store.list_runs([folder])
        every_bad += bad
        if folder == store.RECORDED:
            good.sort(key=_length, reverse=True)
        for run in (*good, *(each.run for each in bad if each.run)):
            names[_name(run, folder, names)] = run
    refused = {each.path for each in every_bad if each.run}
    return Listing(
        {name: run for name, run in names.items() if run.path not in refused},
        tuple(every_bad),
        {name: run for name, run in names.items() if run.path in refused},
    )


def _length(run: store.Run) -> int:
    try:
        return run.rows("samples")
    except store.StoreError:
        return 0


def _name(run: store.Run, folder: Path, taken: Container[str]) -> str:
    """What the URL calls a run: its id; where others have that too, with the folder that it is in, then with its own."""
    names = (
        run.run_id,
        f"{run.run_id}@{folder.name}",
        f"{run.run_id}@{folder.name}/{run.path.name}",
        f"{run.run_id}@{run.path}",
    )
    return next(name for name in map(files.one_line, names) if name not in taken)


def choose(run: store.Run | None, picked: Naming | None = None) -> None:
    """Make a run the one that the pages of this session show.

    Args:
        picked: which of its ranges are to be compared as variants, in place of the variants that it has.
    """
    st.session_state[_CHOSEN] = run
    st.session_state[_PICKED] = picked


def chosen() -> store.Run | None:
    """The run that the pages of this session show; None where there is none."""
    run: store.Run | None = st.session_state.get(_CHOSEN)
    return run


def picked(run: store.Run) -> Naming | None:
    """The naming by which this session picked variants of the run; None where it compares those that the run has."""
    naming: Naming | None = st.session_state.get(_PICKED)
    shown = chosen()
    return naming if shown is not None and shown.path == run.path else None


def opens(run: store.Run) -> bool:
    """Whether a run passes its check, for pages that show several runs: a bad one must not take the others down."""
    try:
        store.open_run(run.path)
    except store.StoreError:
        listing.clear()
        return False
    return True


def is_recorded(run: store.Run) -> bool:
    """Whether the run ships with the project."""
    return run.path.parent == store.RECORDED


def load(run: store.Run) -> RunData:
    """The run's tables, with the variants that were picked, read once. Shared between sessions: never change a frame of it.

    Raises:
        StoreError: the run does not pass its check.
        NamingError: the pattern by which variants were picked gives none.
    """
    return load_as(run, picked(run))


def load_as(run: store.Run, naming: Naming | None) -> RunData:
    """`load` with the variants of that naming; with those that the run has where it is None."""
    data: RunData = _load(run, *_key(run))
    if naming is None:
        return data
    again = _pick(data, naming, *_key(run))
    if isinstance(again, NamingError):
        raise again
    return again


def ask(
    run: store.Run, query: Callable[Concatenate[RunData, _Further], _Answer], *args: _Further.args, **named: _Further.kwargs
) -> _Answer:
    """What a query answers about a run, computed once for the same arguments.

    Args:
        query: a function of a module `query` whose first parameter is the `RunData`.
        args: its further arguments.
    """
    return ask_as(run, picked(run), query, *args, **named)


def ask_as(
    run: store.Run,
    naming: Naming | None,
    query: Callable[Concatenate[RunData, _Further], _Answer],
    *args: _Further.args,
    **named: _Further.kwargs,
) -> _Answer:
    """`ask` about the run with the variants of that naming; with those that it has where it is None."""
    answer: _Answer = _asked(query, run, naming, _name_of(query), *_key(run), args, named)
    return answer


def share(
    run: store.Run, make: Callable[Concatenate[Traces, _Further], _Answer], *args: _Further.args, **named: _Further.kwargs
) -> _Answer:
    """As `ask`, for what is too large to be copied for each that asks: never change it. The last few are kept.

    Args:
        make: a function whose first parameter is the `Traces` of the run.
    """
    return share_as(run, picked(run), make, *args, **named)


def share_as(
    run: store.Run,
    naming: Naming | None,
    make: Callable[Concatenate[Traces, _Further], _Answer],
    *args: _Further.args,
    **named: _Further.kwargs,
) -> _Answer:
    """`share` with the variants of that naming; with those that the run has where it is None, as for what variants do not matter to."""
    made: _Answer = _shared(make, run, naming, _name_of(make), *_key(run), args, named)
    return made


def look_of(run: store.Run, theme: Theme) -> Look:
    """Colours and symbols of the run's variants."""
    return look(load(run), theme)


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _key(run: store.Run) -> tuple[bytes, Hashable]:
    """Tells a run from every other, and from itself before a file of it was changed. A path need not be UTF-8."""
    return os.fsencode(run.path), files.state_of(run.path)


@st.cache_resource(show_spinner="Reading the run …", max_entries=8)
def _load(_run: store.Run, path: bytes, state: Hashable) -> RunData:
    try:
        return run_data.load(store.open_run(_run.path))
    except store.StoreError:
        listing.clear()  # the run is bad from now on
        raise


@st.cache_resource(show_spinner="Picking variants …", max_entries=8)
def _pick(_data: RunData, naming: Naming, path: bytes, state: Hashable) -> RunData | NamingError:
    # A refusal is remembered too: it may have taken seconds.
    try:
        return pick(_data, naming)
    except NamingError as refusal:
        return refusal


@st.cache_data(show_spinner="Comparing …", max_entries=512)
def _asked(
    _query: Callable[..., Any],
    _run: store.Run,
    naming: Naming | None,
    name: str,
    path: bytes,
    state: Hashable,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    return _query(load_as(_run, naming), *args, **named)


@st.cache_resource(show_spinner="Reading the trace …", max_entries=6, hash_funcs={Lanes: id})
def _shared(
    _make: Callable[..., Any],
    _run: store.Run,
    naming: Naming | None,
    name: str,
    path: bytes,
    state: Hashable,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    return _make(load_as(_run, naming).traces, *args, **named)
