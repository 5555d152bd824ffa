"""A search for peers that are stronger than those of a workload. Each module here declares a workload's peers and further routes."""
