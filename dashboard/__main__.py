"""`python -m dashboard app` opens the pages; `export RUN --out DIR` writes the charts of a run as files, without a browser open.

`answer RUN` prints which variants win.
"""

from pathlib import Path
from typing import Annotated

import typer

from dashboard import answer
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
    help="Compare recorded runs.",
)

DataDirs = Annotated[
    list[str] | None, typer.Option("--data-dir", metavar="FOLDER", help="A further folder to look for runs in.")
]


@app.callback()
def _main() -> None:
    """Compare recorded runs."""


@app.command("app")
def app_command(
    data_dir: DataDirs = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: 8501, or the next one that is free.")] = None,
    address: Annotated[str, typer.Option(help="What to listen on. Whoever reaches another one reads every run.")] = "127.0.0.1",
) -> None:
    """Serve the pages to browsers of this machine, until Ctrl-C."""
    from dashboard import server  # Streamlit takes a second to load

    try:
        server.serve([store.folder(text) for text in data_dir or []], address, port)
    except (server.ServerError, store.StoreError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


@app.command("answer")
def answer_command(
    run: Annotated[str, typer.Argument(help="Id, label or folder of the run.")],
    form: Annotated[str, typer.Option("--format", help=f"Of {', '.join(answer.FORMATS)}.")] = "table",
    data_dir: DataDirs = None,
) -> None:
    """Print a row a workload and precision: the best variant, its time, and what it is over the baseline and the best peer."""
    try:
        if form not in answer.FORMATS:
            raise store.StoreError(f"--format {form}: no such format; choose {', '.join(answer.FORMATS)}")
        data = run_data.load(store.find_run(run, [*map(store.folder, data_dir or []), store.LOCAL, store.RECORDED]))
        typer.echo(answer.render(answer.figures(data), form), nl=False)
    except store.StoreError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


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
    data_dir: DataDirs = None,
) -> None:
    """Write the charts of a run, and report.html."""
    try:
        chosen = exporter.parse_formats(formats) if formats is not None else exporter.DEFAULT_FORMATS
        about = exporter.parse_topics(topics)
        data = run_data.load(store.find_run(run, [*map(store.folder, data_dir or []), store.LOCAL, store.RECORDED]))
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
