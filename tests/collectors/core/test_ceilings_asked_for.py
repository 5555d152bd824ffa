"""Which recordings measure memory by size, which takes seconds."""

import pytest

from warpladder.collectors.core.plan import Request, make_plan


@pytest.mark.parametrize(
    ("request_", "by_size"),
    [
        (Request(names=["conv2d"], case_set="full"), True),
        (Request(names=["conv2d"], case_set="quick"), False),
        (Request(names=["conv2d"], case_set="report"), False),
        (Request(names=["conv2d"], case_set="full", cases=["n=512"]), True),
        (Request(names=["conv2d"], case_set="quick", cases=["n=512"]), False),
    ],
    ids=["full", "quick", "report", "a case of the full set", "a case"],
)
def test_memory_is_measured_by_size_where_the_set_of_cases_is_full(request_: Request, by_size: bool) -> None:
    assert make_plan(request_).limits.ceilings_by_size is by_size
