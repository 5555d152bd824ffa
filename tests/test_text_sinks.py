"""Names that a terminal, XML, Markdown or a spreadsheet would carry out: every text that leaves the program shows them as text."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tests import hostile_run
from tests.synthetic import made_runs
from warpladder import screen
from warpladder.__main__ import command
from warpladder.data import store

pytestmark = pytest.mark.slow

#: Clears the screen, names a window, ends the line, turns its direction, is no XML, is a picture, closes a fence.
NASTY = ' \x1b[2J\x1b]0;owned\x07\r\nfake line\u202e\x00\ufffe<img src="http://evil.example/x">](http://evil.example) | ``` ~~~'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, runs = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hostile_run, "TAIL", NASTY)
        for name in ("a", "b"):
            hostile_run.write(made_runs.write(made, name, rounds=8, workloads=("conv2d",), label=f"label {name}"), runs / name)
    return runs


def out(folder: Path, *arguments: str) -> str:
    """What a command prints on stdout."""
    return run(folder, *arguments).stdout


def run(folder: Path, *arguments: str) -> Result:
    done = CliRunner().invoke(command(), [*arguments, "--data-dir", str(folder)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["summary", "a"],
        ["summary", "a", "--all"],
        ["summary", "a", "--format", "markdown"],
        ["summary", "a", "--format", "csv"],
        ["summary", "a", "--format", "json"],
        ["compare", "a", "b"],
        ["compare", "a", "b", "--format", "markdown"],
        ["compare", "a", "b", "--format", "junit"],
        ["compare", "a", "b", "--format", "json"],
        ["compare", "a", "absent\x1b[2J\u202e"],
        ["export", "a", "--topic", "\x1b[2J", "--out", "x"],
    ],
    ids=" ".join,
)
def test_no_output_has_a_character_that_is_carried_out(folder: Path, arguments: list[str]) -> None:
    done = run(folder, *arguments)
    said = done.stdout + done.stderr
    assert said
    assert [line for line in said.split("\n") if not line.isprintable()] == []
    if arguments[-1] != "csv":  # whose cells may have lines
        assert not [line for line in said.split("\n") if line.startswith("fake line")]


def test_a_report_for_a_build_is_xml(folder: Path) -> None:
    suite = ElementTree.fromstring(out(folder, "compare", "a", "b", "--format", "junit"))
    assert suite.findall("testcase")
    assert r"\x1b[2J" in str(suite.findall("testcase")[0].get("name"))


@pytest.mark.parametrize("arguments", [["summary", "a"], ["compare", "a", "b"]])
def test_no_name_is_markup_of_markdown(folder: Path, arguments: list[str]) -> None:
    said = out(folder, *arguments, "--format", "markdown")
    prose, _, commands = said.partition("sh\n")
    assert "<img" not in prose.replace(r"\<img", "")
    assert "](" not in prose.replace(r"\](", "")
    if commands:
        fence = prose.rsplit("\n", 1)[-1]
        assert [line for line in commands.splitlines() if line.startswith("```")] == [fence], "a command does not end the block"


def test_a_table_for_a_spreadsheet_is_read_back(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(out(folder, "summary", "a", "--format", "csv"))))
    assert all("\nfake line" in row["workload"] for row in rows)


def test_a_line_for_the_terminal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen.say(f"report{NASTY}.sqlite: damaged")
    screen.print_id(f"run{NASTY}")
    said = capsys.readouterr()
    assert said.err.count("\n") == said.out.count("\n") == 1
    assert said.err[:-1].isprintable() and said.out[:-1].isprintable()


def test_the_name_of_a_damaged_run_is_text(tmp_path: Path) -> None:
    (tmp_path / f"bad{NASTY}".replace("/", "").replace("\0", "")).mkdir()
    said = run(tmp_path, "runs").stderr
    assert "cannot be opened" in said and r"\x1b[2J" in said
    assert all(line.isprintable() for line in said.split("\n"))
    assert len(store.list_runs([tmp_path])[1]) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("words", [["list"], ["summary"], ["compare", "one", "one"]])
def test_a_full_disk_is_one_line_and_no_success(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_runs.write(tmp_path, "one", label="one", rounds=6)
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    more = [] if words == ["list"] else ["--data-dir", str(tmp_path)]
    with open("/dev/full", "w") as full, pytest.raises(SystemExit) as ended:  # noqa: PTH123
        monkeypatch.setattr("sys.stdout", full)
        command()(args=[*words, *more], prog_name="warpladder")
    assert ended.value.code == 2
    assert (
        said.getvalue().splitlines()[-1] == "stdout cannot be written (No space left on device); make room, or print elsewhere"
    )
