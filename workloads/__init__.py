"""The workloads. Each folder with a `workload.py` is a workload; `api` has the words that it is written in."""
