"""In how many of twelve planted pairs experiments name the flaw, without counters. Needs a GPU; about 5 minutes.

    python -m benchmarks.planted_flaws [FOLDER]

Writes the rows of every kernel to FOLDER/inside.json.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.inside.planted import PAIRS
from warpladder.collectors.core.cells import Cell
from warpladder.collectors.inside.record import look_into
from warpladder.dashboard.core.inside import Cause, Inside

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


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """The findings of a cell as lines."""
    return [f"{each.share:6.1%} {each.cause} [{each.lines}] {each.detail}" for each in Inside(rows).findings()]


def main() -> None:
    """Print what is named of each pair, and how many are right."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    kept, right = dict[str, Any](), 0
    for flaw in PAIRS:
        started = time.monotonic()
        for variant in ("v01_slow", "v02_fast"):
            looked = look_into(Cell("planted_inside", variant, "", f"flaw={flaw}"), _FILE, 1.0)
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
