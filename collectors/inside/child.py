"""The process of the experiments on one cell: prints each step and each row as a line of JSON. What an altered kernel breaks ends this process only."""

import json
import sys
from pathlib import Path
from typing import Any

from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant, format_params


def main() -> None:
    """Make the experiments that the first argument asks for, as JSON."""
    from warpladder.collectors.inside.experiment import Inside

    request: dict[str, Any] = json.loads(sys.argv[1])
    names, files = ([], [Path(request["file"])]) if request["file"] else ([request["workload"]], [])
    loaded = registry.load_with_files(names, files)
    workload = next(each for each, _ in loaded if each.name == request["workload"])
    variant = workload.variant(request["variant"])
    assert isinstance(variant, CudaVariant)
    config = next(each for each in variant.configs if format_params(each) == request["config"])
    case, seconds, skip = workload.case(request["case"]), request["seconds"], request["skip"]
    for row in Inside(workload, variant, config, case, seconds, skip, _say).rows():
        _say(row)


def _say(message: str | dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
