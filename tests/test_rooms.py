"""The arrows between the rooms: who may import whom."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from warpladder.workloads import registry

ROOT = Path(__file__).resolve().parent.parent
#: Room -> the rooms that it may import.
ALLOWED = {
    "data": {"data"},
    "workloads": {"workloads"},
    "collectors": {"collectors", "workloads", "data"},
    "dashboard": {"dashboard", "data"},
}
#: The module that `workloads` imports besides: kernel sources are read in one place, for compiling, recording and comparing.
READER_OF_SOURCES = {"data.source_text"}
#: What all rooms may import of the face, and what of `collectors` may not be imported or called there.
OF_THE_FACE = {"errors", "installation"}
OF_COMMANDS = {"click", "rich", "IPython"}
FILES = sorted(file for room in ALLOWED for file in (ROOT / room).rglob("*.py"))


@cache
def imports_of(file: Path) -> set[tuple[str, str]]:
    """Each module that a file imports, wherever in it, with the name that it takes from there; empty for the module itself."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{file}: import by the full name"
            found |= {(node.module, alias.name) for alias in node.names}
    return found


def packages_imported(file: Path) -> set[str]:
    return {module.split(".")[0] for module, _ in imports_of(file)}


def within_the_package(file: Path) -> set[str]:
    """The modules of the project that a file imports, and the names that it takes from them, without `warpladder` before them."""
    names = {f"{module}.{taken}".rstrip(".") for module, taken in imports_of(file)}
    return {name.removeprefix("warpladder.") for name in names if name.startswith("warpladder.")}


def modules_imported(name: str, modules: Mapping[str, Path]) -> set[str]:
    """Those of these modules that one of them imports."""
    found = within_the_package(modules[name])
    return {each if each in modules else each.rpartition(".")[0] for each in found} & modules.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_room_imports_only_the_rooms_that_the_design_allows(file: Path) -> None:
    room = file.relative_to(ROOT).parts[0]
    assert not packages_imported(file) & ALLOWED.keys(), "import a room as one of warpladder's"
    names = within_the_package(file)
    besides = READER_OF_SOURCES if room == "workloads" else set()
    assert {name.split(".")[0] for name in names - besides} <= ALLOWED[room] | OF_THE_FACE


def test_collectors_leave_arguments_and_the_screen_to_the_commands() -> None:
    for file in (file for file in FILES if file.relative_to(ROOT).parts[0] == "collectors"):
        assert not packages_imported(file) & OF_COMMANDS, file


def test_the_reader_of_sources_imports_nothing_of_the_project() -> None:
    assert not within_the_package(ROOT / "data" / "source_text.py")


COLLECTORS = ROOT / "collectors"
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in COLLECTORS.rglob("*.py")
}
#: Folder of `collectors/` -> those that it imports. Files of no folder are the top: they import all, and none of these imports them.
BELOW: dict[str, set[str]] = {
    "core": set(),
    "trace": {"core"},  # the texts of ranges
    "host": {"core"},
    "cuda": {"core", "host"},  # what the host waits for the device is timed as the host's own work is
    "ranks": {"core", "cuda"},  # every rank times NCCL's average on its own GPU
    "cupti": {"trace"},
    "nsight_systems": {"core", "trace"},
    "nsight_compute": {"core", "trace"},
    "programs": {"core", "trace", "nsight_systems"},  # the programs run once more under nsys
    "watch": {"core"},
}
MOST_FLOORS = 8


def folder_of(module: str) -> str:
    """Its folder of `collectors/`; empty for the top."""
    parts = MODULES[module].relative_to(COLLECTORS).parts
    return parts[0] if len(parts) > 1 else ""


def floors() -> dict[str, int]:
    """Module -> its floor: one above the highest that it imports. Raises AssertionError for a circle."""
    found: dict[str, int] = {}

    def floor_of(module: str, below: tuple[str, ...]) -> int:
        assert module not in below, f"a circle: {' -> '.join([*below[below.index(module) :], module])}"
        if module not in found:
            found[module] = 1 + max(
                (floor_of(other, (*below, module)) for other in modules_imported(module, MODULES)), default=0
            )
        return found[module]

    for module in MODULES:
        floor_of(module, ())
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_folder_of_the_collectors_imports_only_those_below_it(module: str) -> None:
    folder = folder_of(module)
    others = {folder_of(other) for other in modules_imported(module, MODULES)} - {folder}
    assert not folder or others <= BELOW[folder]


def test_every_folder_of_the_collectors_has_its_place() -> None:
    assert {folder_of(module) for module in MODULES} - {""} == BELOW.keys()


def test_no_collector_s_module_imports_another_in_a_circle_and_floors_are_few() -> None:
    found = floors()
    assert max(found.values()) <= MOST_FLOORS, {module: floor for module, floor in found.items() if floor > MOST_FLOORS}


def test_only_the_store_touches_parquet() -> None:
    users = {
        str(file.relative_to(ROOT))
        for file in FILES
        if "pyarrow.parquet" in file.read_text() or "_parquet(" in file.read_text()
    }
    assert users and all(user.startswith("data/store/") for user in users)


def test_the_dashboard_and_the_workloads_import_no_gpu_package() -> None:
    for file in (file for file in FILES if file.relative_to(ROOT).parts[0] == "dashboard"):
        assert not packages_imported(file) & {"cupy", "torch", "cuda", "pynvml"}, file


def test_listing_the_workloads_loads_neither_cupy_nor_torch_nor_numba() -> None:
    code = (
        "import sys; from warpladder.workloads import registry; registry.load_all([], []);"
        "print([m for m in ('cupy', 'torch', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_without_a_gpu_package() -> None:
    code = "import sys; from warpladder.__main__ import command; command(); print([m for m in ('cupy', 'cuda', 'pynvml', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_process_that_measures_starts_without_what_only_the_recorder_needs() -> None:
    code = (
        "import sys, warpladder.collectors.core.worker, warpladder.collectors.child; from warpladder.collectors.wiring import collector_of;"
        "collector_of('host_clock').make_benches(); print([m for m in ('pandas', 'numba', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        (["list"], {"pandas", "pyarrow", "pydantic", "rich"}),
        (["runs"], {"pandas", "pydantic", "rich"}),
        (["doctor"], {"pandas", "pyarrow", "pydantic", "numpy"}),
        (["import", "absent.sqlite"], {"pydantic", "rich", "numba", "warpladder.collectors.core.record"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_imports_nothing_slow_that_it_has_no_use_for(command: list[str], unneeded: set[str], tmp_path: Path) -> None:
    data_dir = ["--data-dir", str(tmp_path)] if command[0] in ("runs", "import") else []
    code = (
        "import sys, atexit; from warpladder.__main__ import command;"
        f"atexit.register(lambda: print(sorted({unneeded!r} & sys.modules.keys()), file=sys.stderr)); command()({[*command, *data_dir]!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]"


DASHBOARD = {
    file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): file
    for file in FILES
    if file.relative_to(ROOT).parts[0] == "dashboard"
}
#: Folders of the dashboard, and those that each may import from. What stands beside the folders may import from all.
ROOMS = {
    "core": {"core"},
    "trace": {"core", "trace"},
    "ui": {"core", "trace", "ui"},
    "reports": {"core", "trace", "ui", "reports"},
    "views": {"core", "trace", "ui", "reports", "views"},
    "text": {"core", "trace", "ui", "views", "text"},
}


def room_of(name: str) -> str:
    """The folder that a module is in; empty for what stands beside the folders."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def question_of(name: str) -> str:
    """The folder of a view, or of a detail of the reports, that a module is in; empty for any other module."""
    parts = name.split(".")
    within = len(parts) > 2 and parts[1] in ("views", "reports") and DASHBOARD[".".join(parts[:3])].name == "__init__.py"
    return ".".join(parts[1:3]) if within else ""


def draws(name: str) -> bool:
    return name.endswith("chart")


def shows(name: str) -> bool:
    return name.endswith(("page", ".component"))


@pytest.mark.parametrize("name", [name for name in DASHBOARD if room_of(name)])
def test_a_folder_of_the_dashboard_imports_only_those_that_the_design_allows(name: str) -> None:
    assert {room_of(other) for other in modules_imported(name, DASHBOARD)} <= ROOMS[room_of(name)]


@pytest.mark.parametrize("name", [name for name in DASHBOARD if question_of(name)])
def test_no_view_imports_another_and_no_detail_of_the_reports_another(name: str) -> None:
    alike = {question_of(other) for other in modules_imported(name, DASHBOARD) if room_of(other) == room_of(name)}
    assert alike <= {question_of(name), ""}


@pytest.mark.parametrize("name", [name for name in DASHBOARD if room_of(name) in ("core", "trace", "views", "reports")])
def test_queries_neither_draw_nor_show_and_charts_do_not_show(name: str) -> None:
    packages = packages_imported(DASHBOARD[name])
    assert shows(name) or "streamlit" not in packages
    assert shows(name) or draws(name) or "plotly" not in packages


@pytest.mark.parametrize(
    ("wanted", "unneeded"),
    [(lambda name: not draws(name), {"plotly", "streamlit"}), (lambda name: True, {"streamlit"})],
    ids=["queries", "charts"],
)
def test_nothing_that_a_query_or_a_chart_imports_draws_or_shows(wanted: Callable[[str], bool], unneeded: set[str]) -> None:
    of_questions = [name for name in DASHBOARD if room_of(name) in ("core", "trace", "views", "reports")]
    code = (
        f"import importlib, sys; [importlib.import_module(f'warpladder.{{name}}') for name in {[n for n in of_questions if wanted(n) and not shows(n)]}];"
        f"print(sorted({unneeded!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_of_the_dashboard_imports_itself_by_way_of_others() -> None:
    left = {name: modules_imported(name, DASHBOARD) - {name} for name in DASHBOARD}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left, "these import each other, or what does"


def literals(tree: ast.Module) -> set[str]:
    """The strings of a module, those within f-strings too, without its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)}  # type: ignore[attr-defined]
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {str(node.value) for node in strings if id(node) not in docs}


@pytest.mark.parametrize("name", [name for name in DASHBOARD if room_of(name) in ("core", "trace", "ui", "views")])
def test_only_the_reports_name_a_declared_workload_or_rung(name: str) -> None:
    declared = [registry.load(workload) for workload in registry.names()]
    rungs = {variant.name for workload in declared for variant in workload.variants if re.match(r"v\d|.*_", variant.name)}
    named = {word for text in literals(ast.parse(DASHBOARD[name].read_text())) for word in re.findall(r"\w+", text)}
    assert not named & ({workload.name for workload in declared} | rungs)


def test_every_workload_has_the_same_files() -> None:
    for folder in (each for each in (ROOT / "workloads").iterdir() if (each / "workload.py").exists()):
        wanted = {"__init__.py", "problem.py", "rungs.py", "host.py", "peers.py", "workload.py", "kernels"}
        assert wanted <= {entry.name for entry in folder.iterdir()}, folder.name
