"""The Timeline in a real Chromium: wheel, drag, keys and clicks, the state in the URL, and names that are markup."""

import re
from pathlib import Path

import pytest

from tests.browser.pages import PATIENCE_MS, download, expect, open_page, settle, sync_api

#: Where the lanes begin, and how wide they are, within the canvas of a window 1280 pixels wide.
LABELS_PX = 132


def drawn(page: "sync_api.Page") -> "sync_api.Locator":
    """The timeline, once it has drawn what the server sent."""
    timeline = page.locator(".timeline[data-number]")
    expect(timeline).to_be_visible(timeout=PATIENCE_MS)
    return timeline


def window(page: "sync_api.Page") -> tuple[int, int]:
    timeline = drawn(page)
    return int(timeline.get_attribute("data-begin") or ""), int(timeline.get_attribute("data-end") or "")


def place(page: "sync_api.Page", time_ns: float, row_px: float) -> tuple[float, float]:
    """Where a time is on the page, and a height within the lanes."""
    begin, end = window(page)
    box = page.locator("canvas.lanes").bounding_box()
    assert box is not None
    return box["x"] + LABELS_PX + (time_ns - begin) / (end - begin) * (box["width"] - LABELS_PX - 6), box["y"] + row_px


def pixels(page: "sync_api.Page") -> str:
    content: str = page.locator("canvas.lanes").evaluate("canvas => canvas.toDataURL()")
    return content


def answered(page: "sync_api.Page", before: str | None) -> None:
    """Wait for the answer to what was done after `before`, the number of the last answer."""
    expect(drawn(page)).not_to_have_attribute("data-number", before or "", timeout=PATIENCE_MS)
    settle(page)


def number(page: "sync_api.Page") -> str | None:
    return drawn(page).get_attribute("data-number")


# Rows of the canvas: a heading of 19 pixels, then the stream's lane of 24.
STREAM_PX = 19 + 12


@pytest.mark.thorough
def test_the_wheel_zooms_at_the_pointer_and_the_url_keeps_the_window(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace")
    assert window(page) == (0, 12_300)
    before, first = number(page), pixels(page)
    page.mouse.move(*place(page, 6_000, STREAM_PX))
    page.mouse.wheel(0, -300)
    answered(page, before)
    begin, end = window(page)
    assert 0 < begin < 6_000 < end < 12_300
    assert (6_000 - begin) / (end - begin) == pytest.approx(6_000 / 12_300, abs=0.01), "what is at the pointer stays there"
    expect(page).to_have_url(re.compile(f"window={begin}-{end}"), timeout=PATIENCE_MS)
    assert pixels(page) != first
    chosen, shown = page.url, pixels(page)

    page.reload()
    settle(page)
    assert window(page) == (begin, end)
    assert (page.url, pixels(page)) == (chosen, shown)


def test_keys_pan_zoom_and_fit_and_a_narrower_window_has_the_whole_width(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace&window=4000-8000")
    canvas = page.locator("canvas.lanes")
    for key, expected in (("ArrowRight", (4_800, 8_800)), ("+", (5_800, 7_800)), ("-", (4_800, 8_800)), ("0", (0, 12_300))):
        before = number(page)
        canvas.press(key)
        answered(page, before)
        assert window(page) == expected
    expect(page).not_to_have_url(re.compile("window="), timeout=PATIENCE_MS)
    page.set_viewport_size({"width": 900, "height": 700})
    fits = "lanes => lanes.clientWidth <= lanes.parentElement.clientWidth"
    page.wait_for_function(fits, arg=canvas.element_handle(), timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_dragging_pans_without_waiting_for_the_server(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace&window=4000-8000")
    before = number(page)
    page.mouse.move(*place(page, 7_000, STREAM_PX))
    page.mouse.down()
    page.mouse.move(*place(page, 6_000, STREAM_PX), steps=4)
    begin, end = window(page)
    page.mouse.up()
    assert end - begin == pytest.approx(4_000, abs=2)
    assert begin == pytest.approx(5_000, abs=10)
    answered(page, before)
    assert window(page) == (begin, end)


@pytest.mark.thorough
def test_a_double_click_zooms_to_an_event_and_beside_events_shows_the_whole_trace(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace&window=4000-8000")
    before = number(page)
    page.mouse.dblclick(*place(page, 6_000, STREAM_PX))
    answered(page, before)
    # The kernel runs from 5000 to 7000; a tenth of it is left free on both sides.
    assert window(page) == (4_800, 7_200)
    expect(page).to_have_url(re.compile("chosen=kernels-2"), timeout=PATIENCE_MS)
    before = number(page)
    page.mouse.dblclick(*place(page, 7_100, STREAM_PX))
    answered(page, before)
    assert window(page) == (0, 12_300)


@pytest.mark.thorough
def test_keys_search_step_measure_and_zoom_and_a_drag_on_the_ruler_measures(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace")
    found, measured = (drawn(page).locator(name) for name in (".count", ".measured"))
    page.keyboard.press("/")
    page.keyboard.type("GEMM")
    expect(found).to_have_text("3 hits", timeout=PATIENCE_MS)
    for key, told in (
        ("Enter", "1 of 3"),
        ("Enter", "2 of 3"),
        ("Shift+Enter", "1 of 3"),
        ("Escape", "1 of 3"),
        ("N", "3 of 3"),
    ):
        page.keyboard.press(key)
        expect(found).to_have_text(told, timeout=PATIENCE_MS)
    page.keyboard.press("m")
    expect(measured).to_contain_text("Measured 2 µs, from 5 µs to 7 µs.")
    expect(page).to_have_url(re.compile("search=GEMM.*chosen=kernels-2.*measure=5000-7000"), timeout=PATIENCE_MS)
    before = number(page)
    page.keyboard.press("f")
    answered(page, before)
    assert window(page) == (4_800, 7_200)
    before = number(page)
    page.keyboard.press("Escape")
    answered(page, before)
    expect(measured).to_contain_text("Drag on the ruler")
    box = drawn(page).locator("canvas.axis").bounding_box()
    assert box is not None
    page.mouse.move(place(page, 5_500, 0)[0], box["y"] + 9)
    page.mouse.down()
    page.mouse.move(place(page, 6_500, 0)[0], box["y"] + 9, steps=3)
    page.mouse.up()
    expect(page).to_have_url(re.compile("measure="), timeout=PATIENCE_MS)
    begin, end = map(int, (drawn(page).get_attribute("data-measured") or "").split("-"))
    assert (begin, end) == (pytest.approx(5_500, abs=3), pytest.approx(6_500, abs=3))
    expect(page.get_by_role("heading", name="of the measured 1.00 µs")).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    # Below the table of GPUs is that of kernels; a row is 35 pixels high, and its box is at its left.
    page.get_by_test_id("stDataFrame").nth(1).click(position={"x": 20, "y": 35 + 17})
    expect(drawn(page).locator(".search .text")).to_have_value("void gemm<float>(float*)", timeout=PATIENCE_MS)
    expect(found).to_have_text("3 hits")


@pytest.mark.thorough
def test_an_arrow_leads_from_the_launch_to_the_kernel(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace&chosen=kernels-2")
    expect(drawn(page)).to_have_attribute("data-arrows", "1", timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_a_click_on_a_range_lists_its_kernels_and_a_link_shows_the_same(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace")
    before = number(page)
    # Two GPUs of process 100 stand above its thread: heading and lane twice, a heading, and half of the first lane of ranges.
    page.mouse.click(*place(page, 6_000, 2 * (19 + 24 + 2) + 19 + 8))
    answered(page, before)
    expect(page.get_by_role("heading", name="range train")).to_be_visible(timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile("chosen=ranges-0"), timeout=PATIENCE_MS)
    # The first CSV saves the figure's data, the second this table.
    with page.expect_download(timeout=PATIENCE_MS) as started:
        page.get_by_role("button", name="CSV", exact=True).last.click()
    table = Path(started.value.path()).read_text().splitlines()
    assert table[1] == "kernel,gemm<float>(float*),2,3000,3000,,1000,7000" or table[1].startswith(
        "kernel,void gemm<float>(float*),2,3000,3000"
    )

    page.reload()
    settle(page)
    expect(page.get_by_role("heading", name="range train")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_a_name_that_is_markup_is_shown_as_text(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace")
    expect(drawn(page).locator(".legend b", has_text="<img src=x onerror=aler")).to_be_visible()
    page.mouse.move(*place(page, 12_150, STREAM_PX))
    expect(drawn(page).locator(".tip")).to_contain_text("<img src=x onerror=alert(1)>[a](b)", timeout=PATIENCE_MS)
    before = number(page)
    page.mouse.down()
    page.mouse.up()
    answered(page, before)
    expect(page.get_by_role("heading", name="kernel <img src=x onerror=alert(1)>[a](b)")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("img[src=x]")).to_have_count(0)


@pytest.mark.thorough
def test_the_window_is_saved(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/timeline?run=trace&window=10000-12300")
    drawn(page)
    assert download(page, "PNG").startswith(b"\x89PNG")
    header, *rows = download(page, "CSV").decode().splitlines()
    assert header == "lane,name,start_ns,end_ns,busy_ns,count,color"
    assert rows[0].startswith("process 100 · GPU 0 · stream 7,relu,11000,11100,100,1")
