"""How a benchmark is declared: the classes of a workload, and benchmarks of plain functions."""
