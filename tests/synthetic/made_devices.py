"""A workload on two devices, with known times. The figures are invented."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.synthetic.made_runs import row, run_row, write_tables
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.cell import Timing
from warpladder.dashboard.core.run_data import RunData
from warpladder.data import store

DEVICES = ("NVIDIA H100 80GB HBM3", "NVIDIA H200")
#: Their short names.
NAMES = ("H100", "H200")
TIMING = Timing("device", "cold")
#: Case -> variant -> microseconds on both devices. Of n=1 the winners differ, of n=2 one wins on both, and of n=3 two are tied on B.
TIMES = {
    "n=1": {"v01": (900, 900), "v02": (200, 100), "v03": (100, 110), "lib": (150, 105)},
    "n=2": {"v01": (900, 900), "v02": (220, 180), "v03": (200, 166), "lib": (300, 290)},
    "n=3": {"v01": (900, 900), "v02": (205, 100), "v03": (200, 100), "lib": (300, 290)},
}
MIN_BYTES = 300_000_000
#: GB/s, so that the bytes take 75 and 50 us.
COPY = (4_000, 6_000)
FMA = (60, 60)


def write(
    folder: Path,
    run_id: str,
    side: int,
    *,
    cpu: str = "",
    times: Mapping[str, Any] = TIMES,
    source: str = "v02",
    doubt: str = "",
) -> Path:
    """A run of the workload `w` on the first or the second device; or of the processor `cpu`.

    Args:
        source: hash of the source of v02.
        doubt: the case in which v03 is distrusted.
    """
    random = np.random.default_rng(side)
    cell = {"workload": "w", "config": ""}
    samples = [
        row("samples", **cell, case=case, variant=variant, gpus=int(not cpu), cache="cold", scope="device", twin=twin, round=number)
        | {"duration_ns": round(1_000 * us[side] * random.normal(1, 1e-3)), "position": place}
        for case, variants in times.items()
        for place, (variant, twin, us) in enumerate([("v01", 1, variants["v01"]), *((name, 0, us) for name, us in variants.items())])
        for number in range(20)
    ]  # fmt: skip
    names = list(next(iter(times.values())))
    kind, role = ("host", "host") if cpu else ("cuda", "rung")
    variants = [
        row(
            "variants",
            workload="w",
            variant=name,
            kind=kind,
            role=role if name != "lib" or cpu else "peer",
            rung=place,
            precision="fp32",
        )
        | {"source_sha256": source if name == "v02" else name}
        for place, name in enumerate(names, 1)
    ]
    cases = [
        row("cases", workload="w", case=case, size_rank=rank, params=f'{{"n":{case[2:]}}}', flops=1_000, min_bytes=MIN_BYTES)
        for rank, case in enumerate(times)
    ]
    ceilings = [
        row("ceilings", name=name, device="cuda:0", value=values[side], unit=unit)
        for name, values, unit in (("device_copy", COPY, "GB/s"), ("fp32_fma", FMA, "TFLOP/s"))
    ]
    results = [row("results", **cell, case=case, variant=name, status="ok") for case in times for name in names]
    finding = row("diagnostics", severity="warning", source="throttled", text="hot", workload="w", variant="v03", case=doubt)
    tables = {"variants": variants, "cases": cases, "results": results, "samples": samples, "ceilings": ceilings}
    info = {
        "kind": "recording",
        "collector": "cupti",
        "device_name": "" if cpu else DEVICES[side],
        "cpu_name": cpu,
        "source": "",
        "source_sha256": None,
    }
    return write_tables(folder, run_row(run_id, run_id) | info, tables | ({"diagnostics": [finding]} if doubt else {}))


def write_both(folder: Path) -> None:
    """The runs `h100` and `h200`."""
    write(folder, "h100", 0)
    write(folder, "h200", 1)


def loaded(folder: Path, run_id: str) -> RunData:
    return run_data.load(store.open_run(folder / run_id))
