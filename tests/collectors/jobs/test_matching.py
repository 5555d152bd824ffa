"""Collectives of different ranks are matched if they are the same event, and left out if that cannot be told."""

import numpy as np
import pytest

from tests.collectors.jobs.made_jobs import Int64s, cut, make_job, with_values, without
from warpladder.collectors.jobs.matching import match


def assert_events(found: Int64s, event: Int64s) -> None:
    """Assert that the rows are matched where `event` is not below 0, and that they are together where the events are equal."""
    assert np.array_equal(found >= 0, event >= 0)
    pairs = np.unique(np.column_stack((found, event))[event >= 0], axis=0)
    assert len(pairs) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1]))


@pytest.mark.parametrize("unknown", [(), ("sequence",), ("iteration",), ("sequence", "iteration")])
def test_two_kinds_of_groups_are_matched_with_and_without_sequence_and_iteration(unknown):
    job = make_job(tensor_ranks=4)
    matched, told = match(without(job.collectives, *unknown))
    assert_events(matched, job.event)
    assert not told


def test_the_order_of_the_rows_does_not_matter():
    job = make_job(8, tensor_ranks=2)
    order = np.random.default_rng(3).permutation(len(job.event))
    assert_events(match(job.collectives.take(order))[0], job.event[order])


def test_events_are_numbered_by_time():
    job = make_job(4, collectives=10)
    assert match(job.collectives)[0].tolist() == list(range(10)) * 4


def test_a_group_with_one_name_on_all_ranks_is_told_by_its_ranks():
    job = make_job(8, tensor_ranks=2)
    assert set(job.collectives["group"].to_pylist()) == {"default_pg", "mesh_tp"}
    assert match(job.collectives)[0].max() + 1 == 120 * 2 + 120 * 4


def test_groups_without_ranks_are_told_by_name_and_size():
    job = make_job(8)
    assert_events(match(without(job.collectives, "group_ranks", "sequence", "iteration"))[0], job.event)


def test_a_trace_without_groups_is_matched_by_stream():
    job = make_job(8)
    every = np.ones(len(job.event), bool)
    table = with_values(
        without(job.collectives, "group_ranks", "group_size", "sequence", "iteration"), "group", every, "stream 20"
    )
    assert_events(match(table)[0], job.event)


def test_a_missing_rank_leaves_the_others_matched():
    job = make_job(12, tensor_ranks=4, missing=(5,))
    assert_events(match(without(job.collectives, "sequence"))[0], job.event)


def test_a_rank_alone_in_its_group_is_not_matched():
    job = make_job(4, tensor_ranks=2, missing=(3,))
    matched, told = match(job.collectives)
    lists, ranks = job.collectives["group_ranks"].to_pylist(), job.collectives["rank"].to_numpy()
    assert set(ranks[matched < 0]) == {1, 2}
    assert {text for text, number in zip(lists, matched, strict=True) if number < 0} == {"[1, 3]", "[2, 3]"}
    assert told == [
        ("info", "Collectives of 2 process groups were not matched: the profiles are of a single rank of the group.")
    ]


def begun_early(*unknown: str):
    """A job in which the profile of rank 2 alone has the first collective, which was launched before the first iteration."""
    job = make_job(8)
    rank, number = job.collectives["rank"].to_numpy(), job.collectives["number"].to_numpy()
    table = with_values(job.collectives, "iteration", number == 0, None)
    table, event = cut(table, job.event, (number > 0) | (rank == 2))
    return without(table, *unknown), np.where(event == 0, -1, event)


@pytest.mark.parametrize("unknown", ["sequence", "iteration"])
def test_a_collective_from_before_the_other_ranks_traces_is_left_out_and_the_rest_matched(unknown):
    table, event = begun_early(unknown)
    assert_events(match(table)[0], event)


def test_without_sequence_and_iteration_a_group_with_different_counts_is_left_out():
    table, _ = begun_early("sequence", "iteration")
    matched, told = match(table)
    assert (matched < 0).all()
    assert len(told) == 1
    assert "number differs between ranks" in told[0][1]


def test_an_iteration_with_different_counts_is_left_out_alone():
    job = make_job(4, collectives=40, iterations=4)
    rank, number = job.collectives["rank"].to_numpy(), job.collectives["number"].to_numpy()
    table, event = cut(job.collectives, job.event, (rank != 3) | (number != 15))
    matched, told = match(without(table, "sequence"))
    assert_events(matched, np.where((event >= 40) & (event < 80), -1, event))
    assert told[0][1].startswith("39 collectives of default_pg [0, 1, 2, 3] were not matched")


def test_work_after_the_last_iteration_is_matched_apart_from_work_before_the_first():
    job = make_job(4, collectives=40, iterations=4)
    rank, number = job.collectives["rank"].to_numpy(), job.collectives["number"].to_numpy()
    table = with_values(job.collectives, "iteration", (number < 2) | (number > 37), None)
    table, event = cut(table, job.event, (rank != 0) | (number != 0))
    found = match(without(table, "sequence"))[0]
    assert_events(found, np.where(event < 8, -1, event))


def test_a_rank_whose_elements_differ_is_left_out():
    job = make_job(4)
    rank, number = job.collectives["rank"].to_numpy(), job.collectives["number"].to_numpy()
    table = with_values(without(job.collectives, "sequence", "iteration"), "in_elements", (rank == 1) & (number == 7), 5)
    matched, told = match(table)
    assert_events(matched, np.where(rank == 1, -1, job.event))
    assert "on rank 1: the number of input elements differs" in told[0][1]


def test_elements_of_an_uneven_collective_may_differ():
    job = make_job(4)
    rank = job.collectives["rank"].to_numpy()
    table = with_values(job.collectives, "collective", rank >= 0, "all_to_allv")
    assert_events(match(with_values(table, "in_elements", rank == 1, 5))[0], job.event)


def test_two_ranks_that_contradict_each_other_are_not_matched():
    job = make_job(2)
    rank = job.collectives["rank"].to_numpy()
    matched, told = match(with_values(job.collectives, "collective", rank == 1, "broadcast"))
    assert (matched < 0).all()
    assert "kind" in told[0][1]


def test_no_collectives_make_no_matches():
    assert len(match(make_job(2).collectives.slice(0, 0))[0]) == 0
