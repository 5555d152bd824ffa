"""Runs programs in turn, in a process under a profiler, with an NVTX range around each."""

import json
import sys
from pathlib import Path

import nvtx

from warpladder.collectors.programs import runner
from warpladder.collectors.programs.executions import DOMAIN, execution_text
from warpladder.collectors.programs.outputs import failure
from warpladder.collectors.programs.runner import Launch


def main(plan: str, ends: str) -> None:
    """Run the programs of a plan.

    Args:
        plan: JSON file with the fields of `Launch` of each run.
        ends: file that receives a line for each run: as JSON the reason why it failed, or an empty text.
    """
    runner.begin()
    with Path(ends).open("w") as file:
        for number, fields in enumerate(json.loads(Path(plan).read_text())):
            launch = Launch(**{**fields, "words": tuple(fields["words"])})
            with nvtx.annotate(message=execution_text(number), domain=DOMAIN):
                ended = runner.run(launch, whole_tree=False)
            failed = failure(ended, launch.timeout_s, Path(launch.stderr))
            print(json.dumps(failed.detail if failed else ""), file=file, flush=True)
    sys.exit(0)
