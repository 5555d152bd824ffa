"""The classes of a rank's timeline add up, against a plain count of nanoseconds over generated work of many steps, streams and GPUs."""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warpladder.collectors.jobs import rank
from warpladder.collectors.kineto.parse import import_report
from warpladder.data import store, timeline
from warpladder.data.iterations import Steps
from warpladder.data.timeline import COMMUNICATION, COMPUTE, GRAPH, MEMORY, DeviceWork

#: A nanosecond of the generator is so many of the trace, so that gaps have all causes.
UNIT = 3_000
PARTS = ("compute_ns", "graph_ns", "exposed_ns", "copies_ns", "host_wait_ns", "kernel_wait_ns", "other_idle_ns")
OF_IDLE = ("long_wait_ns", "untold_ns")


class Made:
    """Steps of different lengths, each with work on several streams that runs when its stream is free; launches run far ahead of the GPUs.

    Attributes:
        work: rows of start, end, device, stream, kind, launch (None where the trace lacks it) and step (None for none).
        steps: rows of number, start and end on the host.
    """

    def __init__(self, seed: int, devices: int) -> None:
        rng = random.Random(seed)
        self.steps: list[tuple[int, int, int]] = []
        self.work: list[tuple[int, int, int, int, int, int | None, int | None]] = []
        free: dict[tuple[int, int], int] = defaultdict(int)
        begun: set[tuple[int, int]] = set()
        now, number = 0, rng.randrange(5)
        for turn in range(rng.randint(2, 9)):
            step = number if turn % 3 else None  # every third stretch of the host is outside of all steps
            begin = now
            for _ in range(rng.randint(0, 6)):
                now += rng.randint(0, 4)
                stream = rng.randrange(devices), rng.choice((7, 7, 20))
                start = max(now + rng.randint(0, 3), free[stream] + rng.choice((0, 0, 1, 14)))
                free[stream] = start + rng.randint(0, 15)
                kind = rng.choice((COMPUTE, COMPUTE, COMMUNICATION, MEMORY, GRAPH))
                lost = stream in begun and rng.random() < 0.1
                # The step of work without a launch is that of the work before it, which may be another one.
                behind = [row for row in self.work if row[2:4] == stream]
                launch, of = (None, behind[-1][6]) if lost else (now, step)
                self.work.append((start, free[stream], *stream, kind, launch, of))
                begun.add(stream)
                now += rng.randint(0, 2)
            now += 1
            if step is not None:
                self.steps.append((number, begin, now))
                number += 1

    def columns(self) -> tuple[DeviceWork, Steps]:
        order = random.Random(1).sample(range(len(self.work)), len(self.work))
        start, end, device, stream, kind, launch, _ = zip(*(self.work[place] for place in order), strict=True)
        launched = [each or 0 for each in launch]
        work = DeviceWork(
            start=np.array(start) * UNIT,
            end=np.array(end) * UNIT,
            process=np.full(len(order), 100),
            device=np.array(device),
            stream=np.array(stream),
            kind=np.array(kind, np.int8),
            name=np.zeros(len(order), np.int64),
            names=["kernel"],
            correlation=np.array(order),
            launch_start=np.array(launched) * UNIT,
            launch_end=np.array(launched) * UNIT + 1,
            launched=np.array([each is not None for each in launch]),
        )
        steps = [np.array(column, np.int64) for column in zip(*self.steps, strict=True)] or [np.empty(0, np.int64)] * 3
        return work, Steps(steps[0], steps[1] * UNIT, steps[2] * UNIT)

    def used(self) -> list[int]:
        """GPUs with kernels, or one where none has any."""
        times: Counter[int] = Counter()
        for start, end, device, _, kind, _, _ in self.work:
            times[device] += (end - start) * (kind != MEMORY)
        return [device for device in sorted(times) if times[device]] or [
            Counter(row[2] for row in self.work).most_common(1)[0][0]
        ]

    def classes(self) -> dict[tuple[int, int | None], Counter[str]]:
        """How many nanoseconds of each class each GPU has in each step, `None` outside of all. A plain count of nanoseconds."""
        begin, end = min(row[0] for row in self.work), max(row[1] for row in self.work)
        used = self.used()
        counted: dict[tuple[int, int | None], Counter[str]] = defaultdict(Counter)
        owner = self.owners(begin, end)
        for device in used:
            work = [row for row in self.work if row[2] == device]
            if device == self.busiest():
                work += [row for row in self.work if row[2] not in used]
            for ns in range(begin, end):
                for name in self.classes_of(work, ns, begin):
                    counted[device, owner[ns]][name] += UNIT
        return counted

    def busiest(self) -> int:
        used = self.used()
        time = {each: sum(row[1] - row[0] for row in self.work if row[2] == each and row[4] != MEMORY) for each in used}
        return max(used, key=lambda each: (time[each], -each))

    def owners(self, begin: int, end: int) -> dict[int, int | None]:
        """The step of each nanosecond: of the first step whose work, and all launched earlier, has not ended, once its work has begun."""
        owner: dict[int, int | None] = dict.fromkeys(range(begin, end))
        for number, host, ends in self.steps:
            own = [row for row in self.work if row[6] == number]
            earlier = [row[1] for row in self.work if self.launched(row) < host]
            for ns in range(
                max([*earlier, min((row[0] for row in own), default=end)]), max((row[1] for row in own), default=0)
            ):
                owner[ns] = number
            assert all(host <= self.launched(row) < ends for row in own)
        return owner

    def launched(self, row: tuple[int, int, int, int, int, int | None, int | None]) -> int:
        """When work was launched; for work without a launch, when the last work before it on its stream was."""
        return next(each[5] for each in self.work[self.work.index(row) :: -1] if each[2:4] == row[2:4] and each[5] is not None)

    def classes_of(
        self, work: list[tuple[int, int, int, int, int, int | None, int | None]], ns: int, begin: int
    ) -> tuple[str, ...]:
        """The class of a nanosecond, and the parts of it in `OF_IDLE`."""
        running = {row[4] for row in work if row[0] <= ns < row[1]}
        if running:
            kinds = zip((COMPUTE, GRAPH, COMMUNICATION, MEMORY), PARTS[:4], strict=True)
            return (next(words for kind, words in kinds if kind in running),)
        opened = max((row[1] for row in work if row[0] <= ns), default=begin)
        coming = [row for row in work if row[0] > ns]
        closes = min((row[0] for row in coming), default=max(row[1] for row in self.work))
        launches = [row[5] for row in coming if row[0] == closes]
        lasts = (closes - opened) * UNIT
        if all(each is not None and each > opened for each in launches):
            return ("host_wait_ns", "long_wait_ns") if lasts > 100_000 else ("host_wait_ns",)
        if lasts < 30_000:
            return ("kernel_wait_ns",)
        return ("other_idle_ns", "untold_ns") if None in launches else ("other_idle_ns",)


def parts(row: dict[str, int]) -> Counter[str]:
    """The seven classes of a row and the parts of idle time that are not 0, after a check that the classes add up to its span."""
    copies = row["busy_ns"] - row["compute_ns"] - row["graph_ns"] - row["exposed_ns"]
    found = Counter({**row, "copies_ns": copies})
    assert sum(found[name] for name in PARTS) == row["span_ns"]
    return +Counter({name: found[name] for name in (*PARTS, *OF_IDLE)})


@pytest.mark.slow
@pytest.mark.sampled(25)
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("seed", range(25))
def test_each_nanosecond_of_each_gpu_has_one_step_and_one_class(seed: int, devices: int) -> None:
    made = Made(seed, devices)
    assert made.work, "the trace of each seed has device work"
    work, steps = made.columns()
    counted = made.classes()
    for row in rank.device_rows(work):
        assert parts(row) == sum((each for (device, _), each in counted.items() if device == row["device"]), Counter())
    whole = timeline.breakdown(work)
    assert parts(whole) == sum(counted.values(), Counter())
    assert whole["span_ns"] == len(made.used()) * int(work.end.max() - work.start.min())
    rows = timeline.iteration_rows(work, steps)
    for row in rows:
        assert parts(row) == sum((each for (_, step), each in counted.items() if step == row["iteration"]), Counter())
    outside = sum((each for (_, step), each in counted.items() if step is None), Counter())
    assert parts(whole) == sum(map(parts, rows), outside)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_the_same_work_on_a_second_gpu_has_the_same_sums_there(seed: int) -> None:
    made = Made(seed, 1)
    assert made.work, "the trace of each seed has device work"
    alone, steps = made.columns()
    (one,) = rank.device_rows(alone)
    rows = timeline.iteration_rows(alone, steps)
    made.work += [(*row[:2], 1, *row[3:]) for row in made.work]
    both, _ = made.columns()
    first, second = rank.device_rows(both)
    assert (first, second) == (one, {**one, "device": 1})
    doubled = [{name: 2 * row[name] if name in one and name != "device" else row[name] for name in row} for row in rows]
    assert timeline.iteration_rows(both, steps) == doubled
    of_stream = {(row["device"], row["stream"]): row for row in rank.idle_rows(both)}
    assert of_stream == {
        (device, row["stream"]): {**row, "device": device} for row in rank.idle_rows(alone) for device in (0, 1)
    }


def test_the_calls_of_a_trace_are_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = Path(__file__).parents[1] / "fixtures" / "kineto" / "resnet18_train_h2d.json.gz"
    run = store.open_run(tmp_path / import_report(fixture, tmp_path, "", None, []))
    calls = run.table("api_calls").set_index("correlation")
    copies = run.table("memory_ops")
    whole = store.Run.arrow

    def without_calls(self: store.Run, name: str, *rest: Any) -> pa.Table:
        assert name != "api_calls"
        return whole(self, name, *rest)

    monkeypatch.setattr(store.Run, "arrow", without_calls)
    work = timeline.device_work(run)
    assert work.launched.all()
    assert work.launch_start[work.kind == MEMORY].tolist() == calls.loc[copies["correlation"], "start_ns"].tolist()
    assert work.launch_end[work.kind == MEMORY].tolist() == calls.loc[copies["correlation"], "end_ns"].tolist()
    lasts = calls["end_ns"] - calls["start_ns"]
    chosen = [calls["name"].str.contains("|".join(words)) for words in (timeline.COPYING, timeline.WAITING)]
    assert timeline.calls_ns(run, timeline.COPYING, timeline.WAITING) == tuple(int(lasts[each].sum()) for each in chosen)
