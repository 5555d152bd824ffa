"""The browser's history: an entry a page, each with the choices that the page was left with."""

import pytest

from tests.browser.pages import PATIENCE_MS, expect, open_page, option, settle, sync_api


@pytest.mark.thorough
def test_back_leaves_a_page_in_one_step_and_finds_the_choices_of_the_page_before(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/ladder?run=gpu&workload=conv2d")
    first = page.evaluate("history.length")
    for name in ("hot", "cold", "hot"):
        option(page, "L2", name).click()
        expect(option(page, "L2", name)).to_have_attribute("aria-checked", "true", timeout=PATIENCE_MS)
        settle(page)
    expect(page).to_have_url(f"{address}/ladder?run=gpu&workload=conv2d&case.n=8192&cache=hot", timeout=PATIENCE_MS)
    expect(page).to_have_title("Ladder · conv2d n=8192, hot · Warpladder")
    for title in ("Trust", "Sizes"):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=title).click()
        expect(page.get_by_role("heading", level=1, name=title)).to_be_visible(timeout=PATIENCE_MS)
        settle(page)
    option(page, "L2", "cold").click()
    expect(page).to_have_url(f"{address}/sizes?run=gpu&workload=conv2d", timeout=PATIENCE_MS)
    assert page.evaluate("history.length") == first + 2

    page.go_back()
    expect(page).to_have_url(f"{address}/trust?run=gpu", timeout=PATIENCE_MS)
    settle(page)
    page.go_back()
    expect(page).to_have_url(f"{address}/ladder?run=gpu&workload=conv2d&case.n=8192&cache=hot", timeout=PATIENCE_MS)
    expect(option(page, "L2", "hot")).to_have_attribute("aria-checked", "true", timeout=PATIENCE_MS)
    expect(page).to_have_title("Ladder · conv2d n=8192, hot · Warpladder")
