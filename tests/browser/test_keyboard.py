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
    ("run", "name", "answer"),
    [
        ("gpu", "Ladder", r"v\d\d_\w+"),
        ("counted", "Why", r"at its floor|slower|faster"),
        ("trace", "Time", r"."),
    ],
)
def test_tab_and_enter_lead_to_a_page_whose_answer_is_a_heading(
    page: "sync_api.Page", address: str, run: str, name: str, answer: str
) -> None:
    open_page(page, f"{address}/?run={run}")
    expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible(timeout=PATIENCE_MS)
    tab_to(page, name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    settle(page)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", level=2, name=re.compile(answer)).first).to_be_visible(timeout=PATIENCE_MS)
    tree = main.aria_snapshot()
    nameless = re.findall(r"^\s*- (?:button|link|combobox|textbox|radiogroup)(?: \[[^\]]*\])*:?$", tree, re.MULTILINE)
    assert not nameless, tree
