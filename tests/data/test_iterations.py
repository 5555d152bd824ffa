"""Which ranges of a trace are its iterations, and what their numbers are."""

import numpy as np
import pytest

from warpladder.data.iterations import Steps, find_steps

Range = tuple[str, int, int, int]


def steps(*ranges: Range) -> Steps:
    """The iterations of ranges with text, start, end and thread."""
    texts = sorted({each[0] for each in ranges})
    columns = zip(*((texts.index(text), 1, thread, start, end) for text, start, end, thread in ranges), strict=True)
    return find_steps(texts, *(np.array(column, np.int64) for column in columns))


def rows(found: Steps) -> list[tuple[int, int, int]]:
    return list(zip(found.number.tolist(), found.start.tolist(), found.end.tolist(), strict=True))


def row(word: str, numbers: range, begin: int, every: int, lasts: int, thread: int = 1) -> list[Range]:
    return [
        (f"{word}{number}", begin + every * place, begin + every * place + lasts, thread)
        for place, number in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    "text",
    ["ProfilerStep#{}", "step {}", "step_{}", "## Iteration: {} ##", "iter={}", "Step{}", "step {}/100", "[iter {} of 9]"],
)
def test_numbered_ranges_are_iterations(text: str) -> None:
    assert rows(steps((text.format(3), 0, 10, 1), ("other", 2, 4, 1), (text.format(4), 10, 20, 1))) == [(3, 0, 10), (4, 10, 20)]


def test_numbers_that_start_again_are_counted_on() -> None:
    found = steps(*row("step_", range(3), 0, 10, 8), *row("step_", range(3), 100, 10, 8), *row("step_", range(2), 200, 10, 8))
    assert found.number.tolist() == [0, 1, 2, 3, 4, 5, 6, 7] and found.restarts == 2
    # A rank whose profile begins later has the same numbers for the same steps.
    later = steps(
        *row("step_", range(1, 3), 10, 10, 8), *row("step_", range(3), 100, 10, 8), *row("step_", range(2), 200, 10, 8)
    )
    assert later.number.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_validation_between_two_parts_of_a_training_is_further_iterations() -> None:
    validation = row("step ", range(2), 50, 10, 8)
    found = steps(*row("step ", range(3), 0, 10, 8), *validation, *row("step ", range(3, 5), 90, 10, 8))
    assert rows(found)[2:6] == [(2, 20, 28), (3, 50, 58), (4, 60, 68), (6, 90, 98)]
    # Where no number occurs twice, all keep theirs.
    found = steps(*row("step ", range(5, 8), 0, 10, 8), *validation, *row("step ", range(8, 10), 90, 10, 8))
    assert found.number.tolist() == [5, 6, 7, 0, 1, 8, 9]


def test_a_step_that_always_has_the_same_number_is_a_further_one_each_time() -> None:
    assert steps(*[("step 0", 10 * turn, 10 * turn + 5, 1) for turn in range(4)]).number.tolist() == [0, 1, 2, 3]


def test_numbers_without_a_repetition_stay_as_they_are() -> None:
    assert steps(*row("step ", range(100, 130, 10), 0, 10, 8)).number.tolist() == [100, 110, 120]


def test_the_outermost_numbered_range_is_the_iteration() -> None:
    inner = [each for turn in range(3) for each in row("step ", range(4), 100 * turn, 20, 15)]
    assert rows(steps(*inner, *row("iteration ", range(7, 10), 0, 100, 90))) == [(7, 0, 90), (8, 100, 190), (9, 200, 290)]
    assert len(steps(*inner, ("iteration 1", 0, 300, 1))) == 12, "one range around everything is no step"


def test_a_range_inside_of_one_of_its_own_kind_is_no_iteration() -> None:
    assert rows(steps(("step 4", 0, 50, 1), ("step 0", 10, 20, 1), ("step 1", 20, 30, 1), ("step 5", 50, 90, 1))) == [
        (4, 0, 50),
        (5, 50, 90),
    ]


def test_the_profilers_steps_come_before_a_users_own() -> None:
    own = row("step ", range(20, 26), 5, 100, 90)
    assert steps(*own, *row("ProfilerStep#", range(2, 8), 0, 100, 100)).number.tolist() == [2, 3, 4, 5, 6, 7]
    # The profiler's step changes inside of the user's range, so that neither contains the other.
    assert steps(*own, *row("ProfilerStep#", range(2, 8), 90, 100, 100)).number.tolist() == [2, 3, 4, 5, 6, 7]
    assert steps(("ProfilerStep#9", 0, 100, 1), *row("step ", range(3), 10, 20, 15)).number.tolist() == [9]


def test_the_profilers_steps_of_micro_batches_are_inside_of_the_users_iteration() -> None:
    micro = row("ProfilerStep#", range(12), 15, 25, 25)
    assert steps(*micro, *row("iteration ", range(3), 0, 100, 98)).number.tolist() == [0, 1, 2]


def test_of_two_kinds_beside_each_other_the_one_that_does_not_count_is_named() -> None:
    beside = steps(*row("step_", range(4), 0, 10, 5), *row("iteration_", range(3), 6, 10, 3))
    assert (len(beside), beside.example, beside.others) == (4, "step_0", ("iteration_0",))
    inside = steps(*row("step_", range(4), 1, 10, 5), *row("iteration_", range(4), 0, 10, 8))
    assert (inside.example, inside.others) == ("iteration_0", ())


def test_a_thread_that_runs_beside_has_no_iterations_and_threads_that_take_turns_have() -> None:
    main = row("step ", range(4), 0, 10, 9)
    ahead = row("step ", range(1, 4), 3, 10, 9, thread=2)
    assert rows(steps(*ahead, *main)) == rows(steps(*main))
    turns = [(f"step {number}", 10 * number, 10 * number + 9, number % 3) for number in range(7)]
    assert steps(*turns).number.tolist() == list(range(7))


def test_an_iteration_ends_no_later_than_the_next_begins() -> None:
    assert rows(steps(("step 1", 0, 15, 1), ("step 2", 10, 30, 1))) == [(1, 0, 10), (2, 10, 30)]


def test_a_kind_that_only_other_ranges_have_the_texts_of_has_no_iterations() -> None:
    """As of the ranges of one process of several, or of those that were closed."""
    columns = (np.array(column, np.int64) for column in ([0, 0], [1, 1], [1, 1], [0, 100], [50, 150]))
    found = find_steps(["ProfilerStep#1", "step 2"], *columns)
    assert rows(found) == [(1, 0, 50), (2, 100, 150)]


def test_nothing_numbered_has_no_iterations() -> None:
    assert (
        len(steps(("epoch 1", 0, 10, 1), ("step 1", 0, 10, 1), ("step", 1, 2, 1)))
        == len(find_steps([], *[np.empty(0, np.int64)] * 5))
        == 0
    )
