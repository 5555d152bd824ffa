"""`warpladder forecast` where the host is a part of the step: the profiler's part of it, both bounds, and what comes first."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.commands.test_extract import Made, tensor
from tests.commands.test_forecast import recording, run
from warpladder.collectors.kineto.parse import import_report
from warpladder.dashboard.core.operations.forecast import Hosts
from warpladder.dashboard.core.operations.program import DeviceTimeline, Program
from warpladder.data import store

#: us. An operator and its launch take the host 20 us, a kernel takes the device 10 us, and starts 4 us after its launch.
EACH, KERNEL, LATENCY, COUNT = 20, 10, 4, 50


def host_bound(folder: Path, each: int = EACH) -> Path:
    """Two steps of 50 kernels that the host launches one after another, each later than the device could take it."""
    folder.mkdir(exist_ok=True)
    made = Made()
    for number in range(2):
        begin = number * COUNT * each
        made.step(number, begin, begin + COUNT * each)
        for place in range(COUNT):
            start = begin + place * each
            made.operator("aten::relu", start, start + each - 1, tensor(4, 4))
            made.kernel("relu", start + 1, start + 1 + LATENCY, KERNEL)
    return made.write(folder)


def program(folder: Path) -> Program:
    return Program.of(store.open_run(folder / import_report(host_bound(folder), folder, "", None, [])), {}, apart=True)


def test_the_step_with_a_hidden_host_is_the_work_of_the_device(tmp_path: Path) -> None:
    hosts = Hosts.of(program(tmp_path))
    # 99 intervals of 20 us and one kernel in two steps; 100 kernels of 10 us without gaps.
    assert hosts.profiled.step_ns == (99 * EACH + KERNEL) * 1000 / 2
    assert hosts.hidden.step_ns == pytest.approx(100 * KERNEL * 1000 / 2)
    assert hosts.share == pytest.approx(1 - 1000 / 1990)


def test_the_profilers_cost_a_call_is_what_makes_the_step_as_long_as_it_is_without_it(tmp_path: Path) -> None:
    # Without the profiler an interval takes 16 us: 2 us less for each of its operator and its launch.
    own = (99 * 16 + KERNEL) * 1000 / 2
    hosts = Hosts.of(program(tmp_path), own)
    assert hosts.own is not None
    assert hosts.own.step_ns == pytest.approx(own, rel=1e-3)
    assert hosts.cost_ns == pytest.approx(2000, rel=1e-2)


def test_kernels_that_the_host_hides_gain_nothing_with_it_and_all_without_it(tmp_path: Path) -> None:
    hosts = Hosts.of(program(tmp_path), (99 * 16 + KERNEL) * 1000 / 2)
    (number,) = np.unique(hosts.profiled.hot.form_of)
    half = {int(number): 0.5}
    # With the host only the last kernel ends earlier, by 5 us in two steps; without it all 100 do.
    assert hosts.profiled.gains_ns([half])[0] == pytest.approx(2500)
    assert hosts.own is not None and hosts.own.gains_ns([half])[0] == pytest.approx(2500)
    assert hosts.hidden.gains_ns([half])[0] == pytest.approx(250_000)


def test_a_step_time_as_long_as_the_profile_leaves_the_host_as_it_is(tmp_path: Path) -> None:
    found = program(tmp_path)
    hosts = Hosts.of(found, found.step_ns + 1)
    assert (hosts.own, hosts.cost_ns) == (found, 0.0)


def test_a_wait_ends_earlier_by_no_more_than_the_host_waited() -> None:
    # The host launches A at 0, waits from 90 to 100 for A, and launches B at 100. A takes 50 ns less.
    us = 1000
    start, end = np.array([10, 105]) * us, np.array([100, 155]) * us
    line = DeviceTimeline(
        start,
        end,
        np.array([0, 0]),
        np.array([0, 100]) * us,
        np.array([True, True]),
        (np.array([90]) * us, np.array([100]) * us),
    )
    # A ends 50 us earlier, and the host comes to the wait when it did: B starts 10 us earlier.
    assert line.shifts(np.array([[50.0], [0.0]]) * us).tolist() == [[0], [10 * us]]


@pytest.mark.slow
def test_the_command_has_both_bounds_and_the_graph_first(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    done = run(tmp_path, str(host_bound(tmp_path / "bound")), "recorded", "--step-time", "797us")
    assert done.exit_code == 0, done.output
    _, step, cost, first, *rest = done.stdout.splitlines()
    assert step == "a step takes 995 µs in the profile, and 500 µs with the host hidden"
    assert re.fullmatch(
        r"without the profiler it takes 797 µs: the profiler takes (1.9\d|2.0\d) µs for each of 9\d.\d calls", cost
    )
    assert first.startswith(
        "first: the device waits for the host in 37 % of a step; a CUDA graph, or fewer launches than 50.0 a step"
    )
    (row,) = (line for line in rest if line.startswith("aten::relu"))
    assert row.split()[1:] == ["mine", "2.00", "250", "µs", "2.50", "µs", "250", "µs"]
    assert any(re.match("with all, own host: 797 µs to 79[45] µs", line) for line in rest)
    assert any(line.startswith("with all, host hidden: 500 µs to 250 µs") for line in rest)
    assert max(map(len, done.stdout.splitlines())) < 160


@pytest.mark.slow
def test_a_step_shorter_than_the_device_work_of_the_profile_is_what_the_user_gave(tmp_path: Path) -> None:
    recording(tmp_path, 5_000)
    done = run(tmp_path, str(host_bound(tmp_path / "bound")), "recorded", "--step-time", "450us")
    assert done.exit_code == 0, done.output
    _, _, own, *rest = done.stdout.splitlines()
    assert (
        own
        == "without the profiler it takes 450 µs: 10.0 % less than with the host hidden, since the device is slower in the profile"
    )
    # With the host hidden 500 us become 250, and so 450 become 225.
    assert any(line.startswith("with all, own host: 450 µs to 225 µs") for line in rest)


@pytest.mark.slow
def test_a_recording_of_another_device_is_refused(tmp_path: Path) -> None:
    made = recording(tmp_path, 5_000)
    import pyarrow.parquet as pq

    path = made.path / "run.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("device_name")
    pq.write_table(table.set_column(place, table.schema.field(place), [["Other GPU"]]), path)
    done = run(tmp_path, str(host_bound(tmp_path / "bound")), "recorded")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert (
        "recorded on Other GPU, and " in done.stderr and "is a profile of GPU of the test; record the file there" in done.stderr
    )


@pytest.mark.parametrize("value", ["41", "0ms", "-1 s", "fast"])
def test_a_step_time_that_is_none_is_one_line(value: str, tmp_path: Path) -> None:
    done = run(tmp_path, "trace", "run", "--step-time", value)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "give a number with its unit, such as 41.2ms" in done.stderr
