"""An examination of the judge and of the gate: cheats, right programs, and changes that a gate must see.

The programs are texts, written from README.md and docs/ without a look at the checker; `python -m benchmarks.examination` records them and
counts what comes out. `tests/specimens/` has those that every test run records.

A cheat: its problem (`problems.py`), why it is out of reach, if it is, and the text of `cheat`, which must not be faster than `honest`. A right
program: axes, options of the reference, and the text that defines `inputs`, `first` (also the reference unless `reference` is defined), `second` and
maybe `third`, each of which must be accepted.
"""
