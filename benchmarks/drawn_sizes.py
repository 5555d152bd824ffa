"""Compares the best rung with the strongest peer at sizes that nobody chose: they are drawn at random when you run it.

    python -m benchmarks.drawn_sizes gemm_bf16
    python -m benchmarks.drawn_sizes mlp_gemm --seed 7 --count 8 --seconds 0.2

It prints the seed, which draws the same sizes again. Needs a GPU. Options that it does not know go to `warpladder record`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from math import exp, log
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

import pandas as pd

from warpladder.commands.common import ExitCode
from warpladder.dashboard.compare.within_run import CaseTimes, compared, precisions
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.cell import Entry, Timing
from warpladder.dashboard.core.cells import best_config, cells, in_timing, is_trusted
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import store

_COLD: Final = Timing("device", "cold")


def _between(rng: Random, low: int, high: int, multiple: int = 1) -> int:
    """A number whose logarithm is drawn evenly."""
    return max(round(exp(rng.uniform(log(low), log(high))) / multiple), 1) * multiple


def _product(rng: Random) -> str:
    """Half of them in multiples of 64, as layers of networks have them."""
    multiple = rng.choice((1, 64))
    return "shape=" + "x".join(str(_between(rng, 128, 8192, multiple)) for _ in range(3))


def _count(axis: str, low: int, high: int) -> Callable[[Random], str]:
    return lambda rng: f"{axis}={_between(rng, low, high)}"


def _transpose(rng: Random) -> str:
    extents = "x".join(str(rng.randint(150, 500)) for _ in range(3))
    return f"shape={extents},perm={rng.choice(('021', '102', '120', '201', '210'))}"


#: Workload -> what draws a case of it.
DRAWN: Final[Mapping[str, Callable[[Random], str]]] = {
    **dict.fromkeys(("mlp_gemm", "gemm_bf16", "gemm_fp16", "gemm_fp8"), _product),
    **dict.fromkeys(("gan_tconv", "gan_tconv_bf16"), _count("images", 2, 3000)),
    **dict.fromkeys(("mlp_training", "mlp_training_bf16"), _count("batch", 20, 8192)),
    **{name: lambda rng: f"layer=2,batch={_between(rng, 50, 10_000)}" for name in ("cnn_conv", "cnn_conv_bf16")},
    "conv2d": lambda rng: f"shape={_between(rng, 200, 8192)}x{_between(rng, 200, 8192)}",
    "tensor_transpose": _transpose,
}


def against_peers(data: RunData, workload: str) -> pd.DataFrame:
    """The fastest rung of each case and precision beside the fastest peer that it is compared with, in cold device time.

    Returns:
        columns case, precision, rung, us, peer, peer_us, ratio (the peer's time over the rung's) and verdict; the lowest ratio first.
    """
    best = best_config(in_timing(cells(data), workload, _COLD))
    best = best[is_trusted(best)]
    rows = []
    for precision in precisions(best):
        for case, of_case in compared(best, precision).groupby("case", observed=True):
            rungs, peers = (of_case[of_case["role"] == role].nsmallest(1, "median_ns") for role in ("rung", "peer"))
            if rungs.empty or peers.empty:
                continue
            (rung,), (peer,) = rungs.to_dict("records"), peers.to_dict("records")
            entries = (Entry(each["variant"], each["config"], each["gpus"], 0) for each in (rung, peer))
            judged = CaseTimes.of(data, workload, str(case), _COLD).judge(*entries)
            names = (f"{each['variant']}[{each['config']}]" if each["config"] else each["variant"] for each in (rung, peer))
            times = (each["median_ns"] / 1e3 for each in (rung, peer))
            (own, other), (own_us, other_us) = names, times
            rows.append((case, precision, own, own_us, other, other_us, judged.ratio.ratio, judged.verdict))
    columns = ["case", "precision", "rung", "us", "peer", "peer_us", "ratio", "verdict"]
    return pd.DataFrame(rows, columns=columns).sort_values("ratio", ignore_index=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=DRAWN)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), help="of the sizes; by default a new one")
    parser.add_argument("--count", type=int, default=6, help="cases to draw")
    chosen, options = parser.parse_known_args()
    rng = Random(chosen.seed)
    drawn = dict.fromkeys(DRAWN[chosen.workload](rng) for _ in range(chosen.count))
    print(f"seed {chosen.seed}")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "warpladder", "record", chosen.workload, "--no-limit", "--data-dir", folder]
        cases = [word for case in drawn for word in ("--case", case)]
        done = subprocess.run([*command, *cases, *options], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, ExitCode.WRONG):
            return done.returncode
        found = against_peers(run_data.load(store.find_run(done.stdout.split()[-1], [Path(folder)])), chosen.workload)
    print(found.to_string(index=False, float_format="%.4g"))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
