"""The words of the pages, and the captions that lead to them."""

import re

from tests.doc_pages import ROOT
from warpladder.dashboard.ui.glossary import WORDS, meanings


def test_the_words_are_those_of_their_page() -> None:
    table = (ROOT / "docs" / "words.md").read_text()
    assert dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", table, re.MULTILINE)) == WORDS


def test_each_word_of_a_text_has_its_meaning_once() -> None:
    found = meanings("cold; 3 rounds; within the noise floor of this round; 9 % of floor; a floor, hot-path/cold_1 [x](y)")
    assert re.findall(r"^\*\*(.+?)\*\*: ", found, re.MULTILINE) == [
        "cache",
        "round",
        "noise floor",
        "percent of floor",
        "floor",
    ]
    assert WORDS["cache"] in found
    assert meanings("nothing of it") == ""
