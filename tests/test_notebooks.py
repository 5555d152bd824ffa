"""Notebooks in a real kernel: the example runs, the progress is replaced in place, and an interrupt keeps what was measured."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warpladder.data import store
from warpladder.data.names import Source

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
manager = pytest.importorskip("jupyter_client.manager")

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
PLOTLY, HTML = "application/vnd.plotly.v1+json", "text/html"
DECLARED = """
import numpy as np, time, warpladder

bench = warpladder.Benchmark("sums", n=[10, 1000])

@bench.inputs
def inputs(n, rng):
    return rng.random((n, 10), np.float32)

@bench.reference
def reference(x):
    return x.sum(axis=1)

@bench.variant
def total(x):
    print("<b>not markup</b>")
    return x.sum(axis=1)

@bench.variant
def slow(x):
    time.sleep(0.01)
    return x.sum(axis=1)

OPTIONS = {"data_dir": "runs", "seconds": 0.05, "max_rounds": 6, "collector": "host_clock"}
"""
pytestmark = [pytest.mark.xdist_group("kernel"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel imports this checkout."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))


@pytest.mark.thorough
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_shows_its_tables_and_figures(example: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(example, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs before you commit"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {cell.source.strip().splitlines()[-1]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    assert not [output for outputs in shown.values() for output in outputs if output.output_type in ("error", "stream")]
    data = {source: [output.data for output in outputs] for source, outputs in shown.items()}
    (table,) = data["run.table()"]
    assert "in_place" in table[HTML] and "wrong_result: relative L2 error" in table[HTML]
    (answer,) = data["run"]
    assert "first" in answer[HTML] and "6 ok, 3 wrong_result" in answer[HTML]
    (ladder,) = data["run.plot.ladder()"]
    assert ladder[PLOTLY]["layout"]["title"]["text"].startswith("softmax, rows=256,n=1024: ")
    # The HTML is what nbconvert keeps; it makes no request.
    assert "Plotly.newPlot" in ladder[HTML] and not re.search(r"<script[^>]*src=", ladder[HTML])
    assert len(data['run.plot.sizes(metric="percent_of_floor")'][0][HTML]) < 200_000 < len(ladder[HTML]), "plotly.js comes once"
    compared, forest = data["run.compare(after)"]
    assert "sources that differ: softmax in_place" in compared[HTML] and "tied" in forest[PLOTLY]["layout"]["title"]["text"]
    for source in ('run.plot.sizes(metric="percent_of_floor")', 'warpladder.open_run("H200 conv2d").plot.ladder()'):
        assert len(data[source][0][PLOTLY]["data"]) >= 2
    assert [run.info["label"] for run in store.list_runs([tmp_path / "runs"])[0]] == ["second", "first"]


class Kernel:
    """A kernel, and what it has said."""

    def __init__(self, folder: Path) -> None:
        self.manager, self.client = manager.start_new_kernel(cwd=str(folder))
        self.said: list[Any] = []

    def run(self, code: str, meanwhile: Callable[[Any], None] = lambda message: None) -> list[Any]:
        """The messages of a cell. Raises AssertionError for an exception in it."""
        first = len(self.said)

        def take(message: Any) -> None:
            self.said.append(message)
            meanwhile(message)

        reply = self.client.execute_interactive(code, timeout=120, output_hook=take)
        assert reply["content"]["status"] == "ok", reply["content"]
        return self.said[first:]


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    started = Kernel(tmp_path)
    yield started
    started.client.stop_channels()
    started.manager.shutdown_kernel(now=True)


@pytest.mark.thorough
def test_the_progress_of_a_recording_is_one_output_that_is_replaced(kernel: Kernel) -> None:
    kernel.run(DECLARED)
    said = kernel.run("run = bench.record(**OPTIONS)")
    kinds = [message["msg_type"] for message in said if message["msg_type"] not in ("status", "execute_input")]
    assert kinds[0] == "display_data" and set(kinds[1:]) == {"update_display_data"}
    drawn = [message["content"]["data"][HTML] for message in said if "data" in message["content"]]
    assert "<progress" in drawn[0] and any("sums n=1000" in text for text in drawn)
    assert "4 ok" in drawn[-1] and "in this process, because sums was declared in this session" in drawn[-1]
    assert "&lt;b&gt;not markup&lt;/b&gt;" in drawn[-1] and "<b>not" not in drawn[-1]
    again = kernel.run("run = bench.record(**OPTIONS)\nprint(run.table()['status'].unique().tolist())")
    assert [message["content"]["text"] for message in again if message["msg_type"] == "stream"] == ["['ok']\n"]


@pytest.mark.thorough
def test_an_interrupted_cell_has_the_run_with_what_was_measured(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(DECLARED)
    begun: list[float] = []

    def interrupt(message: Any) -> None:
        if "sums n=1000 " in str(message["content"].get("data", {}).get(HTML, "")) + " " and not begun:
            begun.append(time.monotonic())
            kernel.manager.interrupt_kernel()

    code = 'run = bench.record(**{**OPTIONS, "max_rounds": 10**6, "seconds": 3}, variants="slow")\nprint(run.id)'
    said = kernel.run(code, interrupt)
    assert begun and time.monotonic() - begun[0] < 3
    (printed,) = (message["content"]["text"] for message in said if message["msg_type"] == "stream")
    run = store.open_run(tmp_path / "runs" / printed.strip())
    assert Source.INTERRUPTED in set(run.table("diagnostics")["source"])
    assert run.table("results").set_index("case")["status"].to_dict() == {"n=10": "ok", "n=1000": "skipped"}
    assert kernel.run("print(1)")[-2]["content"].get("text") == "1\n"


@pytest.mark.thorough
def test_a_figure_is_shown_where_nbformat_is_not_installed(kernel: Kernel) -> None:
    kernel.run("import sys; sys.modules['nbformat'] = None\nimport warpladder; run = warpladder.open_run('H200 conv2d')")
    said = kernel.run(
        "import importlib.util as u; find = u.find_spec; u.find_spec = lambda *n: n[0] != 'nbformat' and find(*n) or None\nrun.plot.ladder()"
    )
    assert [list(message["content"]["data"]) for message in said if message["msg_type"] == "display_data"] == [[PLOTLY, HTML]]


@pytest.mark.thorough
def test_print_writes_text_and_nothing_beside_it(kernel: Kernel) -> None:
    kernel.run("import warpladder; run = warpladder.open_run('H200 by cuda_events')")
    said = [
        message for message in kernel.run("print(run)\nprint(run.compare('H200 by cupti'))") if message["msg_type"] != "status"
    ]
    assert {message["msg_type"] for message in said} == {"execute_input", "stream"}
    text = "".join(message["content"].get("text", "") for message in said)
    assert "workload" in text and "over the best peer" in text and "A: H200 by cuda_events" in text


def test_a_changed_cell_replaces_its_variant_and_new_inputs_are_taken(kernel: Kernel) -> None:
    kernel.run(DECLARED)
    kernel.run("bench.workload")
    said = kernel.run(
        "@bench.variant\ndef slow(x):\n    return x.sum(axis=1) * 2\n\n@bench.inputs\ndef inputs(n, rng):\n    return rng.random((n, 20), np.float32)\n\n"
        "run = bench.record(**OPTIONS)\nprint(run.table().groupby('variant')['status'].first().to_dict(), run.samples().shape[0] > 0)\n"
        "print(run._run.table('cases')['h2d_bytes'].tolist())"
    )
    text = "".join(message["content"]["text"] for message in said if message["msg_type"] == "stream")
    assert "{'slow': 'wrong_result', 'total': 'ok'} True" in text and "[800, 80000]" in text
