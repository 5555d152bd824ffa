"""Converts the declarations of workloads to rows of tables `cases` and `variants`."""

import json
from collections.abc import Mapping
from typing import Any

from warpladder.workloads.api import LARGEST, Buffer, Case, CudaVariant, LibraryVariant, Variant, Workload, WorkloadError


def case_row(workload: Workload, case: Case) -> dict[str, Any]:
    """A row of `cases`. The bytes of a case whose arrays are not made yet are 0.

    Raises:
        WorkloadError: `buffers` of the workload fails, or declares more bytes than a run can hold.
    """
    where = f"{workload.name}/{case.name}"
    try:
        inputs, outputs = workload.buffers(case) if case.min_bytes is not None else ({}, {})
        copied = copied_bytes(case, inputs, outputs)
        unknown = set(case.resident) - set(inputs) if inputs else set()
    except Exception as error:
        text = " ".join(str(error).split())
        raise WorkloadError(f"{where}: `buffers` fails ({type(error).__name__}: {text}); correct it") from error
    if unknown:
        raise WorkloadError(
            f"{where}: {', '.join(sorted(unknown))} is resident, but no input; name some of {', '.join(inputs)}"
        )
    if max(copied) > LARGEST:
        raise WorkloadError(
            f"{where}: its buffers take {max(copied):.3g} bytes, more than can be recorded; choose a smaller case"
        )
    return {
        "workload": workload.name,
        "case": case.name,
        "size_rank": case.size_rank,
        "params": json.dumps(dict(case.params)),
        "flops": case.flops,
        "min_bytes": case.min_bytes or 0,
        "h2d_bytes": copied[0],
        "d2h_bytes": copied[1],
    }


def copied_bytes(case: Case, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> tuple[int, int]:
    """Bytes that one operation from end to end copies to the device and back. Resident inputs are not copied."""
    to_device = sum(buffer.nbytes for name, buffer in inputs.items() if name not in case.resident)
    return to_device, sum(buffer.nbytes for buffer in outputs.values())


def variant_row(workload: Workload, variant: Variant) -> dict[str, Any]:
    """A row of `variants`. Registers, shared bytes and spill bytes are None; they are known after compilation.

    Raises:
        WorkloadError: its source cannot be read.
    """
    try:
        source = {
            **variant.header,
            "source_path": variant.source_path,
            "source_text": variant.source_text,
            "source_sha256": variant.source_sha256,
        }
    except (OSError, TypeError, UnicodeError) as error:
        raise WorkloadError(
            f"{workload.name}/{variant.name}: its source cannot be read ({error}); "
            "give a file in UTF-8, or a function that is written in one"
        ) from error
    return {
        "workload": workload.name,
        "variant": variant.name,
        "rung": variant.rung,
        "kind": variant.kind,
        "role": variant.role,
        "precision": variant.precision,
        "title": variant.title,
        **source,
        "registers": None,
        "shared_bytes": None,
        "spill_bytes": None,
        "min_compute_capability": ".".join(map(str, variant.min_compute_capability))
        if isinstance(variant, CudaVariant)
        else "",
        "transfer": variant.end_to_end.transfer if isinstance(variant, CudaVariant) else _transfer_around(variant),
    }


def _transfer_around(variant: Variant) -> str | None:
    """The kind of host memory that the bench copies from and to; None if the variant takes its inputs on the host."""
    return "pageable" if isinstance(variant, LibraryVariant) and variant.device_only else None
