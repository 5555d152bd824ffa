"""A run can be damaged in a thousand ways; none may end in a traceback or a hang, or take another run down."""

import os
import queue
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import damage, open_damaged
from tests.dashboard.pages import choose_run, run_of
from tests.dashboard.test_app import PAGES, Open, open_app, words
from warpladder.dashboard.ui import runs
from warpladder.data import store

__all__ = ["open_app"]

ROOT = Path(__file__).resolve().parents[2]
#: No damage takes a tenth of this.
HANGS_S = 60
#: Of those that may open, one in so many is drawn.
DRAWN = 40
#: Of all damages, one in so many is tried, all of them with WARPLADDER_EVERY_DAMAGE=1.
STEP = 1 if os.environ.get("WARPLADDER_EVERY_DAMAGE") else 4

pytestmark = [pytest.mark.xdist_group("bad input"), pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("damaged")
    damage.write_whole(made, "good")
    return made


def outcomes(folder: Path, drawn: int = DRAWN) -> Iterator[tuple[str, str]]:
    """Each damage with what was wrong; a process that hangs or dies is replaced by one that goes on behind that damage."""
    names = [each.name for each in damage.every_damage()][::STEP]
    number = 0
    while number < len(names):
        command = [sys.executable, "-W", "ignore", "-m", "tests.open_damaged", str(folder), str(number), str(drawn), str(STEP)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            said = lines_of(process)
            while True:
                try:
                    begun = said.get(timeout=HANGS_S)
                    wrong = said.get(timeout=HANGS_S) if begun else ""
                except queue.Empty:
                    process.kill()
                    wrong = "hangs"
                if not wrong.endswith("\n"):
                    break
                yield names[number], wrong.strip()
                number += 1
        if number < len(names):
            yield names[number], wrong or "the process died"
            number += 1


def lines_of(process: "subprocess.Popen[str]") -> "queue.Queue[str]":
    """What a process prints, line by line, each as soon as it is there; an empty text at its end."""
    said: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            said.put(line)
        said.put("")

    threading.Thread(target=read, daemon=True).start()
    return said


@pytest.mark.thorough
def test_no_damage_ends_in_a_traceback_or_a_hang_or_takes_another_run_down(folder: Path) -> None:
    tried = list(outcomes(folder))
    assert len(tried) * STEP >= 1_000
    assert [f"{name}: {wrong}" for name, wrong in tried if wrong] == []


@pytest.mark.thorough
@pytest.mark.parametrize("turn", [0, 2])  # 1 is drawn by the pages, below
def test_a_run_of_odd_values_that_may_be_is_drawn(folder: Path, turn: int) -> None:
    bad = damage.copy_of(folder / "good", f"odd{turn}")
    damage.odd_everywhere(turn)(bad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_damaged.draw(store.open_run(bad))


#: Of each kind one: what a page is asked to show, and what it says instead. The last three cannot even be listed.
SAMPLE = {
    "ranges.parent_id: a circle of two": "column parent_id, row 1",
    "samples.duration_ns: zero": "column duration_ns, row 2",
    "variants.role: odd": "column role, row 2",
    "api_calls: no rows": "api_calls.parquet: has no rows",
    "kernels: zeros within": "kernels.parquet: not a readable parquet file",
    "cases: a column twice": "has column workload 2 times",
    "samples: a FIFO": "samples.parquet: is not a file but a FIFO; remove the folder bad6",
    "run.label: not UTF-8": "run.parquet: column label, row 1: is not text in UTF-8",
    "run.started_at: null": "run.parquet: column started_at, row 1: is null",
}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a good run, a bad one of each of `SAMPLE`, and one of odd values."""
    made = tmp_path_factory.mktemp("several")
    damage.write_whole(made, "good")
    named = {each.name: each for each in damage.every_damage()}
    for number, name in enumerate(SAMPLE):
        bad = damage.copy_of(made / "good", f"bad{number}")
        damage.renamed(bad)
        named[name].make(bad)
    odd = damage.copy_of(made / "good", "odd")
    damage.odd_everywhere(1)(odd)
    damage.renamed(odd)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES)
def test_every_page_works_beside_bad_runs_and_says_what_is_wrong_with_one(open_app: Open, several: Path, page: str) -> None:
    turn = PAGES.index(page)
    for number, said in enumerate(SAMPLE.values()):
        if page != "trust" and number % 6 != turn % 6:  # each damage on two pages or three, and all on the one that says why
            continue
        app = open_app(several, page, run=f"bad{number}")
        assert run_of(app) == f"bad{number}", "no other run takes its place"
        assert said in words(app), f"{page}: {list(SAMPLE)[number]}"
    app = open_app(several, page, run="good")
    assert run_of(app) == "good"
    if page == "trust":
        assert all(f"**bad{number}** cannot be opened. " in words(app) for number in range(len(SAMPLE)))
    else:
        assert "Cannot be opened: bad" in words(app), "the page names those that were found to be bad"
    assert not [each for each in app.main.error if "good" in str(each.value)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_draws_a_run_of_odd_values(open_app: Open, several: Path, page: str) -> None:
    app = open_app(several, page, run="odd")
    assert run_of(app) == "odd"


@pytest.mark.thorough
def test_a_page_asked_for_no_run_takes_the_first_that_opens(open_app: Open, tmp_path: Path) -> None:
    damage.write_whole(tmp_path, "good")
    named = {each.name: each for each in damage.every_damage()}
    for name in ("samples.duration_ns: zero", "variants.role: odd"):
        bad = damage.copy_of(tmp_path / "good", f"a {name}")
        damage.renamed(bad)
        named[name].make(bad)
    app = open_app(tmp_path, "trust")
    assert run_of(app) == "good"
    assert not app.main.exception
    reasons = [str(error.value).replace("\\", "") for error in app.main.error]
    assert len(reasons) == 2
    assert "duration_ns, row 2: is 0" in reasons[0] and "role, row 2: is 'king'" in reasons[1]
    assert all("remove the folder a " in reason for reason in reasons)


@pytest.mark.thorough
def test_a_bad_run_stays_where_it_is_chosen_and_goes_when_another_is(open_app: Open, several: Path) -> None:
    app = open_app(several, "sizes", run="bad1")
    assert run_of(app) == "bad1"
    app.run()
    assert run_of(app) == "bad1" and "column duration_ns, row 2" in words(app)
    choose_run(app, "good")
    assert not app.main.error and not app.exception
    app.run()
    assert "bad1" not in runs.listing(runs.data_dirs()).index


@pytest.mark.thorough
def test_runs_of_one_id_can_each_be_chosen(open_app: Open, tmp_path: Path) -> None:
    damage.write_whole(tmp_path, "good")
    for name in ("copy", "another"):
        damage.copy_of(tmp_path / "good", name)
    app = open_app(tmp_path, "sizes")
    names = {
        f"good@{tmp_path.name}",
        f"good@{tmp_path.name}/copy",
        f"good@{tmp_path.name}/another",
        f"good@{tmp_path.name}/good",
    }
    every = runs.listing(runs.data_dirs()).index
    assert len(every) == 3 and every.keys() <= {"good", *names}
    for name in every:
        choose_run(app, name)
        assert not app.exception and not app.main.error
        assert run_of(app) == name


@pytest.mark.thorough
def test_a_folder_whose_name_is_not_utf8_is_shown_like_any_other(open_app: Open, tmp_path: Path) -> None:
    damage.write_whole(tmp_path, "good")
    (tmp_path / "good").rename(tmp_path / os.fsdecode(b"caf\xe9"))
    (tmp_path / os.fsdecode(b"bad\xe9\n")).mkdir()
    app = open_app(tmp_path, "home")
    assert run_of(app) == "good"
    assert r"bad\xe9\n" in "".join(str(caption.value) for caption in app.main.caption).replace("\\\\", "\\")
