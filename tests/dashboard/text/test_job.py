"""The summary of a job as text: the late rank, the cause, the kernel that differs, and the ranks."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.synthetic import made_jobs
from warpladder.__main__ import command
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.dashboard.core.numbers import format_duration
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.text import job
from warpladder.data import store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunData]:
    folder = tmp_path_factory.mktemp("jobs")
    return lambda name, **options: load(store.open_run(made_jobs.write(folder, name, **options)))


def _joined(text: str) -> list[str]:
    """The lines, with those that go on with one before."""
    return text.replace("\n  ", " ").splitlines()


@pytest.mark.slow
def test_a_job_is_named_its_late_rank_the_cause_and_the_kernel_that_differs(made: Callable[..., RunData]) -> None:
    text = job.render(made("told"), "table")
    _, largest, first, cause, kernel, *more = _joined(text)
    good = [rank for rank in range(made_jobs.RANKS) if rank != made_jobs.BROKEN]
    waits = sum(made_jobs.wait_ns(rank, iteration) for rank in good for iteration in range(made_jobs.ITERATIONS))
    assert largest.startswith("largest part: compute, ")
    assert first.startswith(f"rank 5 is late: the others wait {format_duration(waits / (len(good) - 1))} longer, on average, ")
    assert cause == "cause: kernels take longer"
    assert "differs the most: rank 5 takes 240 ms in all" in kernel
    place = next(place for place, line in enumerate(more) if line.startswith("rank  time"))
    assert more[place + 1].split()[0] == "5" and more[place + 1].endswith("late")
    assert len(text.splitlines()) <= 24 and max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_the_parts_of_a_job_add_up_to_its_spans(made: Callable[..., RunData]) -> None:
    """An iteration of a rank spans 77.5 ms: 7 ranks of 4 iterations, 2.17 s. Copies take 2 ms, and idle times 4, 1 and 0.5 ms of each."""
    content = json.loads(job.render(made("parts"), "json"))
    time, cells = content["device_time"], 7 * 4
    assert time["span_ns"] == cells * 77_500_000
    assert (time["copies_and_sets_alone_ns"], time["idle_ns"]) == (cells * 2_000_000, cells * 5_500_000)
    assert [time[f"idle_{each}_ns"] for each in ("host_wait", "kernel_wait", "other")] == [
        cells * us for us in (4_000_000, 1_000_000, 500_000)
    ]
    parts = ("compute_ns", "exposed_communication_ns", "copies_and_sets_alone_ns", "idle_ns")
    assert sum(time[part] for part in parts) == time["span_ns"]
    assert content["steps"]["count"] == 4 and content["steps"]["median_ns"] == made_jobs.EVERY_NS


@pytest.mark.thorough
def test_where_lines_are_few_kernels_are_left_out_first_and_then_the_last_sentences(made: Callable[..., RunData]) -> None:
    data = made("few")
    whole = job.render(data, "table", lines=22)
    for lines in range(16, 23):
        text = job.render(data, "table", lines=lines)
        assert len(text.splitlines()) <= lines and text.splitlines()[:2] == whole.splitlines()[:2]


@pytest.mark.thorough
def test_why_no_late_rank_can_be_told_is_a_line(made: Callable[..., RunData]) -> None:
    data = made("refused", told=False)
    assert "no late rank can be told, as the warning above tells" in _joined(job.render(data, "table"))
    lines = _joined(job.render(data, "table", every=True))
    assert any(line.startswith("no late rank can be told: ") and "spread by 32.5 ms" in line for line in lines)


@pytest.mark.thorough
def test_the_command_prints_the_forms(tmp_path: Path) -> None:
    made_jobs.write(tmp_path)

    def printed(form: str) -> str:
        done = CliRunner().invoke(command(), ["summary", "job", "--data-dir", str(tmp_path), "--format", form])
        assert done.exit_code == 0, done.output
        return done.stdout

    content = json.loads(printed("json"))
    assert (content["run_id"], content["ranks"][0]["rank"], len(content["sentences"])) == ("job", 5, 3)
    assert printed("csv").splitlines()[0].startswith("rank,host,distance,differs_in,span_ns,compute_ns")
    assert printed("markdown").count("\n| ") == 1 + 1 + len(content["ranks"])
    assert content["sentences"][0] in _joined(printed("table"))


@pytest.mark.slow
def test_of_many_ranks_the_outliers_are_shown(made: Callable[..., RunData], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_MOST_ROWS", 2)
    data = made("many")
    lines = job.render(data, "table").splitlines()
    heading = next(place for place, line in enumerate(lines) if line.startswith("rank  time"))
    first, _, mean, more = (line.split() for line in lines[heading + 1 : heading + 5])
    compute = json.loads(job.render(data, "json"))["device_time"]["compute_ns"]
    assert (first[0], mean[0], " ".join(more)) == ("5", "mean", "5 more ranks: warpladder summary RUN --all")
    assert " ".join(mean[3:5]) == format_duration(compute / 7), "the means of 7 ranks, 7 times, are the parts of all"
    every = job.render(data, "table", every=True).splitlines()
    heading = next(place for place, line in enumerate(every) if line.startswith("rank  time"))
    ranks = [line.split()[0] for line in every[heading + 1 : heading + made_jobs.RANKS]]
    assert ranks[0] == "5" and sorted(ranks) == ["0", "1", "2", "4", "5", "6", "7"]


def _write_traces(folder: Path, gemm_us: Sequence[float]) -> Path:
    """A trace a rank, of 12 products and an all-reduce after each, which all ranks leave at the same moment."""
    folder.mkdir()
    last = max(gemm_us)
    for rank, own in enumerate(gemm_us):
        kernels = []
        for number in range(12):
            start = 1000.0 + number * (last + 50)
            kernels += [("gemm", start, own), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + own, last - own + 40)]
        events = []
        for place, (name, start, lasts) in enumerate(kernels):
            times = {"ts": start - 20, "dur": 5, "pid": 7, "tid": 7}
            events.append(
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **times, "args": {"correlation": place}}
            )
            args = {"correlation": place, "device": 0, "context": 1, "stream": 7, "grid": [1, 1, 1], "block": [1, 1, 1]}
            if name != "gemm":
                args |= {"Collective name": "allreduce", "In msg nelems": 100, "dtype": "Float", "Group size": len(gemm_us)}
                args |= {"Process Group Name": "0", "Process Group Ranks": str(list(range(len(gemm_us))))}
            times = {"ts": start, "dur": lasts, "pid": 0, "tid": 7}
            events.append({"ph": "X", "cat": "kernel", "name": name, **times, "args": args})
        about = {"distributedInfo": {"rank": rank, "world_size": len(gemm_us)}, "deviceProperties": [{"id": 0, "name": "GPU"}]}
        (folder / f"rank-{rank}.json").write_text(json.dumps(about | {"traceEvents": events}))
    return folder


def _imported(tmp_path: Path, gemm_us: Sequence[float]) -> list[str]:
    folder = _write_traces(tmp_path / "traces", gemm_us)
    with pytest.MonkeyPatch.context() as patch:  # ranks are imported in this process
        patch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))
        import_job(Request(profiles(str(folder)), "it"), tmp_path / "runs", Notes())
    done = CliRunner().invoke(command(), ["summary", "it", "--data-dir", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    return _joined(done.stdout)


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("gemm_us", "sentence", "others"),
    [
        # 12 products of 100 us on rank 0 and of 150 us on rank 1.
        (
            [100.0, 150.0],
            "gemm differs the most: rank 1 takes 1.80 ms in all, 600 µs more than the other rank",
            "the other rank waits",
        ),
        (
            [100.0, 100.0, 150.0],
            "gemm differs the most: rank 2 takes 1.80 ms in all, 600 µs more than the median rank",
            "the others wait",
        ),
        # Half of the ranks are late: the median of all is between the two kinds.
        (
            [100.0, 150.0, 100.0, 150.0],
            "gemm differs the most: rank 1 takes 1.80 ms in all, 600 µs more than the median rank",
            "the others wait",
        ),
    ],
)
def test_the_kernel_that_takes_longer_on_the_late_rank_is_named_where_few_ranks_are(
    tmp_path: Path, gemm_us: Sequence[float], sentence: str, others: str
) -> None:
    lines = _imported(tmp_path, gemm_us)
    assert f"late: {others} {format_duration(12 * 50_000)} longer, " in lines[2], "50 us in each of 12 collectives"
    assert lines[3:5] == ["cause: kernels take longer", sentence]


@pytest.mark.slow
def test_of_ranks_that_are_equal_none_is_late(tmp_path: Path) -> None:
    lines = _imported(tmp_path, [100.0, 100.0])
    assert not any(
        "is late:" in line or line.startswith("cause:") for line in lines if not line.startswith("no rank is late: ")
    )
    assert "no rank is late: the ranks of each group wait equally long" in lines


@pytest.mark.slow
def test_a_job_with_much_to_say_takes_one_screen_and_all_of_it_with_all(
    made: Callable[..., RunData], monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = tuple(f"reason {number} why {'it is not known ' * 20}" for number in range(3))
    monkeypatch.setattr(
        job.ranks, "answer", lambda data: job.ranks.Answer(12.0, 0.0, "no late rank can be told", True, reasons, "much " * 40)
    )
    lines = job.render(made("much"), "table").splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert sum(line.startswith("no late rank can be told: reason") for line in lines) == 1
