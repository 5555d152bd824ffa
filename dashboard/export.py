"""Writes the charts of a run to files, and one self-contained report."""

from dashboard.charts.template import Chart


class ExportError(Exception):
    """What cannot be exported. Its message says where, what, and what to do, in one line."""


def image(chart: Chart, image_format: str) -> bytes:
    """One chart as `png`, `svg` or `pdf`, by the system's Chromium.

    Raises:
        ExportError: no Chromium is found, or it fails; the message says what to install.
    """
    raise NotImplementedError


def html(chart: Chart) -> str:
    """One chart as a self-contained page, with its note; no request leaves it."""
    raise NotImplementedError
