"""Charts as PNG and SVG, drawn by a Chromium of this machine. No request leaves the machine.

Kaleido (1.5 was tried) would replace the tabs of `draw`, about 200 lines. It embeds no font in an SVG, so that a picture changes
from machine to machine, and makes no room for texts that are cut off. It takes as long: 5 to 11 s for one figure, against 5 to 6 s here.
"""

import asyncio
import base64
import json
import logging
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import choreographer
from choreographer.browsers.chromium import Chromium
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from warpladder.dashboard.ui import headed, template
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
_DENSITY: Final = 2.0  # of a PNG, for screens and print of twice the density

# When choreographer closes its pipe, the pipe may hold half a message of Chromium. Choreographer ignores it and logs a
# traceback. A message that is needed makes the drawing fail anyway.
logging.getLogger("choreographer.channels.pipe").addFilter(lambda record: "JSONError" not in str(record.msg))


class ImageError(Error):
    """Images cannot be made. The message says why and what to do, in one line."""


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
    return f"PNG and SVG need a Chromium{f', and BROWSER_PATH={variable} is none' if variable else ''}: {INSTALL}"


def draw(charts: Sequence[Chart], formats: Sequence[str]) -> list[dict[str, bytes]]:
    """Charts as pictures by format, in their order, drawn side by side in the tabs of one browser.

    Args:
        formats: of `svg` and `png`.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    path, reason = browser(), why_not()
    if path is None or reason:
        raise ImageError(str(reason))
    try:
        with ThreadPoolExecutor(max_workers=1) as threads:  # of its own, since the caller's may have an event loop
            return threads.submit(asyncio.run, _draw_all(charts, formats, path)).result()
    # Choreographer raises any error of the browser, its pipe or the event loop.
    except (Exception, asyncio.CancelledError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise ImageError(
            f"{path}: could not draw ({type(error).__name__}: {first_line}); run it once by hand to see why, or {INSTALL}"
        ) from error


async def _draw_all(charts: Sequence[Chart], formats: Sequence[str], path: Path) -> list[dict[str, bytes]]:
    waiting = list(enumerate(charts))[::-1]
    pictures: dict[int, dict[str, bytes]] = {}

    async def work(browser: choreographer.Browser) -> None:
        tab = await browser.create_tab("about:blank", window=True)
        await asyncio.wait_for(_prepare(tab), _SECONDS)
        while waiting:
            place, chart = waiting.pop()
            pictures[place] = await asyncio.wait_for(_draw(tab, chart, formats), _SECONDS)

    tabs = max(1, min(_MOST_TABS, os.cpu_count() or 1, len(charts)))
    async with choreographer.Browser(path=path, proxy_server=_NO_NETWORK) as browser:
        await asyncio.gather(*(work(browser) for _ in range(tabs)))
    return [pictures[place] for place in range(len(charts))]


async def _prepare(tab: choreographer.Tab) -> None:
    own = Path(__file__).with_name("draw.js").read_text(encoding="utf-8")
    for source in (get_plotlyjs(), own, f"prepare({json.dumps(template.faces())})"):
        await _command(tab, "Runtime.evaluate", expression=f"{source}\n;", awaitPromise=True)


async def _draw(tab: choreographer.Tab, chart: Chart, formats: Sequence[str]) -> dict[str, bytes]:
    figure = to_json_plotly(headed.figure(chart))
    drawn = json.loads(await _call(tab, f"draw({json.dumps(figure)})"))
    wide, high = drawn["width"], drawn["height"]  # of the layout, in pixels, after room was made for texts
    svg, files = template.embedded(drawn["svg"]), {}
    if "png" in formats:
        files["png"] = base64.b64decode(await _call(tab, f"rasterize({json.dumps(svg)}, {wide}, {high}, {_DENSITY})"))
    if "svg" in formats:
        files["svg"] = svg.encode()
    return files


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


def write(charts: Sequence[Chart], formats: Sequence[str], folder: Path) -> None:
    """Write each chart as `<name>.<format>`; see `draw`. Raises OSError: a file cannot be written."""
    for chart, files in zip(charts, draw(charts, formats), strict=True):
        for name, data in files.items():
            (folder / f"{chart.name}.{name}").write_bytes(data)


def image(chart: Chart, image_format: str) -> bytes:
    """One chart in one format; see `draw`."""
    return draw([chart], [image_format])[0][image_format]
