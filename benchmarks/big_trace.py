"""How long a large trace of PyTorch's profiler takes to import, and how much memory.

    python -m benchmarks.big_trace [SMALL.json.gz] [--gb 1] [--folder FOLDER]

The events of SMALL are repeated until the file has that many GB; each copy is later than the one before, and has correlations, steps and
other numbers of its own. Time is CPU time, which depends less on what else a machine does. The import with its answer is compared with
the least that a reader of the file does: it reads it, and finds the ends of its events. The file is written to FOLDER, by default the
system's folder for temporary files, and removed.

Measured on two cores of an Intel Xeon that other programs kept busy (a load of 7), where the same work takes up to a third more CPU time
than alone. Each copy has 13,308 events:

    1.00 GB, 259 copies      read, find ends of events 2.1 s, 0.18 GB    import 16.4 s, 0.42 GB
    10.0 GB, 2,571 copies                                                import  180 s, 1.24 GB
"""

import argparse
import gzip
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.big_report import ROOT, measure
from warpladder.collectors.kineto.events import BETWEEN_EVENTS, PIECE_BYTES
from warpladder.collectors.trace.compressed import text_blocks

SMALL: Final = ROOT / "tests" / "fixtures" / "kineto" / "resnet18_train_h2d.json.gz"
#: Numbers that differ from copy to copy.
NUMBER: Final = re.compile(
    rb'("(?:ts|id|correlation|External id|Ev Idx|Sequence number|Python id|Python parent id)": |ProfilerStep#|## step )([0-9]+)'
)
#: Those that count by themselves; all others are ids.
COUNTED: Final = (b'"ts": ', b'"Sequence number": ', b"ProfilerStep#", b"## step ")
GAP_US: Final = 1_000


def main(arguments: Sequence[str]) -> None:
    """Make the trace, import it, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("small", nargs="?", type=Path, default=SMALL, help="a small trace of PyTorch's profiler")
    parser.add_argument("--gb", type=float, default=1.0, help="how many GB the big trace has at least")
    parser.add_argument("--folder", type=Path, help="where the big trace and its run are written meanwhile")
    parser.add_argument("--ends", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.ends:
        print(sum(sum(1 for _ in BETWEEN_EVENTS.finditer(block)) for block in text_blocks(chosen.ends, PIECE_BYTES)))
        return
    with tempfile.TemporaryDirectory(prefix="warpladder-", dir=chosen.folder) as folder:
        big = Path(folder) / "big.json"
        copies = enlarge(chosen.small, big, int(chosen.gb * 1e9))
        print(f"{copies:,} copies of {chosen.small.name}, {big.stat().st_size / 1e9:.2f} GB")
        ends = measure("benchmarks.big_trace", "--ends", str(big))
        print(f"{'read, find ends of events':28}{ends.cpu_s:7.1f} s of CPU, {ends.gb:.2f} GB")
        imported = measure("warpladder", "import", str(big), "--data-dir", folder)
        print(f"{'import':28}{imported.cpu_s:7.1f} s of CPU, {imported.gb:.2f} GB")


def enlarge(small: Path, big: Path, size: int) -> int:
    """Repeats the events of a trace until the file has so many bytes. Returns the number of copies."""
    text = gzip.decompress(small.read_bytes()) if small.suffix == ".gz" else small.read_bytes()
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    end = text.rindex(b"]")
    parts, numbers, names, place = [], list[int](), list[bytes](), begin
    for found in NUMBER.finditer(text, begin, end):
        parts.append(text[place : found.start(2)].replace(b"%", b"%%"))
        place = found.end()
        names.append(found[1] if found[1] in COUNTED else b"")
        numbers.append(int(found[2]))
    events = b"%d".join([*parts, text[place:end].replace(b"%", b"%%")])
    of_name = defaultdict[bytes, list[int]](list)
    for name, number in zip(names, numbers, strict=True):
        of_name[name].append(number)
    shift = {name: max(each) - (min(each) if name in COUNTED else 0) + 1 for name, each in of_name.items()}
    shift[COUNTED[0]] += GAP_US
    shifts = [shift[name] for name in names]
    copies = 0
    with big.open("wb") as file:
        file.write(text[:begin])
        while not copies or file.tell() < size:
            moved = tuple(number + copies * by for number, by in zip(numbers, shifts, strict=True))
            file.write((b"," if copies else b"") + events % moved)
            copies += 1
        file.write(text[end:])
    return copies


if __name__ == "__main__":
    main(sys.argv[1:])
