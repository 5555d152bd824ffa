"""The names that a workload is written with, for files of users and for the workloads of the project: those of `declare/`."""

from warpladder.workloads.declare.workloads import *  # noqa: F403
