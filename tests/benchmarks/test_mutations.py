"""The faults of `benchmarks.mutations` can be planted."""

from benchmarks.mutations import FAULTS, ROOT, files_with


def test_the_text_of_every_fault_stands_once() -> None:
    found = {fault.what: [file.read_text().count(fault.right) for file in files_with(fault, ROOT)] for fault in FAULTS}
    assert {what: counts for what, counts in found.items() if counts != [1]} == {}
    assert all(fault.right != fault.wrong for fault in FAULTS)
