"""A Chromium of this machine, which draws figures as SVG, PNG and PDF. No request leaves the machine."""

import asyncio
import base64
import json
import logging
import os
import shutil
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import choreographer
from choreographer.browsers.chromium import Chromium
from plotly.offline import get_plotlyjs

from warpladder.dashboard.ui import font
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
        scale: size of the picture over that of the layout; texts, lines and marks grow with it.
        density: pixels of a PNG for a pixel of the layout.
        formats: those that are wanted, of `svg`, `png` and `pdf`.
        check: whether to look for texts that overlap or are cut off.
    """

    figure: str
    scale: float
    density: float
    formats: Sequence[str]
    check: bool = False


@dataclass(frozen=True)
class Drawn:
    """What a tab made of a job.

    Attributes:
        files: by format; an SVG has the size of its layout.
        width: of the layout, in pixels.
        height: of the layout, in pixels, after room was made for texts.
        faults: texts that overlap or are cut off, in words, where the job asks for them.
    """

    files: dict[str, bytes]
    width: float
    height: float
    faults: tuple[str, ...]


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


def draw(jobs: Sequence[Job]) -> list[Drawn]:
    """Draw figures, in their order, side by side in the tabs of one browser.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    path, reason = browser(), why_not()
    if path is None or reason:
        raise ImageError(str(reason))
    try:
        return _in_thread(_draw_all(jobs, path))
    # Choreographer raises any error of the browser, its pipe or the event loop.
    except (Exception, asyncio.CancelledError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise ImageError(
            f"{path}: could not draw ({type(error).__name__}: {first_line}); run it once by hand to see why, or {INSTALL}"
        ) from error


def _in_thread(work: Coroutine[Any, Any, list[Drawn]]) -> list[Drawn]:
    """Run a coroutine in a thread of its own, since the caller's may have an event loop."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(asyncio.run, work).result()


async def _draw_all(jobs: Sequence[Job], path: Path) -> list[Drawn]:
    waiting = list(enumerate(jobs))[::-1]
    done: dict[int, Drawn] = {}

    async def work(browser: choreographer.Browser) -> None:
        tab = await browser.create_tab("about:blank", window=True)
        await asyncio.wait_for(_prepare(tab), _SECONDS)
        while waiting:
            place, job = waiting.pop()
            done[place] = await asyncio.wait_for(_draw(tab, job), _SECONDS)

    tabs = max(1, min(_MOST_TABS, os.cpu_count() or 1, len(jobs)))
    async with choreographer.Browser(path=path, proxy_server=_NO_NETWORK) as browser:
        await asyncio.gather(*(work(browser) for _ in range(tabs)))
    return [done[place] for place in range(len(jobs))]


async def _prepare(tab: choreographer.Tab) -> None:
    own = Path(__file__).with_name("draw.js").read_text(encoding="utf-8")
    for source in (get_plotlyjs(), own, f"prepare({json.dumps(font.faces())})"):
        await _command(tab, "Runtime.evaluate", expression=f"{source}\n;", awaitPromise=True)


async def _draw(tab: choreographer.Tab, job: Job) -> Drawn:
    drawn = json.loads(await _call(tab, f"draw({json.dumps(job.figure)})"))
    width, height = drawn["width"], drawn["height"]
    faults = tuple(json.loads(await _call(tab, f"faults({width}, {height})"))) if job.check else ()
    svg = font.embedded(drawn["svg"])
    files = {"svg": svg.encode()} if "svg" in job.formats else {}
    if "png" in job.formats:
        png = await _call(tab, f"rasterize({json.dumps(svg)}, {width}, {height}, {job.density})")
        files["png"] = base64.b64decode(png)
    if "pdf" in job.formats:
        files["pdf"] = await _print(tab, width * job.scale, height * job.scale)
    return Drawn(files, width, height, faults)


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
    found = await _command(tab, "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
    return str(found["result"].get("value", ""))


async def _command(tab: choreographer.Tab, name: str, **params: Any) -> dict[str, Any]:
    """Raises RuntimeError: Chromium or a script in it fails."""
    answer = await tab.send_command(name, params=params)
    if "error" in answer:
        raise RuntimeError(answer["error"].get("message", name))
    found: dict[str, Any] = answer["result"]
    if thrown := found.get("exceptionDetails"):
        raise RuntimeError(thrown.get("exception", {}).get("description") or thrown.get("text", name))
    return found
