"""Writes the charts of a run to files, and one self-contained report."""

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import plotly.io as pio
from plotly.offline import get_plotlyjs

from warpladder.dashboard.core import cells
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.report import report
from warpladder.dashboard.text import formats, summary
from warpladder.dashboard.ui import headed, images
from warpladder.dashboard.ui.document import CONFIG
from warpladder.dashboard.ui.tables import csv
from warpladder.dashboard.ui.template import Chart, Look, Theme, look
from warpladder.dashboard.ui.view import Section
from warpladder.dashboard.views import EXPORTED
from warpladder.data.names import PHASE
from warpladder.errors import Error
from warpladder.installation import ROOT

REPORT: Final = "report.html"
#: Topics of charts, in the order of `charts_of`.
TOPICS: Final = tuple(EXPORTED)


def charts_of(data: RunData, theme: Theme = "light", topics: Collection[str] = TOPICS) -> Iterator[Chart]:
    """The charts of a run with the first choices of its pages, topic by topic.

    The topics of charts of workloads come together, workload by workload.

    Args:
        topics: of `TOPICS`, those that are wanted.
    """
    style = look(data, theme)
    sections = [section for topic, having in EXPORTED.items() if topic in topics for section in having]
    for of_run, group in groupby(sections, key=lambda section: section.of == "run"):
        together = list(group)
        for workload in ("",) if of_run else data.workloads:
            yield from _drawn(data, style, workload, together)


def _drawn(data: RunData, style: Look, workload: str, together: Sequence[Section]) -> Iterator[Chart]:
    """Charts of a run or of one workload: first charts of timings (without phases), then the others."""
    of_timing = [each for each in together if each.of == "timing"]
    for timing in cells.timings(data, workload) if of_timing else ():
        if not timing.scope.startswith(PHASE):
            for each in of_timing:
                yield from each.charts(data, style, workload, timing)
    for each in together:
        if each.of != "timing":
            yield from each.charts(data, style, *([workload] if each.of == "workload" else []))


def parse_names(names: str, allowed: Sequence[str], what: str) -> tuple[str, ...]:
    """`html,csv` as names of formats or of topics. Raises Error: a name is not allowed, or the text is empty.

    Args:
        what: `format` or `topic`.
    """
    words = tuple(dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip()))
    unknown = [word for word in words if word not in allowed]
    if unknown or not words:
        raise Error(f"{unknown[0] if unknown else f'--{what}'}: no such {what}; known: {', '.join(allowed)}")
    return words


def write(
    data: RunData,
    out: Path,
    chart_formats: Sequence[str],
    say: Callable[[str], None] = lambda line: None,
    topics: Sequence[str] = TOPICS,
) -> str | None:
    """Write the charts of a run in each format, and `report.html`.

    The files are written to a temporary folder and moved when complete. Other files in `out` stay.

    Args:
        out: folder to write to, made where it does not exist.
        chart_formats: formats, of `formats.CHARTS`.
        say: takes a line on the progress.
        topics: the topics of the charts, from `TOPICS`.

    Returns:
        The reason that images could not be made, where they were asked for; the other formats are written anyway.

    Raises:
        Error: `out` cannot be written; the run has nothing to chart of the topics.
    """
    try:
        staging = _staging(out)
    except OSError as error:
        raise Error(f"{out}: cannot be written ({error.strerror}); choose another folder with --out") from error
    try:
        say("Comparing …")
        charts = list(charts_of(data, topics=topics))
        if not charts and len(topics) < len(TOPICS):
            raise Error(f"this run has nothing to chart of {', '.join(topics)}; leave out --topic, or name another run")
        (staging / REPORT).write_text(report(data, summary.figures(data, ROOT), charts), encoding="utf-8")
        for chart in charts:
            if "html" in chart_formats:
                figure = headed.figure(chart)
                del figure["layout"]["width"]
                # The pages load plotly.min.js from their own folder.
                page = pio.to_html(figure, include_plotlyjs="plotly.min.js", config=CONFIG, validate=False)
                (staging / f"{chart.name}.html").write_text(page, encoding="utf-8")
            if "csv" in chart_formats:
                (staging / f"{chart.name}.csv").write_text(csv(chart.data), encoding="utf-8")
        if "html" in chart_formats:
            # One copy for all pages, because it is about a hundred times larger than a chart.
            (staging / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
        problem = _write_images(charts, [name for name in chart_formats if name in formats.IMAGES], staging, say)
        _move(staging, out)
        say(f"{out}: {REPORT} and {len(charts)} charts as {', '.join(chart_formats)}")
    except OSError as error:
        raise Error(f"{out}: cannot be written ({error.strerror}); free some space or choose another --out") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return problem


def _write_images(charts: Sequence[Chart], kinds: Sequence[str], folder: Path, say: Callable[[str], None]) -> str | None:
    if not kinds:
        return None
    if reason := images.why_not():
        return reason
    say(f"Drawing {len(charts)} charts …")
    try:
        images.write(charts, kinds, folder)
    except images.ImageError as error:
        return str(error)
    return None


def _staging(out: Path) -> Path:
    """A new folder on the same file system: within `out` where that exists, because its parent may not be writable."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(None, "is a file")
    parent = out if out.is_dir() else out.parent
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".warpladder-export-", dir=parent))


def _move(staging: Path, out: Path) -> None:
    if not out.exists():
        # mkdtemp makes folders that only their owner can enter.
        mask = os.umask(0)
        os.umask(mask)
        staging.chmod(0o777 & ~mask)
        staging.rename(out)
        return
    for file in sorted(staging.iterdir()):
        file.replace(out / file.name)
