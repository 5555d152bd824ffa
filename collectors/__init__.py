"""How a workload is measured: one module a collector, around the shared core of verification, rounds and statistics."""
