"""Damages a run again and again and tries to use it, in a process that may hang or die: `python -m tests.open_damaged FOLDER FIRST DRAWN STEP`.

FOLDER has a run `good`. Of all damages one in STEP is made to a copy, `bad`, the FIRST of these and all after it, and the copy is listed and
opened beside `good`. Of those that open in spite of it, every DRAWN-th is drawn and reported too. Each damage gives two lines: its number as it begins, and then what was
wrong, which is nothing where all went well.
"""

import shutil
import sys
import traceback
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tests.damage import Damage, copy_of, every_damage
from warpladder.dashboard.core.run_data import load
from warpladder.dashboard.export import charts_of
from warpladder.dashboard.report import report
from warpladder.dashboard.text import summary
from warpladder.data import store


def main(arguments: Sequence[str]) -> None:
    """Make and try the damages."""
    folder, (first, drawn, step) = Path(arguments[0]), map(int, arguments[1:])
    opened = 0
    for number, damage in islice(enumerate(every_damage()), first * step, None, step):
        print(number, flush=True)
        wrong = ""
        shutil.rmtree(folder / "bad", ignore_errors=True)  # of a process that was killed
        bad = copy_of(folder / "good", "bad")
        try:
            damage.make(bad)
            run = found(folder, damage)
            opened += run is not None
            if run is not None and opened % drawn == 0:
                draw(run)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            wrong = f"{type(error).__name__}: {str(error)[:200]!r} ({Path(where.filename).name}:{where.lineno})"
        finally:
            shutil.rmtree(bad)
        print(wrong, flush=True)


def found(folder: Path, damage: Damage) -> store.Run | None:
    """The damaged run, listed and opened beside the good one; None where it is refused as it should be.

    Raises:
        AssertionError: it opens, or hides the good one, or its refusal does not say which run it is.
        Exception: a traceback that a user would have seen.
    """
    good, broken = store.list_runs([folder])
    assert {run.path.name for run in (*good, *broken)} == {"good", "bad"}
    assert folder / "good" in [run.path for run in good]
    assert store.find_run("good", [folder]).path == folder / "good"
    try:
        run = store.find_run("bad", [folder])
    except store.StoreError as refusal:
        assert str(refusal).startswith(str(folder / "bad")), refusal
        assert str(refusal).isprintable(), refusal
        return None
    assert not damage.refused, "it opens"
    return run


def draw(run: store.Run) -> None:
    """All that an export makes but images."""
    data = load(run)
    report(data, summary.figures(data, run.path.parent), list(charts_of(data)))


if __name__ == "__main__":
    main(sys.argv[1:])
