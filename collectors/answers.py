"""Prints what a run says, at the end of a recording."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from warpladder import IMPORT_ROOT
from warpladder.collectors.core.environment import measure_all
from warpladder.collectors.core.verdicts import Cell
from warpladder.collectors.screen import say
from warpladder.data import store
from warpladder.data.names import NOT_DONE, Source

#: Roles of the variants that have to be right unasked. A caught specimen is right, and a peer may lack what it needs.
_OWN: Final = ("rung", "host")
#: The order in which findings are told.
_SEVERITIES: Final = ("error", "warning", "info")


def exit_if_wrong(path: Path, named: Collection[str] = ()) -> None:
    """Say which cell of a run is not right, if there is one, and exit with code 1.

    Rungs, host variants and named variants count, but no specimens. What was skipped is not wrong. A cell whose work was not done, or not
    waited for, is not right.

    Args:
        path: the run's folder.
        named: variants that the user named.

    Raises:
        click.exceptions.Exit: a cell is not right.
    """
    run = store.open_run(path)
    roles = {(row["workload"], row["variant"]): row["role"] for row in run.table("variants").to_dict("records")}
    counted = [
        row
        for row in run.table("results").to_dict("records")
        if (role := roles[row["workload"], row["variant"]]) in _OWN or (role != "specimen" and row["variant"] in named)
    ]
    not_done = {Cell.of(row): row for row in run.table("diagnostics").to_dict("records") if row["source"] in NOT_DONE}
    wrong = [(Cell.of(row), f"{row['status']}: {row['detail']}") for row in counted if row["status"] not in ("ok", "skipped")]
    wrong += [(cell, f"{found['source']}: {found['text']}") for row in counted if (found := not_done.get(cell := Cell.of(row)))]
    if wrong:
        (first, why), of = wrong[0], f"{len(wrong)} of {len(counted)} cells{', first' if len(wrong) > 1 else ''}"
        say(f"not right: {of} {first}: {why}")
        raise click.exceptions.Exit(1)


def report(path: Path, form: str = "table", *, typed: Sequence[str] = (), sizes: bool = False, every: bool = False) -> None:
    """Print the verdicts and diagnostics of a run on stderr, and its answer on stdout.

    Args:
        path: the run's folder.
        form: format of the answer.
        typed: the arguments of the recording. The run has them without folders.
        sizes: whether the answer in the form `table` starts with the time of every variant at every size.
        every: whether each diagnostic has a line of its own, and no row is left out.
    """
    for line in summary_of(path, every=every):
        say(line.replace(measure_all(typed), measure_all(typed, folders=True)))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    ask_dashboard("answer", path, form, str(width), *(["sizes"] if sizes else []), *(["every"] if every else []))


def ask_dashboard(module: str, path: Path, *arguments: str) -> None:
    """Print what a module of the dashboard says of a run, in a process of its own: `collectors` may not import the dashboard."""
    command = [sys.executable, "-m", f"warpladder.dashboard.{module}", str(path.resolve()), *arguments]
    done = subprocess.run(command, cwd=IMPORT_ROOT, capture_output=True, text=True, check=False)
    with suppress(OSError):
        print(done.stdout, end="", flush=True)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or "nothing was said"
        say(f"{path.name}: the {module} could not be made ({why})")


#: How many reasons for skipped cells are named.
_MOST_REASONS: Final = 3


def summary_of(path: Path, *, every: bool = False) -> Iterator[str]:
    """The verdicts and diagnostics of a run, line by line.

    Findings of one kind take one line, with their count and the first of them. So do all specimens, which are variants that the checks
    have to catch.

    Args:
        path: the run's folder.
        every: whether each finding has a line of its own, those about specimens too.
    """
    run = store.open_run(path)
    variants = run.table("variants").to_dict("records")
    specimens = {(row["workload"], row["variant"]) for row in variants if row["role"] == "specimen"}
    results = run.table("results").to_dict("records")
    findings = run.table("diagnostics").query("severity != 'info' or source == 'not_reached'").to_dict("records")
    aside = set() if every else specimens
    yield _counts([row for row in results if _variant(row) not in aside])
    if every:
        failed = ((row, f"{Cell.of(row)}: {row['status']}: {row['detail']}") for row in results)
        yield from (line for row, line in failed if row["status"] not in ("ok", "skipped"))
        yield from map(_finding, findings)
        return
    if caught := _caught(results, findings, specimens):
        yield caught
    lines = [*_failures(results, specimens), *_kinds([row for row in findings if _variant(row) not in specimens])]
    yield from (line for line, _ in lines)
    if any(shortened for _, shortened in lines):
        yield "each of them: warpladder summary --all"


def _variant(row: Mapping[Any, Any]) -> tuple[Any, Any]:
    return row["workload"], row["variant"]


def _counts(results: Sequence[Mapping[Any, Any]]) -> str:
    """`9 ok, 98 skipped (94: needs an NVIDIA GPU; 4: …)`, the right ones first."""
    counts = Counter(row["status"] for row in results)
    order = sorted(counts, key=lambda status: (status != "ok", status == "skipped", -counts[status]))
    reasons = Counter(row["detail"] for row in results if row["status"] == "skipped").most_common()
    told = [f"{count}: {reason}" if len(reasons) > 1 else str(reason) for reason, count in reasons[:_MOST_REASONS]]
    told += [f"{len(reasons) - _MOST_REASONS} more reasons on Runs & checks"] if len(reasons) > _MOST_REASONS else []
    counted = ", ".join(f"{counts[status]} {status}" for status in order)
    return f"{counted} ({'; '.join(told)})" if told else counted


def _caught(results: Sequence[Mapping[Any, Any]], findings: Sequence[Mapping[Any, Any]], specimens: Container[Any]) -> str:
    """How many cells of specimens were caught; empty where none was measured."""
    measured = [row for row in results if _variant(row) in specimens and row["status"] != "skipped"]
    doubted = {Cell.of(row) for row in findings if row["source"] in NOT_DONE and _variant(row) in specimens}
    caught = [row for row in measured if row["status"] != "ok" or Cell.of(row) in doubted]
    if not measured:
        return ""
    of = str(len(caught)) if len(caught) == len(measured) else f"{len(caught)} of {len(measured)}"
    names = ", ".join(dict.fromkeys(str(row["variant"]) for row in measured))
    return f"specimens (known pitfalls, which the checks have to catch): {of} caught: {names}"


def _failures(results: Sequence[Mapping[Any, Any]], specimens: Container[Any]) -> Iterator[tuple[str, bool]]:
    """A line for each status of each variant that failed, and whether it stands for several cells."""
    kinds: dict[tuple[Any, ...], list[Mapping[Any, Any]]] = {}
    for row in results:
        if row["status"] not in ("ok", "skipped") and _variant(row) not in specimens:
            kinds.setdefault((*_variant(row), row["status"]), []).append(row)
    for rows in kinds.values():
        where = f" in {len(rows)} cells, the first" if len(rows) > 1 else ""
        first = rows[0]
        if where:
            yield f"{first['workload']}/{first['variant']}: {first['status']}{where} {Cell.of(first)}: {first['detail']}", True
        else:
            yield f"{Cell.of(first)}: {first['status']}: {first['detail']}", False


def _kinds(findings: Sequence[Mapping[Any, Any]]) -> Iterator[tuple[str, bool]]:
    """A line for each kind of finding, and whether it stands for several. What was not reached is told in full."""
    kinds: dict[tuple[Any, ...], list[Mapping[Any, Any]]] = {}
    for row in findings:
        apart = row["text"] if row["source"] == Source.NOT_REACHED else ""
        kinds.setdefault((row["severity"], row["source"], apart), []).append(row)
    for (severity, source, _), rows in sorted(kinds.items(), key=lambda kind: _SEVERITIES.index(kind[0][0])):
        if len(rows) == 1:
            yield (rows[0]["text"] if source == Source.NOT_REACHED else _finding(rows[0])), False
        else:
            yield f"{severity}: {len(rows)} times {source}, the first: {_about(rows[0])}{rows[0]['text']}", True


def _finding(row: Mapping[Any, Any]) -> str:
    return f"{row['severity']}: {_about(row)}{row['source']}: {row['text']}"


def _about(row: Mapping[Any, Any]) -> str:
    """`conv2d/v01_copy/n=512 ` where a row of `diagnostics` is about a cell; empty where it is about the run."""
    about = "/".join(row[name] for name in ("workload", "variant", "case") if isinstance(row[name], str))
    return f"{about} " if about else ""
