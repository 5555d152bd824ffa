"""In how many of twelve planted pairs the flaw is named with its line. Needs a GPU; about 5 minutes, or 2 with counters.

    python -m benchmarks.planted_flaws [FOLDER [SECONDS]]
    python -m benchmarks.planted_flaws --counters FOLDER

The first is by experiments, without counters, and writes the rows of every kernel to FOLDER/inside.json. The second records a run with
counters into FOLDER, or reads the one that is there, and judges the sentence of each pair.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.inside.planted import PAIRS
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.inside.record import look_into
from warpladder.dashboard.core.in_code import ENOUGH
from warpladder.dashboard.core.inside import Cause, Inside
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.core.why import between
from warpladder.data import store

_FILE: Final = Path(__file__).parents[1] / "tests/inside/planted.py"
#: The causes that name each flaw.
NAMES: Final = {
    "spills": {Cause.SPILLS},
    "bank_conflicts": {Cause.BANK_CONFLICTS},
    "local_arrays": {Cause.LOCAL_ARRAYS},
    "pointer_chasing": {Cause.POINTER_CHASING},
    "tail": {Cause.TAIL},
    "misaligned_vectors": {Cause.SPLIT_VECTORS},
    "same_address_stores": {Cause.SAME_ADDRESS_STORES},
    "divergence": {Cause.DIVERGENCE},
    "atomics": {Cause.ATOMICS},
    "barriers": {Cause.BARRIERS},
    "conversions": {Cause.CONVERSIONS},
    "too_few_blocks": {Cause.TOO_FEW_BLOCKS},
}

#: Flaws of the launch, which no line has.
OF_LAUNCH: Final = ("tail", "too_few_blocks")


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """The findings of a cell as lines."""
    return [f"{each.share:6.1%} {each.cause} [{each.lines}] {each.detail}" for each in Inside(rows).findings()]


def by_counters(folder: Path) -> None:
    """Print the sentence of each pair, and how many name the flaw."""
    if not store.list_runs([folder])[0]:
        options = ("--seconds", "0.1", "--processes", "1", "--max-rounds", "3", "--no-limit", "--data-dir", str(folder))
        subprocess.run([sys.executable, "-m", "warpladder", "record", str(_FILE), "--counters", "-q", *options], check=False)
    data, right, read = load(store.open_run(store.list_runs([folder])[0][0].path)), 0, 0
    for flaw in PAIRS:
        cells = ("v01_slow", ""), ("v02_fast", "")
        found = between(data, data, "planted_inside", f"flaw={flaw}", *cells)
        if found is None:
            print(f"WITHOUT COUNTERS {flaw}")
            continue
        is_known = found.named in NAMES[flaw] and found.explained >= ENOUGH
        is_right = is_known and (flaw in OF_LAUNCH or "line" in found.because)
        right, read = right + is_right, read + 1
        print(f"{'right' if is_right else 'WRONG'} {flaw}: {found.named}\n  {found.sentence('v01_slow', 'v02_fast')}")
    print(f"named by counters: {right} of {read} with counters, of {len(PAIRS)} in all")


def main() -> None:
    """Print what is named of each pair, and how many are right."""
    if sys.argv[1:2] == ["--counters"]:
        by_counters(Path(sys.argv[2]))
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    kept, right = dict[str, Any](), 0
    for flaw in PAIRS:
        started = time.monotonic()
        for variant in ("v01_slow", "v02_fast"):
            looked = look_into(Cell("planted_inside", variant, "", f"flaw={flaw}"), _FILE, seconds)
            rows, why = looked.rows, str(looked.broken or "")
            kept[f"{flaw} {variant}"] = {"rows": rows, "why": why}
            found = shown(rows) if any(row["experiment"] == "time" for row in rows) else []
            if variant == "v01_slow":
                first = Inside(rows).findings()[0].cause if found else None
                right += first in NAMES[flaw]
                print(f"{'right' if first in NAMES[flaw] else 'WRONG'} {flaw}: {first}")
            print(f"  {variant}", *(["", *found[:4]] if found else [why]), sep="\n    ")
        print(f"  {time.monotonic() - started:.0f} s", flush=True)
        if folder:
            (folder / "inside.json").write_text(json.dumps(kept, indent=0))
    print(f"named: {right} of {len(PAIRS)}")


if __name__ == "__main__":
    main()
