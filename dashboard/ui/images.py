"""Charts as PNG, SVG and PDF, drawn by a Chromium that is installed on this machine. No request leaves it."""

import asyncio
import logging
import os
import shutil
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import kaleido
import plotly.graph_objects as go
from choreographer.browsers.chromium import Chromium

from warpladder.dashboard.ui.template import Chart, text

INSTALL: Final = (
    "install Chromium (Debian and Ubuntu: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install "
    "chromium), or name one in BROWSER_PATH"
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_WIDTH_PX: Final = 1000
_SCALE: Final = 2  # of a PNG, for screens and print of twice the density
_TITLE_CHARACTERS: Final = 100
_NOTE_CHARACTERS: Final = 150
_TITLE_LINE_PX: Final = 22
_NOTE_LINE_PX: Final = 15
#: No server listens at this address, so a request of the page would fail on this machine.
_NO_NETWORK: Final = "http://127.0.0.1:9"
_TABS: Final = 4

# When choreographer closes its pipe, the pipe may hold half a message of Chromium. Choreographer ignores it and logs a
# traceback. A message that is needed makes the drawing fail anyway.
logging.getLogger("choreographer.channels.pipe").addFilter(lambda record: "JSONError" not in str(record.msg))


class ImageError(Exception):
    """Images cannot be made. The message says why and what to do, in one line."""


def browser() -> Path | None:
    """The Chromium to draw with: `BROWSER_PATH`, one on PATH, or one in the usual place of this system."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return Path(named) if os.access(named, os.X_OK) else None
    found = next(filter(None, map(shutil.which, _NAMES)), None) or Chromium.find_browser(skip_local=False)
    return Path(found) if found else None


def why_not() -> str | None:
    """The reason that no image can be made here, with what to install; None where images can be made."""
    if browser():
        return None
    named = os.environ.get("BROWSER_PATH")
    return f"PNG, SVG and PDF need a Chromium{f', and BROWSER_PATH={named} is none' if named else ''}: {INSTALL}"


def write(charts: Sequence[tuple[Chart, Path]]) -> None:
    """Write each chart to its file, in the format of its suffix, with one browser for all.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    path, reason = browser(), why_not()
    if path is None or reason:
        raise ImageError(str(reason))
    jobs = [_job(chart, file) for chart, file in charts]
    tabs = max(1, min(_TABS, os.cpu_count() or 1, len(jobs)))
    options = {"path": str(path), "mathjax": False, "proxy_server": _NO_NETWORK, "n": tabs}
    try:
        kaleido.write_fig_from_object_sync(jobs, kopts=options, cancel_on_error=True)
    # Kaleido raises any error of the browser, its pipe or the event loop.
    except (Exception, asyncio.CancelledError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise ImageError(
            f"{path}: could not draw ({type(error).__name__}: {first_line}); run it once by hand to see why, or {INSTALL}"
        ) from error


def image(chart: Chart, image_format: str) -> bytes:
    """One chart as `png`, `svg` or `pdf`.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"chart.{image_format}"
        write([(chart, file)])
        return file.read_bytes()


def with_heading(chart: Chart) -> go.Figure:
    """The figure with its title and note above it, for images."""
    figure = go.Figure(chart.figure)
    title = textwrap.wrap(chart.title, _TITLE_CHARACTERS)
    note = textwrap.wrap(chart.note, _NOTE_CHARACTERS)
    # Plotly centres a title of several lines at its place, so its first line is higher.
    above = _TITLE_LINE_PX * (len(title) - 1) / 2
    room = 10 + _TITLE_LINE_PX * len(title) + _NOTE_LINE_PX * len(note) + 8
    layout = figure.layout
    muted = layout.template.layout.xaxis.tickfont.color
    figure.update_layout(
        title={
            "text": "<br>".join(map(text, title)),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 10, "t": 12 + above},
            "font": {"size": 17},
            "subtitle": {"text": "<br>".join(map(text, note)), "font": {"size": 11.5, "color": muted}},
        },
        height=layout.height + room,
        margin={"t": (layout.margin.t or 0) + room},
    )
    return figure


def _job(chart: Chart, file: Path) -> dict[str, Any]:
    figure = with_heading(chart)
    image_format = file.suffix.removeprefix(".")
    scale = _SCALE if image_format == "png" else 1
    opts = {"format": image_format, "width": _WIDTH_PX, "height": figure.layout.height, "scale": scale}
    return {"fig": figure.to_plotly_json(), "path": str(file), "opts": opts}
