"""Measures the peers of a workload and further routes through libraries, and prints the routes that beat the peers by 2 % or more.

    python -m benchmarks.peers mlp_gemm --case n=4096
    python -m benchmarks.peers tensor_transpose --seconds 0.2

Without --case it takes the quick cases. Needs a GPU. Options that it does not know go to `warpladder record`.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pandas as pd

import warpladder
from warpladder.commands.common import ExitCode
from warpladder.workloads import registry

#: Ratio of times from which a route is a stronger peer.
STRONGER: Final = 1.02
_HERE: Final = Path(__file__).parent


def stronger(table: pd.DataFrame, declared: frozenset[str]) -> pd.DataFrame:
    """The routes that take less time than the best declared peer of their precision.

    Args:
        table: the cells of a run, as `warpladder.open_run(...).table()` gives them.
        declared: names of the workload's peers.

    Returns:
        columns case, precision, route, microseconds, peer, peer_microseconds, ratio; a row for each route and case.
    """
    timed = table[(table["status"] == "ok") & table["median_ns"].notna()]
    timed = timed.assign(route=timed["variant"] + timed["config"].map(lambda config: f"[{config}]" if config else ""))
    place = ["case", "precision"]
    best = timed.loc[timed.groupby([*place, "variant"])["median_ns"].idxmin()]
    ours = best[best["variant"].isin(declared)]
    ours = ours.loc[ours.groupby(place)["median_ns"].idxmin(), [*place, "route", "median_ns"]]
    both = best[~best["variant"].isin(declared)].merge(ours, on=place, suffixes=("", "_peer"))
    both["ratio"] = both["median_ns_peer"] / both["median_ns"]
    found = both[both["ratio"] >= STRONGER].sort_values([*place, "ratio"], ascending=[True, True, False], ignore_index=True)
    return pd.DataFrame(
        {
            **{name: found[name] for name in (*place, "route")},
            "microseconds": found["median_ns"] / 1e3,
            "peer": found["route_peer"],
            "peer_microseconds": found["median_ns_peer"] / 1e3,
            "ratio": found["ratio"],
        }
    )


def main() -> int:
    names = sorted(file.stem for file in _HERE.glob("[a-z]*.py") if file.stem != "routes")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=names)
    chosen, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "warpladder", "record", str(_HERE / f"{chosen.workload}.py"), "--data-dir", folder]
        done = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, ExitCode.WRONG):  # a wrong route is one of those that are not measured
            return done.returncode
        table = warpladder.open_run(done.stdout.split()[-1], data_dir=folder).table()
    declared = frozenset(variant.name for variant in registry.load(chosen.workload).variants)
    found = stronger(table, declared)
    failed = table[table["status"] != "ok"].drop_duplicates(["variant", "status"])
    for row in failed.itertuples():
        print(f"not measured: {row.variant} at {row.case}: {row.status}: {row.detail}")
    print(f"{table['case'].nunique()} cases, {table['variant'].nunique()} routes")
    print(found.to_string(index=False, float_format="%.3g") if len(found) else "none is 2 % faster than the declared peers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
