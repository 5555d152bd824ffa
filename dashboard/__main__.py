"""`python -m dashboard app` opens the pages; `export RUN --out DIR` writes the charts of a run as files, without a browser open.

`answer RUN` prints which variants win.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from warpladder.dashboard import answer
from warpladder.dashboard import export as exporter
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.trace.picked import pick
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError

_DEFAULT_FORMATS: Final = ",".join(exporter.DEFAULT_FORMATS)

#: Arguments and options that several commands have.
_run = click.argument("run", metavar="RUN")
_data_dirs = click.option(
    "--data-dir", "data_dirs", multiple=True, metavar="FOLDER", help="A further folder to look for runs in; may be given again."
)


def _refuse(error: Exception) -> click.exceptions.Exit:
    """A user's mistake as its line on stderr, and exit code 2."""
    print(error, file=sys.stderr)
    return click.exceptions.Exit(2)


def _load(run: str, data_dirs: Sequence[str]) -> RunData:
    """Raises StoreError."""
    return run_data.load(store.find_run(run, [*map(store.folder, data_dirs), store.LOCAL, store.RECORDED]))


@click.group(no_args_is_help=True, context_settings={"show_default": True})
def app() -> None:
    """Compare recorded runs."""


@app.command("app")
@_data_dirs
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8501, or the next one that is free.")
@click.option(
    "--address", default="127.0.0.1", help="Address to listen on. Anyone who reaches another address can read every run."
)
def app_command(data_dirs: Sequence[str], port: int | None, address: str) -> None:
    """Serve the pages to browsers of this machine, until Ctrl-C."""
    from warpladder.dashboard import server  # Streamlit takes a second to load

    try:
        server.serve([store.folder(text) for text in data_dirs], address, port)
    except (server.ServerError, store.StoreError) as error:
        raise _refuse(error) from None


@app.command("answer")
@_run
@click.option("--format", "form", default="table", help=f"Of {', '.join(answer.FORMATS)}.")
@_data_dirs
def answer_command(run: str, form: str, data_dirs: Sequence[str]) -> None:
    """Print a row a workload and precision: the best variant, its time, and what it is over the baseline and the best peer.

    RUN: its id, label or folder.
    """
    try:
        if form not in answer.FORMATS:
            raise store.StoreError(f"--format {form}: no such format; choose {', '.join(answer.FORMATS)}")
        print(answer.render(answer.figures(_load(run, data_dirs)), form), end="")
    except store.StoreError as error:
        raise _refuse(error) from None


@app.command("export")
@_run
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="To write to; other files in it stay."
)
@click.option("--format", "formats", metavar="FORMATS", help=f"Of {','.join(exporter.FORMATS)}. Default: {_DEFAULT_FORMATS}.")
@click.option("--topic", "topics", default=",".join(exporter.TOPICS), metavar="TOPICS", help="What the charts are about.")
@click.option(
    "--variant-from",
    default="",
    show_default=False,
    metavar="nvtx:REGEX",
    help="Picks variants out of the run's ranges, as the page Pick variants does.",
)
@_data_dirs
def export(run: str, out: Path, formats: str | None, topics: str, variant_from: str, data_dirs: Sequence[str]) -> None:
    """Write the charts of a run, and report.html.

    RUN: its id, label or folder.
    """
    try:
        chosen = exporter.parse_formats(formats) if formats is not None else exporter.DEFAULT_FORMATS
        about = exporter.parse_topics(topics)
        data = _load(run, data_dirs)
        if variant_from:
            data = pick(data, Naming.parse(variant_from))
        problem = exporter.write(data, out, chosen, lambda line: print(line, file=sys.stderr), about)
    except (exporter.ExportError, store.StoreError, NamingError) as error:
        raise _refuse(error) from None
    if problem:
        print(f"No images: {problem}", file=sys.stderr)
        if formats is not None:
            raise click.exceptions.Exit(2)


if __name__ == "__main__":
    app(prog_name="python -m dashboard")
