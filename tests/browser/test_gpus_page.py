"""The page GPUs in a real Chromium."""

import re

import pytest

from tests.browser.pages import PATIENCE_MS, download, expect, open_page, settle, sync_api


@pytest.mark.thorough
def test_the_first_answer_is_the_best_number_for_each_size_and_fits_the_screen(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/gpus?run=scaling")
    answer = page.get_by_role("heading", name=re.compile("1 GPU is best up to images=100, 2 up to images=1000, 4 above"))
    expect(answer).to_be_visible(timeout=PATIENCE_MS)
    chart = page.locator(".js-plotly-plot .main-svg").first
    expect(chart).to_be_visible(timeout=PATIENCE_MS)
    box = chart.bounding_box()
    assert box and box["y"] + box["height"] <= 720


@pytest.mark.thorough
def test_a_link_shows_the_same_weak_scaling_which_is_downloaded(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/gpus?run=scaling&workload=mlp_training&show=weak&per_rank=400")
    expect(page.get_by_role("heading", name=re.compile("batch 400 a rank"))).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    header, *rows = download(page, "CSV").decode().splitlines()
    assert {"ranks", "per_rank", "weak_efficiency"} <= set(header.split(","))
    assert len(rows) == 6, "two variants on 1, 2 and 4 GPUs"
