"""Prints what a run says, at the end of a recording."""

import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from warpladder import IMPORT_ROOT
from warpladder.collectors.core.verdicts import Cell
from warpladder.collectors.screen import say
from warpladder.data import store
from warpladder.data.names import NOT_DONE

#: Roles of the variants that have to be right unasked. A caught specimen is right, and a peer may lack what it needs.
_OWN: Final = ("rung", "host")


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


def report(path: Path, form: str = "table") -> None:
    """Print the verdicts and diagnostics of a run on stderr, and its answer on stdout."""
    for line in summary_of(path):
        say(line)
    ask_dashboard("answer", path, form)


def ask_dashboard(module: str, path: Path, *arguments: str) -> None:
    """Print what a module of the dashboard says of a run, in a process of its own: `collectors` may not import the dashboard."""
    command = [sys.executable, "-m", f"warpladder.dashboard.{module}", str(path.resolve()), *arguments]
    done = subprocess.run(command, cwd=IMPORT_ROOT, capture_output=True, text=True, check=False)
    with suppress(OSError):
        print(done.stdout, end="", flush=True)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or "nothing was said"
        say(f"{path.name}: the {module} could not be made ({why})")


def summary_of(path: Path) -> Iterator[str]:
    """The verdicts and diagnostics of a run, line by line."""
    run = store.open_run(path)
    results, diagnostics = run.table("results"), run.table("diagnostics")
    counts = ", ".join(f"{count} {status}" for status, count in results["status"].value_counts().items())
    skipped = results.loc[results["status"] == "skipped", "detail"].value_counts()
    reasons = [f"{count}: {reason}" for reason, count in skipped.head(3).items()]
    more = f"; {len(skipped) - 3} more reasons on Runs & checks" if len(skipped) > 3 else ""
    why = f" ({'; '.join(reasons)}{more})" if reasons else ""
    yield f"{counts}{why}"
    for row in results.query("status not in ('ok', 'skipped')").to_dict("records"):
        yield f"{Cell.of(row)}: {row['status']}: {row['detail']}"
    for row in diagnostics.query("severity != 'info' or source == 'not_reached'").to_dict("records"):
        about = [row[name] for name in ("workload", "variant", "case") if isinstance(row[name], str)]
        yield f"{row['severity']}: {'/'.join(about)} {row['source']}: {row['text']}"
