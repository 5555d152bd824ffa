"""The pages of the menu and their sections: what opens first for which run, and that everything that names a section finds it."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_code, made_runs
from warpladder.dashboard import export
from warpladder.dashboard.core.run_index import Facts
from warpladder.dashboard.views import EXPORTED, VIEWS

__all__ = ["open_app"]
ROOT = Path(__file__).resolve().parents[3]
PAGES = {view.name: view for view in VIEWS}
TITLES = {(view.title, section.title) for view in VIEWS for section in view.sections} | {(view.title, "") for view in VIEWS}


@pytest.mark.parametrize(
    ("page", "tables", "first"),
    [
        ("why", {"samples", "machine_code"}, "why"),
        ("why", {"counters", "machine_code"}, "why"),
        ("why", {"experiments", "machine_code"}, "experiments"),
        ("why", {"machine_code"}, "machine_code"),
        ("time", {"operations", "kernels", "memory_ops", "ranges"}, "operators"),
        ("time", {"kernels", "memory_ops", "ranges"}, "calls"),
        ("time", {"api_calls", "memory_ops"}, "calls"),
        ("time", {"memory_ops", "ranges"}, "transfers"),
        ("ranks", {"ranks"}, "ranks"),
    ],
)
def test_a_page_opens_with_the_first_section_that_the_run_has(page: str, tables: set[str], first: str) -> None:
    facts = Facts("", datetime(2026, 1, 1, tzinfo=UTC), "", imported=True, gpus=1, tables=frozenset(tables), workloads={})
    assert PAGES[page].applying(facts.has)[0].name == first


def test_an_export_has_its_topics_and_their_charts_in_one_order_wherever_the_menu_has_them() -> None:
    topics = "comparisons roofline gpus details experiments counters occupancy trace job"
    assert " ".join(export.TOPICS) == topics
    assert [section.name for section in EXPORTED["trace"]] == ["operators", "calls", "transfers"]
    every = [section for sections in EXPORTED.values() for section in sections]
    assert len(every) == len(set(every))


def test_what_names_a_page_of_the_dashboard_or_a_section_names_one_that_is_there() -> None:
    rooms = ("dashboard", "collectors", "warpladder/commands", "benchmarks")
    sources = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    sources += [*(ROOT / "data").glob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [
        (match["page"], match["section"] or "")
        for file in sources
        for match in re.finditer(
            r"\bpage (?P<page>[A-Z]\w*)(?:, section (?P<section>[A-Z]\w*(?: [a-z]\w*)*))?", file.read_text(encoding="utf-8")
        )
    ]
    assert len(found) > 10
    assert set(found) <= TITLES


def _to_do(words: str) -> None:
    from warpladder.dashboard.views.home import page

    page._told("", words)


@pytest.mark.parametrize(
    ("words", "page", "query", "label"),
    [
        ("see it: warpladder app, page Ranks", "ranks", "", "Ranks →"),
        ("see it: warpladder app, page Ranks, section Critical path", "ranks", "section=critical_path", "Critical path →"),
        ("see it: warpladder app, page Time, section Transfers; copy less", "time", "section=transfers", "Transfers →"),
    ],
)
def test_what_to_do_first_leads_to_the_section_that_it_names(words: str, page: str, query: str, label: str) -> None:
    app = AppTest.from_function(_to_do, args=(words,)).run()
    assert not app.exception
    (link,) = (each.proto for each in app.main.get("page_link"))
    assert (link.page, link.query_string, link.label) == (page, query, label)


@pytest.mark.slow
@pytest.mark.parametrize(("section", "query"), [("machine_code", "section=machine_code&run=code"), ("", "run=code")])
def test_a_link_to_what_is_gone_leads_to_the_section_without_it(
    open_app: Open, tmp_path: Path, section: str, query: str
) -> None:
    made_code.write(tmp_path)
    app = open_app(tmp_path, "why", run="code", workload="gone", **({"section": section} if section else {}))
    assert "The link asks for workload gone, which is not here." in words(app)
    (link,) = (each.proto for each in app.main.get("page_link"))
    assert (link.page, link.query_string) == ("why", query)


@pytest.mark.slow
def test_a_run_with_code_alone_opens_why_with_it_and_offers_no_workload_without_code(open_app: Open, tmp_path: Path) -> None:
    code = made_code.write(tmp_path)
    (code / "samples.parquet").unlink()
    (code / "instruction_counters.parquet").unlink()
    made_runs.write(tmp_path, "times", rounds=8, workloads=("tensor_transpose",))
    app = open_app(tmp_path, "why", run="code")
    assert app.segmented_control(key="choose section").value == "machine_code" and "no spills" in words(app)
    assert app.selectbox(key="choose workload").options == ["conv2d"]
