"""An nsys that runs the command it is given, and reports GPU work of each program that does not depend on the run.

`python fake_nsys.py profile … --output=FILE COMMAND…`. Execution I of the plan is the time from 10000 I to 10000 I + 9000 ns. In it
a program whose name ends in 1 copies 4096 bytes to the device in 50 ns, and runs two kernels of 1000 ns that overlap for 500 ns, the
second launched by another thread inside a range of the program's own. Any other program copies in 40 ns, runs a kernel of 500 ns,
and copies back in 20 ns.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.collectors.nsight_systems.reports import GPU, STRINGS, VERSION, call, copy, kernel, nvtx, write

RUNNER = 50 << 24 | 1 << 48 | 50
DOMAIN = 3


def program(number: int, first: bool) -> dict[str, list[dict[str, Any]]]:
    """Rows of one execution, by table."""
    begin, process = 10_000 * number, (100 + number) << 24 | 1 << 48
    main, worker = process | (100 + number), process | 999

    def calls(*each: tuple[int, int, int]) -> list[dict[str, Any]]:
        return [call(correlation, begin + at, begin + at + 2, tid=thread) for correlation, at, thread in each]

    mark = nvtx(f"execution={number}", begin, begin + 9000, tid=RUNNER, domainId=DOMAIN)
    if first:
        return {
            "NVTX_EVENTS": [mark, nvtx("step", begin + 300, begin + 700, tid=worker)],
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls((1, 10, main), (2, 90, main), (3, 400, worker)),
            "CUPTI_ACTIVITY_KIND_KERNEL": [
                kernel(2, begin + 1000, begin + 2000, pid=process),
                kernel(3, begin + 1500, begin + 2500, pid=process),
            ],
            "CUPTI_ACTIVITY_KIND_MEMCPY": [{**copy(1, begin + 20, begin + 70, 1, 4096, src=0), "globalPid": process}],
        }
    return {
        "NVTX_EVENTS": [mark],
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls((1, 10, main), (2, 90, main), (3, 400, main)),
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(2, begin + 1000, begin + 1500, pid=process)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {**copy(1, begin + 20, begin + 60, 1, 4096, src=0), "globalPid": process},
            {**copy(3, begin + 1600, begin + 1620, 2, 4096, src=2, dst=0), "globalPid": process},
        ],
    }


def report(path: Path, names: list[str]) -> None:
    """Write the report of executions of programs of these names."""
    tables: dict[str, list[dict[str, Any]]] = {
        "StringIds": [{"id": number, "value": text} for number, text in STRINGS.items()],
        "META_DATA_EXPORT": [VERSION],
        "TARGET_INFO_GPU": [GPU],
        "NVTX_EVENTS": [nvtx("warpladder programs", 0, None, 75, tid=RUNNER, domainId=DOMAIN)],
    }
    for number, name in enumerate(names):
        for table, rows in program(number, first=name.endswith("1")).items():
            tables.setdefault(table, []).extend(rows)
    write(path, tables)


def main(arguments: list[str]) -> None:
    """Run the command, and write the report."""
    (output,) = (Path(word.removeprefix("--output=")) for word in arguments if word.startswith("--output="))
    command = arguments[next(place for place, word in enumerate(arguments[1:], 1) if not word.startswith("--")) :]
    ended = subprocess.run(command, check=False).returncode
    plan = json.loads((output.parent / "executions.json").read_text())
    report(output, [Path(launch["path"]).name for launch in plan])
    sys.exit(ended)


if __name__ == "__main__":
    main(sys.argv[1:])
