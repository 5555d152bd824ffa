"""Occupancy, compared with what Nsight Compute reported of launches on an H100, with NVIDIA's own code, and with hand-counted numbers.

`tests/fixtures/occupancy/launches.json` has the metrics `launch__*` of 26 launches. Their what-if tables are kept as pairs: a value and the
resident warps from there on, until the value of the next pair.
"""

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from warpladder.data.occupancy import LIMITS, Limits, limits_of, occupancy, waves
from warpladder.installation import ROOT

REPORT = json.loads((ROOT / "tests" / "fixtures" / "occupancy" / "launches.json").read_text())
H100 = LIMITS[REPORT["compute_capability"]]
RESOURCES = ("registers", "shared memory", "warps", "blocks")
PLACES = {"block_size": [1, *range(16, 1025, 16)], "register_count": range(257), "shared_mem_size": range(0, 232961, 512)}
#: The tables stop at one of these sizes: the shared memory of a block without an opt-in, and with it.
TABLE_ENDS = (48 * 1024, 227 * 1024)


@pytest.mark.parametrize("launch", REPORT["launches"], ids=lambda launch: launch["kernel"])
def test_a_launch_has_the_limits_and_the_waves_that_nsight_compute_reports(launch: dict[str, Any]) -> None:
    metrics = launch["metrics"]
    result = occupancy(H100, *resources(metrics))
    for resource, metric in zip(RESOURCES, ("registers", "shared_mem", "warps", "blocks"), strict=True):
        assert result.by_resource[resource] == metrics[f"launch__occupancy_limit_{metric}"], resource
    assert result.shared_bytes == metrics["launch__shared_mem_per_block_allocated"]
    assert result.percent == metrics["sm__maximum_warps_per_active_cycle_pct"]
    grid = waves(metrics["launch__grid_size"], result.blocks, REPORT["multiprocessors"])
    assert grid.waves == pytest.approx(metrics["launch__waves_per_multiprocessor"])


@pytest.mark.parametrize("launch", REPORT["launches"], ids=lambda launch: launch["kernel"])
def test_other_choices_have_the_warps_of_nsight_computes_tables(launch: dict[str, Any]) -> None:
    threads, registers, shared_bytes, carve_out = resources(launch["metrics"])
    tables = {name.removeprefix("launch__occupancy_per_"): steps for name, steps in launch["tables"].items()}
    for size, expected in pairs(tables["block_size"], PLACES["block_size"]):
        assert occupancy(H100, size, registers, shared_bytes, carve_out).warps == expected, f"{size} threads"
    for count, expected in pairs(tables["register_count"], PLACES["register_count"]):
        assert occupancy(H100, threads, count, shared_bytes, carve_out).warps == expected, f"{count} registers"
    end, last = tables["shared_mem_size"][-1]
    assert last == 0 and end - 512 in TABLE_ENDS
    for nbytes, expected in pairs(tables["shared_mem_size"][:-1], range(0, end, 512)):
        user_bytes = max(0, nbytes - H100.reserved_shared_bytes)
        assert occupancy(H100, threads, registers, user_bytes, carve_out).warps == expected, f"{nbytes} bytes"


def resources(metrics: dict[str, int]) -> tuple[int, int, int, int]:
    shared_bytes = metrics["launch__shared_mem_per_block_static"] + metrics["launch__shared_mem_per_block_dynamic"]
    carve_out = metrics["launch__shared_mem_config_size"]
    return metrics["launch__block_size"], metrics["launch__registers_per_thread"], shared_bytes, carve_out


def pairs(steps: Sequence[Sequence[int]], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    for place in places:
        yield place, next(warps for first, warps in reversed(steps) if first <= place)


def headers() -> list[Path]:
    import nvidia

    return [path for folder in nvidia.__path__ for path in Path(folder).glob("*/include/cuda_occupancy.h")]


@pytest.mark.slow
def test_every_capability_agrees_with_nvidias_own_code(tmp_path: Path) -> None:
    pytest.importorskip("nvidia")
    if shutil.which("g++") is None or not headers():
        pytest.skip("needs g++ and the header of nvidia-cuda-runtime")
    program = tmp_path / "reference"
    source = Path(__file__).with_name("occupancy_reference.cpp")
    subprocess.run(["g++", "-I", headers()[0].parent, "-o", program, source], check=True)
    points = list(random_points(2000))
    printed = subprocess.run(
        [program], input="\n".join(map(line_of, points)), capture_output=True, text=True, check=True
    ).stdout
    for (limits, threads, registers, nbytes), line in zip(points, printed.splitlines(), strict=True):
        blocks, *by_resource, allocated = map(int, line.split())
        result = occupancy(limits, threads, registers, nbytes)
        what = f"{limits.capability}: {threads} threads, {registers} registers, {nbytes} bytes"
        assert result.blocks == blocks, what
        assert [result.by_resource[each] for each in RESOURCES] == [
            limits.blocks if most == 2**31 - 1 else most for most in by_resource
        ], what
        assert result.shared_bytes == allocated, what


def random_points(count: int) -> Iterator[tuple[Limits, int, int, int]]:
    numbers = random.Random(1)
    for limits in LIMITS.values():
        for _ in range(count):
            most_bytes = numbers.choice([0, 2000, limits.block_shared_bytes // 4, limits.block_shared_bytes + 500])
            yield limits, numbers.randint(1, 1040), numbers.randint(0, 257), numbers.randint(0, most_bytes)


def line_of(point: tuple[Limits, int, int, int]) -> str:
    limits, threads, registers, nbytes = point
    gpu = (limits.threads, limits.shared_bytes, limits.block_shared_bytes, limits.reserved_shared_bytes)
    return " ".join(map(str, (*limits.capability.split("."), *gpu, threads, registers, nbytes)))


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "nbytes", "blocks", "limiters"),
    [
        # 2048 / 256 = 8; 32 registers: 65536 / (32 * 256) = 8.
        ("9.0", 256, 32, 0, 8, ("registers", "warps")),
        # 33 registers take 40 a thread: 16384 / 1280 = 12 warps of a scheduler, 48 of all, 6 blocks of 8.
        ("9.0", 256, 33, 0, 6, ("registers",)),
        # 228 KiB / (48 + 1) KiB = 4.65.
        ("9.0", 256, 32, 49152, 4, ("shared memory",)),
        ("9.0", 32, 16, 0, 32, ("blocks",)),
        # 1536 / 1024 = 1.5.
        ("8.6", 1024, 32, 0, 1, ("warps",)),
        # 12 warps a block: 48 / 12 = 4.
        ("12.0", 384, 32, 0, 4, ("warps",)),
        # No memory is reserved on Turing: 64 / 16 = 4.
        ("7.5", 128, 32, 16384, 4, ("shared memory",)),
        # 1024 threads of 65 registers need 72 * 1024 of 65536.
        ("9.0", 1024, 65, 0, 0, ("registers",)),
        ("9.0", 1025, 32, 0, 0, ("warps",)),
        ("8.9", 32, 16, 99 * 1024 + 1, 0, ("shared memory",)),
    ],
)
def test_hand_counted(
    capability: str, threads: int, registers: int, nbytes: int, blocks: int, limiters: tuple[str, ...]
) -> None:
    result = occupancy(LIMITS[capability], threads, registers, nbytes)
    assert (result.blocks, result.limiters) == (blocks, limiters)
    assert result.warps == blocks * -(-threads // 32)
    assert result.percent == pytest.approx(100 * 32 * result.warps / LIMITS[capability].threads)


def test_a_carve_out_without_room_for_a_block_is_raised() -> None:
    # 9 + 1 KiB a block: none in 8 KiB, so 16 KiB are taken, with room for one.
    assert occupancy(H100, 128, 16, 9 * 1024, carve_out=8 * 1024).blocks == 1
    assert occupancy(H100, 128, 16, 9 * 1024).blocks == 16


def test_waves() -> None:
    assert waves(132 * 8, 8, 132) == (1, 1)
    assert waves(132 * 8 + 264, 8, 132) == (1.25, 0.25)
    assert waves(1, 8, 132) == (1 / 1056, 1 / 1056)


def test_an_architecture_has_the_limits_of_its_capability() -> None:
    assert limits_of("sm_90a") is limits_of("sm_90") is limits_of("9.0") is H100
    assert limits_of("sm_103") is LIMITS["10.3"]
    assert limits_of("sm_52") is limits_of("") is limits_of("gfx942") is None


def test_a_block_has_at_least_one_thread() -> None:
    with pytest.raises(ValueError, match="0 threads"):
        occupancy(H100, 0, 32, 0)
