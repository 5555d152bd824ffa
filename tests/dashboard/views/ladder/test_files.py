"""The files of a rung that includes others, one at a time."""

import shutil
from pathlib import Path

import pytest

from tests.dashboard.pages import source
from tests.dashboard.test_app import Open, open_app
from warpladder.data import store
from warpladder.installation import ROOT

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_the_own_file_of_a_rung_comes_first_and_each_included_one_can_be_chosen(open_app: Open, tmp_path: Path) -> None:
    run = store.find_run("H200 mlp_gemm", [ROOT / "data" / "recorded"]).run_id
    shutil.copytree(ROOT / "data" / "recorded" / run, tmp_path / run)
    app = open_app(tmp_path, "ladder", run=run, workload="mlp_gemm", variant="v20_equal_shares")
    files = app.selectbox(key="choose file")
    assert files.value == "v20_equal_shares.cu" and "turned_product.cuh" in files.options
    code = source(app)
    assert code.startswith('#include "v07_warp_tile.cu"'), "without its header, which stands below it"
    app = files.set_value("turned_product.cuh").run()
    code = source(app)
    assert code.startswith("// What both rungs with a turned B share") and "#line" not in code
    app = open_app(tmp_path, "ladder", run=run, workload="mlp_gemm", variant="v01_one_dimensional")
    assert not [box for box in app.selectbox if box.key == "choose file"]
