"""Reports made by hand: the blocks of a `.ncu-rep`, and launches as NVIDIA's reader gives them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from warpladder.collectors.nsight_compute.cells import ProfiledLaunch
from warpladder.collectors.nsight_compute.facts import MAGIC
from warpladder.collectors.nsight_compute.metrics import SHAPE

VERSION = "2025.3.1.0"
CREATED = 1_700_000_000  # 2023-11-14 22:13:20 UTC


def launch(
    kernel: str,
    values: Mapping[str, float] | None = None,
    *,
    ranges: Mapping[str, Sequence[str]] | None = None,
    grid: tuple[int, int, int] = (256, 1, 1),
    block: tuple[int, int, int] = (64, 1, 1),
) -> ProfiledLaunch:
    shape = dict(zip(SHAPE, map(float, (*grid, *block)), strict=True))
    found = {**shape, **(values or {})}
    return ProfiledLaunch(
        kernel, f"void {kernel}<float>(float*)", "NVIDIA H200", found, dict.fromkeys(found, "%"), ranges or {}
    )


def varint(value: int) -> bytes:
    digits = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def block(details: bytes, payload: bytes = b"", launches: int = 0) -> bytes:
    header = field(1, 0) + field(2, launches) + field(3, details) + field(5, len(payload))
    return len(header).to_bytes(4, "little") + header + payload


def write(path: Path, blocks: Sequence[bytes] | None = None) -> Path:
    """A file that begins and is divided as a report is, with a header and without a launch."""
    system = field(1, "Linux") + field(2, "#61 SMP") + field(3, "A processor") + field(5, "the-host")
    version = field(1, "Nsight Compute Target") + field(2, f"{VERSION} (build 1) (public-release)")
    driver = field(1, "Display Driver Version") + field(2, "570.133.20")
    made = [block(field(2, CREATED) + field(3, system)), block(field(8, version), b"payload"), block(field(8, driver))]
    header = field(1, 7)
    path.write_bytes(MAGIC + len(header).to_bytes(4, "little") + header + b"".join(made if blocks is None else blocks))
    return path
