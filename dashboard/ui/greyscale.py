"""What is left of a colour in print without colours."""

from collections.abc import Sequence
from typing import Final

#: Lightnesses (CIELAB, 0 to 100) that differ by less look alike in print.
APART: Final = 10.0
_PATTERNS: Final = ("", "/", "x", ".", "-", "\\")


def luminance(color: str) -> float:
    """The relative luminance (W3C) of a colour `#rrggbb`, from 0 to 1."""
    red, green, blue = (_linear(int(color[place : place + 2], 16) / 255) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lightness(color: str) -> float:
    """The lightness L* (CIE 1976) of a colour `#rrggbb`, from 0 to 100."""
    part = luminance(color)
    return float(116 * part ** (1 / 3) - 16 if part > 216 / 24389 else part * 24389 / 27)


def patterns(colors: Sequence[str]) -> list[str]:
    """A pattern for each area, so that no two areas of about one lightness have the same one while patterns last.

    Args:
        colors: of the areas, `#rrggbb`.
    """
    found: list[str] = []
    for color in colors:
        used = [pattern for pattern, other in zip(found, colors, strict=False) if _alike(color, other)]
        found.append(min(_PATTERNS, key=used.count))
    return found


def _alike(one: str, other: str) -> bool:
    return abs(lightness(one) - lightness(other)) < APART


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
