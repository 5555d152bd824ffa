"""Writes the charts of a run to files, and one self-contained report."""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from plotly.offline import get_plotlyjs

from warpladder.dashboard.core import axes
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.report import report
from warpladder.dashboard.ui import images
from warpladder.dashboard.ui.document import CONFIG
from warpladder.dashboard.ui.spreadsheet import csv
from warpladder.dashboard.ui.template import Chart, Look, Theme, look
from warpladder.dashboard.ui.view import Charts, OfRun, OfTiming, OfWorkload
from warpladder.dashboard.views import VIEWS
from warpladder.dashboard.views.overview.query import overview

FORMATS: Final = ("html", *images.FORMATS, "csv")
DEFAULT_FORMATS: Final = ("html", "svg", "png", "csv")
REPORT: Final = "report.html"
#: What a chart is about, in the order of `charts_of`.
TOPICS: Final = tuple(dict.fromkeys(charts.topic for view in VIEWS for charts in view.charts))
_PROJECT: Final = Path(__file__).resolve().parent.parent


class ExportError(Exception):
    """What cannot be exported. Its message says where, what, and what to do, in one line."""


def charts_of(data: RunData, theme: Theme = "light", topics: Collection[str] = TOPICS) -> Iterator[Chart]:
    """The charts of a run that answer what its pages ask first, topic by topic; a page can show any other choice.

    Topics whose charts are of workloads stand together, workload by workload.

    Args:
        topics: of `TOPICS`, those that are wanted.
    """
    style = look(data, theme)
    wanted = [charts for view in VIEWS for charts in view.charts if charts.topic in topics]
    wanted.sort(key=lambda charts: TOPICS.index(charts.topic))
    for of_run, group in groupby(wanted, key=lambda charts: isinstance(charts, OfRun)):
        together = list(group)
        for workload in ("",) if of_run else data.workloads:
            yield from _drawn(data, style, workload, together)


def _drawn(data: RunData, style: Look, workload: str, together: Sequence[Charts]) -> Iterator[Chart]:
    """Charts of a run, or those of one of its workloads: by timing first, phases aside, and within a timing by their place."""
    of_timing = sorted((each for each in together if isinstance(each, OfTiming)), key=lambda each: each.place)
    for timing in axes.timings(data, workload) if of_timing else ():
        if not timing.scope.startswith("phase:"):
            for of_each in of_timing:
                yield from of_each.draw(data, style, workload, timing)
    for each in together:
        if isinstance(each, OfWorkload):
            yield from each.draw(data, style, workload)
        elif isinstance(each, OfRun):
            yield from each.draw(data, style)


def parse_formats(names: str) -> tuple[str, ...]:
    """`html,csv` as formats. Raises ExportError: one is not known, or there is none."""
    return _known(names, FORMATS, "format")


def parse_topics(names: str) -> tuple[str, ...]:
    """`roofline,counters` as topics of charts. Raises ExportError: one is not known, or there is none."""
    return _known(names, TOPICS, "topic")


def _known(names: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip()))
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        raise ExportError(f"{unknown[0] if unknown else f'--{what}'}: no such {what}; known: {', '.join(known)}")
    return words


def write(
    data: RunData,
    out: Path,
    formats: Sequence[str],
    say: Callable[[str], None] = lambda line: None,
    topics: Sequence[str] = TOPICS,
) -> str | None:
    """Write the charts of a run in each format, and `report.html`.

    All is written to a folder beside its place and moved when complete; files that `out` held under other names stay.

    Args:
        out: folder to write to, made where it does not exist.
        formats: of `FORMATS`.
        say: takes a line on what is being done.
        topics: of `TOPICS`, what the charts are about.

    Returns:
        Why there are no images, where they were asked for and could not be made; the other formats are written all the same.

    Raises:
        ExportError: `out` cannot be written.
    """
    try:
        staging = _staging(out)
    except OSError as error:
        raise ExportError(f"{out}: cannot be written ({error.strerror}); choose another folder with --out") from error
    try:
        say("Comparing …")
        charts = list(charts_of(data, topics=topics))
        (staging / REPORT).write_text(report(data, overview(data, _PROJECT), charts), encoding="utf-8")
        for chart in charts:
            if "html" in formats:
                _write_page(chart, staging)
            if "csv" in formats:
                (staging / f"{chart.name}.csv").write_text(csv(chart.data), encoding="utf-8")
        if "html" in formats:
            # One copy for all pages: it is some hundred times larger than a chart.
            (staging / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
        problem = _write_images(charts, [name for name in formats if name in images.FORMATS], staging, say)
        _move(staging, out)
        say(f"{out}: {REPORT} and {len(charts)} charts as {', '.join(formats)}")
    except OSError as error:
        raise ExportError(f"{out}: cannot be written ({error.strerror}); free some space or choose another --out") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return problem


def _write_page(chart: Chart, folder: Path) -> None:
    figure = images.with_heading(chart)
    # plotly.min.js stands beside the pages.
    figure.write_html(folder / f"{chart.name}.html", include_plotlyjs="plotly.min.js", config=CONFIG, full_html=True)


def _write_images(charts: Sequence[Chart], formats: Sequence[str], folder: Path, say: Callable[[str], None]) -> str | None:
    if not formats:
        return None
    if reason := images.why_not():
        return reason
    jobs = [(chart, folder / f"{chart.name}.{name}") for chart in charts for name in formats]
    say(f"Drawing {len(jobs)} images …")
    try:
        images.write(jobs)
    except images.ImageError as error:
        for _, file in jobs:
            file.unlink(missing_ok=True)
        return str(error)
    return None


def _staging(out: Path) -> Path:
    """A new folder on the same file system: within `out` where that exists, since its parent need not be writable."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(None, "is a file")
    parent = out if out.is_dir() else out.parent
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".warpladder-export-", dir=parent))


def _move(staging: Path, out: Path) -> None:
    if not out.exists():
        # mkdtemp makes folders that only their owner can enter.
        staging.chmod(0o777 & ~_umask())
        staging.rename(out)
        return
    for file in sorted(staging.iterdir()):
        file.replace(out / file.name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
