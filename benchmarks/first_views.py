"""Seconds of the processor until a section is drawn for the first time, over the shipped runs: `python -m benchmarks.first_views [SECTION ...]`.

Each section has a process of its own, in which Home was drawn before, as in a server whose first page was Home. The sections that no shipped
run has anything for show an import of the tests: a trace or a job. The seconds of the clock and of a browser's drawing are not counted.
"""

import gc
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from streamlit.testing.v1 import AppTest

from benchmarks.questions import import_fixture
from tests.dashboard.pages import lead
from warpladder.dashboard import ahead, server
from warpladder.dashboard.core.run_index import Need
from warpladder.dashboard.ui import runs
from warpladder.dashboard.views import VIEWS
from warpladder.data import store

_ONE = "--one"
#: What sections need that no shipped run has -> the import that they show.
_OF_IMPORT: Final = {Need.OPERATORS: "trace", Need.JOB: "job"}
_SECTIONS: Final = {section.name: section for view in VIEWS for section in view.sections}


def main(sections: list[str]) -> None:
    """Print a line for each section, and the seconds before the first page."""
    for name in sections or _SECTIONS:
        subprocess.run([sys.executable, "-m", "benchmarks.first_views", _ONE, name], check=True)


def measure(name: str) -> None:
    """Draw Home, then the section twice, and print what each took."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        store.LOCAL = Path(folder)  # type: ignore[misc]
        begin = time.process_time()
        ahead.compute()
        ahead.draw()
        gc.collect()
        gc.freeze()  # as the server does: else Streamlit looks through all of it after each page
        before = time.process_time() - begin
        home = AppTest.from_file(str(server.APP), default_timeout=600)
        home_s = [_drawn(home) for _ in range(2)]
        app = AppTest.from_file(str(server.APP), default_timeout=600)
        lead(app, name)
        if label := _OF_IMPORT.get(_SECTIONS[name].needs):
            import_fixture(Path(folder) / "imports", label)
            os.environ[runs.DATA_DIR_VARIABLE] = f"{folder}/imports"
            app.query_params["run"] = store.find_run(label, [Path(folder) / "imports"]).run_id
        first, again = home_s if name == VIEWS[0].name else (_drawn(app), _drawn(app))
    print(f"{name:14} first {first:5.2f} s, again {again:5.2f} s; ahead of all pages {before:5.2f} s", flush=True)


def _drawn(app: AppTest) -> float:
    begin = time.process_time()
    app.run()
    return time.process_time() - begin


if __name__ == "__main__":
    _, *arguments = sys.argv
    if arguments[:1] == [_ONE]:
        measure(arguments[1])
    else:
        main(arguments)
