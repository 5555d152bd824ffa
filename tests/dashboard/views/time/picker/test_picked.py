"""Variants picked out of a trace's ranges: samples, medians and suggestions counted by hand."""

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from tests.synthetic import made_traces
from tests.synthetic.made_traces import EXPRESSION
from warpladder.__main__ import command
from warpladder.collectors.nsight_systems.parse import import_report
from warpladder.dashboard.core import cells
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.trace import picked
from warpladder.dashboard.views.time.picker import query
from warpladder.dashboard.views.time.transfers import query as transfers
from warpladder.data import store
from warpladder.data.naming import Naming, NamingError

pytestmark = pytest.mark.slow

FIXTURE = Path(__file__).resolve().parents[4] / "fixtures" / "nsight-systems-2025.3" / "graph_traced_by_node" / "report.sqlite"


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return load(store.open_run(made_traces.write_annotated(tmp_path_factory.mktemp("runs"))))


def pick(data: RunData, expression: str) -> RunData:
    return picked.pick(data, Naming.parse(f"nvtx:{expression}"))


def test_texts_are_summed_over_closed_ranges_those_with_the_most_device_time_first(annotated: RunData) -> None:
    found = picked.texts(annotated)
    # Three ranges of 1500, 1510 and 1520 ns on the device and 2000, 2010 and 2020 ns on the host; the unclosed one does not count.
    assert found.head(2).to_numpy().tolist() == [["naive n=16", 3, 6_030, 4_530, 0], ["naive n=8", 3, 3_030, 1_530, 0]]
    assert found.tail(1).to_numpy().tolist() == [["load data", 2, 10_010, 0, 0]]
    assert found["n"].sum() == 15


def test_ranges_become_the_samples_of_variants(annotated: RunData) -> None:
    data = pick(annotated, EXPRESSION)
    frame = query.preview(data)
    assert frame[["variant", "case", "n", "device_ns", "operation_ns"]].to_numpy().tolist() == [
        ["naive", "n=8", 3, 510, 1_010],
        ["tiled", "n=8", 3, 260, 910],
        ["naive", "n=16", 3, 1_510, 2_010],
        ["tiled", "n=16", 3, 410, 1_110],
    ]
    assert data.workloads == ("report",)
    assert list(cells.charted_cases(data, "report")["size_value"]) == [8, 16]
    assert set(cells.cells(data)["gpus"]) == {1}
    ranges = data.traces.texts("ranges", "variant")
    assert pd.Series(ranges).value_counts().to_dict() == {"naive": 7, "tiled": 6}, "the unclosed range is named too"
    assert pd.Series(annotated.traces.texts("ranges", "variant")).isna().all(), "the run itself stays as it is"


def test_a_range_that_launched_nothing_has_a_host_time_alone(annotated: RunData) -> None:
    data = pick(annotated, "^(?P<variant>load data|setup)$")
    frame = query.preview(data).set_index("variant")
    assert frame.loc["setup", ["n", "device_ns", "operation_ns"]].tolist() == [1, 100, 9_000]
    assert pd.isna(frame.loc["load data", "device_ns"])
    assert frame.loc["load data", "operation_ns"] == 5_005
    alone = query.preview(pick(annotated, "^(?P<variant>load data)$"))
    assert alone["operation_ns"].tolist() == [5_005]
    assert alone["device_ns"].isna().all()


def test_what_was_picked_and_what_it_means_is_among_the_findings(annotated: RunData, tmp_path: Path) -> None:
    texts = list(pick(annotated, EXPRESSION).diagnostics["text"])
    assert texts[0] == f"Variants were picked on a page or by --variant-from, by nvtx:{EXPRESSION}"
    assert texts[1].startswith("13 NVTX ranges are taken as samples")
    assert len(texts) == 2
    # Both `step` of the first process are done on the device before they end on the host; `inner` is not.
    early = pick(load(store.open_run(made_traces.write(tmp_path))), "^(?P<variant>inner|step)$").diagnostics["text"]
    assert early.iloc[-1].startswith("1 of the named ranges end before the work that they launched")


def test_picking_again_replaces_what_was_picked_and_what_the_run_was_recorded_with(annotated: RunData, tmp_path: Path) -> None:
    again = pick(pick(annotated, EXPRESSION), "^(?P<variant>setup)$")
    assert list(again.variants["variant"]) == ["setup"]
    assert again.diagnostics["text"].str.startswith("Variants were picked").sum() == 1
    ours = load(store.open_run(made_traces.write_variants(tmp_path)))
    other = pick(ours, r"^(?P<variant>end_to_end)#(?P<case>\d)$")
    assert list(other.cases["case"]) == ["0", "1"]
    assert len(transfers.stages(other)) > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "expression",
    [r"graph (?P<case>\w+)|(?P<variant>\w+)", "^(?P<variant>[a-z]+)", r"^(?P<workload>.)(?P<variant>.*?)(?P<case>\d*)$"],
)
def test_a_picked_run_equals_one_that_was_imported_with_that_naming(tmp_path: Path, expression: str) -> None:
    chosen = Naming.parse(f"nvtx:{expression}")
    imported = load(store.open_run(tmp_path / import_report(FIXTURE, tmp_path, "", chosen, [])))
    ours = picked.pick(load(store.open_run(tmp_path / import_report(FIXTURE, tmp_path, "", None, []))), chosen)
    for table in ("variants", "cases", "results"):
        pd.testing.assert_frame_equal(getattr(ours, table), getattr(imported, table))
    key = ["workload", "variant", "config", "case", "scope", "round"]
    both = [
        data.samples.astype(dict.fromkeys(key[:-1], "str")).sort_values(key, ignore_index=True) for data in (ours, imported)
    ]
    assert len(both[0]) > 0
    pd.testing.assert_frame_equal(both[0].astype({"cache": "str"}), both[1].astype({"cache": "str"}))
    for column in ("workload", "variant", "config", "case"):
        assert list(ours.traces.texts("ranges", column)) == list(imported.traces.texts("ranges", column))


@pytest.mark.parametrize(
    ("expression", "says"),
    [("(?P<variant>nowhere)", "finds no range"), ("(?P<variant>)", "finds no range")],
)
def test_a_pattern_that_gives_nothing_is_refused_in_one_line(annotated: RunData, expression: str, says: str) -> None:
    with pytest.raises(NamingError, match=says) as refused:
        pick(annotated, expression)
    assert "\n" not in str(refused.value)


def test_a_run_without_ranges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NamingError, match="no NVTX ranges"):
        pick(load(store.open_run(made_traces.write(tmp_path, without=("ranges",)))), EXPRESSION)


@pytest.mark.thorough
def test_an_export_of_picked_variants_has_their_charts_and_says_by_what_they_were_picked(tmp_path: Path) -> None:
    made_traces.write_annotated(tmp_path)
    order = ["export", "annotated", "--data-dir", str(tmp_path), "--format", "csv", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command(), [*order, "--variant-from", f"nvtx:{EXPRESSION}"])
    assert done.exit_code == 0, done.output
    assert list((tmp_path / "out").glob("ladder-report-*.csv"))
    assert "Variants were picked on a page or by --variant-from" in (tmp_path / "out" / "report.html").read_text()
    refused = CliRunner().invoke(command(), [*order, "--variant-from", "gemm"])
    assert refused.exit_code == 2
    assert "has to start with nvtx:" in refused.output


def test_more_variants_or_cells_than_a_page_can_show_are_refused(annotated: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picked, "MOST_CELLS", 3)
    with pytest.raises(NamingError, match="gives 4 cells, and a page compares up to 3"):
        pick(annotated, EXPRESSION)
    monkeypatch.setattr(picked, "MOST_VARIANTS", 1)
    with pytest.raises(NamingError, match="gives 2 variants, and a page compares up to 1"):
        pick(annotated, EXPRESSION)
    monkeypatch.setattr(picked, "MOST_TEXTS", 5)
    with pytest.raises(NamingError, match="6 distinct texts, too many"):
        pick(annotated, EXPRESSION)


def test_texts_that_differ_in_one_word_and_in_numbers_are_the_first_suggestion(annotated: RunData) -> None:
    first = query.suggestions(annotated).iloc[0]
    assert first[["expression", "variants", "cases", "names", "n"]].tolist() == [
        r"^(?P<variant>\w+) (?P<case>n=\d+)$", 2, 2, "naive, tiled", 12,
    ]  # fmt: skip
    # 8070 of 8170 ns on the device.
    assert first["percent"] == pytest.approx(100 * 8_070 / 8_170)
    assert len(query.preview(pick(annotated, first["expression"]))) == 4


@pytest.mark.parametrize(
    ("texts", "expression"),
    [
        (("conv/naive/64", "conv/tiled/64", "gemm/naive/64", "gemm/tiled/64"), r"^(?P<workload>\w+)/(?P<variant>\w+)/64$"),
        (("n=8 naive_n1", "n=8 tiled.x", "n=9 tiled.x"), r"^(?P<case>n=\d+) (?P<variant>[\w.-]+)$"),
        (("naive_n8", "naive_n16", "tiled_n8", "tiled_n16"), r"^(?P<variant>\w+)_n(?P<case>\d+)$"),
        (("run (naive)", "run (tiled)"), r"^run \((?P<variant>\w+)\)$"),
    ],
)
def test_suggestions_follow_the_words_and_numbers_in_which_texts_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], expression: str
) -> None:
    monkeypatch.setattr(made_traces, "ANNOTATED", tuple((text, 100, 50, 2) for text in texts))
    data = load(store.open_run(made_traces.write_annotated(tmp_path, unclosed=False)))
    assert query.suggestions(data)["expression"].iloc[0] == expression


def test_texts_that_have_nothing_in_common_give_no_suggestion_with_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_traces, "ANNOTATED", (("alone", 10, 5, 2),))
    assert query.suggestions(load(store.open_run(made_traces.write_annotated(tmp_path, unclosed=False)))).empty


def test_a_text_with_placeholders_is_a_pattern_whose_other_characters_mean_themselves() -> None:
    assert query.written(" a+b {variant} n={case}") == r"^a\+b (?P<variant>.+?) n=(?P<case>.+?)$"
    assert query.written(r"nvtx:(?P<variant>\d{3})") == r"(?P<variant>\d{3})"
    assert query.written("plain") == "plain"


def test_chosen_texts_are_variants_whole_or_by_how_they_begin(annotated: RunData) -> None:
    whole = query.of_texts(["naive n=8", "tiled n=8"], beginnings=False)
    assert list(query.preview(pick(annotated, whole))["variant"]) == ["naive n=8", "tiled n=8"]
    begin = pick(annotated, query.of_texts(["naive", "tiled"], beginnings=True))
    assert list(query.preview(begin)["case"]) == ["n=8", "n=8", "n=16", "n=16"]


def test_the_command_line_is_that_of_the_importer() -> None:
    assert query.command(Naming.parse("nvtx:(?P<variant>a)"), "r.sqlite") == (
        "warpladder import r.sqlite --variant-from 'nvtx:(?P<variant>a)'"
    )
