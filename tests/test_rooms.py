"""What imports load, and what the rooms name. Who may import whom stands in pyproject.toml, which `make lint` checks."""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.trees import nodes
from warpladder.workloads import registry

pytestmark = [pytest.mark.xdist_group("trees"), pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent
OF_COMMANDS = {"click", "rich", "IPython"}
ROOMS_OF_THE_PROJECT = ("workloads", "collectors", "data", "dashboard")
FILES = sorted(file for room in ROOMS_OF_THE_PROJECT for file in (ROOT / room).rglob("*.py"))


@cache
def imports_of(file: Path) -> set[tuple[str, str]]:
    """Each module that a file imports, wherever in it, with the name that it takes from there; empty for the module itself."""
    found: set[tuple[str, str]] = set()
    for node in nodes(file):
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


def test_collectors_leave_arguments_and_the_screen_to_the_commands() -> None:
    for file in (file for file in FILES if file.relative_to(ROOT).parts[0] == "collectors"):
        assert not packages_imported(file) & OF_COMMANDS, file


def test_a_room_is_imported_as_one_of_the_package() -> None:
    assert [file for file in FILES if packages_imported(file) & set(ROOMS_OF_THE_PROJECT)] == []


def test_the_reader_of_sources_imports_nothing_of_the_project() -> None:
    assert not within_the_package(ROOT / "data" / "source_text.py")


COLLECTORS = ROOT / "collectors"
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in COLLECTORS.rglob("*.py")
}
MOST_FLOORS = 10


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
        "import sys, types, warpladder.collectors.child, warpladder.collectors.host.ceilings;"
        "from warpladder.collectors.core.worker import PipeReporter; from warpladder.collectors.wiring import collector_of;"
        "collector_of('host_clock').make_benches();"
        "PipeReporter(types.SimpleNamespace(send=repr), [0, 0], ()).rows('samples', []);"
        "print([m for m in ('pandas', 'numba', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_of_a_job_starts_without_what_only_recordings_and_answers_need() -> None:
    unneeded = {"rich", "adbc_driver_manager", "warpladder.workloads"}
    code = f"import sys, warpladder.collectors.jobs.rank; print(sorted({unneeded!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        (["list"], {"pandas", "pyarrow", "pydantic", "rich"}),
        (["runs"], {"pandas", "pydantic", "rich"}),
        (["doctor"], {"pandas", "pyarrow", "pydantic", "numpy"}),
        (["import", "absent.sqlite"], {"pandas", "pydantic", "rich", "numba", "warpladder.collectors.core.collector"}),
        (["record", "absent.py"], {"pandas", "pydantic", "rich", "numba", "warpladder.dashboard.core"}),
        (["record", "absent.py", "--against", "absent"], {"pandas", "pydantic", "rich", "numba", "warpladder.dashboard.core"}),
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
    "views": {"core", "trace", "ui", "views"},
    "text": {"core", "trace", "ui", "views", "text"},
}


def room_of(name: str) -> str:
    """The folder that a module is in; empty for what stands beside the folders."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""


def in_reports(name: str) -> bool:
    return name.startswith("dashboard.views.reports.")


def shows(name: str) -> bool:
    return name.endswith(("page", ".component"))


def test_nothing_that_a_query_or_a_chart_imports_draws_or_shows() -> None:
    """One process imports the queries first, of which none may draw, and then the charts."""
    queries, charts = (
        [name for name in DASHBOARD if room_of(name) in rooms and not shows(name)] for rooms in (("core", "trace"), ("views",))
    )
    code = (
        "import importlib, sys;"
        f"[importlib.import_module(f'warpladder.{{name}}') for name in {queries}];"
        "print(sorted({'plotly', 'streamlit'} & sys.modules.keys()));"
        f"[importlib.import_module(f'warpladder.{{name}}') for name in {charts}];"
        "print(sorted({'streamlit'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_no_module_of_the_dashboard_imports_itself_by_way_of_others() -> None:
    left = {name: modules_imported(name, DASHBOARD) - {name} for name in DASHBOARD}
    while free := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left, "these import each other, or what does"


def literals(file: Path) -> set[str]:
    """The strings of a module, those within f-strings too, without its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {id(node.body[0].value) for node in nodes(file) if isinstance(node, documented) and ast.get_docstring(node)}  # type: ignore[attr-defined]
    strings = [node for node in nodes(file) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {str(node.value) for node in strings if id(node) not in docs}


def test_only_the_reports_name_a_declared_workload_or_rung() -> None:
    declared = [registry.load(workload) for workload in registry.names()]
    rungs = {variant.name for workload in declared for variant in workload.variants if re.match(r"v\d|.*_", variant.name)}
    words = {workload.name for workload in declared} | rungs
    for name in (each for each in DASHBOARD if room_of(each) in ("core", "trace", "ui", "views") and not in_reports(each)):
        named = {word for text in literals(DASHBOARD[name]) for word in re.findall(r"\w+", text)}
        assert not named & words, name


#: Workloads of one problem in other types -> the workload with the files that they share.
_SHARE: Final = {
    "gemm_fp16": "gemm_bf16",
    "gemm_fp8": "gemm_bf16",
    "cnn_conv_bf16": "cnn_conv",
    "gan_tconv_bf16": "gan_tconv",
}


def test_every_workload_has_the_same_files_or_shares_them_with_one_in_other_types() -> None:
    for folder in (each for each in (ROOT / "workloads").iterdir() if (each / "workload.py").exists()):
        wanted = {"__init__.py", "problem.py", "rungs.py", "host.py", "peers.py", "workload.py", "kernels"}
        shared = ROOT / "workloads" / _SHARE.get(folder.name, folder.name)
        assert wanted <= {entry.name for each in (folder, shared) for entry in each.iterdir()}, folder.name
