"""The text of a function variant holds all of the user's that it reaches, and changes exactly when that changes."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.workloads.functions.loading import loaded, text_of
from warpladder.workloads.declare.functions.sources import source_file_of, source_of

BENCH = """
    import functools
    import helpers
    from helpers import shifted as moved

    BLOCK = 256
    WIDE = BLOCK * 2
    NAMES = ("a", "b")
    UNUSED = 7

    def unused(x):
        return x * UNUSED

    def halved(x):
        return x / 2 + WIDE

    def plain(x):
        return halved(x) + helpers.scaled(x)

    def imported(x):
        return moved(x)

    def recursive(n):
        return recursive(n - 1) if n else 0

    def shadowed(BLOCK):
        UNUSED = BLOCK
        return [WIDE for WIDE in range(UNUSED)]

    def local(x):
        from helpers import scaled
        import helpers as h
        return scaled(x) + h.OTHER
"""
HELPERS = """
    import json
    SCALE = 3
    OTHER = 5

    def scaled(x):
        return x * SCALE

    def shifted(x):
        return x + OTHER
"""


def test_a_function_brings_what_it_reaches_in_the_order_of_the_files(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert text_of(bench.plain) == [
        "import helpers",
        "BLOCK = 256\nWIDE = BLOCK * 2",
        "def halved(x):\n    return x / 2 + WIDE",
        "def plain(x):\n    return halved(x) + helpers.scaled(x)",
        "# helpers.py",
        "SCALE = 3",
        "def scaled(x):\n    return x * SCALE",
    ]


def test_a_name_that_an_import_renames_is_followed(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert text_of(bench.imported) == [
        "from helpers import shifted as moved",
        "def imported(x):\n    return moved(x)",
        "# helpers.py",
        "OTHER = 5",
        "def shifted(x):\n    return x + OTHER",
    ]


def test_imports_within_the_function_are_followed(tmp_path: Path) -> None:
    assert "def scaled(x):\n    return x * SCALE" in text_of(loaded(tmp_path, BENCH, helpers=HELPERS).local)
    assert "SCALE = 3\nOTHER = 5" in text_of(loaded(tmp_path, BENCH, helpers=HELPERS).local)


def test_a_module_that_is_imported_when_the_function_runs_counts_as_a_whole(tmp_path: Path) -> None:
    bench = loaded(
        tmp_path,
        """
        def f(x):
            from kit.late import twice
            import absent
            return twice(x)
        """,
        kit_in_late="from .more import FACTOR\n\ndef twice(x):\n    return FACTOR * x",
        kit_in_more="import kit.late\nFACTOR = 2",
    )
    before = source_of(bench.f)
    assert before.split("# kit/")[1:] == [
        "late.py\n\nfrom .more import FACTOR\n\ndef twice(x):\n    return FACTOR * x\n\n",
        "more.py\n\nimport kit.late\nFACTOR = 2\n",
    ]
    assert bench.f.__globals__["__builtins__"]["__import__"]("kit.late", bench.f.__globals__)
    assert "def twice(x):\n    return FACTOR * x\n" in source_of(bench.f)


def test_local_names_bring_nothing_and_recursion_ends(tmp_path: Path) -> None:
    bench = loaded(tmp_path, BENCH, helpers=HELPERS)
    assert len(text_of(bench.shadowed)) == 1
    assert len(text_of(bench.recursive)) == 1


@pytest.mark.slow
def test_the_text_is_the_same_in_every_process_and_names_no_folder(tmp_path: Path) -> None:
    loaded(tmp_path, BENCH, helpers=HELPERS)
    code = (
        "import sys; from pathlib import Path; from warpladder.workloads.declare import neighbours;"
        "from warpladder.workloads.declare.functions.sources import source_of;"
        f"print(source_of(neighbours.load(Path({str(tmp_path / 'bench.py')!r})).plain), end='')"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert texts == {source_of(loaded(tmp_path, BENCH, helpers=HELPERS).plain)}
    assert str(tmp_path) not in texts.pop()


def test_the_text_changes_with_what_is_reached_and_with_nothing_else(tmp_path: Path) -> None:
    before = source_of(loaded(tmp_path, BENCH, helpers=HELPERS).plain)
    assert source_of(loaded(tmp_path, BENCH.replace("UNUSED = 7", "UNUSED = 8"), helpers=HELPERS).plain) == before
    assert source_of(loaded(tmp_path, BENCH.replace("BLOCK = 256", "BLOCK = 512"), helpers=HELPERS).plain) != before
    assert source_of(loaded(tmp_path, BENCH.replace("x / 2", "x * 0.5"), helpers=HELPERS).plain) != before


def test_a_nested_package_beside_and_a_relative_import_are_followed(tmp_path: Path) -> None:
    bench = loaded(
        tmp_path,
        "import kit.tiles\nfrom kit import deep\ndef f(x):\n    return kit.tiles.g(x) + deep.inner.h(x)\n",
        kit_in_tiles="from .other import OFFSET\ndef g(x):\n    return x + OFFSET\n",
        kit_in_other="OFFSET = 2\nUNUSED = 3\n",
        kit_in_deep_in___init__="from . import inner\n",
        kit_in_deep_in_inner="def h(x):\n    return x\n",
    )
    text = source_of(bench.f)
    beside = ["# kit/deep/__init__.py", "# kit/deep/inner.py", "# kit/other.py", "# kit/tiles.py"]
    assert [line for line in text.splitlines() if line.startswith("# ")] == beside
    assert "OFFSET = 2" in text
    assert "UNUSED" not in text


def test_all_names_of_a_module_and_a_whole_module_are_followed(tmp_path: Path) -> None:
    star = loaded(tmp_path, "from helpers import *\ndef f(x):\n    return scaled(x)\n", helpers=HELPERS)
    assert "def scaled(x):\n    return x * SCALE" in text_of(star.f)
    whole = loaded(tmp_path, "import helpers\ndef f(x):\n    return vars(helpers)['scaled'](x)\n", helpers=HELPERS)
    assert "def shifted(x):" in source_of(whole.f)


def test_installed_modules_are_not_followed(tmp_path: Path) -> None:
    bench = loaded(tmp_path, "import numpy as np\ndef f(x):\n    return np.linalg.norm(x)\n")
    assert text_of(bench.f) == ["import numpy as np", "def f(x):\n    return np.linalg.norm(x)"]


def test_a_benchmark_that_the_decorator_names_is_no_part_of_the_variant(tmp_path: Path) -> None:
    text = """
        from warpladder.workloads.api import Case
        case = Case({"n": 1}, flops=0, min_bytes=0)
        CONFIGS = [{"block": 256}]

        def variant(one, two):
            return lambda function: function

        @variant(case, CONFIGS)
        def f(x):
            return x
    """
    assert text_of(loaded(tmp_path, text).f) == [
        'CONFIGS = [{"block": 256}]',
        "def variant(one, two):\n    return lambda function: function",
        "@variant(case, CONFIGS)\ndef f(x):\n    return x",
    ]


# -- closures, partial functions, lambdas, classes -----------------------------------------------------------------------


def test_what_a_closure_holds_is_told(tmp_path: Path) -> None:
    text = """
        def twice(x):
            return 2 * x

        def make(block, inner, array):
            def f(x):
                return inner(x) * block + array
            return f
    """
    bench = loaded(tmp_path, text)
    made = [bench.make(size, bench.twice, np.ones(3)) for size in (3, 4)]
    assert text_of(made[0]) == [
        "def twice(x):\n    return 2 * x",
        "# block = 3, in the function around it\ndef f(x):\n    return inner(x) * block + array",
    ]
    assert source_of(made[0]) != source_of(made[1])


def test_defaults_that_a_loop_gives_are_told(tmp_path: Path) -> None:
    text = """
        found = []
        for block in (64, 128):
            @found.append
            def f(x, block=block, *, wide=2 * block, fixed=3):
                return x
    """
    first, second = (source_of(function) for function in loaded(tmp_path, text).found)
    assert "# block = 64 by default\n# wide = 128 by default\n@found.append\ndef f(" in first
    assert "# block = 128 by default\n# wide = 256 by default\n@found.append\ndef f(" in second


def test_a_function_that_a_decorator_registered_is_reached_through_the_registry_and_not_by_its_neighbours(
    tmp_path: Path,
) -> None:
    """As `registry.FOUND["work"]` of another module, where no statement names the function; the slowdown of one was called `drifted`."""
    registry = """
        FOUND = {}

        def register(f):
            FOUND[f.__name__] = f
            return f

        @register
        def work(x):
            return x + 1

        @register
        def other(x):
            return x + 2
    """
    bench = loaded(tmp_path, "import registry\n\ndef f(x):\n    return registry.FOUND['work'](x)\n", registry=registry)
    assert "return x + 1" in source_of(bench.f)
    own = source_of(bench.registry.work)
    assert "FOUND[f.__name__] = f" in own and "return x + 2" not in own


def test_a_method_that_is_called_at_the_top_level_changes_what_the_name_stands_for(tmp_path: Path) -> None:
    text = (
        "import numpy as np\nK = dict(k=1)\nK.update(k=8)\nnp.seterr(all='ignore')\ndef f(x):\n    return np.abs(x) * K['k']\n"
    )
    assert text_of(loaded(tmp_path, text).f) == [
        "import numpy as np\nK = dict(k=1)\nK.update(k=8)",
        "def f(x):\n    return np.abs(x) * K['k']",
    ]


def test_an_object_whose_method_is_called_is_not_taken_for_a_list_that_is_filled(tmp_path: Path) -> None:
    beside = "class Sums:\n    def add(self, x):\n        return x + 1\nsums = Sums()\n"
    bench = loaded(tmp_path, "from beside import sums\ndef f(x):\n    return sums.add(x)\n", beside=beside)
    assert "return x + 1" in source_of(bench.f)


def test_a_function_that_exec_makes_counts_by_its_bytecode(tmp_path: Path) -> None:
    def text(number: int) -> str:
        (tmp_path / f"{number}").mkdir()
        made = f"exec('def made(x): return x + {number}')\ndef f(x):\n    return made(x)\n"
        return source_of(loaded(tmp_path / f"{number}", made).f)

    assert "made: its text is not known; bytecode of Python" in text(1) and text(2) != text(3)


def test_arguments_of_a_partial_function_are_told_where_no_statement_does(tmp_path: Path) -> None:
    text = """
        import functools

        def scaled(x, by, of=None):
            return x

        def square(x):
            return x * x

        named = functools.partial(scaled, by=3)
    """
    bench = loaded(tmp_path, text)
    inline = functools.partial(bench.scaled, 2, of=bench.square)
    assert text_of(inline) == [
        "# functools.partial(scaled, 2, of=bench.square)\ndef scaled(x, by, of=None):\n    return x",
        "def square(x):\n    return x * x",
    ]
    assert text_of(bench.named)[-1] == "named = functools.partial(scaled, by=3)"


def test_a_lambda_is_told_from_others_on_its_line(tmp_path: Path) -> None:
    text = """
        BLOCK = 2
        double = lambda x: x * BLOCK
        pair = (lambda x: x + 1, lambda x: (x -
            1), lambda x: x + 1)
        nested = lambda a: (lambda b: a + b)
    """
    bench = loaded(tmp_path, text)
    assert text_of(bench.double) == ["BLOCK = 2\ndouble = lambda x: x * BLOCK"]
    assert text_of(bench.pair[0]) == ["lambda x: x + 1"]
    assert text_of(bench.pair[1]) == ["lambda x: (x -\n    1)"]
    assert text_of(bench.nested(5)) == ["# a = 5, in the function around it\nlambda b: a + b"]


def test_a_decorator_of_one_s_own_belongs_to_the_text(tmp_path: Path) -> None:
    text = """
        import functools

        def repeated(times):
            def around(function):
                @functools.wraps(function)
                def wrapper(*arguments):
                    return [function(*arguments) for _ in range(times)]
                return wrapper
            return around

        @repeated(3)
        def f(x):
            return x
    """
    bench = loaded(tmp_path, text)
    parts = text_of(bench.f)
    assert [part.splitlines()[-1].strip() for part in parts] == ["import functools", "return around", "return x"]
    assert source_file_of(bench.f) == tmp_path / "bench.py"


def test_methods_and_callable_objects_bring_their_classes(tmp_path: Path) -> None:
    text = """
        SCALE = 2

        class Base:
            def go(self, x):
                return x * SCALE

        class Soft(Base):
            def __call__(self, x):
                return self.go(x)

        soft = Soft()

        def uses(x):
            return soft(x)
    """
    bench = loaded(tmp_path, text)
    classes = ["SCALE = 2", "class Base:\n    def go(self, x):\n        return x * SCALE"]
    soft = "class Soft(Base):\n    def __call__(self, x):\n        return self.go(x)"
    assert text_of(bench.soft.go) == [*classes, soft]
    assert text_of(bench.Soft()) == [*classes, soft]
    assert text_of(bench.soft) == [*classes, soft, "soft = Soft()"]
    assert text_of(bench.uses)[-2:] == ["soft = Soft()", "def uses(x):\n    return soft(x)"]


def test_what_an_object_holds_is_told(tmp_path: Path) -> None:
    text = """
        class Kernel:
            def __init__(self, times):
                self.times, self.kept = times, object()

            def __call__(self, x):
                return x * self.times

        ALL = {times: Kernel(times) for times in (2, 3)}
    """
    bench = loaded(tmp_path, text)
    first, second = (source_of(bench.ALL[times]) for times in (2, 3))
    assert "# times = 2, of a Kernel" in first and "# times = 3, of a Kernel" in second and "# kept" not in first


def test_of_two_definitions_the_one_that_runs_is_taken_and_settings_of_a_name_with_it(tmp_path: Path) -> None:
    text = """
        FAST = False
        if FAST:
            def g(x):
                return x
        else:
            def g(x):
                return -x
        table = {}
        table["a"] = 1

        def f(x):
            return g(x) + table["a"]
    """
    assert text_of(loaded(tmp_path, text).f) == [
        "def g(x):\n    return -x",
        'table = {}\ntable["a"] = 1',
        'def f(x):\n    return g(x) + table["a"]',
    ]
