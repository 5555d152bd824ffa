"""A run of `record --against` on the pages: they show the file's own version, and Compare judges it by the other one."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.dashboard.pages import rows
from tests.dashboard.test_app import Open, open_app, words
from tests.synthetic import made_runs
from warpladder.__main__ import command
from warpladder.dashboard.compare.versions import compare_in_rounds, other_version, own_version
from warpladder.dashboard.core import run_data
from warpladder.data import store

pytestmark = pytest.mark.slow

__all__ = ["open_app"]

#: `v01_direct` is as in the other version, and `v02_tiled` was twice as fast there.
OWN = made_runs.Made("conv2d", "v01_direct", "One thread a pixel", "rung", "cuda", {"": 0.5})
TILED = replace(OWN, name="v02_tiled", title="A tile for each block", share={"": 0.3})


def write(folder: Path, option: str, variants: tuple[made_runs.Made, ...]) -> Path:
    """A run that was recorded with an option; the folder that has it alone, so that Compare has no other one to offer."""
    path = made_runs.write_variants(folder, "changed", "my change", variants, 12, 7, on_gpu=True)
    table = pq.read_table(path / "run.parquet")
    told = pa.array([f"warpladder record bench.py {option}"])
    pq.write_table(table.set_column(table.column_names.index("command"), "command", told), path / "run.parquet")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("versions")
    variants = (
        OWN,
        TILED,
        replace(OWN, name="v01_direct@main"),
        replace(TILED, name="v02_tiled@main", title="A larger tile", share={"": 0.6}),
    )
    return write(made, "--against main", variants)


def test_home_gives_the_verdict_about_the_own_version_and_ranks_its_variants_alone(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "home", run="changed")
    assert "Against main: " in words(app) and " slower, " in words(app) and "v02_tiled, 1.994x" in words(app)
    assert rows(app)["Best rung"].tolist() == ["v01_direct"], "v02_tiled@main is faster, and no variant of the file"


def test_compare_judges_the_own_version_by_the_other_one_at_first(open_app: Open, folder: Path) -> None:
    app = open_app(folder, "compare", run="changed")
    assert app.selectbox(key="choose with").options == ["main, in the same rounds", "this run: two of its variants"]
    assert "v02_tiled: B takes 1.994 " in words(app) and "times as long as A; slower" in words(app)
    assert not any(each.key == "choose judge" for each in app.selectbox), "all ratios are of rounds"
    app.selectbox(key="choose with").select_index(1).run()
    assert app.selectbox(key="choose b").options == ["v01_direct", "v02_tiled"]


def test_the_first_recording_of_a_watched_file_has_no_other_version(open_app: Open, tmp_path: Path) -> None:
    app = open_app(write(tmp_path, "--watch", (OWN, TILED)), "home", run="changed")
    assert "v01_direct wins with" in words(app) and "Against" not in words(app)


def test_the_command_judges_two_versions_of_a_variant_as_the_recording_did(folder: Path) -> None:
    data = run_data.load(store.find_run("changed", [folder]))
    expected = {
        (each.case, each.config): each
        for each in compare_in_rounds(own_version(data), other_version(data)).changes
        if each.variant == "v02_tiled"
    }

    def compared(a: str, b: str, *options: str) -> str:
        done = CliRunner().invoke(command(), ["compare", f"changed@{a}", f"changed@{b}", *options, "--data-dir", str(folder)])
        assert done.exit_code in (0, 1), done.output
        return done.stdout

    found = json.loads(compared("v02_tiled@main", "v02_tiled", "--format", "json"))["changes"]
    assert {(each["variant"], each["verdict"]) for each in found} == {("v02_tiled", "slower")} and len(found) == len(expected)
    for each in found:
        one = expected[each["case"], each["config"]]
        assert (each["ratio"]["value"], each["noise"]) == pytest.approx((one.ratio.value, one.noise))
    assert compared("v02_tiled", "v02_tiled@main").startswith("A: my change\nB: main (changed)\n")
    assert "v02_tiled@main → v01_direct" in compared("v02_tiled@main", "v01_direct"), (
        "another variant is compared as in any run"
    )
