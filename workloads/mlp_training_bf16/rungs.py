"""The ladder: every CUDA variant and how it is launched. What each tries stands at the head of its `.cu` file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from warpladder.workloads.api import ALIGNMENT_BYTES, Buffer, Case, Constants, Launch, Params, TensorMap, ceil_div
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template
from warpladder.workloads.mlp_training.fused import rates
from warpladder.workloads.mlp_training.problem import INPUTS, OUTPUTS, Size, size_of

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_OF: Final = Constants(KERNELS / "pipeline.cuh")
_OUTPUT: Final = Constants(KERNELS / "output_layer.cuh")
_BACK: Final = Constants(KERNELS / "backward_update.cuh")
#: Elements of a line of 128 bytes.
_BOX: Final = 64
_WARPGROUP: Final = 128
_SWIZZLE: Final = 128
#: Rows of a row of buffers are multiples of 16 bytes for the TMA.
_PIECE: Final = 8
#: Blocks beyond the tiles of the way back, which update all weights but w1.
_SPARE_BLOCKS: Final = 20
#: Blocks of a cluster that every GPU takes.
_MOST_BLOCKS: Final = 8


@dataclass(frozen=True)
class Tile:
    """Tiles of both ways.

    Attributes:
        warpgroups, columns, blocks: forward, a block has 64 samples for each warpgroup, by so many hidden units, and a cluster so many blocks.
        stages: of a block, forward.
        back_columns, slices, back_stages: back, a tile has so many hidden units, and a cluster so many parts of the samples.
    """

    warpgroups: int
    columns: int
    blocks: int
    stages: int
    back_columns: int
    slices: int
    back_stages: int

    @property
    def samples(self) -> int:
        """Of a tile, forward."""
        return 64 * self.warpgroups

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block, forward: stages, then what the output layer has of its own."""
        line = 2 * _BOX
        stages = self.stages * (self.samples + self.columns) * line
        classes = _OUTPUT["kSlots"]
        differences, sums = 2 * classes * self.samples, 4 * classes * self.samples * self.blocks
        weights = classes * (2 * self.columns + 16) + self.columns * (2 * classes + 16) + 4 * self.columns
        return stages + differences + sums + weights + 16 * self.warpgroups * _OUTPUT["kSums"] + ALIGNMENT_BYTES

    @property
    def back_bytes(self) -> int:
        """Dynamic shared memory of a block, back."""
        return self.back_stages * (_BACK["kInputs"] + self.back_columns) * 2 * _BOX + ALIGNMENT_BYTES


#: By the config's `columns`. All hidden units of a tile are in one cluster.
TILES: Final[Mapping[int, Tile]] = {
    256: Tile(warpgroups=2, columns=256, blocks=4, stages=3, back_columns=256, slices=4, back_stages=4),
    128: Tile(warpgroups=1, columns=128, blocks=8, stages=7, back_columns=64, slices=1, back_stages=8),
}


@dataclass(frozen=True)
class Rung:
    """How a rung launches the step.

    Attributes:
        is_fused: the output layer is in the launch of the hidden layer.
        early: the last launch may start while the one before it ends.
        down: most tiles of samples that a cluster has, which share weights.
    """

    is_fused: bool = True
    early: bool = False
    down: int = 1

    def down_of(self, config: Params) -> int:
        """Tiles of samples of a cluster, which has at most eight blocks."""
        return min(self.down, _MOST_BLOCKS // TILES[config["columns"]].blocks)

    def sample_tiles(self, size: Size, config: Params) -> int:
        """Tiles of samples of all clusters; the last one may have no sample."""
        down = self.down_of(config)
        return ceil_div(size.batch, TILES[config["columns"]].samples * down) * down


def scratch(case: Case, config: Params, *, rung: Rung) -> Mapping[str, Buffer]:
    """Gradients of the hidden units, and for each tile of samples those of the other weights; activations if they go by memory.

    A sample's gradients begin at a multiple of 128 bytes: lines of boxes that lie across two lines of L2 would be read from both.
    """
    size = size_of(case)
    gradients = Buffer((size.batch, ceil_div(size.hidden, _BOX) * _BOX), "bfloat16")
    parts = Buffer((rung.sample_tiles(size, config), _OUTPUT["kSums"], size.hidden + 1))
    activations = {} if rung.is_fused else {"a1": Buffer((size.batch, size.hidden), "bfloat16")}
    return {"dz1": gradients, "parts": parts, **activations}


def launches(case: Case, config: Params, *, rung: Rung) -> Sequence[Launch]:
    """The way forward in one launch or two; the way back with the update."""
    size, tile = size_of(case), TILES[config["columns"]]
    sample_tiles = rung.sample_tiles(size, config)
    shape = (tile.warpgroups, tile.columns, tile.blocks, rung.down_of(config), tile.stages)
    depth = _OF["kDepth"]

    def box(buffer: str, rows: int) -> TensorMap:
        return TensorMap(buffer, (rows, _BOX), _SWIZZLE)

    def forward(has_hidden: bool, has_output: bool) -> Launch:
        return launch(
            template("forward", *shape, has_hidden, has_output),
            *(tile.blocks * sample_tiles, _WARPGROUP * tile.warpgroups + _OF["kProducers"]),
            *(box("x", tile.samples // tile.blocks), box("w1_bf16", depth), box("dz1", tile.samples)),
            *(
                "b1",
                "w2_bf16",
                "b2",
                "y",
                "dz1" if rung.is_fused else "a1",
                "parts",
                "losses",
                size.batch,
                size.inputs,
                size.hidden,
            ),
            shared_bytes=tile.shared_bytes,
        )

    back_tiles = ceil_div(size.inputs, _BACK["kInputs"]) * ceil_div(size.hidden, tile.back_columns)
    back = launch(
        template("backward_update", tile.back_columns, tile.slices, tile.back_stages),
        *(tile.slices * (back_tiles + ceil_div(_SPARE_BLOCKS, tile.slices)), _BACK["kConsumers"] + _OF["kProducers"]),
        *(box("x", depth), box("dz1", depth), *INPUTS, *OUTPUTS, "new_w1_bf16", "new_w2_bf16", "parts"),
        *(sample_tiles, size.batch, size.inputs, size.hidden, *rates(case)),
        shared_bytes=tile.back_bytes,
        early=rung.early,
    )
    return (forward(True, True), back) if rung.is_fused else (forward(True, False), forward(False, True), back)


def skip(case: Case, config: Params) -> str | None:
    """The TMA takes rows of a multiple of 16 bytes, and a cluster has all hidden units."""
    size, tile = size_of(case), TILES[config["columns"]]
    if size.inputs % _PIECE or size.hidden % _PIECE:
        return f"copies eight numbers at a time: {size.inputs} inputs and {size.hidden} hidden units are not both multiples of eight"
    most = tile.columns * tile.blocks
    return f"a cluster has at most {most} hidden units, not {size.hidden}" if size.hidden > most else None


_rung: Final = rungs_in(KERNELS)
_CONFIGS: Final = tuple({"columns": columns} for columns in TILES)

CUDA_VARIANTS: Final = tuple(
    _rung(
        *(name, title, partial(launches, rung=rung), _CONFIGS, "bf16"),
        scratch=partial(scratch, rung=rung),
        skip=skip,
        graph=True,
        **HOPPER,
    )
    for name, title, rung in (
        ("v01_warpgroups", "Warpgroups", Rung(is_fused=False)),
        ("v02_fused_forward", "Output layer in the product's launch", Rung()),
        ("v03_early_start", "The way back starts early", Rung(early=True)),
        ("v04_shared_weights", "Two tiles share weights", Rung(early=True, down=2)),
    )
)
