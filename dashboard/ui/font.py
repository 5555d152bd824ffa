"""The font of exported pictures. It is a part of each file, so that a picture looks alike on every machine."""

import base64
from functools import cache
from pathlib import Path
from typing import Final

FAMILY: Final = "Warpladder Sans"
_FOLDER: Final = Path(__file__).resolve().parent / "fonts"
_WEIGHTS: Final = {"400": "100 500", "600": "501 900"}


@cache
def face(weight: str) -> str:
    """The CSS rule that declares one weight, with the font in it.

    Args:
        weight: `400` or `600`.
    """
    data = base64.b64encode((_FOLDER / f"warpladder-sans-{weight}.woff2").read_bytes()).decode()
    return (
        f"@font-face{{font-family:'{FAMILY}';font-weight:{_WEIGHTS[weight]};"
        f"src:url(data:font/woff2;base64,{data}) format('woff2')}}"
    )


def faces() -> str:
    """The CSS rules of both weights."""
    return "".join(map(face, _WEIGHTS))


def embedded(svg: str) -> str:
    """An SVG with the weights that its texts have."""
    bold = "font-weight" in svg or "<b>" in svg
    head, mark, rest = svg.partition(">")
    return f"{head}{mark}<style>{faces() if bold else face('400')}</style>{rest}"
