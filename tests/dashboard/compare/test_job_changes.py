"""Two jobs compared: equal code is quiet, a slow kernel is named, and a kernel that is slow on one rank is named with its rank."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.synthetic.made_compared_jobs import REDUCE, MadeJob
from tests.synthetic.made_runs import run_row
from warpladder.dashboard.compare import job_resampling
from warpladder.dashboard.compare.changes import NotComparable
from warpladder.dashboard.compare.job_changes import JobComparison, JobData, compare, unseen, where
from warpladder.dashboard.core.intervals import students_t

JOB = MadeJob()


def data(job: MadeJob, label: str = "a job") -> JobData:
    tables = job.tables()
    info = {**run_row(label, label), "device_name": job.device}
    return JobData.of_tables(info, tables["iterations"], tables["rank_kernels"], tables["collectives"])


def compared(a: MadeJob, b: MadeJob) -> JobComparison:
    return compare(data(a, "first"), data(b, "second"))


def called(comparison: JobComparison) -> dict[str, str]:
    return {where(each): each.verdict for each in comparison.changes if each.verdict not in ("tied", "unknown")}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("made", [JOB, MadeJob(ranks=(0, 1, 2, 3), iterations=(1, 2, 3), jitter=0.03)])
def test_equal_code_is_quiet_in_20_of_20(made: MadeJob) -> None:
    pairs = [(replace(made, seed=2 * seed), replace(made, seed=2 * seed + 1)) for seed in range(20)]
    assert [called(compared(*pair)) for pair in pairs] == [{}] * 20


@pytest.mark.slow
def test_slow_kernels_are_named_in_20_of_20() -> None:
    planted = JOB.slower("kernel_05", 1.05).slower("kernel_11", 1.2, rank=6)
    for seed in range(20):
        found = called(compared(JOB, replace(planted, seed=100 + seed)))
        assert found.pop("kernel_05") == found.pop("kernel_11 on rank 6") == "slower"
        # The other ranks wait for rank 6, and the mean of the kernel has a share of the 20 %.
        assert set(found) <= {"waits for other ranks", "compute", "busy", "kernel_11"}


def test_a_fast_kernel_is_named_and_a_ratio_is_exact() -> None:
    row = next(each for each in compared(JOB, JOB.slower("kernel_05", 0.9)).kernels if each.name == "kernel_05")
    assert row.verdict == "faster"
    assert row.ratio.value == pytest.approx(0.9, abs=1e-5)
    assert row.a_ns == pytest.approx(300_000, rel=0.01)


def test_a_longer_time_between_iterations_is_slower() -> None:
    """As of a program that loads its data outside of the ranges of its steps: each was 3 ms of 100 longer, and all was tied."""
    a, b = data(JOB), data(JOB)
    place = b.iterations.groupby("rank")["start_ns"].rank().astype("int64") - 1
    moved = {name: b.iterations[name] + 3_000_000 * place for name in ("start_ns", "end_ns")}
    tables = b.iterations.assign(**moved), b.kernels, b.waits
    assert called(compare(a, JobData.of_tables(b.info, *tables))) == {"between iterations": "slower"}
    assert not called(compare(a, b))


def hidden(comparison: JobComparison, detect: float | None = None) -> list[str]:
    return [where(each) for each in unseen(comparison, detect)]


def test_a_gate_does_not_see_what_could_not_have_been_called() -> None:
    """Each iteration of a job takes another time, so that twice the time was tied, and the gate passed."""
    unsteady = MadeJob(ranks=(0, 1), iterations=tuple(range(4)), jitter=1.2)
    comparison = compared(unsteady, replace(unsteady, seed=2))
    assert {"iteration", "device span"} <= set(hidden(comparison))
    assert not {"busy", "compute"} & set(hidden(comparison)), "which are parts of these"
    assert not hidden(compared(JOB, replace(JOB, seed=2)))
    assert "iteration" in hidden(compared(JOB, replace(JOB, seed=2)), 0.0001)


def test_a_gate_sees_a_short_kernel_though_its_time_scatters() -> None:
    """A kernel of which all that could be hidden is less than the smallest change of an iteration."""
    steady, unsteady = data(MadeJob(jitter=0.001)), MadeJob(jitter=0.5, kernels={"one": 100.0}).tables()["rank_kernels"]
    one = unsteady[unsteady["name"] == "one"]

    def with_kernel(times: int) -> tuple[JobData, JobData]:
        first = one.assign(total_ns=times * one["total_ns"])
        second = first.assign(total_ns=first["total_ns"].sample(frac=1, random_state=1).to_numpy())
        a, b = (replace(steady, kernels=pd.concat([steady.kernels, each])) for each in (first, second))
        return a, b

    assert hidden(compare(*with_kernel(1)), 0.1) == []
    assert hidden(compare(*with_kernel(20)), 0.1) == ["one"]


def test_a_slow_rank_leaves_the_transfer_of_a_collective_as_it_is() -> None:
    slow = replace(JOB, slow={(name, 3): 1.3 for name in JOB.kernels}, seed=5)
    comparison = compared(JOB, slow)
    rows = {where(each): each for each in comparison.changes}
    assert rows[REDUCE].verdict == "tied"
    assert rows["communication"].verdict == rows["waits for other ranks"].verdict == "slower"
    assert rows["kernel_01 on rank 3"].ratio.value == pytest.approx(1.3, rel=0.03)
    assert not [name for name in rows if " on rank " in name and not name.endswith(" on rank 3")]


def test_new_and_gone_kernels_are_listed_and_short_ones_are_judged_together() -> None:
    a = replace(JOB, kernels={**JOB.kernels, "old": 300.0, "short": 1.0, "shorter": 0.5})
    b = replace(JOB, kernels={**JOB.kernels, "short": 1.0, "shorter": 0.5, "fused": 200.0}, seed=2)
    comparison = compared(a, b)
    assert [each.name for each in comparison.gone] == ["old"]
    assert [each.name for each in comparison.new] == ["fused"]
    assert comparison.new[0].ns == pytest.approx(200_000, rel=0.01)
    names = [each.name for each in comparison.kernels]
    assert "all other kernels" in names
    assert not {"short", "shorter", "old", "fused"} & set(names)


def test_iterations_are_matched_by_number_or_position_and_the_rest_is_told() -> None:
    fewer = compared(JOB, replace(JOB, ranks=(0, 2, 4, 6, 9), iterations=(4, 5, 6)))
    assert fewer.pairing == (
        "4 ranks and 3 iterations, matched by number; not compared: ranks 1, 3, 5 and 1 more of A; "
        "not compared: iterations 3, 7 of A; not compared: rank 9 of B"
    )
    moved = compared(JOB, replace(JOB, iterations=(5, 6, 7, 8, 9)))
    assert moved.pairing == "8 ranks and 5 iterations, matched by position (3, 4, 5 … with 5, 6, 7 …)"


def test_two_iterations_are_not_enough() -> None:
    short = replace(JOB, iterations=(1, 2))
    verdicts = {each.verdict for each in compared(short, short.slower("kernel_05", 2.0)).changes}
    assert verdicts == {"unknown"}


def test_one_profile_each() -> None:
    one = MadeJob(ranks=(0,), iterations=tuple(range(8)))
    assert called(compared(one, replace(one, seed=3))) == {}
    assert called(compared(one, replace(one.slower("kernel_05", 1.1), seed=3))) == {"kernel_05": "slower"}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(JOB, ranks=(8, 9)), "first and second have no rank in common: 0, 1, 2 … and 8, 9"),
        (replace(JOB, device="NVIDIA A100"), "first ran on NVIDIA H100, second on NVIDIA A100; compare runs of one device"),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_line(other: MadeJob, message: str) -> None:
    with pytest.raises(NotComparable) as raised:
        compared(JOB, other)
    assert str(raised.value).startswith(message)


def test_jobs_without_iterations_in_common() -> None:
    a, b = data(JOB, "first"), data(JOB, "second")
    with pytest.raises(NotComparable, match="second: has no numbered iterations"):
        compare(a, replace(b, iterations=b.iterations.iloc[:0]))
    apart = b.iterations[(b.iterations["rank"] > 0) ^ (b.iterations["iteration"] > 4)]
    with pytest.raises(NotComparable, match="second: no iteration is on all of its 8 ranks"):
        compare(a, replace(b, iterations=apart))


def test_quantiles_of_student() -> None:
    """Tables of Student's t: 97.5 % of 1, 2, 10, 30 and infinitely many degrees, and 99.95 % of 5."""
    found = [students_t(freedom) for freedom in (1.0, 2.0, 10.0, 30.0, math.inf)]
    assert found == pytest.approx([12.706, 4.303, 2.228, 2.042, 1.960], rel=1e-3)
    assert students_t(5.0, 0.0005) == pytest.approx(6.869, rel=1e-3)


def test_iterations_that_are_long_on_all_ranks_widen_the_interval() -> None:
    """Sixteen ranks with equal times are no more than one rank."""
    rng = np.random.default_rng(3)
    a, b = (100 + rng.standard_normal((1, 1, 6)) for _ in range(2))
    one = job_resampling.ratios(a, b, alike=False)
    many = job_resampling.ratios(np.repeat(a, 16, axis=1), np.repeat(b, 16, axis=1), alike=False)
    assert many.high - many.low == pytest.approx(one.high - one.low, rel=0.05)
