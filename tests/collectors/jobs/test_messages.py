"""Messages between two ranks are matched by source, destination and order, and relate clocks; right values are computed by hand."""

import pyarrow as pa

from warpladder.collectors.jobs import messages
from warpladder.collectors.jobs.placing import Placed, place
from warpladder.data import job_tables


def calls(*rows: tuple[int, int, int, str | None, str | None]) -> pa.Table:
    """Calls of ranks: rank, start and end on its clock, ranks that it sends to, ranks that it receives from."""
    values = {
        "rank": [row[0] for row in rows],
        "start_ns": [row[1] for row in rows],
        "end_ns": [row[2] for row in rows],
        "sends_to": [row[3] for row in rows],
        "receives_from": [row[4] for row in rows],
        "iteration": [0] * len(rows),
        **{name: ["sendrecv"] * len(rows) for name in ("collective", "kernel")},
        **{name: ["0"] * len(rows) for name in ("group", "group_ranks", "element_type")},
    }
    columns = job_tables.COLLECTIVES.columns
    return pa.table({each.name: pa.array(values.get(each.name, [None] * len(rows)), each.type) for each in columns})


def times(placed: Placed, name: str) -> list[int | None]:
    values: list[int | None] = placed.collectives[name].to_pylist()
    return values


HOST = {0: 0, 1: 0, 2: 0}


def test_a_receive_waits_until_its_send_begins_and_then_transfers():
    """Rank 1 receives from 1,000 on, rank 0 sends at 60,000: 59,000 of waiting, 10,000 of transfer."""
    placed = place(calls((0, 60_000, 69_000, "1", None), (1, 1_000, 70_000, None, "0")), host_of=HOST)
    assert times(placed, "wait_ns") == [0, 59_000]
    assert times(placed, "transfer_ns") == [9_000, 10_000]
    assert times(placed, "match") == [0, 0]


def test_a_send_waits_for_its_receiver_unless_its_bytes_were_buffered():
    """The first send ends before its receiver begins at 50,000; the second, from 80,000 to 130,000, waits until 120,000."""
    table = calls(
        (0, 0, 10_000, "1", None),
        (1, 50_000, 55_000, None, "0"),
        (0, 80_000, 130_000, "1", None),
        (1, 120_000, 131_000, None, "0"),
    )
    assert times(place(table, host_of=HOST), "wait_ns") == [0, 0, 40_000, 0]


def test_messages_in_both_directions_relate_clocks_of_different_hosts():
    """Rank 1's clock is 500,000 ahead, and each message takes 4,000 after both have begun: the bounds are 504,000 and 496,000."""
    table = calls(
        (0, 10_000, 14_000, "1", None),
        (1, 509_000, 514_000, None, "0"),
        (1, 530_000, 534_000, "0", None),
        (0, 20_000, 34_000, None, "1"),
    )
    placed = place(table)
    assert placed.clocks.offset_ns.tolist() == [0.0, 500_000.0]
    assert times(placed, "wait_ns") == [0, 1_000, 0, 10_000]
    assert placed.clocks.uncertainty_ns[1] == 4_000


def test_messages_in_one_direction_relate_no_clocks_of_different_hosts():
    placed = place(calls((0, 10_000, 14_000, "1", None), (1, 9_000, 14_000, None, "0")))
    assert "rank 1 (1 of 2)" in " ".join(text for _, text in placed.notes)


def test_pipelines_of_one_host_that_nothing_connects_have_one_clock():
    """Ranks 0 and 1 exchange messages, and so do ranks 2 and 3."""
    table = calls((0, 10, 14, "1", None), (1, 9, 15, None, "0"), (2, 10, 14, "3", None), (3, 9, 15, None, "2"))
    placed = place(table, host_of=dict.fromkeys(range(4), 0))
    assert placed.clocks.component.tolist() == [0, 0, 0, 0] and placed.clocks.offset_ns.tolist() == [0, 0, 0, 0]
    assert placed.notes == []


def test_a_batch_is_an_exchange_of_two_ranks():
    """Ranks 0 and 1 send to each other in one call each. Rank 0 begins at 0, rank 1 at 30,000; both end at 40,000."""
    placed = place(calls((0, 0, 40_000, "1", "1"), (1, 30_000, 40_000, "0", "0")), host_of=HOST)
    assert times(placed, "wait_ns") == [30_000, 0]
    assert times(placed, "match") == [0, 0]


def test_a_batch_with_two_other_ranks_waits_for_the_later_one():
    """Rank 1 receives from ranks 0 and 2 in one call. Rank 0 begins at 10,000, rank 2 at 25,000."""
    table = calls((0, 10_000, 30_000, "1", None), (1, 5_000, 32_000, None, "0,2"), (2, 25_000, 31_000, "1", None))
    assert times(place(table, host_of=HOST), "wait_ns") == [0, 20_000, 0]


def test_messages_whose_numbers_differ_are_told_and_others_are_matched():
    """Two are sent from rank 0 to 1, and one is received; one from 1 to 2 is on both."""
    table = calls((0, 0, 1, "1", None), (0, 2, 3, "1", None), (1, 0, 4, None, "0"), (1, 5, 6, "2", None), (2, 5, 7, None, "1"))
    found = messages.match(table)
    assert (found.sent.tolist(), found.received.tolist()) == ([3], [4])
    assert [text.split(":")[0] for _, text in found.notes] == [
        "3 calls that send or receive were not matched, from rank 0 to 1"
    ]
