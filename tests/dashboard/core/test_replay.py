"""Events that wait for each other, executed again."""

import numpy as np
import pytest

from warpladder.dashboard.core.replay import Contradiction, _one_by_one, _turns, replay


def at(*events: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(events, np.int64)


def test_an_event_happens_with_the_last_of_what_it_waits_for() -> None:
    # Event 3 waits for 1 and 2, which wait for 0. The second change takes 4 ns off the wait of 2 for 0.
    waits = [(at(1), at(0), np.array([5.0])), (at(2, 3, 3), at(0, 1, 2), np.array([[9.0, 5.0], [1.0, 1.0], [2.0, 2.0]]))]
    assert replay(np.zeros((4, 2)), waits).tolist() == [[0.0, 0.0], [5.0, 5.0], [9.0, 5.0], [11.0, 7.0]]


def test_the_own_time_of_an_event_delays_what_waits_for_it() -> None:
    times = replay(np.array([[0.0], [10.0], [20.0]]), [(at(2, 1), at(1, 0), 3.0)])
    assert times.tolist() == [[0.0], [13.0], [36.0]]


def test_events_that_wait_for_each_other_are_a_contradiction() -> None:
    with pytest.raises(Contradiction):
        replay(np.zeros((3, 1)), [(at(1, 2), at(2, 1), 0.0)])


def test_events_that_happen_at_once_happen_as_one_by_one() -> None:
    random = np.random.default_rng(3)
    events, changes = 4_000, 3
    effect = np.repeat(np.arange(50, events), 3)
    cause = effect - random.integers(1, 51 + (effect - 50) // 2)
    own, delay = random.normal(size=(events, changes)), random.normal(size=(len(effect), changes))
    shuffled = random.permutation(len(effect))
    waits = [(effect[part], cause[part], delay[part]) for part in np.array_split(shuffled, 2)]
    assert _turns(effect, cause, events) is not None  # so that they are executed at once
    assert np.array_equal(replay(own, waits), _one_by_one(own, effect, cause, delay))
    endless = (np.append(effect, 50), np.append(cause, events - 1), 0.0)
    with pytest.raises(Contradiction):
        replay(own, [endless])
