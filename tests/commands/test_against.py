"""`warpladder record FILE --against REF`: two versions of a file in the same rounds, judged as `compare` judges two runs."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import forked
from warpladder.data import store

pytestmark = pytest.mark.slow

BENCH = """
import numpy as np

import warpladder
from package import operations

bench = warpladder.Benchmark("squares", n=[20_000])


@bench.inputs
def inputs(n, rng):
    return rng.random(n).astype(np.float32)


@bench.variant(name="plain", baseline=True)
@bench.reference
def plain(x):
    return np.sqrt(x * x + 1)


@bench.variant
def direct(x):
    return operations.work(x)


@bench.variant
def late(x):
    from package.operations import work

    return work(x)
"""
WORK = "import numpy as np\n\n\ndef work(x):\n    return np.hypot(x, 1)\n"
SLOWER = "import numpy as np\n\n\ndef work(x):\n    for _ in range(20):\n        y = np.hypot(x, 1)\n    return y\n"


def git(folder: Path, *arguments: str) -> None:
    names = {f"GIT_{who}_{what}": "a@b.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **names}, capture_output=True, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a file of benchmarks in a folder, and the package that it measures in `src`, on the branch main."""
    top = tmp_path / "repository"
    (top / "src" / "package").mkdir(parents=True)
    (top / "benchmarks").mkdir()
    (top / "src" / "package" / "__init__.py").touch()
    (top / "src" / "package" / "operations.py").write_text(WORK)
    (top / "benchmarks" / "bench.py").write_text(BENCH)
    git(top, "init", "-q", "-b", "main")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    return top


def record(top: Path, *words: str, file: str = "benchmarks/bench.py") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a short recording against another version."""
    short = ["--processes", "1", "--max-rounds", "12", "--seconds", "0.1", "-q", "--data-dir", str(top.parent / "runs")]
    done = forked.warpladder("record", file, *short, *words, cwd=top)
    return done.returncode, done.stdout, done.stderr


def change(top: Path, old: str, new: str, file: str = "benchmarks/bench.py") -> None:
    text = (top / file).read_text()
    assert old in text
    (top / file).write_text(text.replace(old, new))


def compare(top: Path, *words: str) -> int:
    return forked.warpladder("compare", *words, "--data-dir", str(top.parent / "runs"), cwd=top).returncode


def test_nothing_fails_where_nothing_differs(repository: Path) -> None:
    code, text, said = record(repository, "--against", "main", "--detect", "5%")
    assert code == 0, text
    run_id = text.splitlines()[-1]
    assert "A: main, " in text and f"\nB: bench.py, as it is here ({run_id})\n" in text and "3 tied" in text
    assert "bytes of" not in text, "the work of a case is known where its inputs were made"
    assert "no variant differs from main" in said


def test_comments_change_no_variant_and_what_holds_for_the_whole_process_is_told(repository: Path) -> None:
    change(repository, "def direct(x):\n", 'def direct(x):\n    """Idea: from the package."""\n    # a comment\n')
    change(repository, "import numpy as np\n", "import numpy as np\n\nnp.seterr(all='ignore')\n")
    code, _, said = record(repository, "--against", "main")
    assert code == 0 and "no variant differs from main" in said
    assert "warning: your files set something else for the whole process than those of main, " in said


def test_each_version_imports_its_own_package_also_within_functions(repository: Path) -> None:
    (repository / "src" / "package" / "operations.py").write_text(SLOWER)
    code, text, _ = record(repository, "--against", "main", "--format", "json", "--label", "slower")
    told = json.loads(text)
    verdicts = {each["variant"]: each["verdict"] for each in told["changes"]}
    assert code == 1
    assert verdicts == {"direct": "slower", "late": "slower", "plain": "tied"}
    ratios = {each["variant"]: each["ratio"]["value"] for each in told["changes"]}
    assert 5 < ratios["late"] < 60 and 5 < ratios["direct"] < 60
    assert {each["variant"] for each in told["changes"] if each["equal_code"]} == {"plain"}
    run = store.find_run("slower", [repository.parent / "runs"])
    assert list(run.table("variants")["variant"]) == ["plain", "direct", "late", "plain@main", "direct@main", "late@main"]
    assert compare(repository, "slower@late@main", "slower@late") == 1
    assert record(repository, "--against", "main", "--fail-above", "9900%")[0] == 0


def test_modules_that_a_function_imports_are_of_its_version_and_count_as_its_code(repository: Path) -> None:
    change(repository, "import numpy as np\n", "import importlib\n\nimport numpy as np\n")
    change(repository, "return operations.work(x)", 'return importlib.import_module("package.later").work(x)')
    change(
        repository,
        "from package.operations import work\n\n    return work(x)",
        "from package import later\n\n    return later.work(x)",
    )
    (repository / "src" / "package" / "later.py").write_text(WORK)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "later")
    assert record(repository, "--against", "main", "--detect", "5%")[0] == 0
    (repository / "src" / "package" / "later.py").write_text(SLOWER)
    code, text, _ = record(repository, "--against", "main", "--format", "json")
    assert code == 1
    assert {each["variant"]: (each["verdict"], each["equal_code"]) for each in json.loads(text)["changes"]} == {
        "direct": ("slower", False),
        "late": ("slower", False),
        "plain": ("tied", True),
    }


def test_a_folder_may_be_the_other_version_without_git(tmp_path: Path) -> None:
    for name, work in (("old", WORK), ("new", SLOWER)):
        (tmp_path / name / "package").mkdir(parents=True)
        (tmp_path / name / "bench.py").write_text(BENCH)
        (tmp_path / name / "package" / "operations.py").write_text(work)
    code, text, _ = record(tmp_path / "new", "--against", "../old", "--format", "junit", file="bench.py")
    failures = ElementTree.fromstring(text).findall(".//failure/..")
    assert code == 1 and {each.get("name") for each in failures} == {
        f"n=20000 {name} operation hot" for name in ("direct", "late")
    }
    code, _, said = record(tmp_path / "new", "--against", "main", file="bench.py")
    assert code == 2 and said == (
        "--against main: no such folder, and the files are in no git repository; give the folder of the other version\n"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "new", "allow", "line"),
    [
        ("return operations.work(x)", "return operations.work(x) + 1", (), "FAILED: squares n=20000 direct: wrong_result"),
        ("return operations.work(x)", "raise OSError('no')", (), "FAILED: squares n=20000 direct: launch_error"),
        ("def direct", "def renamed", (), "FAILED: squares n=20000 direct: lost: B has no such variant"),
        ("20_000", "30_000", (), "FAILED: squares n=20000 plain, n=20000 direct, n=20000 late: lost: not recorded in B"),
        ("np.sqrt(x * x + 1)", "np.hypot(x, 1)", (), "FAILED: reference of squares differs"),
        ("n=[", "tolerance=1e-3, n=[", (), "FAILED: tolerance of squares differs"),
        ("n=[", "tolerance=1e-3, n=[", ("tolerance",), ""),
        ("variant\ndef direct", "variant(precision='tf32')\ndef direct", (), "FAILED: tolerance of squares direct differs"),
        ("variant\ndef direct", "variant(precision='tf32')\ndef direct", ("tolerance",), ""),
        ("astype(np.float32)", "astype(np.float16)", (), "FAILED: tolerance of squares differs"),
    ],
)
def test_what_fails_a_comparison_of_runs_fails_here(
    repository: Path, old: str, new: str, allow: Sequence[str], line: str
) -> None:
    change(repository, old, new)
    words = [word for each in allow for word in ("--allow", each)]
    code, text, said = record(repository, "--against", "main", *words)
    assert code == (1 if line else 0) and line in text
    assert "no variant differs" not in said
    assert not line or ("wrong_result: " not in said and "launch_error: " not in said), "the table names what failed"


@pytest.mark.thorough
def test_a_cell_that_its_other_version_cannot_run_on_has_no_verdict(repository: Path) -> None:
    change(repository, "return rng.random(n).astype(np.float32)", "return rng.random(n).astype(np.float32), 1.0")
    for name in ("plain", "direct", "late"):
        change(repository, f"def {name}(x)", f"def {name}(x, y)")
    code, text, _ = record(repository, "--against", "main")
    assert code in (2, 3) and "launch_error" in text + _, text


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ("nothing", "--against nothing: neither a revision of repository nor a folder; "),
        ("--output=x", "--against --output=x: neither a revision"),
        ("broken", "broken:benchmarks/bench.py:7: SyntaxError: "),
        ("moved", "benchmarks/bench.py: not in moved, so that there is nothing to compare it with; "),
        ("renamed", "--against renamed, "),
        (".", "--against .: has benchmarks/bench.py itself; "),
    ],
)
def test_another_version_that_cannot_be_had_ends_with_2(repository: Path, reference: str, line: str) -> None:
    for branch in ("broken", "moved", "renamed"):
        git(repository, "checkout", "-q", "-b", branch, "main")
        if branch == "moved":
            git(repository, "mv", "benchmarks/bench.py", "other.py")
        else:
            old, new = ("n=[20_000]", "n=[20_000)") if branch == "broken" else ('"squares"', '"roots"')
            change(repository, old, new)
        git(repository, "commit", "-qam", branch)
    git(repository, "checkout", "-q", "main")
    code, _, said = record(repository, f"--against={reference}")
    assert code == 2 and said.startswith(line) and said.count("\n") == 1
    assert not (repository.parent / "runs").exists()


def test_a_revision_has_the_same_path_or_none(repository: Path) -> None:
    (repository / "bench.py").write_text(BENCH)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "root")
    (repository / "other").mkdir()
    (repository / "other" / "bench.py").write_text(BENCH)
    code, _, said = record(repository, "--against", "HEAD", file="other/bench.py")
    assert code == 2 and said.startswith("other/bench.py: not in HEAD, ") and said.count("\n") == 1
    assert said.endswith("or give the folder or file of the other version\n")
    assert not (repository.parent / "runs").exists()
    there, wide = ("--against", "bench.py"), ("--detect", "5000%")
    assert record(repository, *there, *wide, file="other/bench.py")[0] == 0


def test_the_run_keeps_the_revision_whole_and_its_summary_is_about_your_file(repository: Path) -> None:
    git(repository, "branch", "origin/main")
    change(repository, "return operations.work(x)", "return [operations.work(x) for _ in range(9)][0]")
    code, text, _ = record(repository, "--against", "origin/main", "--format", "markdown")
    assert code == 1 and f"--data-dir {repository.parent / 'runs'} --against origin/main" in text
    assert text.count("warpladder record") == 1 and "To record it again:" in text
    (run,) = store.list_runs([repository.parent / "runs"])[0]
    assert "--data-dir runs --against origin/main " in run.info["command"]
    assert text.count(run.run_id) == 1
    told = forked.warpladder("summary", run.run_id, "--data-dir", str(run.path.parent), "--all", cwd=repository).stdout
    assert "plain" in told and "@origin/main" not in told


def test_the_wider_tolerance_of_a_wrong_cell_is_no_other_tolerance(repository: Path) -> None:
    change(repository, "np.sqrt(x * x + 1)", "np.sqrt(x * x + 4) - 2")
    change(repository, "np.hypot(x, 1)", "np.hypot(x, 2) - 2", "src/package/operations.py")
    git(repository, "commit", "-qam", "with cancellation")
    change(repository, "return operations.work(x)", "return operations.work(x) * 1.001")
    code, text, _ = record(repository, "--against", "HEAD")
    results = store.list_runs([repository.parent / "runs"])[0][0].table("results").set_index("variant")
    assert results.loc["direct", "tolerance"] > results.loc["direct@HEAD", "tolerance"]
    assert code == 1 and "FAILED: squares n=20000 direct: wrong_result" in text and "tolerance of" not in text


def test_a_variant_that_is_right_in_neither_version_fails_in_one_line(repository: Path) -> None:
    change(repository, "return operations.work(x)", "return operations.work(x) + 1")
    git(repository, "commit", "-qam", "wrong")
    change(repository, "operations.work(x) + 1", "operations.work(x) + 2")
    code, text, said = record(repository, "--against", "HEAD")
    assert code == 1 and "2 tied" in text and "no variant differs" not in said
    assert said.count("squares/direct/n=20000: wrong_result: ") == 1
    assert said.splitlines()[-1].startswith("FAILED: a variant is not right, and HEAD, ")


def test_options_that_do_not_go_together_are_refused(repository: Path) -> None:
    for words, line in (
        (["--against", "main", "--watch"], "--watch --against: "),
        (["--against", "main", "--trace"], "--against --trace: "),
        (["--against", "main", "--format", "csv"], "--format csv: "),
        (["--format", "junit"], "--format junit: "),
        (["--against", ""], "--against: is empty; name a revision or a folder"),
        (["--against="], "--against: is empty; name a revision or a folder"),
        (["--detect", "5%"], "--detect: is for --against; "),
        (["--fail-above", "0%"], "--fail-above: is for --against; "),
        (["--allow", "tolerance"], "--allow: is for --against; "),
        (["--smallest", "1%"], "--smallest: is for --against; "),
        (["--scope", "all"], "--scope: is for --against; "),
        (["--match", "config", "--watch"], "--match: is for --against; "),
        (["--against", "main", "--collector", "nsight_systems"], "--against: nsight_systems starts the recording"),
    ):
        code, _, said = record(repository, *words)
        assert code == 2 and said.startswith(line), said
    code, _, said = record(repository, "--against", "main", file="conv2d")
    assert code == 2 and said.startswith("--against: compares files of your own; ")


def test_a_version_that_would_run_code_of_the_other_is_refused(repository: Path) -> None:
    old = "from package import operations\n"
    new = "import pkgutil\nimport sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path.cwd() / 'src'))\n"
    change(repository, old, f'{new}operations = pkgutil.resolve_name("package.operations")\n')
    git(repository, "commit", "-qam", "dynamic")
    code, _, said = record(repository, "--against", "HEAD")
    assert code == 2 and said.startswith("HEAD:benchmarks/bench.py: operations is of ") and said.count("\n") == 1
