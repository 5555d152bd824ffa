"""The ladder: how ranks average their weights or gradients. What each rung tries stands at the head of its `.cu` file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from warpladder.workloads.api import AllReduce, Buffer, Case, Constants, Params, Step, ceil_div
from warpladder.workloads.declare.launches import PeerMemory
from warpladder.workloads.ladder import HOPPER, launch, rungs_in, template
from warpladder.workloads.mlp_training.problem import OUTPUTS, REGULARIZATION, rate_of, size_of
from warpladder.workloads.mlp_training_bf16 import rungs as of_one_rank
from warpladder.workloads.mlp_training_bf16.rungs import TILES, Rung

KERNELS: Final = Path(__file__).resolve().parent / "kernels"
_ROUND: Final = Constants(KERNELS / "v01_nccl.cu")
_BACK: Final = Constants(of_one_rank.KERNELS / "backward_update.cuh")
#: The step of one rank: that of `v04_shared_weights`.
_STEP: Final = Rung(early=True, down=2)
_WARP: Final = 32


def averaged_by_nccl(case: Case, config: Params) -> Sequence[Step]:
    """The step of one rank, the average of the new weights, and their copies."""
    size = size_of(case)
    weights = size.inputs * size.hidden + size.hidden * size.classes
    return (
        *of_one_rank.launches(case, config, rung=_STEP),
        AllReduce(OUTPUTS),
        launch(
            *("round_copies", ceil_div(weights // 2, _ROUND["kThreads"]), _ROUND["kThreads"]),
            *("new_w1", "new_w2", "new_w1_bf16", "new_w2_bf16", size.inputs * size.hidden // 2, weights // 2),
        ),
    )


def exchanged(case: Case, config: Params) -> Sequence[Step]:
    """The way forward of one rank; the way back with the exchange and the update in one launch."""
    forward, back = of_one_rank.launches(case, config, rung=_STEP)
    tile, rate = TILES[config["columns"]], rate_of(case)
    sizes, rates = back.args[-6:-2], (np.float32(rate), np.float32(rate * REGULARIZATION))
    return (
        forward,
        replace(
            back,
            kernel=template("backward_exchange", tile.back_columns, tile.slices, tile.back_stages),
            args=(*back.args[:-6], PeerMemory("inbox"), "turns", *sizes, *rates),
        ),
    )


def scratch_of_exchange(case: Case, config: Params) -> Mapping[str, Buffer]:
    """The scratch of one rank, words that come from a rank, for two steps, and how many steps each warp has done."""
    size, tile = size_of(case), TILES[config["columns"]]
    _, back = of_one_rank.launches(case, config, rung=_STEP)
    tiles = ceil_div(size.inputs, _BACK["kInputs"]) * ceil_div(size.hidden, tile.back_columns)
    of_w1 = tiles * _BACK["kInputs"] * tile.back_columns // 2
    others = ceil_div((size.hidden + 1) * (size.classes + 1), 4) * 4
    return {
        **of_one_rank.scratch(case, config, rung=_STEP),
        "inbox": Buffer((2, of_w1 + others), "uint32", zeroed=True),
        "turns": Buffer((back.grid[0] * back.block[0] // _WARP,), "uint32", zeroed=True),
    }


_rung: Final = rungs_in(KERNELS)
_CONFIGS: Final = tuple({"columns": columns} for columns in TILES)

CUDA_VARIANTS: Final = (
    _rung(
        *("v01_nccl", "Averaged by NCCL", averaged_by_nccl, _CONFIGS, "bf16"),
        scratch=partial(of_one_rank.scratch, rung=_STEP),
        skip=of_one_rank.skip,
        graph=True,
        **HOPPER,
    ),
    _rung(
        *("v02_peer_memory", "Exchanged through peer memory", exchanged, _CONFIGS, "bf16"),
        scratch=scratch_of_exchange,
        skip=of_one_rank.skip,
        graph=True,
        **HOPPER,
    ),
)
