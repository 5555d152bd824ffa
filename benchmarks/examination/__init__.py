"""An examination of the judge and of the gate: variants that cheat, honest programs, and changes that a gate must see.

The programs are written from the documentation, as someone would who does not know the checks. `python -m benchmarks.examination` records
them and counts what comes out.
"""
