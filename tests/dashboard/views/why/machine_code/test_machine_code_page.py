"""The section Machine code through Streamlit's own test driver."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_app import PAGES, Open, open_app, words
from tests.synthetic import made_code, made_runs

__all__ = ["open_app"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("code")
    made_code.write(made)
    made_code.write(made, "uncounted", counted=False)
    made_runs.write(made, "times alone", rounds=8)
    return made


def sent(app: AppTest) -> dict[str, Any]:
    """What the page sends to its component in the browser."""
    (component,) = app.main.get("bidi_component")
    data: dict[str, Any] = json.loads(component.proto.json)
    return data


@pytest.mark.thorough
def test_the_source_stands_beside_the_code_with_its_counters(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", variant="v01_naive", config="block=8")
    data = sent(app)
    assert data["source"] == made_code.SOURCE.splitlines()
    assert list(zip(data["lines"], data["texts"], strict=True)) == list(made_code.NAIVE)
    assert data["loops"] == [[3, 11, 0, 0], [4, 9, 1, 1]], "the inner one is hot"
    assert [heat["name"] for heat in data["heats"]] == ["executed", "samples", "sectors"]
    assert "sm_90 NVRTC 13.0 · 18 instructions · 32 registers a thread · 1.54 kB shared memory a block" in words(app)


def test_ptx_takes_the_place_of_sass(open_app: Open, folder: Path) -> None:
    data = sent(open_app(folder, "machine_code", run="code", isa="PTX"))
    assert data["texts"] == [".visible .entry conv2d() {", "  ret;", "}"]
    assert (data["lines"], data["loops"], data["heats"]) == ([], [], [])


def test_without_counters_the_command_that_counts_is_told(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="uncounted")
    assert "This launch has no counters by instruction." in words(app)
    assert "warpladder record conv2d --counters" in words(app)


def test_the_mix_and_the_loops_are_tables(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", machine="mix", variant="v01_naive", config="block=8")
    assert "The hot loop of 6 instructions (lines 5 to 6) is 33 % floating-point arithmetic" in words(app)
    assert [len(frame.value) for frame in app.main.dataframe[:2]] == [14, 2]


def test_a_difference_is_of_the_variant_before_at_first(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", machine="difference", variant="v03_register_tile")
    assert app.selectbox(key="choose a").value == "v02_shared"
    assert "The machine code is the same, apart from register numbers and addresses." in words(app)
    app.selectbox(key="choose a").select("v01_naive").run()
    assert "14 instructions equal, 1 changed, 3 only in A, 1 only in B" in words(app)
    assert app.query_params["a"] in ("v01_naive", ["v01_naive"])


def test_a_kernel_can_be_compared_with_the_same_one_of_another_run(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", machine="difference", variant="v01_naive", code_of="uncounted")
    assert app.selectbox(key="choose a").value == "v01_naive"
    assert "The machine code is the same" in words(app)


def test_each_launch_can_be_chosen(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", variant="v02_shared")
    assert app.selectbox(key="choose launch").value == "2", "it is the longer one"
    app.selectbox(key="choose launch").select("1").run()
    assert "zero · " in words(app)


def test_a_library_without_code_has_its_kernels_and_what_records_them(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "machine_code", run="code", variant="cudnn")
    assert "The machine code of cudnn is not known. It launches cudnn::kernel<float>." in words(app)
    assert [block.value for block in app.main.code] == ["warpladder record conv2d --counters"]
    app = open_app(folder, "machine_code", run="code", machine="difference", variant="v01_naive", a="cudnn")
    assert "The code of cudnn is not known." in words(app)


def test_a_run_without_code_leads_to_one_that_has_some(open_app: Open, folder: Path, tmp_path: Path) -> None:
    app = open_app(folder, "machine_code", run="times alone")
    assert "This run has no machine code." in words(app)
    links = [link.proto.query_string for link in app.main.get("page_link") if link.proto.page == "why"]
    assert "section=machine_code&run=code" in links
    made_runs.write(tmp_path, "alone", rounds=8, workloads=("conv2d",))
    app = open_app(tmp_path, "machine_code", run="alone")
    assert [block.value for block in app.main.code] == ["warpladder record conv2d"]
    assert "nvidia-cuda-nvdisasm" in words(app)


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_a_run_with_code(open_app: Open, folder: Path, page: str) -> None:
    open_app(folder, page, run="code")  # it fails on an exception
