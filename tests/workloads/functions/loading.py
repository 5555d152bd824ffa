"""Loads a benchmark's file for tests of its sources."""

import subprocess
import sysconfig
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpladder.workloads.declare import neighbours
from warpladder.workloads.declare.functions.sources import source_of


def loaded(folder: Path, text: str, **beside: str) -> ModuleType:
    """A file `bench.py` with others beside it, run as a workload file is."""
    for name, content in beside.items():
        file = folder / (name.replace("_in_", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(content))
    (folder / "bench.py").write_text(textwrap.dedent(text))
    return neighbours.load(folder / "bench.py")


def text_of(function: Any) -> list[str]:
    """The text in parts: what blank lines separate."""
    return source_of(function).rstrip("\n").split("\n\n")


EXTENSION = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject* twice(PyObject* self, PyObject* x) { return PyNumber_Add(x, x); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, "x + x"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""


def build_extension(folder: Path, text: str = EXTENSION) -> Path:
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        pytest.skip("Python's headers are not installed")
    (folder / "fast.c").write_text(text)
    made = folder / f"fast{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{include}", "-o", str(made), str(folder / "fast.c")], check=True)
    return made
