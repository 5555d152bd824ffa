"""How a workload is measured: one folder a concern, around the core that all collectors share."""
