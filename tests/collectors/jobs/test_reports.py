"""Reports of Nsight Systems of several processes or GPUs: which rows are a rank's, its number, its clock, and what NCCL's payloads tell."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from tests.collectors.jobs.made_reports import ALL_REDUCE, GATHERS, GEMM, LAUNCH, SENDS, JobReport, blob, init, layouts, message
from tests.collectors.nsight_systems.reports import call, kernel, nvtx, write
from warpladder.collectors.jobs import engine, reports
from warpladder.collectors.jobs.job import JobError, Request, import_job, profiles
from warpladder.collectors.jobs.reports import parts_of
from warpladder.collectors.nsight_systems.payloads import read_payloads
from warpladder.collectors.nsight_systems.source import open_report
from warpladder.collectors.nsight_systems.trace import NsightTrace
from warpladder.collectors.trace.notes import Notes
from warpladder.collectors.trace.parts import Part, PartOfTrace
from warpladder.data import store

TWO_PROCESSES = [(70, 0), (80, 1)]
TWO_GPUS = [(70, 0), (70, 1)]

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nsight-systems-2025.3"


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: map(function, tasks))


def imported(folder: Path, where: Path, notes: Notes | None = None) -> store.Run:
    run_id = import_job(Request(profiles(str(where)), ""), folder / "runs", notes or Notes())
    return store.open_run(folder / "runs" / run_id)


def texts(notes: Notes) -> str:
    return "\n".join(row["text"] for row in notes.rows)


@pytest.mark.slow
@pytest.mark.parametrize("places", [TWO_PROCESSES, TWO_GPUS])
def test_each_process_or_gpu_is_a_rank(tmp_path: Path, places: list[tuple[int, int]]) -> None:
    report = JobReport(places, slow={1: 1.5}).write(tmp_path / "report.sqlite")
    run = imported(tmp_path, report)
    ranks = run.table("ranks")
    assert ranks["rank"].tolist() == [0, 1] and set(ranks["file"]) == {"report.sqlite"}
    assert ranks["collectives"].tolist() == [4, 4]
    assert ranks["wait_ns"].tolist() == [4 * 50_000, 0] and ranks["last"].tolist() == [0, 4]
    assert ranks["late"].tolist() == [False, True] and ranks["cause"][1] == "compute"
    for rank in (0, 1):
        of_rank = store.open_rank(run, rank)
        assert of_rank.rows("kernels") == of_rank.rows("api_calls") == 8
        assert of_rank.table("kernels")["launch_start_ns"].notna().all()
        assert of_rank.info["device_count"] == 1
    assert run.table("iterations").groupby("rank")["iteration"].apply(list).tolist() == [[0, 1, 2, 3]] * 2


@pytest.mark.slow
def test_ranks_of_a_report_have_one_clock(tmp_path: Path) -> None:
    ranks = imported(tmp_path, JobReport(TWO_PROCESSES).write(tmp_path / "report.sqlite")).table("ranks")
    assert ranks["offset_ns"].tolist() == ranks["drift_ppm"].tolist() == [0, 0]
    assert ranks["uncertainty_ns"].tolist() == [0, 0], "the ends of collectives are equal"


@pytest.mark.slow
def test_reports_of_two_hosts_have_two_clocks(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    made = JobReport([(70, 0), (80, 1), (90, 0), (95, 1)], steps=8)
    tables = made.tables()
    for host, processes, ahead in (("a", (70, 80), 0), ("b", (90, 95), 7_000_000)):
        own = {**tables}
        for table in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"):
            rows = [row for row in tables[table] if (row.get("globalTid", row.get("globalPid")) >> 24 & 0xFFFFFF) in processes]
            own[table] = [{**row, "start": row["start"] + ahead, "end": row["end"] and row["end"] + ahead} for row in rows]
        write(tmp_path / "job" / f"{host}.sqlite", own)
    ranks = imported(tmp_path, tmp_path / "job").table("ranks")
    offset = ranks["offset_ns"].to_numpy()
    assert offset[0] == offset[1] and offset[2] == offset[3]
    assert offset[2] - offset[0] == pytest.approx(7_000_000, abs=1)
    assert ranks["collectives"].tolist() == [8] * 4


@pytest.mark.thorough
def test_a_job_of_one_report_a_rank_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for rank in (3, 4):
        JobReport([(70, 0)]).write(tmp_path / "job" / f"rank-{rank}.sqlite")
    notes = Notes()
    ranks = imported(tmp_path, tmp_path / "job", notes).table("ranks")
    assert ranks.query("status == 'ok'")["rank"].tolist() == [3, 4]
    assert "numbered in the order" not in texts(notes)


def test_work_on_a_further_gpu_makes_no_rank(tmp_path: Path) -> None:
    """Each process of PyTorch may set a byte on GPU 0 before it chooses its own."""
    tables = JobReport([(70, 0), (80, 1)]).tables()
    stray = kernel(900, 10, 20, pid=80 << 24 | 1 << 48, deviceId=0, demangledName=GEMM)
    tables["CUPTI_ACTIVITY_KIND_KERNEL"].append(stray)
    with open_report(write(tmp_path / "report.sqlite", tables)) as report:
        assert parts_of(NsightTrace(report)) == [Part(70, (0,)), Part(80, (0, 1))]


def test_gpus_of_one_process_without_collectives_are_ranks_by_their_kernels(tmp_path: Path) -> None:
    tables = JobReport([(70, 0), (70, 1)]).tables()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [row for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"] if row["demangledName"] == GEMM]
    tables["CUPTI_ACTIVITY_KIND_MEMSET"] = [
        {
            "start": 1,
            "end": 2,
            "deviceId": 2,
            "streamId": 7,
            "correlationId": 800,
            "globalPid": 70 << 24,
            "bytes": 1,
            "memKind": 2,
        }
    ]
    with open_report(write(tmp_path / "report.sqlite", tables)) as report:
        trace = NsightTrace(report)
        parts = parts_of(trace)
        assert parts == [Part(70, (0, 2), (1,)), Part(70, (1,), (0, 2))]
        assert str(parts[1]) == "process 70 on GPU 1"
        own = [sum(len(batch) for batch in PartOfTrace(trace, part).batches("sets", ["start_ns"])) for part in parts]
        assert own == [1, 0], "no work is lost"


@pytest.mark.slow
def test_calls_that_launched_nothing_belong_to_every_gpu_of_the_process(tmp_path: Path) -> None:
    tables = JobReport([(70, 0), (70, 1)]).tables()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call(700, 50, 60, LAUNCH, 70 << 24 | 1))
    run = imported(tmp_path, write(tmp_path / "report.sqlite", tables))
    assert [store.open_rank(run, rank).rows("api_calls") for rank in (0, 1)] == [9, 9]


@pytest.mark.slow
def test_nccl_tells_the_numbers_of_ranks_and_the_sizes_of_messages(tmp_path: Path) -> None:
    notes = Notes()
    run = imported(tmp_path, JobReport(TWO_PROCESSES, numbers=[1, 0]).write(tmp_path / "report.sqlite"), notes)
    assert "in the order of NCCL's largest communicator: 1 is process 70 of report.sqlite; 0 is process 80" in texts(notes)
    collectives = run.table("collectives")
    assert set(collectives["group"]) == {"communicator f123456789abcdef"} and set(collectives["group_size"]) == {2}
    assert set(collectives["bytes"]) == {4096} and set(collectives["collective"]) == {"all_reduce"}
    assert collectives.groupby("rank")["number"].apply(list).tolist() == [[0, 1, 2, 3]] * 2
    assert collectives["match"].notna().all()


@pytest.mark.slow
def test_ranks_of_a_larger_job_have_the_numbers_of_nccl_and_the_others_are_missing(tmp_path: Path) -> None:
    tables = JobReport(TWO_PROCESSES, numbers=[0, 1]).tables()
    for row in tables["NVTX_EVENTS"]:
        if row["text"] == "ncclCommInitRank":
            row["binaryData"] = init({0: 2, 1: 3}[row["start"]], 4, row["start"])
    ranks = imported(tmp_path, write(tmp_path / "report.sqlite", tables)).table("ranks").set_index("rank")
    assert ranks["status"].to_dict() == {2: "ok", 3: "ok", 0: "missing", 1: "missing"}


@pytest.mark.slow
def test_equal_numbers_of_nccl_are_not_taken(tmp_path: Path) -> None:
    """As of two jobs in one report, or where only communicators of a part of the job are known."""
    notes = Notes()
    run = imported(tmp_path, JobReport(TWO_PROCESSES, numbers=[0, 0]).write(tmp_path / "report.sqlite"), notes)
    assert run.table("ranks")["rank"].tolist() == [0, 1] and "in the order of report, process and GPU" in texts(notes)


@pytest.mark.slow
def test_calls_of_a_group_are_summed_if_they_are_one_kernel(tmp_path: Path) -> None:
    run = imported(tmp_path, JobReport(TWO_PROCESSES, numbers=[0, 1], grouped=True).write(tmp_path / "report.sqlite"))
    assert set(run.table("collectives")["bytes"]) == {2 * 4096}


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("same_stream", [True, False])
def test_kernels_of_a_group_are_one_collective_of_its_size_where_they_are_of_one_stream(
    tmp_path: Path, same_stream: bool
) -> None:
    """Two calls of 4096 B each become two kernels in a range, as of an `all_to_all` whose parts NCCL runs one after another."""
    made = JobReport([(70, 0), (80, 1)], steps=1, numbers=[0, 1], grouped=True).tables()
    first = next(row for row in made["CUPTI_ACTIVITY_KIND_KERNEL"] if row["demangledName"] == ALL_REDUCE)
    stream = first["streamId"] + (not same_stream)
    more = {**first, "start": first["end"], "end": first["end"] + 5, "streamId": stream}
    made["CUPTI_ACTIVITY_KIND_KERNEL"].append(more)
    collectives = imported(tmp_path, write(tmp_path / "report.sqlite", made)).table("collectives").query("rank == 0")
    assert set(collectives["group"]) == {"communicator f123456789abcdef"}
    assert collectives["bytes"].tolist() == ([2 * 4096] if same_stream else [0, 0])
    assert collectives["kernels"].tolist() == ([2] if same_stream else [1, 1])
    lasts = (collectives["end_ns"] - collectives["start_ns"]).tolist()
    own = first["end"] - first["start"]
    assert lasts == ([own + 5] if same_stream else [own, 5])


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("calls", "size"),
    [
        ([("ncclAllGather", GATHERS, 100)], 200),
        ([("ncclSend", SENDS, 100), ("ncclRecv", SENDS, 700), ("ncclSend", SENDS, 50)], 700),
        ([("ncclAllGather", GATHERS, 100), ("ncclSend", SENDS, 100)], 0),
    ],
)
def test_bytes_are_the_larger_of_input_and_output(tmp_path: Path, calls: list[tuple[str, int, int]], size: int) -> None:
    tid = 70 << 24 | 1 << 48 | 10
    ranges = [nvtx("ncclGroupStart", 100, 110, tid=tid, domainId=1)]
    ranges += [
        nvtx(name, 120 + 20 * place, 130 + 20 * place, tid=tid, domainId=1, binaryData=message(schema, sent))
        for place, (name, schema, sent) in enumerate(calls)
    ]
    ranges += [nvtx("ncclGroupEnd", 300, 400, tid=tid, domainId=1)]
    ranges += [nvtx("ncclCommInitRank", 0, 10, tid=tid, domainId=1, binaryData=init(0, 2, 0))]
    tables = {
        **JobReport([(70, 0)]).tables(),
        **layouts(),
        "NVTX_EVENTS": ranges,
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 310, 320, LAUNCH, tid)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1, 500, 600, pid=70 << 24 | 1 << 48, demangledName=ALL_REDUCE)],
    }
    assert imported(tmp_path, write(tmp_path / "report.sqlite", tables)).table("collectives")["bytes"].tolist() == [size]


@pytest.mark.parametrize(
    "wrong",
    [
        b"x" * 16,
        blob(GATHERS, b"\0" * 16, domain=2),
        blob(GATHERS, b"\0" * 24),
        blob(GATHERS, b"\0" * 16)[:-1],
        message(GATHERS, 8)[:24] + b"\7" * 8 + message(GATHERS, 8)[32:],
        message(GATHERS, 8)[:24] + b"\x30" + b"\0" * 7 + message(GATHERS, 8)[32:],
    ],
)
def test_a_payload_in_another_layout_is_left_out_and_counted(tmp_path: Path, wrong: bytes) -> None:
    tables = {**JobReport([(70, 0)]).tables(), **layouts()}
    tables["NVTX_EVENTS"] = [
        nvtx("ncclAllGather", 5, 6, domainId=1, binaryData=wrong),
        nvtx("ncclAllGather", 7, 8, domainId=1, binaryData=message(GATHERS, 8)),
    ]
    notes = Notes()
    with open_report(write(tmp_path / "report.sqlite", tables)) as report:
        found = read_payloads(report, notes)
    assert found.start.tolist() == [7] and found.bytes.tolist() == [8] and found.rank.tolist() == [-1]
    assert found.communicator.astype(np.uint64).tolist() == [0xF123_4567_89AB_CDEF]
    notes.finish()
    assert "1 payloads of NVTX ranges are in no known layout" in texts(notes)


#: Two steps of benchmarks/profiled_job.py on one H100, with its parameters in bfloat16.
REAL = FIXTURES / "ddp_payloads.sqlite.xz"
PARAMETERS = 135_387_648


def test_payloads_of_a_real_report_are_the_buckets_of_its_gradients(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    path.write_bytes(lzma.decompress(REAL.read_bytes()))
    notes = Notes()
    with open_report(path) as report:
        found = read_payloads(report, notes)
    notes.finish()
    assert not texts(notes)
    made, sizes = found.ranks > 0, found.bytes[found.bytes > 0]
    assert (found.ranks[made].tolist(), found.rank[made].tolist(), found.device[made].tolist()) == ([1], [0], [0])
    assert set(found.communicator.astype(np.uint64).tolist()) == {0xD1EA_1CF3_D8C2_E102}
    assert sizes.tolist() == 2 * [50_331_648, *6 * [28_351_488], 50_334_720] and sizes[:8].sum() == 2 * PARAMETERS


@pytest.mark.slow
def test_payloads_of_a_real_report_are_of_its_calls(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    path.write_bytes(lzma.decompress(REAL.read_bytes()))
    with open_report(path) as report:
        found = read_payloads(report, Notes())
    run = imported(tmp_path, path)
    ranges = store.open_rank(run, 0).table("ranges").query("text == 'ncclAllReduce'")
    assert sorted(ranges["start_ns"]) == found.start[found.bytes > 0].tolist() and set(ranges["domain"]) == {"NCCL"}
    assert run.table("ranks")["collectives"].tolist() == [0], "a single rank launches no kernel for them"


def test_a_schema_that_two_processes_describe_differently_is_left_out(tmp_path: Path) -> None:
    tables = {**JobReport([(70, 0)]).tables(), **layouts()}
    entries = tables["NVTX_PAYLOAD_SCHEMA_ENTRIES"]
    entries += [{**row, "offset": 12} for row in entries if row["schemaId"] == GATHERS and row["idx"] == 1]
    tables["NVTX_EVENTS"] = [nvtx("ncclAllGather", 7, 8, domainId=1, binaryData=message(GATHERS, 8))]
    with open_report(write(tmp_path / "report.sqlite", tables)) as report:
        assert not len(read_payloads(report, Notes()))


@pytest.mark.slow
def test_ranges_without_payloads_are_said(tmp_path: Path) -> None:
    notes = Notes()
    tables = {**JobReport(TWO_PROCESSES).tables(), **layouts()}
    imported(tmp_path, write(tmp_path / "report.sqlite", tables), notes)
    assert "--include-blobs=true" in texts(notes)


@pytest.mark.slow
def test_finished_ranks_of_a_report_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = JobReport([(70, 0), (80, 1), (90, 2)]).write(tmp_path / "report.sqlite")
    request = Request([report], "")
    done: list[int] = []

    def interrupted(number: int, of: int, _: object) -> None:
        done.append(of)
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_job(request, tmp_path / "runs", Notes(), interrupted)
    ran: list[object] = []
    monkeypatch.setattr(engine, "run_all", lambda function, tasks, *_: (ran.extend(tasks), map(function, tasks))[1])
    run_id = import_job(request, tmp_path / "runs", Notes())
    assert done[0] == 3 and len(ran) == 3, "one listing and two ranks"
    assert store.open_run(tmp_path / "runs" / run_id).table("ranks")["rank"].tolist() == [0, 1, 2]


def test_a_report_beside_its_export_is_taken_once(tmp_path: Path) -> None:
    for name in ("a.nsys-rep", "a.sqlite", "b.nsys-rep"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in profiles(str(tmp_path))] == ["a.sqlite", "b.nsys-rep"]
    assert [path.name for path in profiles(str(tmp_path / "a*"))] == ["a.sqlite"]


def test_a_report_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "report.sqlite").write_bytes(b"SQLite format 3\0" + b"\1" * 200)
    with pytest.raises(JobError, match=r"no rank could be imported; the first: report\.sqlite: "):
        imported(tmp_path, tmp_path / "report.sqlite")


def test_a_broken_report_keeps_its_place_among_the_ranks(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "a.sqlite").write_bytes(b"nothing")
    JobReport([(70, 0)]).write(tmp_path / "job" / "b.sqlite")
    ranks = imported(tmp_path, tmp_path / "job").table("ranks").set_index("rank")
    assert ranks["status"].to_dict() == {1: "ok", 0: "broken"} and "a.sqlite: not a report" in ranks["detail"][0]


@pytest.mark.thorough
def test_a_report_that_needs_an_export_is_exported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a call that was interrupted, whose export `nsys` would not overwrite."""
    report = tmp_path / "report.nsys-rep"
    report.write_bytes(b"")
    exports: list[Path] = []

    def exported(path: Path, folder: Path) -> Path:
        exports.append(folder)
        assert path == report and not list(folder.iterdir())
        return JobReport(TWO_PROCESSES).write(folder / "report.sqlite")

    monkeypatch.setattr(reports, "exported", exported)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_job(Request([report], ""), tmp_path / "runs", Notes(), interrupted)
    ranks = imported(tmp_path, report).table("ranks")
    assert ranks["rank"].tolist() == [0, 1] and set(ranks["file"]) == {"report.nsys-rep"} and len(exports) == 2
    assert not exports[0].exists()


@pytest.mark.slow
def test_a_real_report_of_two_processes(tmp_path: Path) -> None:
    """The ends of its collectives differ by 2 to 27 us, with the rank that came last: no offset between the clocks of the GPUs.

    `mfu_2gpu_before` of GindaChen/nsys-ai (MIT), with NCCL's ranges alone.
    """
    (tmp_path / "report.sqlite").write_bytes(lzma.decompress((FIXTURES / "two_processes.sqlite.xz").read_bytes()))
    run = imported(tmp_path, tmp_path / "report.sqlite")
    ranks = run.table("ranks")
    assert ranks["collectives"].tolist() == [33, 33] and ranks["offset_ns"].tolist() == [0, 0]
    assert ranks["uncertainty_ns"].between(20_000, 30_000).all()
    assert [store.open_rank(run, rank).rows("kernels") for rank in (0, 1)] == [1993, 2017]
