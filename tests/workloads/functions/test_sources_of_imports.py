"""The text of a function changes with a module that it imports in whatever way, and with no other module; and not with its folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workloads.functions.loading import loaded
from warpladder.workloads.declare.functions.sources import source_of

INSIDE = [
    "import kit.late\n    return kit.late.scale(x)",
    "import kit.late as h\n    return h.scale(x)",
    "import kit.late\n    return x",
    "import kit.late as h\n    return x",
    "from kit import late as h\n    return x",
    "from kit import late\n    return late.scale(x)",
    "from kit import late as h\n    return h.scale(x)",
    "from kit.late import scale\n    return scale(x)",
    "from kit.late import scale as h\n    return h(x)",
    "from kit import exported\n    return exported(x)",
    "from kit.sub import deep\n    return deep.scale(x)",
    "from kit.sub.deep import scale\n    return scale(x)",
    "from kit.sub.deep import everything\n    return everything(x)",
    "import kit\n    return kit.exported(x)",
    "import kit.late\n    return getattr(kit, 'late').scale(x)",
    "import alone\n    return alone.scale(x)",
    "import bare.late\n    return bare.late.scale(x)",
    "from bare import late\n    return late.scale(x)",
    "try:\n        from kit.absent import scale\n    except ImportError:\n        from kit.late import scale\n    return scale(x)",
    "if len(x):\n        from kit import late\n        return late.scale(x)",
    "return [importlib.import_module('kit.late').scale(each) for each in x]",
    "h = import_module('kit.late')\n    return h.scale(x)",
    "return importlib.import_module('.late', 'kit').scale(x)",
    "return importlib.import_module('.late', package='kit').scale(x)",
    "return importlib.import_module('kit.' + 'late').scale(x)",
    "return renamed('kit.late').scale(x)",
    "return __import__('kit.late').late.scale(x)",
    "return load('kit.late').scale(x)",
]
TOP = [
    ("import kit.late", "kit.late.scale(x)"),
    ("import kit.late as h", "h.scale(x)"),
    ("from kit import late", "late.scale(x)"),
    ("from kit.late import scale", "scale(x)"),
    ("from kit.late import *", "scale(x)"),
    ("from kit import *", "exported(x)"),
    ("from kit import exported as h", "h(x)"),
    ("import kit", "kit.exported(x)"),
    ("import kit.late", "getattr(kit, 'late').scale(x)"),
    ("import bare.late", "vars(bare)['late'].scale(x)"),
    ("from kit.sub import deep", "deep.scale(x)"),
    ("from kit.sub.deep import everything", "everything(x)"),
    ("try:\n    from kit.absent import scale\nexcept ImportError:\n    from kit.late import scale", "scale(x)"),
    ("if 1:\n    from kit import late", "late.scale(x)"),
    ("late = importlib.import_module('kit.late')", "late.scale(x)"),
    ("scale = importlib.import_module('kit.' + 'late').scale", "scale(x)"),
    ("from kit.late import TIMES", "x * TIMES"),
]
HEAD = "import importlib\nfrom importlib import import_module\nfrom importlib import import_module as renamed\n"
SHAPES = {
    "function": "def f(x):\n    {}\n",
    "package loaded": "from kit import steps\n\ndef f(x):\n    {}\n",
    "helper": "def helper(x):\n    {}\n\ndef f(x):\n    return helper(x)\n",
    "nested": "def f(x):\n    def inner():\n        pass\n    {}\n",
    "method": "class Kernel:\n  def __call__(self, x):\n    {}\n\nf = Kernel()\n",
}
LATE = "TIMES = 1\n\ndef scale(x):\n    return x * TIMES\n"


def text(folder: Path, bench: str, times: int = 1, other: int = 1) -> str:
    """The text of `f`, with a number in the module that it imports, and with one in another module."""
    folder.mkdir(exist_ok=True)
    late, unrelated = LATE.replace("1", str(times)), f"OTHER = {other}\n"
    module = loaded(
        folder,
        HEAD + bench + "\n\ndef load(name):\n    return importlib.import_module(name)\n",
        alone="from kit.late import scale",
        kit_in___init__="from .late import scale as exported" if "exported" in bench else "",
        kit_in_late=late,
        kit_in_steps=unrelated,
        kit_in_sub_in___init__="",
        kit_in_sub_in_deep="from ..late import scale\n\ndef everything(x):\n    from .. import late\n    return late.scale(x)\n",
        bare_in_late=late,
        unrelated=unrelated,
    )
    return source_of(module.f)


def is_computed(bench: str) -> bool:
    return any(each in bench for each in ("'kit.' +", "renamed(", "return load(", "getattr", "import_module('.late', package"))


def check(make: Callable[..., str], bench: str) -> None:
    before = make(bench)
    assert make(bench, times=9) != before
    if not is_computed(bench):
        assert make(bench, other=9) == before


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        pytest.param(body, shape, marks=() if place % len(SHAPES) == number else pytest.mark.thorough)
        for place, body in enumerate(INSIDE)
        for number, shape in enumerate(SHAPES)
    ],
)
def test_a_module_that_is_imported_inside_is_followed(tmp_path: Path, body: str, shape: str) -> None:
    check(lambda *each, **values: text(tmp_path / f"{values}", *each, **values), SHAPES[shape].format(body))


@pytest.mark.parametrize(("statement", "expression"), TOP)
def test_a_module_that_is_imported_at_the_top_is_followed(tmp_path: Path, statement: str, expression: str) -> None:
    bench = f"{statement}\n\ndef f(x):\n    return {expression}\n"
    check(lambda *each, **values: text(tmp_path / f"{values}", *each, **values), bench)


def test_a_name_that_another_function_will_import_is_followed(tmp_path: Path) -> None:
    bench = "def set_up():\n    global late\n    from kit import late\n\ndef f(x):\n    return late.scale(x)\n"
    check(lambda *each, **values: text(tmp_path / f"{values}", *each, **values), bench)


PLACES = [
    'HERE = os.path.dirname(__file__)\n\ndef f(x):\n    return open(os.path.join(HERE, "times.txt"))\n',
    'def f(x):\n    return (Path(__file__).parent / "data" / "times.txt").read_text()\n',
    'def f(x):\n    return open(os.path.join(os.path.dirname(__file__), f"{len(x)}.txt"))\n',
    "FILE = Path(__file__).with_name('times') .with_suffix('.txt')\n\ndef f(x):\n    return FILE.read_text()\n",
    "def make(folder):\n    def f(x, file=str(folder)):\n        return x, folder\n    return f\n\nf = make(os.path.dirname(__file__))\n",
    "def f(x):\n    return __name__\n",
]


@pytest.mark.parametrize("bench", PLACES)
def test_a_place_counts_by_the_files_that_are_read_there(tmp_path: Path, bench: str) -> None:
    def make(name: str, times: str) -> str:
        folder = tmp_path / name
        (folder / "data").mkdir(parents=True)
        for file in ("times.txt", "data/times.txt", "3.txt"):
            (folder / file).write_text(times)
        return source_of(loaded(folder, f"import os\nfrom pathlib import Path\n\n{bench}").f)

    before = make("first", "1")
    assert make("second", "1") == before
    assert str(tmp_path) not in before and "user_workload" not in before
    assert (make("third", "9") != before) is ("__name__" not in bench)


def test_a_place_with_too_much_to_read_is_equal_to_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpladder.workloads.declare.functions.trees._MOST_FILES", 1)
    texts = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for file in ("a.txt", "b.txt"):
            (tmp_path / name / file).touch()
        texts.add(source_of(loaded(tmp_path / name, "def f(x):\n    return __file__\n").f))
    assert len(texts) == 2


@pytest.mark.parametrize(
    "call",
    ["importlib.import_module('helpers.late')", "importlib.import_module('.late', 'helpers')", "__import__('helpers').late"],
)
def test_a_call_of_import_module_finds_the_modules_of_its_own_version(tmp_path: Path, call: str) -> None:
    found = []
    for times in (2, 3):
        (tmp_path / str(times)).mkdir()
        bench = f"import importlib\nimport helpers.late\n\ndef f(x):\n    return {call}.scale(x)\n\ndef g():\n    return importlib.import_module('json')\n"
        found.append(loaded(tmp_path / str(times), bench, helpers_in_late=f"def scale(x):\n    return {times} * x\n"))
    assert [each.f(1) for each in found] == [2, 3]
    assert found[0].g().__name__ == "json"
