"""The pages of docs/kernels/: their figures are those of the shipped runs, their code is that of the rungs, and none is missing."""

import re
from pathlib import Path
from typing import Final

import pytest

from benchmarks import ideas
from benchmarks.ideas import Gain, gains_of
from tests.doc_pages import blocks_of
from warpladder.dashboard.ui.ideas import Idea, ideas_of
from warpladder.data import store
from warpladder.workloads import registry

pytestmark = pytest.mark.slow

IDEAS: Final = ideas.IDEAS
ROOT: Final = Path(__file__).resolve().parents[2]
EVERY: Final = pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.name)
PAIR: Final = Gain("conv2d", "n=8192", "v09_loads_first", "v10_stacked_warps[rows=2,warps=4]")


# -- the pages -----------------------------------------------------------------------------------------------------


def test_every_page_has_an_idea_every_idea_a_page_and_gains() -> None:
    names = [idea.name for idea in IDEAS]
    assert sorted(names) == sorted(file.stem for file in ideas.PAGES.iterdir())
    assert len({idea.title for idea in IDEAS}) == len(IDEAS)
    assert all(map(gains_of, IDEAS))


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    return ideas.texts()


@pytest.mark.thorough
@pytest.mark.parametrize("file", [ideas.INDEX, *(idea.page for idea in IDEAS)], ids=lambda file: file.name)
def test_the_figures_of_a_page_are_those_of_the_shipped_runs(file: Path, texts: dict[Path, str]) -> None:
    assert file.read_text() == texts[file], "write them again: python -m benchmarks.ideas"


@EVERY
def test_a_page_has_the_headings_of_all_pages(idea: Idea) -> None:
    lines = idea.page.read_text().splitlines()
    assert [line for line in lines if line.startswith("#") and not line.startswith("#p")] == [
        f"# {idea.title}",
        *(f"## {heading}" for heading in ("When it pays", ideas.GAIN, "Rungs", "Sources")),
    ]


@EVERY
def test_the_code_of_a_page_stands_in_a_kernel_of_the_idea(idea: Idea) -> None:
    files = [file for name in {name for _, name, _ in idea.rungs} for file in (ROOT / "workloads" / name / "kernels").iterdir()]
    sources = [
        stripped(file.read_text())
        for file in files
        if file.suffix == ".cuh" or named(file) in {kernel for kernel, *_ in idea.rungs}
    ]
    for block in blocks_of(idea.page):
        assert block.language == "text" or any(stripped(block.text) in source for source in sources), str(block)


def stripped(text: str) -> str:
    return "".join(f"\n{line.strip()}" for line in text.splitlines()) + "\n"


def named(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


# -- the table -----------------------------------------------------------------------------------------------------


@EVERY
def test_the_rungs_of_an_idea_are_rungs_of_their_workloads(idea: Idea) -> None:
    assert idea.rungs
    for kernel, name, variant in idea.rungs:
        rungs = {each.name: each.source_path for each in registry.load(name).variants if each.role == "rung"}
        assert rungs.get(variant) == kernel


@pytest.mark.sampled(2)
@EVERY
def test_an_idea_won_somewhere_and_its_pairs_end_at_its_rungs(idea: Idea) -> None:
    assert "faster" in [ideas.measured(gain).verdict for gain in gains_of(idea)]
    for gain in gains_of(idea):
        assert (gain.workload, gain.after.partition("[")[0]) in {rung[1:] for rung in idea.rungs}


def test_the_ideas_of_a_rung_are_found_by_its_kernel_file() -> None:
    found = ideas_of("workloads/conv2d/kernels/v11_shuffled_halo.cu")
    assert [idea.name for idea in found] == ["halo-from-neighbours", "loads-first", "sliding-window"]
    for other in ("", "v11_shuffled_halo.cu", "workloads/conv2d/kernels/v01_copy.cu"):
        assert not ideas_of(other)


# -- the figures ---------------------------------------------------------------------------------------------------


def test_a_gain_is_the_ratio_of_the_medians_of_one_run() -> None:
    found = ideas.measured(PAIR)
    samples = store.find_run(found.run, [store.RECORDED]).table("samples")
    cell = samples[(samples["case"] == "n=8192") & (samples["scope"] == "device") & (samples["cache"] == "cold")]
    medians = cell.groupby(["variant", "config"])["duration_ns"].median()
    before, after = medians["v09_loads_first"].min(), medians["v10_stacked_warps", "rows=2,warps=4"]
    assert (found.before_ns, found.after_ns, found.ratio.value) == (before, after, pytest.approx(before / after))
    assert found.verdict == "slower"


def test_a_gain_of_several_gpus_takes_the_samples_that_they_took_together() -> None:
    found = ideas.measured(Gain("mlp_data_parallel", "batch=32768", "v02_nccl", "v03_overlapped", "operation", 2))
    run = store.find_run(found.run, [store.RECORDED])
    samples = run.table("samples").query(
        "case == 'batch=32768' and scope == 'operation' and gpus == 2 and variant == 'v02_nccl'"
    )
    slowest = samples.groupby(["process", "round", "position"])["duration_ns"].max()
    assert found.before_ns == slowest.median()


def test_a_pair_that_no_shipped_run_has_is_told_by_name() -> None:
    gain = Gain("conv2d", "n=8192", "v09_loads_first", "v99_none")
    with pytest.raises(
        ideas.NotShipped, match=r"^conv2d, n=8192: no shipped run has both v09_loads_first and v99_none in device$"
    ):
        ideas.measured(gain)


def test_a_section_is_replaced_up_to_the_next_heading_and_the_rest_stays() -> None:
    page = "# Title\n\ntext\n\n## Rungs\n\nold\n\n## Sources\n\n- own\n"
    assert ideas.with_section(page, "Rungs", "new\n") == "# Title\n\ntext\n\n## Rungs\n\nnew\n\n## Sources\n\n- own\n"
    assert ideas.with_section(page, "Sources", "new\n") == page.replace("- own", "new")
    with pytest.raises(ValueError, match="lacks the heading: ## Figures"):
        ideas.with_section(page, "Figures", "new\n")


def test_a_table_has_a_line_under_its_headings() -> None:
    assert ideas.table(("a", "b c"), [("1", "2"), ("3", "`4`")]) == "| a | b c |\n|---|---|\n| 1 | 2 |\n| 3 | `4` |\n"


@EVERY
def test_the_table_of_rungs_has_every_rung_that_the_text_names(idea: Idea) -> None:
    table = idea.text.partition("## Rungs")[2].partition("##")[0]
    assert {kernel for kernel, *_ in idea.rungs} == set(re.findall(r"\]\(\.\./\.\./(workloads/[^)]+)\)", table))
