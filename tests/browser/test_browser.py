"""The dashboard in a real Chromium: every page, the state in the URL, the downloads, and that nothing leaves the machine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.pages import PATIENCE_MS, download, expect, open_page, option, settle, sync_api

PAGES = ("", "home", "sizes", "ship", "published", "roofline", "details", "trust", "ladder")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_without_an_exception_and_draws(page: "sync_api.Page", address: str, name: str) -> None:
    open_page(page, f"{address}/{name}?run=gpu")
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=PATIENCE_MS)
    if name in ("", "home"):
        expect(page.get_by_role("grid").first).to_be_visible(timeout=PATIENCE_MS)
    elif name != "trust":
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_every_page_is_reached_from_the_menu_and_keeps_the_run(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/?run=host")
    for title, name in (("Sizes", "sizes"), ("Ladder", "ladder"), ("Trust", "trust"), ("Home", "")):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        settle(page)
        expect(page).to_have_url(re.compile(rf"/{name}\?.*run=host"), timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_a_reload_of_the_url_finds_the_same_choices(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/sizes?run=gpu")
    page.get_by_role("combobox", name="Workload").click()
    page.get_by_role("option", name="conv2d").click()
    expect(page).to_have_url(re.compile("workload=conv2d"), timeout=PATIENCE_MS)
    settle(page)
    option(page, "L2", "hot").click()
    expect(page).to_have_url(re.compile("cache=hot"), timeout=PATIENCE_MS)
    settle(page)
    chosen = page.url

    page.reload()
    settle(page)

    expect(option(page, "L2", "hot")).to_have_attribute("aria-checked", "true", timeout=PATIENCE_MS)
    assert page.url == chosen


@pytest.mark.thorough
def test_a_chart_is_downloaded_as_csv_html_svg_and_png(page: "sync_api.Page", address: str, tmp_path: Path) -> None:
    open_page(page, f"{address}/ladder?run=gpu&workload=conv2d&case.n=2048")
    content = {kind: download(page, kind) for kind in ("CSV", "HTML", "SVG", "PNG")}
    header, *rows = content["CSV"].decode().splitlines()
    assert "median_ns" in header.split(",")
    assert any("v04_sliding" in row for row in rows)
    assert content["HTML"].startswith(b"<!DOCTYPE html>")
    assert b"<svg" in content["SVG"][:500]
    assert content["PNG"].startswith(b"\x89PNG\r\n\x1a\n")

    saved = tmp_path / "chart.html"
    saved.write_bytes(content["HTML"])
    page.goto(saved.as_uri())
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def ladder(browser: "sync_api.Browser", address: str) -> Iterator["sync_api.Page"]:
    """A page that may ask for anything, and whose theme changes."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme="light")
    opened = context.new_page()
    open_page(opened, f"{address}/ladder?run=gpu")
    yield opened
    context.close()


def test_charts_follow_a_change_of_the_theme(ladder: "sync_api.Page") -> None:
    for scheme, color in (("light", "rgb(31, 35, 40)"), ("dark", "rgb(230, 232, 235)"), ("light", "rgb(31, 35, 40)")):
        ladder.emulate_media(color_scheme=scheme)
        expect(ladder.locator(".js-plotly-plot .ytick text").first).to_have_css("fill", color, timeout=PATIENCE_MS)


def test_the_browser_itself_refuses_what_a_page_asks_of_another_machine(ladder: "sync_api.Page") -> None:
    for ask in (
        "fetch('http://evil.example/')",
        "new WebSocket('ws://evil.example/')",
        "new Image().src = 'http://evil.example/'",
    ):
        refused = ladder.evaluate(
            f"""() => new Promise(tell => {{
                document.addEventListener('securitypolicyviolation', event => tell(event.blockedURI), {{ once: true }});
                setTimeout(() => tell('nothing was refused'), 10_000);
                Promise.resolve().then(() => {ask}).catch(() => {{}});
            }})"""
        )
        assert "evil.example" in refused, ask
