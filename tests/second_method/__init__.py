"""The totals of a trace of PyTorch's profiler by a second method: plain loops over the JSON, without the product's code."""

from tests.second_method.of_job import job
from tests.second_method.of_trace import averages, operators, sums, transfers
from tests.second_method.trace import Totals, read

__all__ = ["Totals", "averages", "job", "operators", "read", "sums", "transfers"]
