"""The section Machine code in a real Chromium."""

import re
from collections.abc import Iterator

import pytest

from tests.browser.pages import PATIENCE_MS, expect, open_page, serving, sync_api
from tests.synthetic import made_code
from tests.walk.in_browser import see

NAIVE = "machine_code?run=code&variant=v01_naive&config=block%3D8"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    runs = tmp_path_factory.mktemp("runs")
    made_code.write(runs)
    with serving(tmp_path_factory.mktemp("log") / "log", "--data-dir", str(runs)) as url:
        yield url


def linked(page: "sync_api.Page", side: str) -> list[str]:
    """The numbers or offsets of the marked rows of a side."""
    expect(page.locator(f".{side} .row.linked").first).to_be_visible(timeout=PATIENCE_MS)
    return page.locator(f".{side} .row.linked .number").all_inner_texts()


@pytest.mark.thorough
def test_a_line_marks_its_instructions_and_an_instruction_its_line(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/{NAIVE}")
    page.locator(".left .row").filter(has_text="sum += a[i]").click()
    assert linked(page, "right") == ["0040", "0050", "0060"]
    expect(page.get_by_text("Line 6: 3 instructions; executed 750")).to_be_visible(timeout=PATIENCE_MS)
    page.locator(".right .row").filter(has_text="STG.E").click()
    assert linked(page, "left") == ["8"]
    assert linked(page, "right") == ["00c0", "00d0", "00e0"]
    page.locator(".right .row").filter(has_text="NOP").click()
    expect(page.get_by_text("The instruction at 0x0110 belongs to no line of the source.")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.thorough
def test_columns_show_sums_by_line_and_reasons(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/{NAIVE}")
    line = page.locator(".left .row").nth(5)
    expect(line.locator(".heat").first).to_have_text("750", timeout=PATIENCE_MS)
    expect(line.locator(".heat").nth(1)).to_have_attribute(
        "title", re.compile(r"40 samples of warps at the instruction, 100.0 % of the kernel\nlong scoreboard: 25\nwait: 15")
    )
    expect(page.locator(".left .head .heat").first).to_have_text("executed1.5K")
    page.get_by_role("button", name="sectors", exact=True).click()
    expect(page.locator(".right .row").nth(4).locator(".heat").nth(2)).to_have_text("▲4K")


@pytest.mark.thorough
def test_the_keyboard_moves_marks_and_searches(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/{NAIVE}")
    code = page.get_by_role("listbox", name="Machine code")
    page.get_by_role("searchbox", name="Search").focus()
    page.keyboard.type("ffma")
    expect(page.get_by_text("0 lines, 2 instructions")).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.press("Enter")
    code.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert linked(page, "left") == ["5"], "the instruction after both multiply-adds"
    page.keyboard.press("End")
    expect(page.locator(".right .row.cursor .number")).to_have_text("0110")
    page.keyboard.press("Home")
    expect(page.locator(".right .row.cursor .number")).to_have_text("0000")
    page.get_by_role("checkbox", name="matches only").check()
    expect(page.locator(".right .row")).to_have_count(2)


@pytest.mark.thorough
def test_long_equal_parts_are_folded_and_unfolded(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/machine_code?run=code&machine=difference&variant=v03_register_tile&a=v01_naive")
    expect(page.locator(".row.fold")).to_have_count(0, timeout=PATIENCE_MS)
    expect(page.locator(".half.gone")).to_have_count(4)
    assert page.locator(".half.gone mark").all_inner_texts() == ["0x19"]
    open_page(page, f"{address}/machine_code?run=code&machine=difference&variant=v02_shared&launch=1&a=v01_naive")
    expect(page.locator(".half.gone").first).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.thorough
@pytest.mark.parametrize("topic", ["source", "mix", "difference"])
def test_nothing_overlaps_in_either_size(page: "sync_api.Page", address: str, topic: str) -> None:
    for seen in see(page, address, f"{NAIVE}&machine={topic}"):
        assert seen.problems == (), seen
