"""An examination of the judge by right programs, which it must accept.

The programs are texts, written from README.md and docs/ without a look at the checker; `python -m benchmarks.examination` records them and
counts what comes out. `tests/specimens/` has variants that deceive a benchmark, which every test run records.

A right program: axes, options of the reference, and the text that defines `inputs`, `first` (also the reference unless `reference` is defined),
`second` and maybe `third`, each of which must be accepted.
"""
