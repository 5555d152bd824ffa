"""`python -m warpladder.collectors.nsight_compute.reader REPORT` prints the launches of a report as JSON.

It runs in a separate process, because NVIDIA's reader is native code and the report may come from an untrusted source. The
importer reports a crash or a hang as one line. A child reads the launches one after another: where the reader crashes at the
machine code of one, as of some kernels of cuDNN, another child goes on from there, and only this launch lacks its code.
"""

import hashlib
import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from warpladder.collectors.nsight_compute.metrics import ATTRIBUTES, DEVICE_NAME, METRICS
from warpladder.data.metrics import BY_INSTRUCTION, EXECUTED, SAMPLED, SAMPLED_IN

MOST_LAUNCHES: Final = 10_000
_CRASHED: Final = "its machine code, its counters by instruction and the findings of the rules (NVIDIA's reader fails)"
_MOST_DOMAINS: Final = 32
_MOST_RANGES: Final = 32
_TEXT_LIMIT: Final = 2048
_MOST_INSTRUCTIONS: Final = 200_000  # of a kernel
_MOST_RULES: Final = 200
_MOST_FILES: Final = 64
_FILE_LIMIT: Final = 2 << 20
_INSTRUCTION_BYTES: Final = 16
_ADDRESS: Final = re.compile(r"(?:`\(\.L_\w+\) )?\b0x([0-9a-f]{7,})$")
#: A reference to another section or to a page, in the text of a rule.
_MARKUP: Final = re.compile(r"@(?:section:\w+|url):([^:@]*)(?::https?://[^@]*)?@|@(?:section|url):([^@]*)@")
#: Type of a rule's message, as `ncu_report.MsgType_*`.
_SEVERITIES: Final = {1: "ok", 2: "optimization", 3: "warning", 4: "error"}
_MEMORY_BYTES: Final = 8 << 30
_OUTPUT_BYTES: Final = 512 << 20


def main(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_BYTES, _OUTPUT_BYTES))
    import ncu_report

    actions = [each.action_by_idx(index) for each in ncu_report.load_report(path) for index in range(each.num_actions())]
    held = actions[:MOST_LAUNCHES]
    content: dict[str, Any] = {"launches": [], "total": len(actions), "codes": {}, "files": {}}
    while len(content["launches"]) < len(held):
        for launch, codes, files in _read_in_child(held[len(content["launches"]) :]):
            content["launches"].append(launch)
            content["codes"].update(codes)
            content["files"].update(files)
        if len(content["launches"]) < len(held):
            plain = _launch(held[len(content["launches"])], None)
            content["launches"].append({**plain, "lacking": [_CRASHED]})
    json.dump(content, sys.stdout, allow_nan=False)


def _read_in_child(actions: Sequence[Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, str]]]:
    """Yield the launch, the code and the source files of each action, up to the first at which the reader crashes."""
    read_end, write_end = os.pipe()
    if child := os.fork():
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))
        os.waitpid(child, 0)
        return
    try:
        with os.fdopen(write_end, "w") as lines:
            for action in actions:
                codes: dict[str, Any] = {}
                launch = _launch(action, codes)
                lines.write(json.dumps((launch, codes, dict(_files(action))), allow_nan=False) + "\n")
                lines.flush()
    finally:
        os._exit(0)


def _launch(action: Any, codes: dict[str, Any] | None) -> dict[str, Any]:
    """Return one launch: kernel, finite values by metric with units, the texts of the NVTX ranges around it by domain, its code,
    its counters by instruction, and what the rules found. The code is added to `codes`; None leaves the last three out.
    """
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
        **({} if codes is None else _details(action, present, codes)),
    }


def _details(action: Any, present: frozenset[str], codes: dict[str, Any]) -> dict[str, Any]:
    """The code, the counters by instruction and the findings of the rules. What NVIDIA's reader cannot give is left out, and named in
    `lacking`.
    """
    details: dict[str, Any] = {"code": None, "by_instruction": {}, "rules": [], "lacking": []}
    try:
        first = _first_address(action, present)
        details["code"] = _code(action, first, codes)
        details["by_instruction"] = _by_instruction(action, first, present)
    except Exception as error:
        details["lacking"].append(f"its machine code ({type(error).__name__}: {_cut(error)})")
    try:
        details["rules"] = [_rule(rule) for rule in action.rule_results_as_dicts()[:_MOST_RULES]]
    except Exception as error:
        details["lacking"].append(f"the findings of the rules ({type(error).__name__}: {_cut(error)})")
    return details


def _code(action: Any, first: int | None, codes: dict[str, Any]) -> str | None:
    """Add the code of the kernel to `codes`: its SASS, one instruction a line, and the file and line of each. Return its key; None
    where the report does not hold the code.
    """
    if first is None:
        return None
    texts = list(_texts(action, first))
    sources = [action.source_info(first + _INSTRUCTION_BYTES * place) for place in range(len(texts))]
    places = [
        [_cut(source.file_name()).replace("\\", "/").split("/")[-1], source.line()] if source else None for source in sources
    ]
    code = {"sass": texts, "places": places}
    key = hashlib.sha256(json.dumps(code).encode()).hexdigest()[:16]
    codes[key] = code
    return key


def _first_address(action: Any, present: frozenset[str]) -> int | None:
    """The address of the kernel's first instruction; None where the report has no counters by instruction."""
    for name in (EXECUTED, SAMPLED):
        if name in present and (addresses := _instances(action.metric_by_name(name))):
            first = min(addresses)
            while first >= _INSTRUCTION_BYTES and action.sass_by_pc(first - _INSTRUCTION_BYTES):
                first -= _INSTRUCTION_BYTES
            return first
    return None


def _texts(action: Any, first: int) -> Iterator[str]:
    """The instructions from an address on. A branch names its target as an offset, as `nvdisasm` does."""
    for place in range(_MOST_INSTRUCTIONS):
        text = " ".join((action.sass_by_pc(first + _INSTRUCTION_BYTES * place) or "").split())
        if not text:
            return
        yield _ADDRESS.sub(lambda match: f"{max(0, int(match[1], 16) - first):#x}", _cut(text))


def _instances(metric: Any) -> dict[int, int]:
    """Readings above 0 by address."""
    addresses = metric.correlation_ids()
    values = {addresses.as_uint64(index): metric.as_uint64(index) for index in range(metric.num_instances())}
    return {address: value for address, value in values.items() if value}


def _by_instruction(action: Any, first: int | None, present: frozenset[str]) -> dict[str, dict[int, int]]:
    """Readings above 0 by metric and place of the instruction."""
    if first is None:
        return {}
    samples = {name for name in present if name.startswith(SAMPLED_IN) and not name.endswith("_not_issued")}
    names = [name for name in present if name in BY_INSTRUCTION or name in samples]
    readings = {name: _instances(action.metric_by_name(name)) for name in sorted(names)}
    return {
        name: {(address - first) // _INSTRUCTION_BYTES: value for address, value in by_address.items() if address >= first}
        for name, by_address in readings.items()
        if by_address
    }


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    message, speedup = rule.get("rule_message") or {}, rule.get("speedup_estimation") or {}
    percent = speedup.get("speedup")
    return {
        "section": _cut(rule.get("section_identifier")),
        "rule": _cut(rule.get("rule_identifier")),
        "severity": _SEVERITIES.get(message.get("type", 0), "none"),
        "title": _cut(message.get("title")),
        "text": _MARKUP.sub(r"\1", _cut(message.get("message"))),
        "speedup_percent": percent if isinstance(percent, int | float) and abs(percent) < float("inf") else None,
        "speedup_of": {1: "local", 2: "global"}.get(speedup.get("type", 0), ""),
    }


def _files(action: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of the source files that the report holds."""
    for name, text in list(action.source_files().items())[:_MOST_FILES]:
        if text:
            yield _cut(name).replace("\\", "/").split("/")[-1], str(text)[:_FILE_LIMIT]


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
