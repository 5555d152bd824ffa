"""Home of a recording of host variants."""

from pathlib import Path

import pytest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs

__all__ = ["open_app"]


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "leads_to"), [("conv2d", "Roofline →"), ("tensor_transpose", "Ladder →")])
def test_what_to_do_next_leads_to_a_roof_only_where_operations_are_counted(
    open_app: Open, tmp_path: Path, workload: str, leads_to: str
) -> None:
    made_runs.write_host_run(tmp_path, "host", rounds=8, workloads=(workload,))
    app = open_app(tmp_path, "home", run="host")
    assert f"{workload} reaches" in words(app)
    labels = [link.proto.label for link in app.main.get("page_link")]
    assert [label for label in labels if label in ("Roofline →", "Ladder →")] == [leads_to]
