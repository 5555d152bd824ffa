"""The walk in a browser: what overlaps, what fails, how high and how slow each page is, in three sizes of the window and both themes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.browser.pages import DRAWN, HEIGHT, open_page, sync_api

SIZES: Final = ((1280, 800), (1024, 768), (1920, 1080))
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
#: Texts of a chart, and blocks of a page, that share more than three pixels in height, and in width more than what is given.
OVERLAPS: Final = """least => {
  const found = [];
  const across = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  const pairs = (items, where) => {
    for (let i = 0; i < items.length; i++) for (let j = i + 1; j < items.length; j++)
      if (across(items[i].box, items[j].box) > least && down(items[i].box, items[j].box) > 3)
        found.push(`${where}: ${items[i].name} | ${items[j].name}`);
  };
  // What is seen of a box in the parts of the page that scroll by themselves.
  const seen = element => {
    const box = element.getBoundingClientRect();
    let { top, bottom, left, right } = box;
    for (let each = element.parentElement; each && each !== main; each = each.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(each).overflowY)) {
        const outer = each.getBoundingClientRect();
        [top, bottom] = [Math.max(top, outer.top), Math.min(bottom, outer.bottom)];
      }
    return { top, bottom, left, right, width: right - left, height: bottom - top };
  };
  const main = document.querySelector('[data-testid="stMain"]') || document.body;
  for (const plot of main.querySelectorAll('.js-plotly-plot')) {
    const texts = [];
    for (const text of plot.querySelectorAll('svg text')) {
      const box = text.getBoundingClientRect(), style = getComputedStyle(text);
      if (!box.width || style.opacity === '0' || style.visibility === 'hidden' || !text.textContent.trim()) continue;
      if (text.closest('.hoverlayer, .modebar, .heatmaplayer')) continue;
      const legend = text.closest('.legend')?.querySelector('.bg')?.getBoundingClientRect();
      if (legend && (box.top < legend.top - 1 || box.bottom > legend.bottom + 1)) continue;
      // The box of a text at an angle is larger than the text.
      const angle = Number(/rotate\\((-?[0-9.]+)/.exec(text.getAttribute('transform') || '')?.[1] || 0);
      if (angle % 90) continue;
      texts.push({ box, name: text.textContent.slice(0, 40) });
    }
    pairs(texts, 'chart');
  }
  const blocks = [];
  for (const block of main.querySelectorAll('[data-testid="stElementContainer"]')) {
    const box = seen(block);
    if (block.checkVisibility({ visibilityProperty: true }) && !block.closest('details:not([open])') && box.width > 0 && box.height > 0 && !block.querySelector('[data-testid="stElementContainer"]'))
      blocks.push({ box, name: (block.innerText || block.className).slice(0, 40).replaceAll('\\n', ' ') });
  }
  pairs(blocks, 'blocks');
  for (const block of main.querySelectorAll('[data-testid="stMarkdown"], [data-testid="stButtonGroup"]'))
    if (block.scrollWidth > block.clientWidth + 2) found.push(`cut: ${block.innerText.slice(0, 40)}`);
  return found;
}"""


@dataclass(frozen=True)
class Seen:
    """A page as a browser shows it.

    Attributes:
        height: of its content, in pixels.
        seconds: from the address to the last chart.
        problems: overlaps, texts that are cut, errors of the page and of the console.
    """

    path: str
    width: int
    theme: str
    height: int
    seconds: float
    problems: tuple[str, ...]


def see(page: "sync_api.Page", address: str, path: str) -> Iterator[Seen]:
    """Open a page, and look at it in each size and theme."""
    errors: list[str] = []

    def note(message: Any) -> None:
        # Streamlit looks for its server under the page's own path first.
        if message.type == "error" and "/_stcore/" not in message.location["url"]:
            errors.append(f"console: {message.text} {message.location['url']}"[:200])

    def fail(error: Any) -> None:
        errors.append(f"script: {error}"[:200])

    page.on("console", note)
    page.on("pageerror", fail)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": SIZES[0][0], "height": SIZES[0][1]})
        before = time.monotonic()
        open_page(page, f"{address}/{path}")
        page.wait_for_function(DRAWN)
        seconds = time.monotonic() - before
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(400)  # Plotly draws a chart of another width after a moment
            page.wait_for_function(DRAWN)
            high = page.evaluate(HEIGHT)
            yield Seen(path, width, theme, int(high), seconds, (*dict.fromkeys(page.evaluate(OVERLAPS, 3)), *errors))
    page.remove_listener("console", note)
    page.remove_listener("pageerror", fail)
