"""`warpladder record FILE --watch`, used as one uses it: saves of every sort, and what the watch says of each."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.limits import no_hang
from warpladder.__main__ import command
from warpladder.collectors.core.plan import Request
from warpladder.collectors.core.signals import Stop
from warpladder.collectors.watch.files import files_now, python_files
from warpladder.commands.watch import _Watch
from warpladder.dashboard.compare.versions import own_version
from warpladder.dashboard.core.run_data import load
from warpladder.data import store
from warpladder.recording import Order

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
BENCH = """
import numpy as np
import warpladder
import helpers

bench = warpladder.Benchmark("double", n=[300_000])

@bench.inputs
def inputs(n, rng):
    return rng.random(n, np.float32)

@bench.reference
def reference(x):
    return 2 * x

@bench.variant(baseline=True)
def plain(x):
    return 2 * x

@bench.variant
def helped(x):
    return helpers.twice(x)
"""
HELPERS = """
def twice(x):
    return x + x
"""
SLOWER = HELPERS.replace("x + x", "sum([x, x, *(30 * [0 * x])])")
CODE = "__global__ void doubled(const float* x, float* out) { out[threadIdx.x] = 2 * x[threadIdx.x]; }\n"
KERNEL = """
bench.cuda("kernel.cu", kernel="doubled", grid=1, block=128)
"""
WAITS = "Ctrl-C ends"


class Watch:
    """A watch in a process of its own, and what it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.runs = folder / "runs"
        self._output = folder / "output"
        command = [sys.executable, "-m", "warpladder", "record", str(folder / "bench.py"), "--watch", "--max-rounds", "15"]
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(self.runs), *options],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._read = 0

    def until(self, pattern: str) -> list[str]:
        """The lines up to the one that holds a pattern, from the last such line on."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            lines = self._output.read_text().splitlines()[self._read :]
            for number, line in enumerate(lines):
                if re.search(pattern, line):
                    self._read += number + 1
                    return lines[: number + 1]
            assert self.process.poll() is None, self._output.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no {pattern} in {self._output.read_text()}")

    def recorded(self) -> list[store.Run]:
        return sorted(store.list_runs([self.runs])[0], key=lambda run: str(run.info["started_at"]))

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bench.py").write_text(BENCH)
    (tmp_path / "helpers.py").write_text(HELPERS)
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Iterator[Callable[..., Watch]]:
    """Starts watches of the file in the folder, which end with the test."""
    watches: list[Watch] = []

    def start(*options: str) -> Watch:
        watches.append(Watch(folder, *options))
        return watches[-1]

    yield start
    for watch in watches:
        watch.process.kill()
        watch.process.wait()


@pytest.fixture
def watch(started: Callable[..., Watch]) -> Watch:
    return started()


def saved(file: Path, text: str) -> None:
    """Save as editors do: to another file, which is renamed."""
    beside = file.with_name(f".{file.name}.swp")
    beside.write_text(text)
    beside.rename(file)


@pytest.mark.thorough
def test_a_watch_records_what_changed_beside_the_last_version(watch: Watch, folder: Path) -> None:
    bench, helpers = folder / "bench.py", folder / "helpers.py"
    said = watch.until(WAITS)
    assert said[-1] == "watching bench.py and 1 file that it uses; Ctrl-C ends"
    assert "over the baseline" in "".join(said)

    saved(helpers, SLOWER)
    said = watch.until(WAITS)
    assert said[0] == "helped changed: recorded again with plain"
    assert re.fullmatch(r"the ceilings are those of the watch's first recording, of \d\d:\d\d:\d\d", said[1])
    first, second = watch.recorded()
    assert first.table("ceilings").equals(second.table("ceilings"))
    assert said[1] in set(second.table("diagnostics")["text"])
    (row,) = [line for line in said if line.startswith("helped  ")]
    assert re.match(r"helped +slower +n=300000 +\d\S* .s +\d\S* .s +\d[\d.]* \(.*\) +\d.* %  +0\.\d+× plain$", row)
    assert not [line for line in said if line.startswith("plain")]
    assert sorted(set(second.table("samples")["variant"])) == ["helped", "helped@last", "plain", "plain@last"]

    saved(helpers, SLOWER + "# a comment\n")
    assert watch.until("saved") == ["helpers.py saved: nothing measurable changed"]

    saved(bench, BENCH + "def broken(:\n")
    assert "bench.py:23: SyntaxError: invalid syntax; mend it" in watch.until(WAITS)[0]

    saved(bench, BENCH + "def unused():\n    pass\n")
    assert watch.until(WAITS)[0] == "the same as in the last right recording: nothing to record"

    saved(bench, BENCH.replace("return helpers.twice(x)", "return helpers.twice(x) + 1"))
    assert any(re.match("FAILED: double n=300000 helped: wrong_result: ", line) for line in watch.until(WAITS))

    saved(bench, BENCH.replace("return helpers.twice(x)", "return np.add(x, x)"))  # beside the version that was right
    assert any(re.match(r"helped +faster +n=300000 ", line) for line in watch.until(WAITS))

    saved(bench, BENCH.replace("n=[300_000]", "n=[300_000, 600_000]"))
    said = watch.until(WAITS)
    assert said[0] == "inputs, reference or cases of double, helped changed: recorded again"
    assert [line.split()[0] for line in said if line.startswith("n=")] == ["n=300000", "n=600000"]
    assert [line.split()[1:3] for line in said if line.startswith("helped")] == [["slower", "n=300000"], ["slower", "n=600000"]]

    saved(bench, BENCH.replace("import helpers", "import helpers\nnp.seterr(all='ignore')"))
    said = watch.until(WAITS)
    assert said[0].startswith("what the files set for the whole process changed: everything is recorded again, ")
    assert watch.end() == 0
    assert sorted(set(watch.recorded()[-1].table("samples")["variant"])) == ["helped", "plain"]


@pytest.mark.thorough
def test_one_changed_variant_of_three_is_recorded_with_the_baseline_alone(folder: Path, started: Callable[..., Watch]) -> None:
    third = "\n@bench.variant\ndef third(x):\n    return np.add(x, x)\n"
    (folder / "bench.py").write_text(BENCH + third)
    watch = started("--label", "three")
    watch.until(WAITS)
    saved(folder / "bench.py", BENCH + third.replace("np.add(x, x)", "np.multiply(x, np.float32(2))"))
    watch.until(WAITS)
    first, second = watch.recorded()
    assert set(first.table("samples")["variant"]) == {"plain", "helped", "third"}
    assert set(second.table("samples")["variant"]) == {"plain", "third", "plain@last", "third@last"}
    assert set(own_version(load(second)).samples["variant"]) == {"plain", "third"}
    assert second.info["label"] == "three"
    assert second.info["command"] == (
        "warpladder record bench.py --set quick --seed 0 --variants=plain,third --max-rounds=15 --processes=1 --watch"
    )
    assert watch.end() == 0


@pytest.mark.thorough
def test_a_kernel_s_file_and_what_lies_beside_are_of_each_version(folder: Path, started: Callable[..., Watch]) -> None:
    """A launch with another grid is another variant; a file of data that both versions read is the present one."""
    text = BENCH.replace(
        "import helpers", "from pathlib import Path\nimport helpers\nDATA = np.load(Path(__file__).with_name('data.npy'))"
    )
    np.save(folder / "data.npy", np.ones(3))
    (folder / "bench.py").write_text(text + KERNEL)
    (folder / "kernel.cu").write_text(CODE)
    watch = started()
    assert watch.until(WAITS)[-1] == "watching bench.py and 2 files that it uses; Ctrl-C ends"
    saved(folder / "kernel.cu", CODE + "// a comment\n")
    assert watch.until("saved") == ["kernel.cu saved: nothing measurable changed"]
    saved(folder / "kernel.cu", CODE.replace("2 *", "2.0f *"))
    assert watch.until(WAITS)[0] == "doubled changed: recorded again with plain"
    saved(folder / "bench.py", (text + KERNEL).replace("block=128", "block=256"))
    assert watch.until(WAITS)[0] == "doubled changed: recorded again with plain"
    assert watch.end() == 0


@pytest.mark.thorough
def test_where_the_last_version_cannot_be_loaded_beside_everything_is_recorded(
    folder: Path, started: Callable[..., Watch]
) -> None:
    alone = "import sys\nsys.first = getattr(sys, 'first', __file__)\nassert sys.first == __file__, 'two of me'\n"
    (folder / "bench.py").write_text(alone + BENCH)
    watch = started()
    watch.until(WAITS)
    saved(folder / "bench.py", alone + BENCH.replace("helpers.twice(x)", "np.add(x, x)"))
    said = watch.until(WAITS)
    assert said[0] == (
        f"the last version cannot run beside yours ({folder}/bench.py:3: AssertionError: two of me): everything is recorded again, without the last version"
    )
    assert any(line.startswith("plain") for line in said) and len(watch.recorded()) == 2
    assert watch.end() == 0


SLOW = BENCH.replace("return helpers.twice(x)", "import time; time.sleep(0.2); return helpers.twice(x)")


@pytest.mark.thorough
def test_a_save_during_a_recording_ends_it_and_its_run_is_dropped(folder: Path, started: Callable[..., Watch]) -> None:
    (folder / "bench.py").write_text(SLOW.replace("n=[300_000]", "n=[1000, 2000, 3000, 4000]"))
    watch = started("--max-rounds", "500")
    watch.until("ceilings")
    time.sleep(0.5)
    saved(folder / "bench.py", BENCH)
    assert any("saved while it was recorded; that recording is dropped" in line for line in watch.until("dropped"))
    watch.until(WAITS)
    (run,) = watch.recorded()
    assert set(run.table("results")["case"]) == {"n=300000"}
    assert watch.end() == 0


@pytest.mark.thorough
def test_ctrl_c_during_a_recording_keeps_what_is_finished(folder: Path, started: Callable[..., Watch]) -> None:
    (folder / "bench.py").write_text(SLOW.replace("n=[300_000]", "n=[1000, 2000, 3000]"))
    watch = started("--set", "full", "--max-rounds", "20")
    watch.until("2/4")  # the first case, in one process
    assert watch.end() == 130
    (run,) = watch.recorded()
    assert set(run.table("samples")["case"]) == {"n=1000"}
    assert "interrupted" in "".join(run.table("diagnostics")["text"])


@pytest.mark.thorough
def test_a_file_that_does_not_load_at_first_is_waited_for_and_one_that_hangs_is_ended_by_the_next_save(
    folder: Path, started: Callable[..., Watch]
) -> None:
    (folder / "bench.py").write_text("import absent_helpers\n" + BENCH)
    watch = started()
    assert any("No module named 'absent_helpers'" in line for line in watch.until(WAITS))
    (folder / "absent_helpers.py").write_text("while True:\n    pass\n")
    time.sleep(3)
    (folder / "absent_helpers.py").write_text("")
    watch.until(WAITS)
    assert len(watch.recorded()) == 1
    saved(folder / "bench.py", BENCH + "raise SystemExit(3)\n")
    assert "bench.py:23: SystemExit: 3; the file ends the program" in watch.until(WAITS)[0]
    saved(folder / "bench.py", BENCH + "import os\nos._exit(3)\n")
    assert watch.until(WAITS)[0] == "bench.py: its process ended (exit code 3) before it was recorded; mend it"
    assert watch.end() == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["conv2d", "--watch"], "--watch: watches files of your own; name FILE.py, and no workload of the project"),
        (["--watch"], "--watch: watches files of your own; name FILE.py, and no workload of the project"),
        (["absent.py", "--watch"], "absent.py: no such Python file; give the path of one that declares a workload"),
        (["bench.py", "--watch", "--format", "json"], "--watch --format json: --watch records again and prints lines to read"),
        (["bench.py", "--watch", "--if-none"], "--watch --if-none: --watch records again"),
        (["bench.py", "--watch", "--collector", "nsight_compute"], "--watch: nsight_compute takes no times to compare"),
        (["bench.py", "--watch", "--variants", "v99"], "v99: no such variant in double, whose variants are plain, helped"),
        (["bench.py", "--watch", "--label", "\udcff"], "--label ?: not valid UTF-8"),
    ],
)
def test_what_cannot_be_watched_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(command(), ["record", *arguments, "--data-dir", str(folder / "runs")])
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(said)


def test_a_file_that_each_recording_changes_is_not_recorded_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = Stop()
    watched = _Watch(Order(Request(files=[folder / "bench.py"]), folder / "runs", [], "host_clock"), stop, folder / "copy")
    watched._know(files_now([folder / "bench.py", folder / "helpers.py"]))
    recordings = 0

    def record() -> bool:
        nonlocal recordings
        recordings += 1
        assert recordings < 10, "it goes on"
        (folder / "helpers.py").write_text(f"{HELPERS}\nSTAMP = {recordings}\n")
        return True

    def wait() -> bool:
        stop.number = signal.SIGINT
        return False

    monkeypatch.setattr(watched, "_record", record)
    monkeypatch.setattr(watched, "_wait", wait)
    assert watched.run() is False
    assert recordings == 3
    assert "helpers.py: changed during each of 3 recordings in a row" in capsys.readouterr().err
    assert not watched._differ()


def test_a_fifo_in_place_of_a_file_has_no_text(folder: Path) -> None:
    fifo = folder / "fifo.py"
    os.mkfifo(fifo)
    with no_hang(5):
        assert files_now([fifo]) == {fifo: ""}
        assert python_files([fifo]) == {fifo}
