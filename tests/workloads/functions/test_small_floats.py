"""The values of bfloat16 and the types of 8 bits, from their bits."""

import numpy as np
import pytest

from warpladder.workloads.api import Buffer
from warpladder.workloads.declare.cases import STORAGE, narrowed, widened


@pytest.mark.parametrize(
    ("dtype", "bits", "value"),
    [
        ("bfloat16", 0x3F80, 1.0),
        ("bfloat16", 0xC040, -3.0),
        ("bfloat16", 0x0001, 2.0**-133),
        ("bfloat16", 0x7F80, np.inf),
        ("float8_e5m2", 0x3C, 1.0),
        ("float8_e5m2", 0x7B, 57344.0),
        ("float8_e5m2", 0x01, 2.0**-16),
        ("float8_e5m2", 0xFC, -np.inf),
        ("float8_e4m3fn", 0x38, 1.0),
        ("float8_e4m3fn", 0xBC, -1.5),
        ("float8_e4m3fn", 0x7E, 448.0),
        ("float8_e4m3fn", 0x01, 2.0**-9),
        ("float8_e4m3fn", 0x08, 2.0**-6),
        ("float8_e4m3fn", 0x00, 0.0),
    ],
)
def test_a_value_is_that_of_its_bits(dtype: str, bits: int, value: float) -> None:
    found = widened(np.array([bits], STORAGE[dtype]), dtype)
    assert found.dtype == np.float32 and found[0] == value


@pytest.mark.parametrize("dtype", STORAGE)
def test_all_bits_set_are_no_number_so_that_poison_is_seen(dtype: str) -> None:
    kind = np.dtype(STORAGE[dtype])
    assert np.isnan(widened(np.array([np.iinfo(kind).max], kind), dtype)).all()


@pytest.mark.parametrize("dtype", STORAGE)
def test_values_are_those_of_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kind = np.dtype(STORAGE[dtype])
    bits = np.arange(np.iinfo(kind).max + 1, dtype=kind)
    theirs = torch.from_numpy(bits.view(f"int{kind.itemsize * 8}")).view(getattr(torch, dtype)).float().numpy()
    np.testing.assert_array_equal(widened(bits, dtype), theirs)


def test_a_buffer_counts_the_bytes_of_its_bits() -> None:
    buffer = Buffer((3, 4), "bfloat16")
    assert (buffer.nbytes, buffer.storage, buffer.kind) == (24, "uint16", "f")


@pytest.mark.parametrize(
    ("number", "code"),
    # Sign, four bits of exponent with a bias of 7, three of mantissa: OCP 8-bit floating point, E4M3.
    [(1.0, 0b0_0111_000), (-1.5, 0b1_0111_100), (448.0, 0b0_1111_110), (1000.0, 0b0_1111_110), (2**-6, 0b0_0001_000),
     (2**-9, 0b0_0000_001), (0.0, 0), (1.0625, 0b0_0111_000), (1.99, 0b0_1000_000)],
)  # fmt: skip
def test_numbers_are_rounded_to_e4m3(number: float, code: int) -> None:
    assert narrowed(np.array([number], np.float32), "float8_e4m3fn").tolist() == [code]


def test_numbers_are_rounded_to_the_nearest_bfloat16_and_from_the_middle_to_the_even_one() -> None:
    bits = np.random.default_rng(0).integers(0, 0x7F7F0000, (3, 1 << 16), np.uint32)
    bits[:, ::5] = bits[:, ::5] >> 16 << 16 | 0x8000  # in the middle between two
    numbers = bits.view(np.float32)
    codes = narrowed(numbers, "bfloat16")
    assert codes.shape == numbers.shape and codes.dtype == np.uint16
    wide, middle = numbers.astype(np.float64), bits & 0xFFFF == 0x8000
    below = (bits >> 16).astype(np.uint16)
    off = [abs(widened(code, "bfloat16").astype(np.float64) - wide) for code in (below, below + np.uint16(1))]
    assert np.array_equal(codes, below + (np.where(middle, below & 1, off[1] < off[0])).astype(np.uint16))
    assert np.array_equal(narrowed(-numbers, "bfloat16"), codes | 0x8000)
