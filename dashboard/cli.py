"""The commands that compare recorded runs: `app`, `answer`, `export`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from warpladder.command_line import SETTINGS, OneLineErrors
from warpladder.dashboard import formats

if TYPE_CHECKING:
    from warpladder.dashboard.core.changes import Side
    from warpladder.dashboard.core.run_data import RunData

MISTAKES: Final = {
    "warpladder.dashboard.core.run_data": "SelectionError",
    "warpladder.dashboard.export": "ExportError",
    "warpladder.dashboard.server": "ServerError",
    "warpladder.dashboard.core.changes": "NotComparable",
    "warpladder.dashboard.ui.paper": "PaperError",
    "warpladder.data.naming": "NamingError",
    "warpladder.data.store": "StoreError",
}


class _Percent(click.ParamType[float]):
    """A fraction from 0 on, written as `2%`."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            found = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            found = -1.0
        if not 0 <= found < 100:
            self.fail(f"{value}: write a percentage such as 2%", param, ctx)
        return found


#: Arguments and options that several commands have.
_run = click.argument("run", metavar="RUN")
_data_dirs = click.option(
    "--data-dir", "data_dirs", multiple=True, metavar="FOLDER", help="A further folder to look for runs in; may be given again."
)


def _load(run: str, data_dirs: Sequence[str]) -> "RunData":
    """Raises StoreError."""
    from warpladder.dashboard.core import run_data
    from warpladder.data import store

    found = store.find_run(run, _folders(data_dirs))
    for reason in found.left_out.values():
        print(f"left out: {reason}", file=sys.stderr)
    return run_data.load(found)


def _folders(data_dirs: Sequence[str]) -> "list[Path]":
    """Raises StoreError."""
    from warpladder.data import store

    return [*map(store.folder, data_dirs), store.LOCAL, store.RECORDED]


@click.group(cls=OneLineErrors, mistakes=MISTAKES, help=__doc__, **SETTINGS)
def app() -> None:
    pass


@app.command("app")
@_data_dirs
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8501, or the next one that is free.")
@click.option(
    "--address", default="127.0.0.1", help="Address to listen on. Anyone who reaches another address can read every run."
)
def app_command(data_dirs: Sequence[str], port: int | None, address: str) -> None:
    """Serve the pages to browsers of this machine, until Ctrl-C."""
    from warpladder.dashboard import server
    from warpladder.data import store

    server.serve([store.folder(text) for text in data_dirs], address, port)


@app.command("answer")
@_run
@click.option("--format", "form", default="table", help=f"Of {', '.join(formats.ANSWERS)}.")
@_data_dirs
def answer_command(run: str, form: str, data_dirs: Sequence[str]) -> None:
    """Print one row for each workload and precision: the best variant, its time, and its speedup over baseline and best peer.

    RUN: its id, label or folder.
    """
    from warpladder.dashboard import answer
    from warpladder.data import store

    if form not in formats.ANSWERS:
        raise store.StoreError(f"--format {form}: no such format; choose {', '.join(formats.ANSWERS)}")
    print(answer.render(answer.figures(_load(run, data_dirs)), form), end="")


@app.command("export")
@_run
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder to write to. Other files in it stay.",
)
@click.option(
    "--format",
    "wanted",
    metavar="FORMATS",
    help=f"Of {','.join(formats.CHARTS)}. Default: all of them.",
)
@click.option("--topic", "topics", metavar="TOPICS", help="Topics of the charts. Default: all. An unknown topic lists them.")
@click.option(
    "--workload", "workloads", multiple=True, metavar="NAMES", help="Workloads to chart, by names or globs. Default: all."
)
@click.option(
    "--variants", multiple=True, metavar="NAMES", help="Variants to chart, by names or globs such as v0*. Default: all."
)
@click.option("--width", metavar="LENGTH", help="Width of the images in mm, cm, in, pt or px, such as 84mm. Default: 1000px.")
@click.option("--font-size", metavar="POINTS", help="Size of the images' texts. Default: 8 with --width, else that of screens.")
@click.option("--no-title", is_flag=True, help="Leave out title and note of the images, as for a figure with a caption.")
@click.option(
    "--variant-from",
    default="",
    show_default=False,
    metavar="nvtx:REGEX",
    help="Pick variants from the run's ranges, like the page Pick variants.",
)
@_data_dirs
def export_command(
    run: str,
    out: Path,
    wanted: str | None,
    topics: str | None,
    workloads: Sequence[str],
    variants: Sequence[str],
    width: str | None,
    font_size: str | None,
    no_title: bool,
    variant_from: str,
    data_dirs: Sequence[str],
) -> None:
    """Write the charts of a run, and report.html.

    RUN: its id, label or folder. NAMES: several with commas between them; the option may be given again.
    """
    from warpladder.dashboard import export
    from warpladder.dashboard.core.run_data import select
    from warpladder.dashboard.trace.picked import pick
    from warpladder.dashboard.ui import paper
    from warpladder.data.naming import Naming

    chosen = export.parse_formats(wanted) if wanted is not None else formats.CHARTS
    about = export.parse_topics(topics) if topics is not None else export.TOPICS
    size = paper.parse(width, font_size, heading=not no_title)
    data = _load(run, data_dirs)
    if variant_from:
        data = pick(data, Naming.parse(variant_from))
    data = select(data, _names(workloads), _names(variants))
    problem = export.write(data, out, chosen, lambda line: print(line, file=sys.stderr), about, size)
    if problem:
        print(f"No images: {problem}", file=sys.stderr)
        if wanted is not None:
            raise click.exceptions.Exit(2)


def _names(given: Sequence[str]) -> list[str]:
    """The names of an option that was given several times, or with commas."""
    return [name.strip() for text in given for name in text.split(",")]


@app.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--fail-above", type=_Percent(), default="0%", help="A slower cell fails only above this.")
@click.option("--smallest", type=_Percent(), default="1%", help="Smaller differences are unchanged.")
@click.option(
    "--scope", default="", show_default=False, help="One scope, such as device, or all. Default: the first of each workload."
)
@click.option(
    "--match", type=click.Choice(("config", "best")), default="config", help="Equal configs, or the fastest of each side."
)
@click.option("--without-shift", is_flag=True, help="Judge ratios after the common shift of their case is taken out.")
@click.option("--any-device", is_flag=True, help="Compare although the GPUs differ.")
@click.option("--partial", is_flag=True, help="B recorded a part of A: what it has no verdict about is not lost.")
@click.option("--format", "form", type=click.Choice(formats.COMPARISONS), default="text", help="Of the output.")
@_data_dirs
def compare_command(
    a: str,
    b: str,
    fail_above: float,
    smallest: float,
    scope: str,
    match: Any,
    without_shift: bool,
    any_device: bool,
    partial: bool,
    form: Any,
    data_dirs: Sequence[str],
) -> None:
    """Compare run B with run A, cell by cell. Exit code 0: no cell is slower; 1: a cell is slower, wrong or lost; 2: not comparable.

    A, B: a run by its id, label or folder, or one variant of a run as RUN@VARIANT.
    """
    from warpladder.dashboard import comparison
    from warpladder.dashboard.core import changes
    from warpladder.dashboard.core.between_runs import Recordings

    before, after = _side(a, data_dirs), _side(b, data_dirs)
    options = changes.Options(scope, match, smallest, without_shift, any_device, partial)
    found = changes.compare(before, after, options, Recordings(_folders(data_dirs), after.data.info))
    print(comparison.render(found, before.data, after.data, fail_above, form), end="")
    if comparison.failures(found, fail_above):
        raise click.exceptions.Exit(1)


def _side(text: str, data_dirs: Sequence[str]) -> "Side":
    """A run, or RUN@VARIANT. Raises StoreError, NotComparable."""
    from warpladder.dashboard.core.changes import NotComparable, Side
    from warpladder.data import store

    run, at, variant = text.rpartition("@")
    try:
        return Side(_load(text, data_dirs))
    except store.StoreError:
        if not at:
            raise
    data = _load(run, data_dirs)
    if variant not in set(data.variants["variant"]):
        raise NotComparable(f"{text}: the run has no variant {variant}; it has {', '.join(data.variants['variant'].unique())}")
    return Side(data, variant)
