"""The words of the pages, and the captions that lead to them."""

import re

from tests.doc_pages import ROOT
from warpladder.dashboard.ui.glossary import WORDS, meanings


def test_the_words_have_the_meanings_of_their_page() -> None:
    page = (ROOT / "docs" / "words.md").read_text()
    found = re.findall(r"^- \*\*(.+?)\*\*: (.+?)(?=\n- |\n\n|\Z)", page, re.MULTILINE | re.DOTALL)
    meant = {word: " ".join(meaning.split()) for word, meaning in found}
    assert {word: meaning for word, (_, meaning) in WORDS.items()}.items() <= meant.items()
    assert len(meant) == len(found) > len(WORDS)


def test_each_word_of_a_text_has_its_meaning_once() -> None:
    found = meanings("cold; 3 rounds; within the noise floor of this round; 9 % of floor; a floor, hot-path/cold_1 [x](y)")
    assert re.findall(r"^\*\*(.+?)\*\*: ", found, re.MULTILINE) == [
        "cache",
        "round",
        "noise floor",
        "percent of floor",
        "floor",
    ]
    assert WORDS["cache"][1] in found
    assert meanings("nothing of it") == ""
