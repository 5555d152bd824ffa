"""What a profile comes to in sentences: its largest part, its rows, its steps, and what to do, from times counted by hand."""

import pandas as pd
import pytest

from warpladder.dashboard.trace.parts import Parts, Steps, Told, advice
from warpladder.data import job_tables

US, MS = 1_000, 1_000_000
ABOUT = {"compute_ns": "a faster kernel", "exposed_ns": "a rank", "copies_ns": "a copy"}


def parts(**times: int) -> Parts:
    """The parts of these times, in us; those that are not given follow from them."""
    row = dict.fromkeys((column.name for column in job_tables.BREAKDOWN), 0) | {
        f"{name}_ns": time for name, time in times.items()
    }
    row["busy_ns"] += row["compute_ns"] + row["exposed_ns"] + row["graph_ns"]
    row["span_ns"] = row["busy_ns"] + row["host_wait_ns"] + row["kernel_wait_ns"] + row["other_idle_ns"]
    return Parts.of(pd.DataFrame([{name: time * US for name, time in row.items()}]), "all")


def steps(count: int, host: int, device: int, waits: int = 0) -> Steps:
    """Steps that take so long on the host and on the device, one after another, in us."""
    rows = [
        dict.fromkeys(Steps.COLUMNS, 0)
        | {"iteration": number, "start_ns": number * host * US, "end_ns": (number + 1) * host * US}
        | {"device_start_ns": number * host * US, "device_end_ns": (number * host + device) * US}
        | {"span_ns": device * US, "busy_ns": device * US, "compute_ns": device * US}
        for number in range(count)
    ]
    found = Steps.of(pd.DataFrame(rows), count * waits * US)
    assert found is not None
    return found


def test_idle_time_is_one_part_with_its_causes() -> None:
    found = parts(compute=500, host_wait=300, kernel_wait=50, other_idle=150, untold=110, managed=70)
    assert found.headline == "largest parts of 1.00 ms: compute 50.0 %, idle 50.0 %"
    assert list(found.rows()) == [
        ("compute", 500 * US),
        ("idle", 500 * US),
        ("- next work not launched yet", 300 * US),
        ("- the host uses managed memory", 70 * US),
        ("- gaps under 30 µs", 50 * US),
        ("- launched work waits > 30 µs", 40 * US),
        ("- launch not in the profile", 40 * US),
        ("sum: all", 1000 * US),
    ]
    assert [name for name, _ in found.rows(causes_too=False)] == [
        "compute",
        "idle, mainly: next work not launched yet",
        "sum: all",
    ]


def test_the_parts_of_a_job_are_the_mean_of_its_ranks() -> None:
    """Two ranks of 600 and 400 us: compute 300 and 250, idle 300 and 150."""
    found = parts(compute=550, host_wait=450).mean(2)
    assert found.headline == "largest part: compute, 55.0 % of a rank's 500 µs"
    assert found.heading == "where the time goes, mean of 2 ranks"
    assert list(found.rows()) == [
        ("compute", 275 * US),
        ("idle: next work not launched yet", 225 * US),
        ("sum: all", 500 * US),
    ]


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ({"host_wait": 300}, "idle: next work not launched yet"),
        ({"host_wait": 300, "kernel_wait": 8}, "idle, mainly: next work not launched yet"),
        ({"host_wait": 6, "kernel_wait": 6}, "idle"),
    ],
)
def test_causes_with_little_time_have_no_row(causes: dict[str, int], words: str) -> None:
    assert [row for row, _ in parts(compute=692, **causes).rows()] == ["compute", words, "sum: all"]


@pytest.mark.parametrize(
    ("found", "todo"),
    [
        (parts(compute=90, host_wait=900), "profile a longer part of the program: the device works for only 90.0 µs"),
        (parts(compute=900, host_wait=100), "a faster kernel"),
        (parts(exposed=900, compute=500, busy=100), "a rank"),
        (parts(compute=500, busy=900), "a copy"),
        (parts(compute=500, exposed=490), "a faster kernel; and a rank"),
        (parts(compute=800, graph=200), "profile with nsys profile --cuda-graph-trace=node"),
        # 1 ms in waits of up to 100 us each are ten launches or more; of 900 us it is not known.
        (parts(compute=500, host_wait=1_000), "see which work is launched late: warpladder app, page Timeline; fewer launches"),
        (parts(compute=500, host_wait=900), "see which work is launched late: warpladder app, page Timeline"),
        (parts(compute=500, host_wait=1_000, long_wait=600), "see what the host does before late launches: "),
        (parts(compute=500, kernel_wait=900), "see between which kernels the gaps are: "),
        (parts(compute=500, other_idle=900), "see where launched work waits: "),
        (
            parts(compute=500, other_idle=450, host_wait=600, long_wait=600),
            "see what the host does before late launches, and where launched work waits: warpladder",
        ),
        (parts(compute=500, other_idle=900, untold=900), "see where the device is idle, as the profile does not tell why: "),
        (
            parts(compute=500, other_idle=900, untold=900, managed=800),
            "the host works on managed memory while the device is idle",
        ),
    ],
)
def test_advice_is_about_the_largest_part(found: Parts, todo: str) -> None:
    said = advice(found, None, ABOUT)
    assert said.startswith(todo) and ("CUDA graph" in said) == ("fewer" in todo or "gaps are" in todo)


def test_advice_tells_why_a_faster_kernel_does_not_help_where_the_host_is_slower() -> None:
    found = parts(compute=2_400, host_wait=600)
    assert advice(found, steps(3, 1_000, 800), ABOUT) == (
        "under the profiler, the host takes 1.00 ms a step (without waits), the device 800 µs: faster kernels do not shorten a step; see "
        "which work is launched late: warpladder app, page Timeline"
    )
    assert advice(found, steps(3, 1_000, 800, waits=300), ABOUT) == "a faster kernel", "the host waits for the device"
    assert advice(parts(compute=2_400, kernel_wait=600), steps(3, 1_000, 800), ABOUT) == "a faster kernel", (
        "nothing is launched late"
    )
    gaps = parts(compute=2_000, kernel_wait=600, host_wait=400, long_wait=400)
    assert "see what the host does while the device is idle: warpladder app" in advice(gaps, steps(3, 1_000, 800), ABOUT)
    one = steps(1, 1_000, 610, waits=10)
    assert advice(parts(compute=500, other_idle=110), one, ABOUT) == (
        "under the profiler, the host takes 1.00 ms a step (10.0 µs in waits and copies), the device 610 µs: faster kernels do not shorten "
        "a step; see what the host does before and after the device work: warpladder app, page Timeline"
    ), "nothing waits for a launch between the first and the last work, and the host is busy for 390 us before and after"
    assert advice(parts(compute=500, other_idle=110), steps(1, 1_000, 610, waits=390), ABOUT) == "a faster kernel"


def test_work_outside_of_the_steps_is_told_where_it_is_much() -> None:
    found = steps(3, 1_000, 800)
    assert found.sentence(parts(compute=2_400, host_wait=600)) == (
        "3 steps: 1.00 ms each on the host, 800 µs each from first to last device work, which cover 2.40 of 3.00 ms; the other 600 µs: idle"
    )
    exposed = found.sentence(parts(compute=2_600, exposed=300, host_wait=100))
    assert exposed.endswith("; the other 600 µs: 50.0 % exposed communication")
    assert "other" not in found.sentence(parts(compute=2_400, host_wait=100))


def test_the_sentence_about_one_step_tells_what_the_parts_are_of() -> None:
    assert steps(1, 1_000, 610).sentence(parts(compute=610)) == (
        "one step: 1.00 ms on the host, 610 µs from first to last device work, to which the parts add up"
    )
    assert steps(1, 1_000, 990).sentence(parts(compute=990)) == "one step: 990 µs, to which the parts add up"


def test_the_steps_of_a_job_cover_the_mean_of_its_ranks() -> None:
    """Two ranks of two steps each, of 480 us on the devices: 960 of 980 us a rank."""
    rows = [
        dict.fromkeys(Steps.COLUMNS, 0)
        | {"iteration": number, "end_ns": 490 * US, "device_start_ns": 0, "device_end_ns": 480 * US, "span_ns": 480 * US}
        for number in (0, 1, 0, 1)
    ]
    found = Steps.of(pd.DataFrame(rows), 0)
    assert found is not None
    assert (
        found.sentence(parts(host_wait=1_960).mean(2)) == "2 steps on each of 2 ranks: 480 µs each, which cover 960 of 980 µs"
    )
    fewer = Steps.of(pd.DataFrame(rows[:3]), 0)
    assert fewer is not None
    assert fewer.sentence(parts(host_wait=1_960).mean(2)).startswith("3 steps on 2 ranks, not the same on each: 480 µs each")


def test_a_step_that_takes_much_longer_than_the_median_is_named_and_looked_at_first() -> None:
    """Steps of 1, 2.98, 1 and 1 ms, 5.98 ms in all: step 1 idles for 1.96 ms, and the median step for none."""
    rows = [
        dict.fromkeys(Steps.COLUMNS, 0)
        | {"iteration": number, "end_ns": lasts * US, "device_start_ns": 0, "device_end_ns": lasts * US}
        | {"span_ns": lasts * US, "busy_ns": 1_020 * US if number == 1 else lasts * US, "compute_ns": 800 * US}
        for number, lasts in enumerate((1_000, 2_980, 1_000, 1_000))
    ]
    found, of_all = Steps.of(pd.DataFrame(rows), 0), parts(compute=3_200, exposed=820, host_wait=1_960)
    assert found is not None
    assert found.sentence(of_all) == (
        "4 steps: median 1.00 ms (1.00 to 2.98 ms), which cover all 5.98 ms; step 1 takes 2.98 ms, 1.96 ms of it idle"
    )
    todo = "see why step 1 takes 1.98 ms more than the median step: warpladder app, page Timeline"
    assert advice(of_all, found, ABOUT) == todo
    assert Steps.of(pd.DataFrame(rows[:1] + rows[2:]), 0).slow is None  # type: ignore[union-attr]


def test_a_slow_step_of_several_devices_has_the_mean_of_its_classes() -> None:
    """Steps of 1, 3 and 1 ms on two devices. In step 1 each idles for 2 ms; the sum, 4 ms, is more than the step lasts."""
    rows = [
        dict.fromkeys(Steps.COLUMNS, 0)
        | {"iteration": number, "end_ns": lasts * US, "device_start_ns": 0, "device_end_ns": lasts * US}
        | {"span_ns": 2 * lasts * US, "busy_ns": 2_000 * US, "compute_ns": 2_000 * US}
        for number, lasts in enumerate((1_000, 3_000, 1_000))
    ]
    found = Steps.of(pd.DataFrame(rows), 0)
    assert found is not None and found.slow is not None
    assert (found.slow.why, found.slow.device_ns, found.slow.why_ns) == ("idle_ns", 3_000 * US, 2_000 * US)


def test_what_is_told_is_in_order_and_without_empty_lines() -> None:
    assert Told("most", ("a", "b"), "", "this").lines == ("most", "a", "b", "next: this")
