"""The wheel, installed in an environment of its own, from a folder with modules that are named as the rooms are."""

import csv
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.browser.pages import expect, open_page, serving, sync_api

#: It builds a wheel, and installs it.
pytestmark = pytest.mark.thorough

ROOT: Final = Path(__file__).resolve().parents[2]
BENCH: Final = """
import numpy as np

import data
import workloads
from utils import FACTOR
from warpladder.workloads.api import Buffer, Case, HostVariant, Workload


def scaled(case, inputs, outputs):
    np.multiply(inputs["x"], FACTOR, out=outputs["y"])


WORKLOAD = Workload(
    name=data.NAME, title=workloads.TITLE, cases=(Case({"n": 1000}, flops=1000, min_bytes=8000, sets=("quick",)),),
    variants=(HostVariant("numpy", "NumPy", "host", run=scaled),),
    buffers=lambda case: ({"x": Buffer((1000,))}, {"y": Buffer((1000,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(1000, dtype=np.float32)},
    reference=lambda case, inputs: {"y": FACTOR * inputs["x"].astype(np.float64)},
)
"""


@dataclass(frozen=True)
class Installed:
    """The wheel's file, the folder of the environment's programs, a user's folder, and the environment variables of a user."""

    wheel: Path
    programs: Path
    folder: Path
    variables: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        program = str(self.programs / command[0])
        return subprocess.run([program, *command[1:]], cwd=self.folder, env=self.variables, capture_output=True, text=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel alone is in the environment; what it depends on is found where the tests' own packages are."""
    made = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)], cwd=ROOT, check=True)
    (wheel,) = made.glob("*.whl")
    venv.create(made / "env", with_pip=False, symlinks=True)
    python = made / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True)
    (packages,) = (made / "env" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    folder = made / "mine"
    folder.mkdir()
    texts = {
        "data": "NAME = 'mine'",
        "workloads": "TITLE = 'My own'",
        "utils": "FACTOR = 3.0",
        "random": "0 / 0",
        "bench": BENCH,
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG", "WARPLADDER"))}
    return Installed(wheel, python.parent, folder, {**variables, "HOME": str(made / "home")})


@pytest.fixture(scope="module")
def recorded(installed: Installed) -> str:
    """Id of a run of the user's file."""
    done = installed.run("warpladder", "record", "bench.py", "--collector", "host_clock", "--max-rounds", "6")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_wheel_has_one_package_with_runs_figures_kernels_and_none_of_this_machine(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"warpladder"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    rooms = {name for name in tracked if name.startswith(("collectors/", "dashboard/", "data/", "workloads/"))}
    assert {name.removeprefix("warpladder/") for name in names} >= rooms
    pages = {name.replace("docs/kernels/", "warpladder/ideas/") for name in tracked if name.startswith("docs/kernels/")}
    assert pages and {name for name in names if name.startswith("warpladder/ideas/")} == pages
    assert not [name for name in names if "/data/local/" in name or "__pycache__" in name or "/tests/" in name]


def test_it_records_a_users_file_beside_modules_that_are_named_as_its_own(installed: Installed, recorded: str) -> None:
    assert (installed.folder.parent / "home" / ".local" / "share" / "warpladder" / "runs" / recorded).is_dir()
    answer = installed.run("warpladder", "summary", recorded, "--format", "csv")
    assert next(csv.DictReader(answer.stdout.splitlines()))["best"] == "numpy", answer.stderr


def test_it_records_under_a_tool_that_starts_the_program_itself(installed: Installed) -> None:
    code = (
        "from pathlib import Path; from warpladder.collectors.core import under_tool; from warpladder.collectors.core.plan import Request;"
        "request = Request(files=[Path('bench.py')], max_rounds=6);"
        "run, *_ = under_tool.record_inside(['env'], request, 'host_clock', Path('inside').resolve());"
        "print(run.table('results')['status'].tolist())"
    )
    done = installed.run("python", "-P", "-c", code)
    assert done.stdout == "['ok']\n", done.stderr


def test_its_runs_are_listed_with_those_that_ship(installed: Installed, recorded: str) -> None:
    listed = installed.run("warpladder", "runs").stdout
    shipped = {folder.name for folder in (ROOT / "data" / "recorded").iterdir() if folder.is_dir()}
    assert {line.split()[0] for line in listed.splitlines()} == {recorded, *shipped}


def test_its_doctor_names_its_extras(installed: Installed) -> None:
    said = " ".join(installed.run("warpladder", "doctor").stdout.split())
    assert "pip install 'warpladder[peers]'" in said


def test_it_brings_no_other_name(installed: Installed) -> None:
    names = ("collectors", "dashboard", "data", "workloads", "tests", "benchmarks")
    code = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    done = installed.run("python", "-P", "-c", code)
    assert done.stdout.strip() == "[]", done.stderr


def test_its_dashboard_opens_with_the_users_run(
    installed: Installed, recorded: str, page: "sync_api.Page", tmp_path: Path
) -> None:
    program = (str(installed.programs / "warpladder"),)
    with serving(tmp_path / "log", program=program, cwd=installed.folder, env=installed.variables) as url:
        open_page(page, f"{url}/ladder?run={recorded}")
        expect(page.locator("body")).to_contain_text("mine, n=1000: numpy reaches")
