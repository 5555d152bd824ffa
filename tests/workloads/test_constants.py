"""Constants that a kernel and its launches share stand in the kernel's source alone, and the launches read them there."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from warpladder.workloads import registry
from warpladder.workloads.api import Case, Constants, CudaVariant, Params, WorkloadError
from warpladder.workloads.cnn_conv.problem import SIZE as CNN_SIZE
from warpladder.workloads.conv2d.host import SIZE as CONV2D_SIZE
from warpladder.workloads.declare import sources
from warpladder.workloads.gan_tconv.problem import COLOURS, KERNEL_SIZE, LATENT
from warpladder.workloads.mlp_training.digits import CLASSES
from warpladder.workloads.tensor_transpose.rungs import TILE

pytestmark = pytest.mark.slow

WORKLOADS = Path(registry.__file__).resolve().parent
SOURCE = """\
#include "shared.cuh"
constexpr int kRows = 64, kColumns = 2 * kRows;  // constexpr int kNotMeant = 1;
constexpr int kPitch = (kColumns + 4) / 3 - kRows % 7;
constexpr int kBlocks = __CUDA_ARCH__ == 900 ? 4 : 3;

struct Product {
  static constexpr int kParts = 2;
};

// multiply() has a constant of its own.
__global__ void multiply(const float* a) {
  constexpr int kTile = 16, kStep = kTile / kFromHeader;
}

__global__ void add(const float* a) {
  constexpr int kTile = 8;
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "shared.cuh").write_text("constexpr int kFromHeader = 4;\n")
    file = tmp_path / "v01_product.cu"
    file.write_text(SOURCE)
    return file


def test_a_constant_is_a_literal_or_arithmetic_of_others_of_the_file_and_of_what_it_includes(source: Path) -> None:
    constants = Constants(source)
    assert [constants[name] for name in ("kRows", "kColumns", "kPitch", "kFromHeader")] == [64, 128, 43, 4]


def test_a_kernel_or_struct_has_constants_of_its_own(source: Path) -> None:
    constants = Constants(source)
    assert constants.within("Product")["kParts"] == 2
    assert constants.within("multiply")["kStep"] == 4
    assert constants.within("add")["kTile"] == 8
    assert constants.within("add")["kRows"] == 64


@pytest.mark.parametrize("name", ["kTile", "kParts", "kNotMeant", "kStages"])
def test_an_absent_constant_is_one_line_that_names_file_and_constant(source: Path, name: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        Constants(source)[name]
    assert str(raised.value) == (
        f"v01_product.cu: no `constexpr int {name}` at the top level; its launch reads it: declare it there"
    )


def test_a_constant_that_is_no_arithmetic_is_one_line_that_says_so(source: Path) -> None:
    with pytest.raises(
        WorkloadError, match=r"^v01_product.cu: constant kBlocks is `__CUDA_ARCH__ == 900 .* write a number"
    ) as raised:
        Constants(source)["kBlocks"]
    assert "\n" not in str(raised.value)


Read = tuple[Path, str, str]


def cases_of(name: str) -> list[Case]:
    """The cases that reach every config, and two that are measured."""
    small = importlib.import_module(f"warpladder.workloads.{name}.workload").emulation_cases()
    return [*small, registry.load(name).cases[0], registry.load(name).cases[-1]]


def geometry(name: str) -> list[str]:
    """How each config of each variant is launched, with its scratch, or why it is skipped. An error is a change, too."""
    cases = cases_of(name)
    variants = [variant for variant in registry.load(name).variants if isinstance(variant, CudaVariant)]
    return [described(variant, case, config) for variant in variants for case in cases for config in variant.configs]


def described(variant: CudaVariant, case: Case, config: Params) -> str:
    try:
        skip = variant.skip(case, config)
        return skip or f"{list(variant.launches(case, config))} {dict(variant.scratch(case, config))}"
    except (ArithmeticError, ValueError) as error:
        return repr(error)


def constants_read(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Read]:
    """Every constant that the launches of a workload ask for."""
    found: dict[Read, None] = {}
    read = Constants.__getitem__

    def noted(constants: Constants, wanted: str) -> int:
        found[constants.file, constants.function, wanted] = None
        return read(constants, wanted)

    with monkeypatch.context() as patch:
        patch.setattr(Constants, "__getitem__", noted)
        geometry(name)
    return list(found)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", registry.names())
def test_launches_follow_every_constant_that_they_share_with_a_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, reads = geometry(name), constants_read(name, monkeypatch)
    assert reads
    unused = [
        (file.name, constant)
        for file, _, constant in reads
        if all(geometry_with(name, file, constant, change, monkeypatch) == before for change in ("2 *", "-448 +", "1 +"))
    ]
    assert not unused, "launches ask for these and do not use them"


def geometry_with(name: str, file: Path, constant: str, change: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that a workload has where the text of a kernel gives a constant another value."""
    read_source = sources.read_source

    def changed(source: Path) -> str:
        text = read_source(source)
        return re.sub(rf"\b{constant} = ([^,;]+)", rf"{constant} = {change} (\1)", text) if source == file else text

    try:
        with monkeypatch.context() as patch:
            patch.setattr(sources, "read_source", changed)
            sources._expressions.cache_clear()
            return geometry(name)
    finally:
        sources._expressions.cache_clear()


#: Workload -> constants of its problem that each kernel declares for itself.
PROBLEMS: Mapping[str, Mapping[str, int]] = {
    "cnn_conv": {"kSize": CNN_SIZE},
    "conv2d": {"kSize": CONV2D_SIZE},
    "gan_tconv": {"kSize": KERNEL_SIZE, "kLatent": LATENT, "kColours": COLOURS},
    "mlp_training": {"kClasses": CLASSES},
    "tensor_transpose": {"TILE": TILE},
}
#: The tile of this kernel is no cube of the report's.
OTHER_TILE = "v09_padded_tile.cu"


@pytest.mark.parametrize("name", PROBLEMS)
def test_kernels_have_the_sizes_of_their_problem(name: str) -> None:
    found = dict.fromkeys(PROBLEMS[name], 0)
    for file in (WORKLOADS / name / "kernels").glob("*.cu"):
        for constant, value in PROBLEMS[name].items():
            if file.name != OTHER_TILE and re.search(
                rf"^constexpr int .*\b{constant} =", sources.read_source(file), re.MULTILINE
            ):
                assert Constants(file)[constant] == value, f"{file.name}: {constant}"
                found[constant] += 1
    assert all(found.values())
