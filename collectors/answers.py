"""Prints what a run says, at the end of a recording."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from warpladder import IMPORT_ROOT
from warpladder.collectors.core.verdicts import Cell
from warpladder.collectors.screen import say
from warpladder.data import store


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
