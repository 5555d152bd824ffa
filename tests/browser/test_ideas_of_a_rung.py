"""The ideas of a rung on the page Ladder, in a real Chromium."""

import pytest

from tests.browser.pages import expect, open_page, settle, sync_api
from warpladder.data import store

RUN = store.find_run("H200 conv2d", [store.RECORDED]).run_id
LADDER = f"ladder?run={RUN}&workload=conv2d&variant=v09_loads_first"


@pytest.mark.thorough
def test_a_title_opens_the_page_of_the_idea_whose_rungs_lead_to_the_ladder(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/{LADDER}")
    source = page.locator(".source").bounding_box()
    title = page.get_by_role("button", name="All loads first")
    expect(title).to_be_visible()
    place = title.bounding_box()
    assert place and place["height"] < 30 and source and place["y"] < source["y"] < 720
    title.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("All its loads are in flight at once")).to_be_visible()
    expect(dialog.get_by_role("heading", name="By how much")).to_be_visible()
    link = dialog.get_by_role("link", name="v03_vectorized")
    target = link.get_attribute("href")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    open_page(page, f"{address}/{target}")
    settle(page)
    expect(page.get_by_text("workloads/mlp_elementwise/kernels/v03_vectorized.cu")).to_be_visible()
