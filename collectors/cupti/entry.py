"""The entry of the collector `cupti`."""

from typing import Final

from warpladder.collectors.core.entry import Entry, Package, late


def _check() -> str | None:
    from cupti import cupti

    try:
        cupti.get_timestamp()
    except Exception as error:  # the package's own types: the library is missing or has another version
        return f"does not run here ({' '.join(str(error).split())})"
    return None


ENTRY: Final = Entry(
    "cupti",
    (Package("cupti-python", "cupti", "cupti", "traces in process", _check),),
    traces=True,
    capture=late("warpladder.collectors.cupti.capture:CuptiCapture"),
)
