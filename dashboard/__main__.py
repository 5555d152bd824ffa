"""`python -m dashboard export RUN --out DIR`: the charts of a run as files, without a browser open."""

from pathlib import Path
from typing import Annotated

import typer

from dashboard import export as exporter
from dashboard.charts.catalogue import TOPICS
from dashboard.queries import run_data
from dashboard.queries.picked import pick
from data import store
from data.naming import Naming, NamingError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Compare recorded runs; `make app` opens the pages.",
)


@app.callback()
def _main() -> None:
    """Compare recorded runs."""


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="Id, label or folder of the run.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; other files in it stay.")],
    formats: Annotated[
        str | None,
        typer.Option("--format", help=f"Of {','.join(exporter.FORMATS)}. Default: {','.join(exporter.DEFAULT_FORMATS)}."),
    ] = None,
    topics: Annotated[str, typer.Option("--topic", help="What the charts are about.")] = ",".join(TOPICS),
    variant_from: Annotated[
        str, typer.Option(help="nvtx:REGEX that picks variants out of the run's ranges, as the page Pick variants does.")
    ] = "",
    data_dir: Annotated[list[Path] | None, typer.Option(help="Further folders to look for the run in.")] = None,
) -> None:
    """Write the charts of a run, and report.html."""
    try:
        chosen = exporter.parse_formats(formats) if formats is not None else exporter.DEFAULT_FORMATS
        about = exporter.parse_topics(topics)
        data = run_data.load(store.find_run(run, [*(data_dir or []), store.LOCAL, store.RECORDED]))
        if variant_from:
            data = pick(data, Naming.parse(variant_from))
        problem = exporter.write(data, out, chosen, lambda line: typer.echo(line, err=True), about)
    except (exporter.ExportError, store.StoreError, NamingError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if problem:
        typer.echo(f"No images: {problem}", err=True)
        if formats is not None:
            raise typer.Exit(2)


if __name__ == "__main__":
    app(prog_name="python -m dashboard")
