"""A source with its included files in place, and the files of such a text again."""

import re
from pathlib import Path

import pytest

from warpladder.data import source_text
from warpladder.workloads import registry
from warpladder.workloads.api import CudaVariant

OF_FILES = {
    name: [v for v in registry.load(name).variants if isinstance(v, CudaVariant) and v.source_file] for name in registry.names()
}


def without_includes(text: str) -> str:
    return re.sub(r'^#include ".*$', "#include", text, flags=re.MULTILINE)


@pytest.mark.parametrize("workload", OF_FILES)
def test_the_text_of_a_rung_has_its_files_again_each_once(workload: str) -> None:
    for variant in OF_FILES[workload]:
        file = variant.source_file
        assert file
        found = source_text.files(variant.source_text, file.name)
        assert next(iter(found)) == file.name
        on_disk = {each.name: each.read_text() for each in source_text.files_of(file)}
        assert {Path(name).name for name in found} == set(on_disk), variant.name
        for name, text in found.items():
            assert without_includes(text) == without_includes(on_disk[Path(name).name]), variant.name


def test_a_file_that_is_included_twice_is_there_once_and_a_directive_of_its_own_stays(tmp_path: Path) -> None:
    (tmp_path / "inner.cuh").write_text('#pragma once\n#line 7 "made.y"\nint a;\n')
    (tmp_path / "outer.cuh").write_text('#include "inner.cuh"\nint b;')
    top = tmp_path / "top.cu"
    top.write_text('#include "outer.cuh"\n#include "inner.cuh"\nint c;\n')
    assert source_text.files(source_text.read(top), "top.cu") == {
        "top.cu": '#include "outer.cuh"\n#include "inner.cuh"\nint c;\n',
        "outer.cuh": '#include "inner.cuh"\nint b;\n',
        "inner.cuh": '#pragma once\n#line 7 "made.y"\nint a;\n',
    }


def test_a_text_without_includes_is_one_file() -> None:
    assert source_text.files("int a;\n", "v01") == {"v01": "int a;\n"}
