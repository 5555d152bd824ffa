"""Home of a recording of host variants."""

from pathlib import Path

import pandas as pd
import pytest

from tests.commands.test_gate import changed
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


@pytest.mark.slow
def test_what_became_wrong_since_the_last_run_is_told_and_what_was_left_out_is_not(open_app: Open, tmp_path: Path) -> None:
    made_runs.write_host_run(tmp_path, "a", rounds=8)
    later = made_runs.write_host_run(tmp_path, "b", rounds=8, workloads=("conv2d",))
    changed(later, "run", lambda rows: rows.assign(started_at=rows["started_at"] + pd.Timedelta(days=1)))
    changed(
        later, "results", lambda rows: rows.assign(status=rows["status"].mask(rows["variant"] == "numba_parallel", "timeout"))
    )
    changed(later, "samples", lambda rows: rows[rows["variant"] != "numba_parallel"])
    assert "Since a, 2026-01-02:** 5 wrong or lost, 9 tied" in words(open_app(tmp_path, "home", run="b"))
