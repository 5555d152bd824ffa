"""`python -m warpladder.collectors.nsight_compute.reader REPORT` prints the launches of a report as JSON.

It runs in a separate process, because NVIDIA's reader is native code and the report may come from an untrusted source. The
importer reports a crash or a hang as one line.
"""

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any, Final

from warpladder.collectors.nsight_compute.metrics import ATTRIBUTES, DEVICE_NAME, METRICS

MOST_LAUNCHES: Final = 10_000
_MOST_DOMAINS: Final = 32
_MOST_RANGES: Final = 32
_TEXT_LIMIT: Final = 2048
_MEMORY_BYTES: Final = 8 << 30
_OUTPUT_BYTES: Final = 512 << 20


def main(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_BYTES, _OUTPUT_BYTES))
    import ncu_report

    actions = [each.action_by_idx(index) for each in ncu_report.load_report(path) for index in range(each.num_actions())]
    launches = [_launch(action) for action in actions[:MOST_LAUNCHES]]
    json.dump({"launches": launches, "total": len(actions)}, sys.stdout, allow_nan=False)


def _launch(action: Any) -> dict[str, Any]:
    """Return one launch: kernel, finite values by metric with units, and the texts of the NVTX ranges around it, by domain."""
    present = frozenset(action.metric_names())
    metrics = {name: action.metric_by_name(name) for name in (*METRICS, *ATTRIBUTES) if name in present}
    numeric = {name: metric for name, metric in metrics.items() if metric.has_value() and metric.kind() in _numeric(metric)}
    values = {name: metric.as_double() for name, metric in numeric.items()}
    finite = {name: value for name, value in values.items() if abs(value) < float("inf")}
    device = action.metric_by_name(DEVICE_NAME) if DEVICE_NAME in present else None
    return {
        "kernel": _cut(action.name(action.NameBase_FUNCTION)),
        "full_name": _cut(action.name(action.NameBase_DEMANGLED)),
        "device": _cut(device.as_string()) if device is not None else "",
        "values": finite,
        "units": {name: _cut(numeric[name].unit() or "") for name in finite},
        "ranges": dict(_ranges(action.nvtx_state())),
    }


def _numeric(metric: Any) -> tuple[int, ...]:
    return metric.ValueKind_FLOAT, metric.ValueKind_DOUBLE, metric.ValueKind_UINT32, metric.ValueKind_UINT64


def _ranges(state: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the push/pop ranges of each domain, outermost first."""
    for number in state.domains()[:_MOST_DOMAINS] if state is not None else ():
        domain = state.domain_by_id(number)
        if domain is not None:
            depth = min(len(domain.push_pop_ranges()), _MOST_RANGES)
            opened = [domain.push_pop_range(index) for index in range(depth)]
            yield _cut(domain.name()), [_cut(each.name() or each.message()) for each in opened if each is not None]


def _cut(text: Any) -> str:
    return str(text or "")[:_TEXT_LIMIT]


if __name__ == "__main__":
    main(sys.argv[1])
