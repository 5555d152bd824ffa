"""The section Counters in a real Chromium."""

import re

import pytest

from tests.browser.pages import PATIENCE_MS, download, expect, open_page, option, settle, sync_api


@pytest.mark.thorough
def test_the_first_answer_fits_the_screen_and_names_what_limits_the_fastest(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/counters?run=counted")
    answer = page.get_by_role("heading", name=re.compile("is at its floor: at 96.3 % of it"))
    expect(answer).to_be_visible(timeout=PATIENCE_MS)
    chart = page.locator(".js-plotly-plot .main-svg").first
    expect(chart).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("latency-bound: long scoreboard")).to_be_visible(timeout=PATIENCE_MS)
    box = chart.bounding_box()
    assert box and box["y"] + box["height"] <= 720


@pytest.mark.thorough
def test_topics_live_in_the_url_and_the_readings_are_downloaded(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/counters?run=counted")
    option(page, "Show", "All metrics").click()
    expect(page).to_have_url(re.compile("counters=metrics"), timeout=PATIENCE_MS)
    settle(page)
    header, *rows = download(page, "CSV").decode().splitlines()
    assert header == "variant,config,kernel,launch_index,group,metric,meaning,value,unit"
    assert sum("gpu__time_duration.sum" in row for row in rows) == 7, "a launch each, and two of v05_swizzled"


@pytest.mark.thorough
def test_a_run_without_counters_leads_to_one_that_has_them(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/counters?run=gpu")
    page.get_by_test_id("stMain").get_by_role("link", name="counted").click()
    expect(page).to_have_url(re.compile("run=counted"), timeout=PATIENCE_MS)
    settle(page)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
