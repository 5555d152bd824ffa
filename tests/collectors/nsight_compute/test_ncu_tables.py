"""The tables of a report with sources: machine code, counters by instruction and findings of the rules."""

import json
import lzma
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.collectors.nsight_compute.ncu_reports import launch
from warpladder.collectors.nsight_compute import parse, tables
from warpladder.collectors.nsight_compute.reader import _ADDRESS, _MARKUP
from warpladder.data import metrics
from warpladder.data.naming import CellName
from warpladder.data.store import Run, open_run

pytest.importorskip("ncu_report", reason="needs ncu-report, of the extra ncu")

#: `tensor_transpose` at 256³ on an H100, by ncu --set full --import-source yes.
PACKED = Path(__file__).parents[2] / "fixtures" / "nsight-compute-2025.3" / "sources.ncu-rep.xz"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("sources")
    (folder / "r.ncu-rep").write_bytes(lzma.decompress(PACKED.read_bytes()))
    return open_run(folder / parse.import_report(folder / "r.ncu-rep", folder, "", None, []))


@pytest.mark.slow
def test_counters_by_instruction_add_up_to_the_kernels_own(run: Run) -> None:
    cell = ["workload", "variant", "config", "case", "launch_index"]
    by_instruction = run.table("instruction_counters")
    own = run.table("counters").set_index([*cell, "metric"])["value"]
    sums = by_instruction.groupby([*cell, "metric"])["value"].sum()
    executed = sums[sums.index.get_level_values("metric") == metrics.EXECUTED]
    assert len(executed) == 7
    for key, total in executed.items():
        assert own[*key[:-1], metrics.INSTRUCTIONS] == total
    states = by_instruction[by_instruction["metric"].str.startswith(metrics.SAMPLED_IN)].groupby(cell)["value"].sum()
    sampled = by_instruction[by_instruction["metric"] == metrics.SAMPLED].groupby(cell)["value"].sum()
    assert (states == sampled).all(), "each sample is in one state"


def test_the_source_of_a_variant_is_its_file_and_lines_are_of_it(run: Run) -> None:
    variants = run.table("variants").set_index("variant")
    assert variants.loc["v05_shared", "source_path"] == "v05_shared.cu"
    lines = variants.loc["v05_shared", "source_text"].split("\n")
    codes = {row["code"]: row for row in run.records("machine_code")}
    (launched,) = [row for row in run.records("cell_launches") if row["variant"] == "v05_shared"]
    code = codes[launched["code"]]
    barriers = [
        int(line)
        for text, line in zip(code["sass"].split("\n"), code["lines"].split("\n"), strict=True)
        if text.startswith("BAR")
    ]
    assert barriers and all("__syncthreads" in lines[line - 1] for line in barriers)
    assert code["architecture"] == "sm_90" and code["ptx"] is None


def test_instructions_are_those_of_the_disassembler(run: Run) -> None:
    from warpladder.collectors.cuda import compiler, disassembly
    from warpladder.workloads import registry

    variant = registry.load("tensor_transpose").variant("v11_swizzled_tile")
    launched = next(row for row in run.records("cell_launches") if row["variant"] == variant.name)
    module = compiler.compile_variant(variant, [launched["kernel"]], "sm_90")
    functions = disassembly.disassemble(module.cubin)
    own = [each.text.replace(".reuse", "") for each in functions[module.kernels[launched["kernel"]].symbol]]
    (sass,) = [row["sass"].split("\n") for row in run.records("machine_code") if row["code"] == launched["code"]]
    assert sass == own[: len(sass)], "places in the counters are places in the recorded code"


def test_findings_of_the_rules_are_kept_in_the_tools_words(run: Run) -> None:
    rules = run.table("rules")
    assert set(rules["severity"]) <= {"none", "ok", "optimization", "warning", "error"}
    limits = rules[rules["rule"] == "SOLBottleneck"]
    assert len(limits) == 7 and (limits["title"] != "").all()
    assert not rules["text"].str.contains("@").any()


_CRASHES = """
import os, sys
from warpladder.collectors.nsight_compute import reader
read = reader._code
def crash(action, first, codes):
    if action.name() == sys.argv[2]:
        os.abort()
    return read(action, first, codes)
reader._code = crash
reader.main(sys.argv[1])
"""


@pytest.mark.slow
def test_a_kernel_at_whose_code_the_reader_crashes_is_the_only_one_without(tmp_path: Path) -> None:
    (tmp_path / "r.ncu-rep").write_bytes(lzma.decompress(PACKED.read_bytes()))
    whole = parse.read_report(tmp_path / "r.ncu-rep").launches
    crashing = whole[len(whole) // 2].kernel
    command = [sys.executable, "-c", _CRASHES, str(tmp_path / "r.ncu-rep"), crashing]
    content = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert [launch["kernel"] for launch in content["launches"]] == [launch.kernel for launch in whole]
    for found, of_whole in zip(content["launches"], whole, strict=True):
        assert found["values"] == of_whole.values
        if found["kernel"] == crashing:
            assert "NVIDIA's reader fails" in found["lacking"][0] and "code" not in found
        else:
            assert found["code"] == of_whole.code and found["code"] in content["codes"]


def test_what_a_launch_lacks_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = parse.Notes()
    lacking = launch("k", {metrics.TIME: 1.0})
    lacking = parse.ProfiledLaunch(**{**lacking.__dict__, "lacking": ["its machine code (ValueError: no)"]})
    parse._note_unread(parse.Report("r", (lacking, lacking), 2, 2), notes)
    (row,) = notes.finish()
    assert row["text"] == "of 2 launches of k cannot be read: its machine code (ValueError: no)"


def test_recorded_code_stands_before_reported_code_where_both_are_known() -> None:
    ours, theirs = CellName("w", "cuda", "", "c"), CellName("w", "library", "", "c")

    def row(cell: CellName, kernel: str, code: str) -> dict[str, object]:
        return {**cell._asdict(), "launch_index": 0, "kernel": kernel, "code": code}

    reported = {
        "cell_launches": [row(ours, "k<(int)2>", "r1"), row(theirs, "cublas::gemm<8>", "r2")],
        "machine_code": [{"code": "r1"}, {"code": "r2"}],
    }
    recorded = {"cell_launches": [row(ours, "k<2>", "n1")], "machine_code": [{"code": "n1"}, {"code": "unused"}]}
    found = tables.with_own_code(reported, recorded)
    assert [each["code"] for each in found["cell_launches"]] == ["n1", "r2"]
    assert [each["code"] for each in found["machine_code"]] == ["n1", "r2"]
    other = {"cell_launches": [row(ours, "another", "n1")], "machine_code": [{"code": "n1"}]}
    assert Counter(each["code"] for each in tables.with_own_code(reported, other)["cell_launches"]) == {"r1": 1, "r2": 1}


def test_one_launch_of_each_kind_has_its_place_among_all() -> None:
    cell = CellName("w", "cuda", "", "c")._asdict()

    def launches(*rows: tuple[str, int, int]) -> list[dict[str, object]]:
        return [{**cell, "kernel": kernel, "launch_index": index, "count": count} for kernel, index, count in rows]

    def readings(*kernels: str) -> tables.Tables:
        return {"counters": [{**cell, "launch_index": i, "kernel": kernel, "value": i} for i, kernel in enumerate(kernels)]}

    # Two kinds of `a` have the same shape, so that the report's own rows join them.
    recorded = {"cell_launches": launches(("a<1>", 0, 3), ("b", 3, 2), ("a<1>", 4, 2))}
    found = tables.at_own_places(readings("void a<(int)1>(int)", "b", "void a<(int)1>(int)"), recorded)
    assert [(each["launch_index"], each["value"]) for each in found["counters"]] == [(0, 0), (3, 1), (4, 2)]
    of_all = readings("a", "a", "a", "b", "a", "b", "a")
    assert tables.at_own_places(of_all, recorded) == of_all


def test_a_kernel_s_name_is_written_as_in_its_source() -> None:
    def written(name: str) -> str:
        return parse.ProfiledLaunch("k", name, "", {}, {}, {}).expression

    assert written("void row_sums<(int)33>(const float *, float *, int)") == "row_sums<33>"
    assert written("void k<(bool)1, float>(T1 *)") == "k<1, float>"
    assert written("plain") == "plain"


def test_addresses_become_offsets_and_references_become_words() -> None:
    assert _ADDRESS.sub(lambda match: match[1], "@P0 BRA `(.L_x_3) 0x7f5dc37fc050") == "@P0 BRA 7f5dc37fc050"
    assert _ADDRESS.sub("x", "LDC R1, c[0x0][0x28]") == "LDC R1, c[0x0][0x28]"
    assert _MARKUP.sub(r"\1", "See @section:SourceCounters:Source Counters@ and @url:the guide:https://x.y/z#a@.") == (
        "See Source Counters and the guide."
    )
