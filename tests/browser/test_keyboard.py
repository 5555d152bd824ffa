"""The answers of the pages with the keyboard alone, and in the tree that a screen reader reads, in a real Chromium."""

import re

import pytest

from tests.browser.pages import PATIENCE_MS, expect, open_page, settle, sync_api

#: More stops of the Tab key than any page has before its menu.
_MOST_STOPS = 40


def tab_to(page: "sync_api.Page", name: str) -> None:
    """Press Tab until a link of that name has the focus."""
    for _ in range(_MOST_STOPS):
        page.keyboard.press("Tab")
        focus = page.evaluate("[document.activeElement.tagName, document.activeElement.innerText?.trim()]")
        if focus == ["A", name]:
            return
    pytest.fail(f"Tab does not reach the link {name}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("run", "link", "name", "answer"),
    [
        ("gpu", "Ladder", "Ladder", r"v\d\d_\w+"),
        ("gpu", "Sizes", "Sizes", r"first is v\d\d_\w+"),
        ("gpu", "Trust", "Trust", r"^(Yes|No|In part)"),
        ("counted", "Why", "Why", r"at its floor|slower|as fast|the time of"),
        ("trace", "Time", "Time", r"."),
        ("trace", "Copies →", "Time", r"Copies take"),
        ("job", "Ranks", "Ranks", r"^Rank 5 is late|rank 5 is late"),
        ("job", "How fast the collectives are →", "Ranks", r"Ranks wait"),
    ],
)
def test_tab_and_enter_lead_to_a_page_whose_answer_is_a_heading(
    page: "sync_api.Page", address: str, run: str, link: str, name: str, answer: str
) -> None:
    open_page(page, f"{address}/?run={run}")
    expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible(timeout=PATIENCE_MS)
    tab_to(page, link)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", level=2, name=re.compile(answer)).first).to_be_visible(timeout=PATIENCE_MS)
    tree = main.aria_snapshot()
    nameless = re.findall(r"^\s*- (?:button|link|combobox|textbox|radiogroup)(?: \[[^\]]*\])*:?$", tree, re.MULTILINE)
    assert not nameless, tree


def focused(page: "sync_api.Page") -> str:
    """The words of what has the focus, in a component of ours too."""
    words: str = page.evaluate(
        """() => { let at = document.activeElement;
          while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
          return at.innerText; }"""
    )
    return words


def cell(page: "sync_api.Page", table: str, row: int, column: int) -> "sync_api.Locator":
    """A cell of a table whose rows lead somewhere; row -1 has the headings."""
    grid = page.get_by_role("grid", name=re.compile(f"^{table}"))
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    return grid.locator(f'[data-at="{row},{column}"]')


@pytest.mark.parametrize(
    ("run", "table", "leads"),
    [
        ("trace", "What takes the time", r"/timeline\?.*window=\d+-\d+"),
        ("gpu", "Best variant of each workload", r"/ladder\?.*workload=tensor_transpose"),
    ],
)
def test_arrows_move_in_a_table_of_home_and_enter_opens_the_row(
    page: "sync_api.Page", address: str, run: str, table: str, leads: str
) -> None:
    open_page(page, f"{address}/?run={run}")
    cell(page, table, 0, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    settle(page)
    expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()
    assert focused(page) == cell(page, table, 1, 1).inner_text()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(leads), timeout=PATIENCE_MS)
    settle(page)
    page.go_back()
    expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    expect(cell(page, table, 0, 0)).to_be_visible(timeout=PATIENCE_MS)


def test_a_run_is_found_sorted_and_opened_with_the_keyboard_alone(page: "sync_api.Page", address: str) -> None:
    open_page(page, f"{address}/?run=gpu")
    page.get_by_role("button", name="gpu ▾").press("Enter")
    cell(page, "Runs", 0, 0).focus()
    names = [cell(page, "Runs", row, 0).inner_text() for row in range(3)]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(cell(page, "Runs", -1, 0)).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Control+End")
    page.keyboard.press("Home")
    last = focused(page)
    assert last >= max(names)
    page.keyboard.press(" ")
    expect(page.get_by_role("dialog")).to_have_count(0, timeout=PATIENCE_MS)
    expect(page.locator(".st-key-choose-run")).to_contain_text(last[:20], timeout=PATIENCE_MS)
