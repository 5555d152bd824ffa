"""Charts as PNG, SVG and PDF, drawn by a Chromium of this machine. No request leaves the machine.

Kaleido (1.5 was tried) would replace the tabs of `draw`, about 200 lines. It embeds no font in an SVG or a PDF, so that a picture changes
from machine to machine, and makes no room for texts that are cut off. It takes as long: 5 to 11 s for one figure, against 5 to 6 s here.
"""

import asyncio
import base64
import json
import logging
import os
import re
import shutil
import struct
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import choreographer
from choreographer.browsers.chromium import Chromium
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from warpladder.dashboard.ui import paper, template
from warpladder.dashboard.ui.paper import SCREEN, Paper
from warpladder.dashboard.ui.template import Chart
from warpladder.errors import Error

INSTALL: Final = (
    "install Chromium (Debian and Ubuntu: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install "
    "chromium), or name one in BROWSER_PATH"
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
#: No server listens at this address, so a request of the page would fail on this machine.
_NO_NETWORK: Final = "http://127.0.0.1:9"
_MOST_TABS: Final = 4
_SECONDS: Final = 120.0  # for one figure, or to prepare a tab

# When choreographer closes its pipe, the pipe may hold half a message of Chromium. Choreographer ignores it and logs a
# traceback. A message that is needed makes the drawing fail anyway.
logging.getLogger("choreographer.channels.pipe").addFilter(lambda record: "JSONError" not in str(record.msg))


class ImageError(Error):
    """Images cannot be made. The message says why and what to do, in one line."""


@dataclass(frozen=True)
class Job:
    """A figure to draw.

    Attributes:
        figure: JSON of the figure; its layout has `width` and `height` in pixels, and all four margins.
        scale: size of the picture over the size of the layout; texts, lines and marks grow with it.
        density: pixels of a PNG for a pixel of the layout.
        formats: those that are wanted, of `svg`, `png` and `pdf`.
    """

    figure: str
    scale: float
    density: float
    formats: Sequence[str]


@dataclass(frozen=True)
class Pictures:
    """The result of a job in a tab.

    Attributes:
        files: by format; an SVG has the size of its layout.
        width: of the layout, in pixels.
        height: of the layout, in pixels, after room was made for texts.
    """

    files: dict[str, bytes]
    width: float
    height: float


def browser() -> Path | None:
    """The Chromium to draw with: `BROWSER_PATH`, one on PATH, or one in the usual place of this system."""
    variable = os.environ.get("BROWSER_PATH")
    if variable:
        return Path(variable) if os.access(variable, os.X_OK) else None
    path = next(filter(None, map(shutil.which, _NAMES)), None) or Chromium.find_browser(skip_local=False)
    return Path(path) if path else None


def why_not() -> str | None:
    """The reason that no image can be made here, with what to install; None where images can be made."""
    if browser():
        return None
    variable = os.environ.get("BROWSER_PATH")
    return f"PNG, SVG and PDF need a Chromium{f', and BROWSER_PATH={variable} is none' if variable else ''}: {INSTALL}"


def draw(jobs: Sequence[Job]) -> list[Pictures]:
    """Draw figures, in their order, side by side in the tabs of one browser.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    path, reason = browser(), why_not()
    if path is None or reason:
        raise ImageError(str(reason))
    try:
        with ThreadPoolExecutor(max_workers=1) as threads:  # of its own, since the caller's may have an event loop
            return threads.submit(asyncio.run, _draw_all(jobs, path)).result()
    # Choreographer raises any error of the browser, its pipe or the event loop.
    except (Exception, asyncio.CancelledError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise ImageError(
            f"{path}: could not draw ({type(error).__name__}: {first_line}); run it once by hand to see why, or {INSTALL}"
        ) from error


async def _draw_all(jobs: Sequence[Job], path: Path) -> list[Pictures]:
    waiting = list(enumerate(jobs))[::-1]
    pictures: dict[int, Pictures] = {}

    async def work(browser: choreographer.Browser) -> None:
        tab = await browser.create_tab("about:blank", window=True)
        await asyncio.wait_for(_prepare(tab), _SECONDS)
        while waiting:
            place, job = waiting.pop()
            pictures[place] = await asyncio.wait_for(_draw(tab, job), _SECONDS)

    tabs = max(1, min(_MOST_TABS, os.cpu_count() or 1, len(jobs)))
    async with choreographer.Browser(path=path, proxy_server=_NO_NETWORK) as browser:
        await asyncio.gather(*(work(browser) for _ in range(tabs)))
    return [pictures[place] for place in range(len(jobs))]


async def _prepare(tab: choreographer.Tab) -> None:
    own = Path(__file__).with_name("draw.js").read_text(encoding="utf-8")
    for source in (get_plotlyjs(), own, f"prepare({json.dumps(template.faces())})"):
        await _command(tab, "Runtime.evaluate", expression=f"{source}\n;", awaitPromise=True)


async def _draw(tab: choreographer.Tab, job: Job) -> Pictures:
    drawn = json.loads(await _call(tab, f"draw({json.dumps(job.figure)})"))
    width, height = drawn["width"], drawn["height"]
    svg = template.embedded(drawn["svg"])
    files = {"svg": svg.encode()} if "svg" in job.formats else {}
    if "png" in job.formats:
        png = await _call(tab, f"rasterize({json.dumps(svg)}, {width}, {height}, {job.density})")
        files["png"] = base64.b64decode(png)
    if "pdf" in job.formats:
        files["pdf"] = await _print(tab, width * job.scale, height * job.scale)
    return Pictures(files, width, height)


async def _print(tab: choreographer.Tab, width: float, height: float) -> bytes:
    """The drawing that the tab shows, as a PDF of one page.

    Args:
        width: of the page, in CSS pixels, as the height.
    """
    await _call(tab, f"lay({width}, {height})")
    # The size that the page declares is kept to a quarter of a point; paperWidth is not.
    page = await _command(tab, "Page.printToPDF", printBackground=True, preferCSSPageSize=True, pageRanges="1")
    return base64.b64decode(page["data"])


async def _call(tab: choreographer.Tab, expression: str) -> str:
    answer = await _command(tab, "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
    return str(answer["result"].get("value", ""))


async def _command(tab: choreographer.Tab, name: str, **params: Any) -> dict[str, Any]:
    """Raises RuntimeError: Chromium or a script in it fails."""
    answer = await tab.send_command(name, params=params)
    if "error" in answer:
        raise RuntimeError(answer["error"].get("message", name))
    result: dict[str, Any] = answer["result"]
    if thrown := result.get("exceptionDetails"):
        raise RuntimeError(thrown.get("exception", {}).get("description") or thrown.get("text", name))
    return result


_SCREEN_DENSITY: Final = 2.0  # of a PNG, for screens and print of twice the density
_PRINT_DPI: Final = 600
_CSS_DPI: Final = 96
_PNG_START: Final = 33  # bytes of the signature and of IHDR, after which further chunks may stand
_SVG_SIZE: Final = re.compile(r'<svg([^>]*?) width="[^"]*" height="[^"]*"')


def write(charts: Sequence[Chart], formats: Sequence[str], folder: Path, size: Paper = SCREEN) -> None:
    """Write each chart as `<name>.<format>`, with one browser for all.

    Args:
        formats: of `svg`, `png` and `pdf`.

    Raises:
        ImageError: there is no Chromium, or it fails.
        OSError: a file cannot be written.
    """
    jobs = [_job(chart, formats, size) for chart in charts]
    for chart, drawn in zip(charts, draw(jobs), strict=True):
        for name in formats:
            (folder / f"{chart.name}.{name}").write_bytes(_file(drawn, name, size))


def image(chart: Chart, image_format: str, size: Paper = SCREEN) -> bytes:
    """One chart as `png`, `svg` or `pdf`.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    (drawn,) = draw([_job(chart, [image_format], size)])
    return _file(drawn, image_format, size)


def _job(chart: Chart, formats: Sequence[str], size: Paper) -> Job:
    density = size.scale * _PRINT_DPI / _CSS_DPI if size.font_px else _SCREEN_DENSITY
    return Job(to_json_plotly(paper.figure(chart, size)), size.scale, density, formats)


def _file(drawn: Pictures, name: str, size: Paper) -> bytes:
    data = drawn.files[name]
    if name == "svg" and size.font_px:
        wide, high = (f"{pixels * size.scale * 25.4 / _CSS_DPI:.3f}mm" for pixels in (drawn.width, drawn.height))
        return _SVG_SIZE.sub(rf'<svg\1 width="{wide}" height="{high}"', data.decode(), count=1).encode()
    return _with_density(data) if name == "png" and size.font_px else data


def _with_density(png: bytes) -> bytes:
    """A PNG with the chunk pHYs, by which a word processor knows its width."""
    per_metre = round(_PRINT_DPI / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    return png[:_PNG_START] + struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[_PNG_START:]
