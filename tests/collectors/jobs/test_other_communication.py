"""Jobs whose ranks communicate without NCCL: who is late is found in any kernel that the ranks leave together."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collectors.kineto.made import kernel, launch
from warpladder.collectors.jobs import engine
from warpladder.collectors.jobs.job import Request, import_job, profiles
from warpladder.collectors.trace.notes import Notes
from warpladder.data import store

_STEPS = 12
#: Rank 0 computes for 60 us and rank 1 for 100 us of each step, so that rank 0 waits 40 us, and both transfer for 20 us.
_COMPUTES = (60.0, 100.0)
_WAITS_NS = 40_000
_ALL_REDUCE = {"Collective_name": "allreduce", "In_msg_nelems": 1000, "Out_msg_nelems": 1000, "dtype": "Float"}
_GROUP = {"Process_Group_Name": "0", "Process_Group_Ranks": "[0, 1]", "Group_size": 2}


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def step(rank: int, number: int, name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """A step of 200 us: a product, then a kernel in which the ranks meet; ends differ by 10 ns, as on real machines."""
    begin, first = 1000.0 + 200 * number, 2 * number + 1
    arrives = begin + 10 + _COMPUTES[rank]
    ends = begin + 10 + max(_COMPUTES) + 20 + 0.01 * ((rank + number) % 2)
    mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 100, "tid": 100}
    return [
        {**mark, "ts": begin, "dur": 199},
        launch(first, begin + 1),
        kernel("gemm", begin + 10, _COMPUTES[rank], correlation=first),
        launch(first + 1, begin + 4),
        kernel(name, arrives, ends - arrives, correlation=first + 1, stream=20, **arguments),
    ]


def imported(folder: Path, name: str, arguments: dict[str, Any]) -> tuple[store.Run, str]:
    (folder / "job").mkdir()
    for rank in (0, 1):
        events = [event for number in range(_STEPS) for event in step(rank, number, name, arguments)]
        head = {"distributedInfo": {"rank": rank, "world_size": 2}}
        (folder / "job" / f"rank-{rank}.json").write_text(json.dumps({**head, "traceEvents": events}))
    notes = Notes()
    run_id = import_job(Request(profiles(str(folder / "job")), ""), folder / "runs", notes)
    return store.open_run(folder / "runs" / run_id), "\n".join(row["text"] for row in notes.rows)


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", {}),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*)", {}),
        ("a_kernel_of_nobody_knows_what", _ALL_REDUCE | _GROUP),
    ],
)
def test_the_late_rank_is_found_in_kernels_of_any_library(tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    run, _ = imported(tmp_path, name, arguments)
    ranks = run.table("ranks")
    assert ranks["late"].tolist() == [False, True]
    assert ranks["wait_ns"].tolist() == pytest.approx([_STEPS * _WAITS_NS, 0], abs=_STEPS * 20)
    assert ranks["communication_ns"].tolist() == pytest.approx([_STEPS * 60_000, _STEPS * 20_000], abs=_STEPS * 10)
    assert ranks["compute_ns"].tolist() == [_STEPS * 60_000, _STEPS * 100_000]
    kinds = run.table("rank_kernels").groupby("kind")["count"].sum()
    assert kinds.to_dict() == {"communication": 2 * _STEPS, "compute": 2 * _STEPS}
    assert set(run.table("collectives")["collective"]) == {"all_reduce"}


@pytest.mark.slow
def test_a_communication_kernel_has_the_same_name_in_all_tables(tmp_path: Path) -> None:
    run, _ = imported(tmp_path, "_ZN5aiter26cross_device_reduce_1stageIDF16bEEvPT_", {})
    names = set(run.table("rank_kernels").query("kind == 'communication'")["name"])
    assert names == set(run.table("collectives")["kernel"]) == {"void aiter::cross_device_reduce_1stage<__bf16>(__bf16*)"}


@pytest.mark.slow
def test_puts_are_communication_in_which_nobody_waits(tmp_path: Path) -> None:
    run, notes = imported(tmp_path, "nvshmemi_proxy_rma_entrypoint", {})
    assert run.table("ranks")["communication_ns"].sum() > 0
    assert run.table("collectives")["match"].isna().all()
    assert f"{2 * _STEPS} puts, signals and waits of one rank were not matched" in notes


@pytest.mark.slow
def test_the_kernels_of_a_rank_have_their_collective(tmp_path: Path) -> None:
    run, _ = imported(tmp_path, "a_kernel_of_nobody_knows_what", _ALL_REDUCE | _GROUP)
    kernels = store.open_rank(run, 0).table("kernels", ["name", "collective"])
    assert kernels.groupby("name")["collective"].first().to_dict()["a_kernel_of_nobody_knows_what"] == "all_reduce"
    assert kernels.query("name == 'gemm'")["collective"].isna().all()
