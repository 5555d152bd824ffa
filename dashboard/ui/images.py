"""Charts as PNG, SVG and PDF."""

import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plotly.io.json import to_json_plotly

from warpladder.dashboard.ui import browser, paper
from warpladder.dashboard.ui.browser import Drawn, ImageError, Job, why_not
from warpladder.dashboard.ui.paper import SCREEN, Paper
from warpladder.dashboard.ui.template import Chart

__all__ = ["ImageError", "image", "why_not", "write"]

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
    for chart, drawn in zip(charts, browser.draw(jobs), strict=True):
        for name in formats:
            (folder / f"{chart.name}.{name}").write_bytes(_file(drawn, name, size))


def image(chart: Chart, image_format: str, size: Paper = SCREEN) -> bytes:
    """One chart as `png`, `svg` or `pdf`.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    (drawn,) = browser.draw([_job(chart, [image_format], size)])
    return _file(drawn, image_format, size)


def faults(charts: Sequence[Chart], size: Paper = SCREEN) -> dict[str, tuple[str, ...]]:
    """The texts that overlap or are cut off, by the name of their chart.

    Raises:
        ImageError: there is no Chromium, or it fails.
    """
    jobs = [_job(chart, (), size, check=True) for chart in charts]
    found = zip(charts, browser.draw(jobs), strict=True)
    return {chart.name: drawn.faults for chart, drawn in found if drawn.faults}


def _job(chart: Chart, formats: Sequence[str], size: Paper, *, check: bool = False) -> Job:
    density = size.scale * _PRINT_DPI / _CSS_DPI if size.font_px else _SCREEN_DENSITY
    return Job(to_json_plotly(paper.figure(chart, size)), size.scale, density, formats, check)


def _file(drawn: Drawn, name: str, size: Paper) -> bytes:
    data = drawn.files[name]
    if name == "svg":
        return _sized(data.decode(), drawn, size).encode()
    return _with_density(data) if name == "png" and size.font_px else data


def _sized(svg: str, drawn: Drawn, size: Paper) -> str:
    if not size.font_px:
        return svg
    wide, high = (f"{pixels * size.scale * 25.4 / _CSS_DPI:.3f}mm" for pixels in (drawn.width, drawn.height))
    return _SVG_SIZE.sub(rf'<svg\1 width="{wide}" height="{high}"', svg, count=1)


def _with_density(png: bytes) -> bytes:
    """A PNG with the chunk pHYs, by which a word processor knows its width."""
    per_metre = round(_PRINT_DPI / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    return png[:_PNG_START] + struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[_PNG_START:]
