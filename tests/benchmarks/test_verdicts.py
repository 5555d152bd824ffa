"""Intervals hold the truth, and identical code is rarely called different: a small part of the simulation."""

import pytest

from benchmarks.verdicts import SHAPES, Counts, is_bad, one_run, two_runs


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("load", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("rounds", "processes", "equal"), [(6, 1, 3), (20, 1, 1), (20, 1, 8), (50, 1, 30), (9, 3, 1), (50, 3, 8), (20, 5, 1)]
)
def test_of_two_runs_whose_processes_differ_by_3_percent(
    shape: str, rounds: int, processes: int, equal: int, load: float
) -> None:
    found = two_runs(shape, rounds, processes, equal, between=0.03, load=load, trials=300)
    assert found.judged == found.trials and not is_bad(found), found.text


@pytest.mark.parametrize(("rounds", "equal"), [(50, 0), (5, 30), (1, 8)])
def test_one_process_without_equal_cells_and_five_samples_give_no_verdict(rounds: int, equal: int) -> None:
    assert two_runs("normal", rounds, 1, equal, between=0.03, trials=50).judged == 0


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rounds", [6, 7, 10, 50])
def test_of_two_variants_of_one_run(shape: str, rounds: int) -> None:
    found = one_run(shape, rounds, trials=150)
    assert found.judged == found.trials and not is_bad(found), found.text


def test_a_rule_that_is_wrong_as_often_as_before_is_bad() -> None:
    """One process, few equal cells and an assumed noise of 1.5 % called 35 to 65 % of identical cells different."""
    assert is_bad(Counts(400, 400, held=250, false=140)) and not is_bad(Counts(400, 400, held=385, false=12))
