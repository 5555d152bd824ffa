"""A name out of a report as text."""

import pytest

from warpladder.dashboard.ui.text import plain

WORD_JOINER = "\u2060"


@pytest.mark.parametrize(
    ("name", "parted"),
    [
        ("http://evil.example", "http:|//evil.example"),
        ("see HTTPS://evil.example", "see HTTPS:|//evil.example"),
        ("www.evil.example", "www|.evil.example"),
        ("mailto:me@evil.example", "mailto:me|@evil.example"),
        (":material/home: :streamlit:", ":|material/home: :|streamlit:"),
        ("a -> b <- c <-> d -- e >= f <= g ~= h", "a -|> b <|- c <|-> d -|- e >|= f <|= g ~|= h"),
    ],
)
def test_what_would_be_a_link_an_icon_or_an_arrow_is_parted(name: str, parted: str) -> None:
    assert plain(name).replace("\\", "").replace(WORD_JOINER, "|") == parted


@pytest.mark.parametrize("name", ["void f<int>(a::b*) [x=1] --flag x->y", "run@folder", "n=512,perm=210", "a @ b"])
def test_any_other_name_has_every_mark_escaped_and_nothing_added(name: str) -> None:
    shown = plain(name)
    assert shown.replace("\\", "") == name
    assert all(f"\\{mark}" in shown for mark in name if mark in "*_<>[]=-#:")


def test_lines_become_one() -> None:
    assert plain("a\n# b\n\n- c") == "a \\# b \\- c"
