"""Names that would be links, pictures, icons or formulas, had they the choice: every page shows them as they are."""

from collections.abc import Iterator

import pytest

from tests import hostile_run
from tests.browser.pages import open_page, serving, sync_api
from tests.synthetic import made_code, made_runs, made_sweeps, made_traces

pytestmark = pytest.mark.slow

PAGES = {
    "gpu": ("", "ladder", "roofline", "details", "trust"),
    "trace": ("", "transfers"),
    "counted": ("counters",),
    "code": ("machine_code", "machine_code?machine=mix", "machine_code?machine=difference"),
    "scaling": ("gpus",),
}
WORD_JOINER = "\u2060"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    made, runs = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("runs")
    made_runs.write(made, "gpu", rounds=8, workloads=("conv2d",))
    made_traces.write(made)
    made_sweeps.write_counted(made)
    made_sweeps.write_scaling(made)
    made_code.write(made)
    for run in made.iterdir():
        # A report's own pages know its workload and cases by their names.
        hostile_run.write(run, runs / run.name, keep={"scaling": ("workload", "case")}.get(run.name, ()))
    with serving(tmp_path_factory.mktemp("log") / "log", "--data-dir", str(runs)) as url:
        yield url


#: What of a page leads out of it, and the texts that hold a name.
FOUND = """() => ({
    out: [...document.querySelectorAll('a, img, iframe, object, script')]
        .filter(made => (made.href?.baseVal ?? made.href ?? made.src ?? '').match(/evil|mailto/) && made.origin !== location.origin)
        .map(made => made.outerHTML),
    texts: [...document.querySelectorAll('[data-testid="stMarkdownContainer"]')].map(text => text.textContent)
        .filter(text => text.includes('evil.example')),
})"""


@pytest.mark.thorough
@pytest.mark.parametrize("run", PAGES)
def test_a_name_is_text_on_every_page(page: "sync_api.Page", address: str, run: str) -> None:
    for path in PAGES[run]:
        open_page(page, f"{address}/{path}{'&' if '?' in path else '?'}run={run}")
        found = page.evaluate(FOUND)
        assert found["out"] == [], path
        for text in found["texts"]:
            shown = text.replace(WORD_JOINER, "")
            # A long title is cut with an ellipsis.
            assert shown.count(hostile_run.TAIL) == shown.count(hostile_run.TAIL[:24]) or "…" in shown, path
