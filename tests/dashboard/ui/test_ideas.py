"""The line of a rung's ideas on the page Ladder, and the pages as the dashboard shows them."""

import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import lead
from warpladder.dashboard.ui import ideas
from warpladder.data import store
from warpladder.installation import ROOT

RUN: Final = store.find_run("H200 conv2d", [store.RECORDED]).run_id

pytestmark = pytest.mark.slow


def ladder_of(variant: str, monkeypatch: pytest.MonkeyPatch, folder: Path, **query: str) -> AppTest:
    monkeypatch.setattr(store, "LOCAL", folder / "none")
    monkeypatch.setenv("WARPLADDER_DATA_DIR", str(folder))
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60)
    lead(app, "ladder")
    app.query_params.update({**query, "variant": variant})
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def titles(app: AppTest) -> list[str]:
    return [button.label for button in app.main.button if button.key and button.key.startswith("idea ")]


def words(app: AppTest) -> str:
    return " ".join(str(block.value) for block in app.markdown)


@pytest.mark.thorough
def test_the_ladder_names_the_ideas_of_a_rung_and_a_click_shows_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    query = {"run": RUN, "workload": "conv2d"}
    app = ladder_of("v10_stacked_warps", monkeypatch, tmp_path, **query)
    expected = [
        "Halo from neighbouring warps and lanes",
        "All loads first",
        "Sliding window in registers",
        "16 bytes an access",
    ]
    assert titles(app) == expected
    assert "A thread owns a few columns" not in words(app)
    app.button(key="idea sliding-window").click().run()
    assert not app.exception
    assert "A thread owns a few columns" in words(app) and "## By how much" in words(app)
    assert titles(ladder_of("v02_naive_global", monkeypatch, tmp_path, **query)) == []


def test_a_rung_of_the_user_s_own_has_no_ideas_even_with_the_names_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine = tmp_path / RUN
    shutil.copytree(store.RECORDED / RUN, mine)
    table = pq.read_table(mine / "variants.parquet")
    paths = pa.array([""] * len(table), table.schema.field("source_path").type)
    place = table.schema.get_field_index("source_path")
    pq.write_table(table.set_column(place, table.schema.field(place), paths), mine / "variants.parquet")
    monkeypatch.setattr(store, "RECORDED", tmp_path / "none")
    app = ladder_of("v10_stacked_warps", monkeypatch, tmp_path, run=RUN, workload="conv2d")
    assert app.main.selectbox(key="choose variant").value == "v10_stacked_warps"
    assert titles(app) == []


@pytest.mark.parametrize("idea", [ideas.read(page) for page in sorted(ideas.PAGES.glob("*.md"))], ids=lambda idea: idea.name)
def test_the_package_has_every_page_and_links_lead_to_the_ladder_only(idea: ideas.Idea) -> None:
    text = ideas.text_of(idea)
    assert not text.startswith("# ") and "\n## When it pays\n" in text
    rungs = {f"(ladder?workload={name}&variant={variant})" for _, name, variant in idea.rungs}
    assert {f"({part.partition(')')[0]})" for part in text.split("](")[1:]} == rungs


def test_a_link_to_a_page_is_its_text_and_code_has_one_colour(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    kernel = "workloads/conv2d/kernels/v03_coalesced.cu"
    page.write_text(
        f"# Title\n\nA limit.\n\nSee [all\nloads](loads-first.md), [`v03`](../../{kernel}).\n\n```cpp\na[i] = (b);\n```\n"
    )
    shown = "See all\nloads, [`v03`](ladder?workload=conv2d&variant=v03_coalesced).\n\n```text\na[i] = (b);\n```\n"
    assert ideas.text_of(ideas.read(page)) == shown
