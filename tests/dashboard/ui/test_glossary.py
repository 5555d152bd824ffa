"""The words of the pages, and the captions that lead to them."""

import re

from tests.doc_pages import ROOT
from warpladder.dashboard.ui.glossary import WORDS, linked


def test_the_words_are_those_of_the_architecture() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text().partition("## Words")[2]
    assert dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", table, re.MULTILINE)) == WORDS


def test_the_first_of_each_word_is_a_link_and_a_name_stays_text() -> None:
    shown = linked("cold; 3 rounds; within the noise floor of this round; 9 % of floor; a floor, hot-path/cold_1 [x](y)")
    assert re.findall(r"\[(.+?)\]\(glossary#(.+?)\)", shown) == [
        ("cold", "cache"), ("rounds", "round"), ("noise floor", "noise-floor"), ("% of floor", "percent-of-floor"), ("floor", "floor"),
    ]  # fmt: skip
    assert shown.endswith(r"hot\-path/cold\_1 \[x\](y)".replace("(y)", r"\(y\)"))


def test_every_link_leads_to_a_word() -> None:
    found = linked(
        "percent of floor, A/A, floors, ceilings, baselines, rounds, rungs, configs, cold, end-to-end, verdicts, ranks"
    )
    anchors = re.findall(r"glossary#([\w-]+)", found)
    assert len(anchors) == 12
    assert set(anchors) <= {word.replace(" ", "-") for word in WORDS}
