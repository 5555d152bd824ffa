"""What is one collective: the kernels that one call launched, by the arguments that the profiler copies to each of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.collectors.kineto.made import imported, kernel
from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store

_SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
_WHOLE = {
    "Collective_name": "all_to_all",
    "In_msg_nelems": 1000,
    "Out_msg_nelems": 1000,
    "dtype": "BFloat16",
    "Process_Group_Name": "0",
    "Process_Group_Ranks": "[0, 1]",
    "Group_size": 2,
}
#: Three calls of two kernels each, of 10 us, 12 us after one another.
_STARTS = (0, 12, 100, 112, 200, 212)


def collectives(run: store.Run) -> list[tuple[int, int, int]]:
    """Start, time and kernels of each collective, in us."""
    rows = run.table("collectives")
    first = rows["start_ns"].min()
    times = zip(rows["start_ns"] - first, rows["end_ns"] - rows["start_ns"], rows["kernels"], strict=True)
    return [(start // 1000, lasts // 1000, kernels) for start, lasts, kernels in times]


def traced(folder: Path, *arguments: dict[str, Any]) -> store.Run:
    """A trace of the six kernels, with further arguments of each."""
    every = zip(_STARTS, arguments, strict=True)
    return imported([kernel(_SEND_RECV, 50 + start, 10, stream=20, **_WHOLE, **more) for start, more in every], folder)


@pytest.mark.parametrize(
    "own",
    [
        lambda call: {"Seq": call, "External_id": 100 + call},
        lambda call: {"External_id": 100 + call},
        lambda call: {"Seq": call},
        lambda call: {"Seq": 1, "External_id": 100 + call},
    ],
    ids=["both", "no Seq", "no External id", "one Seq for all"],
)
def test_kernels_of_a_call_are_one_collective_of_the_size_of_the_whole(tmp_path: Path, own: Any) -> None:
    run = traced(tmp_path, *(own(call) for call in (1, 1, 2, 2, 3, 3)))
    assert collectives(run) == [(0, 22, 2), (100, 22, 2), (200, 22, 2)]
    rows = run.table("collectives")
    assert rows["bytes"].tolist() == [2000] * 3 and rows["number"].tolist() == [0, 1, 2]
    assert run.rows("kernels") == 6


def test_kernels_are_collectives_of_their_own_where_nothing_tells_their_calls(tmp_path: Path) -> None:
    assert [each[2] for each in collectives(traced(tmp_path, *[{}] * 6))] == [1] * 6


def test_an_equal_number_of_another_group_kind_or_size_is_another_collective(tmp_path: Path) -> None:
    """`Seq` counts in each group, and sends and receives have a count of their own."""
    different = [
        _WHOLE,
        {**_WHOLE, "Process_Group_Name": "1"},
        {**_WHOLE, "Collective_name": "send"},
        {**_WHOLE, "In_msg_nelems": 7, "Out_msg_nelems": 7},
    ]
    run = imported([kernel(_SEND_RECV, 20 * at, 10, stream=20, Seq=5, **each) for at, each in enumerate(different)], tmp_path)
    assert run.table("collectives")["kernels"].tolist() == [1] * 4


def test_a_number_that_comes_again_later_is_a_further_collective(tmp_path: Path) -> None:
    """Without `External id`, only kernels that follow one another in their group are of one call: numbers may start again."""
    run = traced(tmp_path, *({"Seq": number} for number in (1, 1, 2, 2, 1, 1)))
    assert collectives(run) == [(0, 22, 2), (100, 22, 2), (200, 22, 2)]


def test_calls_of_two_groups_that_overlap_are_told_apart(tmp_path: Path) -> None:
    """The kernels of the groups take turns on two streams."""
    both = [(0, "0", 7), (5, "1", 8), (12, "0", 7), (17, "1", 8)]
    events = [
        kernel(_SEND_RECV, start, 10, stream=stream, Seq=1, **{**_WHOLE, "Process_Group_Name": group})
        for start, group, stream in both
    ]
    assert collectives(imported(events, tmp_path)) == [(0, 22, 2), (5, 22, 2)]


@pytest.mark.slow
def test_a_real_trace_with_one_kernel_a_call_has_a_collective_a_kernel(tmp_path: Path) -> None:
    """As of a job of FSDP, whose calls have an `External id` and no `Seq`."""
    path = Path(__file__).parents[2] / "fixtures" / "kineto" / "fsdp"
    for trace in sorted(path.glob("*.json.gz")):
        run = store.open_run(tmp_path / import_report(trace, tmp_path, "", None, []))
        kernels = run.table("kernels", ["collective"])["collective"].notna().sum()
        assert run.table("collectives")["kernels"].tolist() == [1] * kernels


@pytest.mark.parametrize("number", [-1, 1 << 33, 1 << 62, -(1 << 62)])
def test_numbers_that_no_collective_has_are_unknown_and_the_run_opens(number: int, tmp_path: Path) -> None:
    odd = {**_WHOLE, "In_msg_nelems": number, "Out_msg_nelems": number, "Group_size": number, "Seq": number, "device": number}
    run = imported([kernel(_SEND_RECV, 50, 10, **odd), kernel(_SEND_RECV, 90, 10, **_WHOLE)], tmp_path)
    rows = run.table("collectives").astype(object)
    first = rows.where(rows.notna(), None).iloc[0]
    assert first["group_size"] is None and rows["group_size"].iloc[1] == 2
    assert first["in_elements"] == first["out_elements"] == (number if number > 0 else None)
    assert first["device"] == (number if number == -1 else None)
    assert 0 <= first["bytes"] <= 1 << 53


def test_collectives_of_a_trace_of_jax_have_the_device_and_the_stream_of_their_lane(tmp_path: Path) -> None:
    names = [(1, None, "process_name", "/device:GPU:1"), (1, 14, "thread_name", "Stream #14(Compute)")]
    lanes = [{"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}} for pid, tid, what, name in names]
    work = {"ph": "X", "pid": 1, "tid": 14, "name": _SEND_RECV, "ts": 5, "dur": 2, "args": {"correlation_id": 1}}
    (row,) = imported([*lanes, work], tmp_path).table("collectives").to_dict("records")
    assert (row["device"], row["stream"], row["group"]) == (1, 14, "stream 14")
