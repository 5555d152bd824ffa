"""`warpladder export` and `warpladder app`: the charts of a run as files, and the dashboard."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from warpladder.commands.common import ExitCode, cases_of, data_dirs_option, load, run_argument, split, take_up
from warpladder.dashboard.text import formats
from warpladder.errors import Error


@click.command("export")
@run_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder to write to. Other files in it stay.",
)
@click.option(
    "--format",
    "image_formats",
    multiple=True,
    metavar="FORMATS",
    help=f"{','.join(formats.CHARTS)}. Default: all of them.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPICS",
    help="Topics of the charts. Default: all. An unknown topic lists them.",
)
@click.option(
    "--workload", "workloads", multiple=True, metavar="NAMES", help="Workloads to chart, by names or globs. Default: all."
)
@click.option(
    "--variants", multiple=True, metavar="NAMES", help="Variants to chart, by names or globs such as v0*. Default: all."
)
@click.option(
    "--case", "cases", multiple=True, metavar="CASES", help="Cases to chart, by names or globs such as n=512,*. Default: all."
)
@data_dirs_option
def command(
    run: str,
    out: Path,
    image_formats: Sequence[str],
    topics: Sequence[str],
    workloads: Sequence[str],
    variants: Sequence[str],
    cases: Sequence[str],
    data_dirs: Sequence[str],
) -> None:
    """Write the charts of a run, and report.html.

    RUN: its id, label or folder. Options with several values take them with commas between, and may be given again.
    """
    from warpladder.dashboard import export
    from warpladder.dashboard.core.run_data import select

    formats_to_write = (
        export.parse_names(",".join(image_formats), formats.CHARTS, "format") if image_formats else formats.CHARTS
    )
    about = export.parse_names(",".join(topics), export.TOPICS, "topic") if topics else export.TOPICS
    data = select(load(run, data_dirs), split(workloads), split(variants), cases_of(cases))
    problem = export.write(data, out, formats_to_write, lambda line: print(line, file=sys.stderr), about)
    if problem:
        print(f"No images: {problem}", file=sys.stderr)
        if image_formats:
            raise click.exceptions.Exit(ExitCode.REFUSED)


@click.command("app")
@click.argument("run", default="", metavar="[RUN]")
@data_dirs_option
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8501, or the next one that is free.")
@click.option(
    "--address", default="127.0.0.1", help="Address to listen on. Anyone who reaches another address can read every run."
)
@click.option("--no-browser", is_flag=True, help="Open no browser at RUN.")
def app_command(run: str, data_dirs: Sequence[str], port: int | None, address: str, no_browser: bool) -> None:
    """Open the dashboard in a browser, until Ctrl-C.

    RUN: a run to open a browser at: its id, label or folder, or a report or trace of a profiler, which is imported unless it was before.
    """
    from warpladder.dashboard import server
    from warpladder.data import store

    own = [store.folder(text) for text in data_dirs]
    take_up(*own, store.LOCAL)
    if not run:
        server.serve(own, address, port)
        return
    path = _run_to_open(run, own)
    # Its folder comes first, so that its id in an address stands for no other run.
    server.serve([path.parent, *own], address, port, run=store.open_run(path).run_id, browser=not no_browser)


def _run_to_open(run: str, own: Sequence[Path]) -> Path:
    """The folder of a run, which becomes one where it is a report or trace. Raises Error."""
    from warpladder.commands import imports
    from warpladder.data import store
    from warpladder.data.store.errors import NoSuchRun

    path = Path(run)
    is_run = (path / "run.parquet").exists()
    if path.is_file() or (path.is_dir() and not is_run):
        return imports.run_of(path, own[0] if own else store.LOCAL)
    try:
        return store.find_run(run, [*own, store.LOCAL, store.RECORDED]).path.absolute()
    except NoSuchRun as error:
        if path.suffix or len(path.parts) > 1:  # a label may have a slash or a dot too, so that runs are looked for first
            raise Error(f"{run}: this file does not exist, and no run has that name") from error
        raise
