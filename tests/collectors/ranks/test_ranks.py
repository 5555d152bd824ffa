"""Several ranks share a case: what they write is one process's, and what goes wrong on one of them has its name and an end."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from warpladder.__main__ import command
from warpladder.collectors.core.bench import ONE_PROCESS, Failed, Pass, Reading, Unavailable, of_all
from warpladder.collectors.core.cells import Cell, Results
from warpladder.collectors.core.environment import has_module
from warpladder.collectors.core.plan import LIMITS, Request, WorkloadRef, make_plan
from warpladder.collectors.core.recorder import Recorder
from warpladder.collectors.core.rounds import Entry, Limits, Turn, run_rounds
from warpladder.collectors.host.host_clock import HostBench
from warpladder.collectors.ranks.launchers import Launcher, processors_of
from warpladder.collectors.ranks.ranked_bench import Failure, Local, RankedBench, attempt
from warpladder.collectors.wiring import collector_of
from warpladder.data import store
from warpladder.data.names import Phase
from warpladder.workloads import registry
from warpladder.workloads.api import NotShareable, split_evenly
from warpladder.workloads.gan_tconv.problem import make_case

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
MISBEHAVING = Path(__file__).parent / "misbehaving_ranks.py"
GAN = registry.load("gan_tconv")
SMALLEST = make_case({"images": 5, "channels": 8, "side": 2})
SHORT = replace(LIMITS["quick"], seconds=0.05, cell_timeout_s=8.0, max_rounds=8, budget_s=None)

needs_mpi = pytest.mark.skipif(not has_module("mpi4py") or Launcher().program is None, reason="needs MPI, of the extra mpi")


# -- shares ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "ranks", "spans"),
    [
        (4, 2, ((0, 2), (2, 2))),
        (5, 2, ((0, 3), (3, 2))),
        (5, 3, ((0, 2), (2, 2), (4, 1))),
        (3, 3, ((0, 1), (1, 1), (2, 1))),
        (5248, 4, ((0, 1312), (1312, 1312), (2624, 1312), (3936, 1312))),
        (7, 1, ((0, 7),)),
    ],
)
def test_shares_follow_one_another_and_the_first_have_what_remains(
    count: int, ranks: int, spans: tuple[tuple[int, int], ...]
) -> None:
    assert split_evenly(count, ranks, "images") == spans


def test_a_share_of_images_is_a_case_of_its_own() -> None:
    assert GAN.shares is not None
    parts = GAN.shares(make_case({"images": 5, "channels": 64}), 3)
    assert [(part.case.name, part.first) for part in parts] == [
        ("images=2,channels=64", 0),
        ("images=2,channels=64", 2),
        ("images=1,channels=64", 4),
    ]


def test_more_ranks_than_images_are_refused() -> None:
    with pytest.raises(NotShareable, match="3 images cannot be shared among 4 ranks"):
        GAN.shares(make_case({"images": 3}), 4)  # type: ignore[misc]


# -- results and rows ---------------------------------------------------------------------------------------------------


def row_of(status: str, detail: str, error: float | None = None) -> dict[str, object]:
    return {
        **Cell("w", "v", "", "n=1").key,
        "status": status,
        "detail": detail,
        "rel_l2_error": error,
        "max_rel_error": error,
    }


def test_a_cell_is_ok_only_where_it_is_at_every_count() -> None:
    results = Results(host=set())
    for gpus, row in ((1, row_of("ok", "converged", 1e-7)), (2, row_of("ok", "converged too", 2e-7))):
        results.add(row, gpus)
    assert results.rows == [row_of("ok", "converged; on 2 GPUs: converged too", 2e-7)]
    results.add(row_of("timeout", "rank 3: no progress"), 4)
    results.add(row_of("launch_error", "later"), 8)
    assert results.rows == [row_of("timeout", "on 4 GPUs: rank 3: no progress")]


def test_ranks_of_host_variants_are_processes() -> None:
    results = Results(host={("w", "v")})
    results.add(row_of("launch_error", "rank 1: died"), 2)
    assert results.rows[0]["detail"] == "on 2 processes: rank 1: died"


def test_the_whole_takes_as_long_as_its_slowest_rank_and_every_rank_has_a_row() -> None:
    together = of_all([Reading(100, {Phase.H2D: 10}), Reading(300, {Phase.H2D: 30}, throttled=True), Reading(200, held=False)])
    assert (together.duration_ns, together.throttled, together.held) == (300, True, False)
    entry = Entry(Cell("w", "v", "", "n=1"))
    calm = replace(together, throttled=False)
    rows = run_rounds(
        [entry], Pass("operation", "hot"), lambda *_: calm, Turn(0, 0, Limits(max_rounds=6)), np.random.default_rng(0), gpus=3
    ).rows
    first = [(row["gpus"], row["rank"], row["scope"], row["duration_ns"]) for row in rows if row["round"] == 0]
    assert first == [
        (3, 0, "operation", 100),
        (3, 0, Phase.H2D, 10),
        (3, 1, "operation", 300),
        (3, 1, Phase.H2D, 30),
        (3, 2, "operation", 200),
    ]


# -- the bench, its ranks in this process ---------------------------------------------------------------------------------


class InThisProcess:
    """All ranks one after another."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.locals = [Local({"host": HostBench}, ONE_PROCESS) for _ in range(size)]

    def all_do(self, commands):  # type: ignore[no-untyped-def]
        return [attempt(command, local) for command, local in zip(commands, self.locals, strict=True)]


def bench_of(monkeypatch: pytest.MonkeyPatch, ranks: int) -> tuple[RankedBench, dict[str, np.ndarray]]:
    workload = replace(GAN, cases=(SMALLEST,))
    monkeypatch.setattr(registry, "load", lambda name: workload)
    inputs = dict(GAN.make_inputs(SMALLEST, np.random.default_rng(0)))
    return RankedBench(InThisProcess(ranks), WorkloadRef("gan_tconv"), "host", workload, SMALLEST, inputs), inputs


@pytest.mark.thorough
@pytest.mark.xdist_group("numba")  # it compiles the generator once
@pytest.mark.parametrize("ranks", [2, 3])
def test_images_of_all_ranks_are_bit_for_bit_those_of_one(monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    """Numba's loops take every image alone; a matrix product of BLAS may round by how many images it has."""
    bench, inputs = bench_of(monkeypatch, ranks)
    variant = GAN.variant("numba_serial")
    images = bench.run(bench.prepare(variant, {}))["images"]
    alone = HostBench(GAN, SMALLEST, inputs)
    np.testing.assert_array_equal(images, alone.run(alone.prepare(variant, {}))["images"])
    assert np.isfinite(images).all()


def test_a_share_that_cannot_run_says_which_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = bench_of(monkeypatch, 3)  # 2, 2 and 1 images
    variant = replace(GAN.variant("numpy"), skip=lambda case, config: "too few" if case.params["images"] == 1 else None)
    monkeypatch.setattr(type(GAN), "variant", lambda self, name: variant)
    with pytest.raises(Unavailable, match=r"^rank 2: too few$"):
        bench.prepare(variant, {})


def test_ranks_that_fail_alike_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = bench_of(monkeypatch, 3)
    failure = Failure("launch_error", "ValueError: no")
    monkeypatch.setattr(bench._ranks, "all_do", lambda commands: [failure, None, failure])
    with pytest.raises(Failed, match=r"^ranks 0, 2: ValueError: no$"):
        bench.close()


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.thorough), 3])
def test_weights_that_ranks_averaged_are_those_of_one_process_within_rounding(ranks: int) -> None:
    program = [str(Launcher().program), "-n", str(ranks), sys.executable, "-m", "tests.collectors.ranks.weights_of_ranks"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60)
    said = [f"batch {batch}: the same weights, right, timed True" for batch in (3, 37)]
    assert done.stdout.splitlines() == said, done.stderr


@pytest.mark.thorough
@needs_mpi
@pytest.mark.xdist_group("numba")
@pytest.mark.parametrize("ranks", [2, 3])
def test_images_that_came_through_mpi_are_bit_for_bit_those_of_one_process(ranks: int) -> None:
    program = [str(Launcher().program), "-n", str(ranks), sys.executable, "-m", "tests.collectors.ranks.images_of_ranks"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == f"{ranks} ranks: the same images", done.stderr


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for gpus, said in (("2", "--gpus 2: conv2d cannot be shared among GPUs"), ("none", "none is not a number of GPUs")):
        asked = CliRunner().invoke(command(), ["record", "conv2d", "--gpus", gpus, "--data-dir", str(tmp_path)])
        assert asked.exit_code == 2
        assert said in asked.stderr
        assert asked.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


# -- processes -----------------------------------------------------------------------------------------------------------

Record = Callable[..., tuple[store.Run, float]]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    def run(request: Request, limits: Limits = SHORT) -> tuple[store.Run, float]:
        began = time.monotonic()
        run_id, interrupted = Recorder(
            make_plan(request, limits), collector_of("host_clock"), start_ranks=Launcher().start
        ).record(tmp_path, "", [])
        assert not interrupted
        assert not list(tmp_path.glob(".*"))
        return store.open_run(tmp_path / run_id), time.monotonic() - began

    return run


@needs_mpi
@pytest.mark.parametrize(
    "several", [pytest.param((2,), id="2"), pytest.param((2, 3), id="2 and 3", marks=pytest.mark.thorough)]
)
def test_a_case_is_measured_by_one_process_and_by_several_ranks(several: tuple[int, ...], record: Record) -> None:
    wanted = Request(
        ["gan_tconv", "mlp_data_parallel", "mlp_data_parallel_bf16"],
        cases=["images=4,channels=64", "batch=37"],
        variants=["numpy"],
        gpus=(1, *several),
    )
    run, _ = record(wanted)
    assert set(run.table("results")["status"]) == {"ok"}
    assert list(run.table("results")["verified_elements"]) == [4 * 64 * 64 * 3, 795_010, 795_010 + 794_000 + 37]
    averaged = run.table("samples").query("scope == 'phase:allreduce'")
    assert set(averaged["workload"]) == {"mlp_data_parallel", "mlp_data_parallel_bf16"}
    ranks = {(gpus, rank) for gpus in several for rank in range(gpus)}
    assert set(zip(averaged["gpus"], averaged["rank"], strict=True)) == ranks
    results = run.table("results").query("workload == 'gan_tconv'").set_index("variant")
    assert all(f"on {gpus} processes: operation hot: " in results.loc["numpy", "detail"] for gpus in several)
    samples = run.table("samples").query("twin == 0 and workload == 'gan_tconv'")
    assert set(zip(samples["gpus"], samples["rank"], strict=True)) == {(0, 0), *ranks}
    rounds = samples.groupby(["variant", "gpus", "rank"])["round"].agg(["count", "nunique"])
    assert (rounds["count"] == rounds["nunique"]).all()
    together = samples.query("gpus > 0").groupby(["variant", "gpus", "round"])["rank"].agg(list)
    assert all(found == list(range(gpus)) for (_, gpus, _), found in together.items())
    assert len(run.table("cases")) == 3


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    data_dir = tmp_path_factory.mktemp("data")
    plan = make_plan(Request(files=[MISBEHAVING], gpus=(2,), cases=["n=1000"]), SHORT)
    run_id, _ = Recorder(plan, collector_of("host_clock"), start_ranks=Launcher().start).record(data_dir, "", [])
    run = store.open_run(data_dir / run_id)
    assert not list(data_dir.glob(".*"))
    assert set(run.table("samples")["variant"]) == {"good", "sleeps"}
    slowest = run.table("samples").query("variant == 'sleeps'").groupby("rank")["duration_ns"].median()
    assert slowest[1] - slowest[0] > 15e6  # rank 1 sleeps 20 ms longer
    return run.table("results").set_index("variant")


@pytest.mark.thorough
@needs_mpi
@pytest.mark.xdist_group("misbehaved")  # recorded once, not by each worker
@pytest.mark.parametrize(
    ("variant", "status", "detail"),
    [
        ("good", "ok", "on 2 processes: operation hot: "),
        ("sleeps", "ok", "on 2 processes: operation hot: "),
        ("raises", "launch_error", "on 2 processes: rank 1: misbehaving_ranks.py:33: ValueError: no such tile"),
        ("wrong_shape", "wrong_result", "on 2 processes: rank 1: output y has shape (499,), not (500,)"),
        ("does_nothing", "wrong_result", "on 2 processes: 500 of 1000 elements of y are not finite"),
        ("is_killed", "out_of_memory", "on 2 processes: rank 1: its process was killed (signal 9)"),
        ("leaves", "launch_error", "on 2 processes: rank 1: misbehaving_ranks.py:41: SystemExit: 3"),
        ("aborts", "launch_error", "on 2 processes: rank 1: its process died (signal 6)"),
        ("hangs", "timeout", "on 2 processes: rank 1: no progress for 8 s"),
        ("raises_between", "launch_error", "on 2 processes: rank 1: misbehaving_ranks.py:65: ValueError: no gradient"),
    ],
)
def test_what_goes_wrong_on_a_rank_ends_its_cell_by_name_and_no_other(
    misbehaved: pd.DataFrame, variant: str, status: str, detail: str
) -> None:
    assert misbehaved.loc[variant, "status"] == status
    assert misbehaved.loc[variant, "detail"].startswith(detail)


@needs_mpi
def test_ranks_that_do_not_start_are_the_verdict_and_the_others_are_measured(tmp_path: Path) -> None:
    plan = make_plan(Request(files=[MISBEHAVING], gpus=(1, 2), cases=["n=2"], variants=["good"]), SHORT)
    run_id, _ = Recorder(plan, collector_of("host_clock"), start_ranks=Launcher("local", ("-no-such-option",)).start).record(
        tmp_path, "", []
    )
    run = store.open_run(tmp_path / run_id)
    assert run.table("results")["detail"][0].startswith("on 2 processes: the ranks ended with exit code 255: ")
    assert set(run.table("samples")["gpus"]) == {0}


@pytest.mark.parametrize(
    ("may_use", "taken"),
    [
        ([{0, 1, 2, 3}], [4]),
        ([{0, 1, 2, 3}, {0, 1, 2, 3}], [2, 2]),
        ([{0, 1}, {2, 3}], [2, 2]),  # as a scheduler gave them out
        ([{0}, {0}, {0}], [1, 1, 1]),
    ],
)
def test_ranks_that_may_use_the_same_processors_share_them(may_use: list[set[int]], taken: list[int]) -> None:
    assert [processors_of(rank, may_use) for rank in range(len(may_use))] == taken


@pytest.mark.thorough
@needs_mpi
def test_blas_and_numba_start_no_more_threads_than_a_rank_has_processors() -> None:
    program = (
        "from mpi4py import MPI; from warpladder.collectors.ranks import ranks; "
        "ranks._place(MPI.COMM_WORLD, 'host_clock'); import numba, numpy, threadpoolctl; "
        "own = numba.get_num_threads(), *{each['num_threads'] for each in threadpoolctl.threadpool_info()};"
        "every = MPI.COMM_WORLD.gather(own); every and print(every)"
    )
    command = [str(Launcher().program), "-n", "2", sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    own = max(1, len(os.sched_getaffinity(0)) // 2)
    assert said.strip() == str([(own, own)] * 2)


@needs_mpi
@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
def test_images_are_shared_among_two_gpus(tmp_path: Path) -> None:
    wanted = Request(
        ["gan_tconv"], cases=["images=4,channels=64"], variants=["v06_pinned", "v09_graph", "v13_warpgroups_tf32"], gpus=(1, 2)
    )
    run_id, _ = Recorder(
        make_plan(wanted, replace(SHORT, cell_timeout_s=60.0)), collector_of("cuda_events"), start_ranks=Launcher().start
    ).record(tmp_path, "", [])
    run = store.open_run(tmp_path / run_id)
    assert set(run.table("results")["status"]) == {"ok"}, run.table("results")["detail"].to_list()
    samples = run.table("samples")
    assert set(zip(samples["gpus"], samples["rank"], strict=True)) == {(1, 0), (2, 0), (2, 1)}
    assert {"device", "operation", "end_to_end", Phase.D2H} <= set(samples.query("gpus == 2")["scope"])
    assert run.info["device_count"] == 2
