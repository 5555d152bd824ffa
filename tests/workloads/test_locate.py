"""Errors of a user's own file are told with the file and the line, never with ours or a library's."""

import json
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

from warpladder.workloads import registry
from warpladder.workloads.api import Workload, WorkloadError
from warpladder.workloads.declare import locate
from warpladder.workloads.declare.locate import is_own, where


def raised_by(text: str, file: Path, name: str = "") -> BaseException:
    """The exception that a file's code raises."""
    file.write_text(text)
    try:
        exec(compile(text, name or str(file), "exec"), {"__name__": "bench"})
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_place_is_the_deepest_line_of_the_user_s_file_not_that_of_a_library(tmp_path: Path) -> None:
    text = "import json\n\ndef parse(said):\n    return json.loads(said)\n\nparse('{')\n"
    error = raised_by(text, tmp_path / "bench.py")
    assert any("json" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    assert where(error) == "bench.py:4"


def test_an_error_that_ours_raises_for_a_user_s_call_stands_at_the_call(tmp_path: Path) -> None:
    text = "from warpladder.workloads.api import Workload\n\n\nWorkload('\\udcff', '', (), (), None, None, None)\n"
    error = raised_by(text, tmp_path / "bench.py")
    assert isinstance(error, WorkloadError)
    assert where(error) == "bench.py:4"


def test_the_cause_is_followed_where_the_exception_itself_is_not_of_the_user_s_code(tmp_path: Path) -> None:
    error = raised_by("x = 1\ny = x / 0\n", tmp_path / "bench.py")
    outer = WorkloadError("the reference fails")
    outer.__cause__ = error
    assert where(outer) == "bench.py:2"


def test_a_cause_within_the_user_s_own_code_does_not_move_the_place(tmp_path: Path) -> None:
    text = "try:\n    {}['n']\nexcept KeyError as error:\n    raise ValueError('no n') from error\n"
    assert where(raised_by(text, tmp_path / "bench.py")) == "bench.py:4"


def test_an_error_of_syntax_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("x = 1\ny = (\n")
    with pytest.raises(SyntaxError) as caught:
        compile((tmp_path / "bench.py").read_text(), str(tmp_path / "bench.py"), "exec")
    assert where(caught.value) == "bench.py:2"


def test_syntax_of_a_text_that_the_user_s_code_compiles_stands_where_it_does_so(tmp_path: Path) -> None:
    assert where(raised_by("import ast\nast.parse('x = (')\n", tmp_path / "bench.py")) == "bench.py:2"


def test_an_exception_without_any_line_of_the_user_has_no_place() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json\nfrom warpladder.workloads.declare.locate import where\ntry: json.loads('{')\nexcept Exception as e: print([where(e), where(ValueError())])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['', '']\n"


def test_endless_recursion_and_a_circle_of_causes_end(tmp_path: Path) -> None:
    assert where(raised_by("def f():\n    f()\nf()\n", tmp_path / "bench.py")) == "bench.py:2"
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert where(error) == ""


def test_which_files_are_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    not_own = [
        json.__file__,
        str(np.__file__),
        str(registry.__file__),
        "<string>",
        "<frozen importlib._bootstrap>",
        "<eval_with_key>.3",
        str(tmp_path / "lib" / "python3.12" / "dist-packages" / "torch" / "nn.py"),
        "/tmp/torchinductor_someone/ab/cab.py",
        str(tmp_path / "compiled" / "cab.py"),
        str(Path.home() / ".triton" / "cache" / "ab" / "launcher.py"),
    ]
    own = [str(tmp_path / "bench.py"), str(tmp_path / "data" / "helpers.py"), str(tmp_path / "triton_kernels" / "softmax.py")]
    assert [file for file in not_own if is_own(file)] == []
    assert [file for file in own if not is_own(file)] == []


def test_a_notebook_s_cell_is_named_by_its_number(tmp_path: Path) -> None:
    cell = "<ipython-input-3-0a1b2c>"
    assert where(raised_by("x = 1\nx / 0\n", tmp_path / "unused.py", name=cell)) == "cell 3:2"
    kernel = "/tmp/ipykernel_42/1234.py"
    assert where(raised_by("x = 1\nx / 0\n", tmp_path / "unused.py", name=kernel)) == "cell:2"


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_the_text_of_an_exception_is_one_line_and_never_fails() -> None:
    assert locate.text_of(ValueError("two\n  lines")) == "two lines"
    assert locate.text_of(Unshowable()) == ""
    assert len(locate.text_of(ValueError("x" * 10_000))) == 500


# -- loading a file ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n\nfoo\n", "bench.py:3: NameError: name 'foo' is not defined; mend it, then try again"),
        ("x = 1\nif x\n", "bench.py:2: SyntaxError: expected ':'; mend it, then try again"),
        ("import broken\n", "broken.py:2: ZeroDivisionError: division by zero; mend it, then try again"),
        ("from kit import deep\n", "kit/deep.py:1: AssertionError; mend it, then try again"),
        ("\nimport absent\n", "bench.py:2: ModuleNotFoundError: No module named 'absent'; install it, or correct the name"),
        ("def f(): f()\nf()\n", "bench.py:1: RecursionError: maximum recursion depth exceeded; mend it, then try again"),
        (
            "import sys\nsys.exit('done')\n",
            'bench.py:2: SystemExit: done; the file ends the program: move that under `if __name__ == "__main__":`',
        ),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('n')\np.parse_args([])\n",
            'bench.py:4: SystemExit: 2; the file ends the program: move that under `if __name__ == "__main__":`',
        ),
        (
            "from warpladder.workloads.api import Workload\nW = Workload('\\udcff', '', (), (), None, None, None)\n",
            "bench.py:2: '\\udcff': not a name; give text that UTF-8 can hold",
        ),
        (
            "class Odd(Exception):\n    def __str__(self): raise TypeError\nraise Odd\n",
            "bench.py:3: Odd; mend it, then try again",
        ),
    ],
)
def test_an_error_while_a_file_is_loaded_is_one_line_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(text)
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").touch()
    (tmp_path / "kit" / "deep.py").write_text("assert False\n")
    with pytest.raises(WorkloadError) as refused:
        registry.load_file(tmp_path / "bench.py")
    assert str(refused.value) == f"{tmp_path}/{said}"


def test_the_path_stays_as_the_user_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bench.py").write_text("import helpers\n")
    (tmp_path / "mine" / "helpers.py").write_text("foo\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkloadError, match=r"^mine/helpers\.py:1: NameError"):
        registry.load_file(Path("mine/bench.py"))
    (tmp_path / "mine" / "bench.py").write_text("foo\n")
    with pytest.raises(WorkloadError, match=r"^mine/bench\.py:1: NameError"):
        registry.load_file(Path("mine/bench.py"))


def test_an_interrupt_while_a_file_is_loaded_passes(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        registry.load_file(tmp_path / "bench.py")


def test_a_file_without_an_error_loads(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "from warpladder.workloads.api import Workload\nWORKLOAD = Workload('mine', '', (), (), None, None, None)\n"
    )
    assert isinstance(registry.load_file(tmp_path / "bench.py")[0], Workload)
