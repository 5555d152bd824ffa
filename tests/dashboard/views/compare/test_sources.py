"""Two sources line by line."""

from warpladder.dashboard.views.compare.query import Line, Row, rows


def told(found: tuple[Row, ...]) -> list[tuple[str, str]]:
    """Both sides of each row, with changed words in brackets."""

    def text(line: Line | None) -> str:
        return "" if line is None else "".join(f"[{part}]" if marked else part for part, marked in line.parts)

    return [(f"{row.skipped} equal", "") if row.skipped else (text(row.before), text(row.after)) for row in found]


def test_changed_words_are_marked_within_a_line() -> None:
    assert told(rows("same\nfloat sum = 0.0f;", "same\ndouble sum = 0.0;")) == [
        ("same", "same"),
        ("[float] sum = 0.[0f];", "[double] sum = 0.[0];"),
    ]


def test_lines_with_little_in_common_and_lines_of_one_side_are_not_marked_by_words() -> None:
    assert told(rows("a = b + c;", "return;\nexit();")) == [("a = b + c;", "return;"), ("", "exit();")]
    assert told(rows("", "new")) == [("", "new")]


def test_equal_lines_far_from_a_difference_are_counted_and_the_others_keep_their_numbers() -> None:
    same = [f"line {number}" for number in range(1, 21)]
    found = rows("\n".join([*same, "old", *same]), "\n".join([*same, "new", *same]))
    assert [row.skipped for row in found] == [17, 0, 0, 0, 0, 0, 0, 0, 17]
    changed = found[4]
    assert changed.changed and changed.before and changed.after
    assert (changed.before.number, changed.after.number) == (21, 21)


def test_equal_sources_are_shown_whole() -> None:
    found = rows("a\nb\nc\nd\ne\nf\ng\nh\ni", "a\nb\nc\nd\ne\nf\ng\nh\ni")
    assert len(found) == 9 and not any(row.changed for row in found)
