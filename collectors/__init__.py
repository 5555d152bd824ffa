"""Measures workloads. Each folder has one concern; all collectors share `core`."""
