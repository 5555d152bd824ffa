"""Which launcher starts the ranks, what a plan asks of it, and what is said of a rank that died."""

import shutil

import pytest

from warpladder.collectors.core.plan import PlanError, Request, counts_of, make_plan
from warpladder.collectors.ranks import launchers
from warpladder.collectors.ranks.launchers import Launcher, Started, problem_of, why_ended
from warpladder.workloads import registry

# -- the plan ----------------------------------------------------------------------------------------------------------


def test_each_case_is_measured_alone_and_then_among_every_count_that_it_can_be_shared_among() -> None:
    transposed = registry.load("tensor_transpose").cases[0].name
    plan = make_plan(Request(["gan_tconv", "tensor_transpose"], cases=["images=3", "images=10", transposed], gpus=(1, 2, 4)))
    jobs = [(job.workload.name, job.case, job.gpus) for job in plan.jobs if job.workload.name == "gan_tconv"]
    assert jobs == [("gan_tconv", f"images={images}", gpus) for images, gpus in [(10, 1), (10, 2), (10, 4), (3, 1), (3, 2)]]
    assert [job.gpus for job in plan.jobs if job.workload.name == "tensor_transpose"] == [1]
    assert plan.notes == ("gan_tconv/images=3: 3 images cannot be shared among 4 ranks",)
    assert plan.most_gpus == 4


@pytest.mark.parametrize("text", ["0", "-1", "two", "1,,2", "", "1.5", "²"])
def test_a_count_that_is_no_positive_number_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="is not a number of GPUs; write for instance --gpus 1,2,4"):
        counts_of(text)


def test_counts_are_taken_once_each_in_order() -> None:
    assert counts_of("4, 1,2,2") == (1, 2, 4)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(["conv2d"], gpus=(1, 2)), "--gpus 2: conv2d cannot be shared among GPUs; record one that can: gan_tconv"),
        (Request(["gan_tconv"], cases=["images=3"], gpus=(4,)), "3 images cannot be shared among 4 ranks; ask for fewer"),
    ],
)
def test_what_cannot_be_shared_at_all_is_refused(request_: Request, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        make_plan(request_)


def test_collectors_that_see_one_process_are_refused() -> None:
    with pytest.raises(PlanError, match="--collector cupti: sees only one process; with --gpus 2 choose cuda_events or host"):
        Launcher().check(2, "cupti")


def test_a_machine_without_mpi_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "has_module", lambda name: False)
    with pytest.raises(PlanError, match=r"mpi4py is not installed; pip install 'warpladder\[mpi\]'"):
        Launcher().check(2, "host_clock")


def test_a_launcher_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "has_module", lambda name: True)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(PlanError, match="--launcher srun: srun is not on PATH"):
        Launcher("srun").check(2, "host_clock")


def test_fewer_gpus_than_asked_are_found_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "has_module", lambda name: True)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/opt/mpi/bin/mpiexec")
    monkeypatch.setattr(launchers, "gpus_here", lambda: 1)
    with pytest.raises(PlanError, match="--gpus 2: this host has 1; ask for as many, or name more hosts"):
        Launcher().check(2, "cuda_events")
    Launcher("mpirun").check(2, "cuda_events")  # whose hosts are not known here


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [("ssh", "", "ssh: no such launcher; choose local, mpirun, srun"), ("mpirun", "'", "No closing quotation")],
)
def test_a_launcher_that_cannot_be_is_refused(name: str, arguments: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Launcher.parse(name, arguments)


def test_arguments_of_the_launcher_stand_before_the_program() -> None:
    command = Launcher.parse("mpirun", "--hostfile 'my hosts'").command(4, "cuda_events")
    assert command[1:5] == ["-n", "4", "--hostfile", "my hosts"]
    assert command[-4:] == ["-m", "warpladder.collectors.child", "rank", "cuda_events"]


# -- what launchers say of a rank that died --------------------------------------------------------------------------------

RANKS = (Started("one.example", 70), Started("two.example", 70), Started("two.example", 71))


@pytest.mark.parametrize(
    ("output", "status", "detail"),
    [
        ("=   PID 70 RUNNING AT two\n=   KILLED BY SIGNAL: 9 (Killed)", "out_of_memory", "rank 1: its process was killed"),
        ("=   PID 70 RUNNING AT two\n=   EXIT CODE: 9", "out_of_memory", "rank 1: its process was killed (signal 9)"),
        ("=   PID 70 RUNNING AT one\n=   EXIT CODE: 139", "launch_error", "rank 0: its process died (signal 11)"),
        ("=   PID 71 RUNNING AT 10.0.0.2\n=   EXIT CODE: 3", "launch_error", "rank 2: its process died (exit code 3)"),
        (
            "mpirun noticed that process rank 2 with PID 0 on node two exited on signal 11 (Segmentation fault).",
            "launch_error",
            "rank 2: its process died (signal 11)",
        ),
        (
            "process rank 0 with PID 5 on node one exited on \nsignal 6 (Aborted).",
            "launch_error",
            "rank 0: its process died (signal 6)",
        ),
        ("srun: error: two: tasks 1-2: Exited with exit code 4", "launch_error", "rank 1: its process died (exit code 4)"),
        ("srun: error: two: task 1: Killed", "out_of_memory", "rank 1: its process was killed (signal 9)"),
        ("noise\nwarpladder: launch_error rank 1: ValueError: no gradient\nAbort(1)", "launch_error", "rank 1: ValueError: no"),
        ("mpiexec: unknown option -x", "launch_error", "the ranks ended with exit code 5: mpiexec: unknown option -x"),
        ("", "launch_error", "the ranks ended with exit code 5: nothing was said"),
    ],
)
def test_what_the_launcher_said_of_a_dead_rank_is_its_verdict(output: str, status: str, detail: str) -> None:
    found = why_ended(output, RANKS, 5)
    assert found[0] == status
    assert found[1].startswith(detail)


def test_ranks_without_a_gpu_of_their_own_are_refused() -> None:
    first, same, elsewhere = Started("a", 1, "0000:01"), Started("a", 2, "0000:01"), Started("b", 3, "0000:01")
    assert problem_of([first, elsewhere, Started("a", 4, "0000:02")]) == ""
    assert (
        problem_of([first, elsewhere, same]) == "ranks 0, 2 have the same GPU of a; start as many on each host as it has GPUs"
    )
    assert problem_of([first, Started("a", 2, problem="a has 1 GPUs, fewer than ranks")]).startswith("rank 1: a has 1 GPUs")
