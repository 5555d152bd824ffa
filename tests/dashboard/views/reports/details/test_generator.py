"""A generation by its parts, on samples whose medians are known, counted by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.pages import lead
from tests.synthetic import made_runs
from tests.synthetic.made_runs import row, run_row
from warpladder.dashboard import export
from warpladder.dashboard.core import run_data
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.ui.template import look
from warpladder.dashboard.views.reports.details import generator, table_4
from warpladder.dashboard.views.reports.details import generator_chart as charts
from warpladder.dashboard.views.reports.details.generator import COMPUTE, IN, OUT, REST
from warpladder.data import store
from warpladder.data.names import Phase
from warpladder.data.store import RunWriter

APP: Final = Path(__file__).resolve().parents[5] / "dashboard" / "app.py"
MS: Final = 1_000_000
CASES: Final = ("images=4,channels=64", "images=10", "images=1000")
VARIANTS: Final = ("v05_mixed", "v06_pinned", "v07_overlapped", "v09_graph", "v11_one_product", "cudnn", "numpy")
PRECISIONS: Final = {"v11_one_product": "tf32"}
TRANSFERS: Final = {"v05_mixed": "pageable", "v06_pinned": "pinned", "cudnn": "pageable", "numpy": None}  # others: overlapped
_PHASES: Final = (Phase.H2D, Phase.COMPUTE, Phase.D2H)

pytestmark = pytest.mark.slow


def apart(whole: float, *phases: float) -> dict[str, float]:
    """Medians in milliseconds by scope, of copies and kernels that follow one another."""
    return {"end_to_end": whole, **dict(zip(_PHASES, phases, strict=True))}


#: Medians in milliseconds by scope, of (variant, config, case).
MEDIANS: Final[Mapping[tuple[str, str, str], Mapping[str, float]]] = {
    ("v05_mixed", "products=2", CASES[0]): apart(0.5, 0.1, 0.2, 0.1),
    ("v07_overlapped", "", CASES[1]): {"end_to_end": 3.0, "device": 2.0},
    ("v05_mixed", "products=2", CASES[2]): apart(20.0, 4.0, 10.0, 5.0),
    ("v05_mixed", "products=3", CASES[2]): apart(22.0, 4.0, 12.0, 5.0),
    ("v06_pinned", "", CASES[2]): apart(13.0, 1.0, 10.0, 1.6),
    ("v07_overlapped", "", CASES[2]): {"end_to_end": 12.0, "device": 10.0},
    ("v09_graph", "", CASES[2]): {"end_to_end": 2.6, "device": 2.0},
    ("v11_one_product", "", CASES[2]): {"end_to_end": 2.0, "device": 1.0},
    ("cudnn", "", CASES[2]): apart(9.0, 4.0, 3.0, 1.0),
    ("numpy", "", CASES[2]): {"operation": 900.0},
}


def params_of(case: str) -> dict[str, int]:
    return {name: int(value) for name, value in (axis.split("=") for axis in case.split(","))}


def write(
    folder: Path,
    medians: Mapping[tuple[str, str, str], Mapping[str, float]] = MEDIANS,
    trace: Mapping[str, Sequence[dict[str, Any]]] = MappingProxyType({}),
) -> RunData:
    """A run with nine samples a cell: the median, and 1 % less and more, each three times; and with these rows of trace tables."""
    kinds = {"cudnn": ("peer", "library"), "numpy": ("host", "host")}
    with RunWriter(folder, "generator") as writer:
        writer.append("run", [run_row("generator", "generator") | {"kind": "recording", "device_name": "NVIDIA H200"}])
        for name in VARIANTS:
            role, kind = kinds.get(name, ("rung", "cuda"))
            writer.append(
                "variants",
                [
                    row(
                        "variants",
                        workload="gan_tconv",
                        variant=name,
                        role=role,
                        kind=kind,
                        precision=PRECISIONS.get(name, "fp32"),
                        title=name.upper(),
                        transfer=TRANSFERS.get(name, "overlapped"),
                    )
                ],
            )
        writer.append(
            "cases",
            [
                row("cases", workload="gan_tconv", case=name, size_rank=rank, params=store.to_json(params_of(name)))
                for rank, name in enumerate(CASES)
            ],
        )
        for (variant, config, case), scopes in medians.items():
            cell = {"workload": "gan_tconv", "variant": variant, "config": config, "case": case}
            writer.append("results", [row("results", **cell, status="ok")])
            writer.append(
                "samples",
                [
                    row("samples", **cell, gpus=int(variant != "numpy"), cache="hot", scope=scope, round=turn,
                        duration_ns=round(median * MS * (0.99 + 0.01 * (turn % 3))))
                    for scope, median in scopes.items() for turn in range(9)
                ],
            )  # fmt: skip
        for table, rows in trace.items():
            writer.append(table, rows)
        return run_data.load(store.open_run(writer.commit()))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return write(tmp_path_factory.mktemp("data"))


@pytest.fixture
def frame(data: RunData) -> pd.DataFrame:
    return generator.generations(data)


def found(frame: pd.DataFrame, variant: str, case: str = CASES[2]) -> dict[Any, Any]:
    (cell,) = frame[(frame["variant"] == variant) & (frame["case"] == case)].to_dict("records")
    return cell


def milliseconds(cell: Mapping[Any, Any]) -> list[float]:
    return [float(cell[part]) / MS for part in (IN, COMPUTE, OUT, REST)]


def test_only_the_rungs_on_the_device_are_there_by_size_and_ladder(frame: pd.DataFrame) -> None:
    assert list(zip(frame["case"], frame["variant"], strict=True)) == [
        (CASES[0], "v05_mixed"),
        (CASES[1], "v07_overlapped"),
        (CASES[2], "v05_mixed"),
        (CASES[2], "v06_pinned"),
        (CASES[2], "v07_overlapped"),
        (CASES[2], "v09_graph"),
        (CASES[2], "v11_one_product"),
    ]
    assert list(frame["images"].unique()) == [4, 10, 1000]


def test_one_after_another_the_parts_and_what_is_left_are_the_whole(frame: pd.DataFrame) -> None:
    # The config of 20 ms, not that of 22: 4 + 10 + 5 in phases, 1 left. Pinned: 13 less 1 + 10 + 1.6.
    mixed, pinned = found(frame, "v05_mixed"), found(frame, "v06_pinned")
    assert (mixed["config"], mixed["transfer"], mixed["n"]) == ("products=2", "pageable", 9)
    assert milliseconds(mixed) == pytest.approx([4, 10, 5, 1])
    assert pinned["transfer"] == "pinned"
    assert milliseconds(pinned) == pytest.approx([1, 10, 1.6, 0.4])
    assert pd.isna(mixed["ratio"])


def test_an_overlapped_one_stands_against_its_longest_part(frame: pd.DataFrame) -> None:
    # Pinned copies of 1.0 and 1.6 ms: 12 over kernels of 10, 2.6 over kernels of 2, and 2 over copies out of 1.6.
    cells = [found(frame, name) for name in ("v07_overlapped", "v09_graph", "v11_one_product")]
    assert [cell["transfer"] for cell in cells] == ["overlapped"] * 3
    assert [cell["longest"] for cell in cells] == [COMPUTE, COMPUTE, OUT]
    assert [cell["ratio"] for cell in cells] == pytest.approx([1.2, 1.3, 1.25])
    assert all(pd.isna(cell[REST]) for cell in cells)


def test_without_the_pinned_rung_no_ratio_is_told(frame: pd.DataFrame) -> None:
    cell = found(frame, "v07_overlapped", CASES[1])
    assert cell["transfer"] == "overlapped"
    assert pd.isna(cell["ratio"])
    assert pd.isna(cell["longest"])


def test_published_seconds_are_those_of_table_4() -> None:
    table = table_4.published()
    assert len(table) == 24  # eight numbers of images by 1, 2 and 4 GPUs a node
    one = table[(table["variant"] == "1 GPU a node") & (table["images"] == 1000)]
    assert one["seconds"].tolist() == [0.278]


def test_a_smaller_network_is_not_beside_the_report(frame: pd.DataFrame) -> None:
    assert set(generator.of_report(frame)["case"]) == set(CASES[1:])
    assert generator.case_to_show(frame) == CASES[2]


def test_the_chart_of_parts_counts_those_within_the_aim(data: RunData, frame: pd.DataFrame) -> None:
    chart = charts.parts(frame[frame["case"] == CASES[2]], look(data, "light"))
    assert chart.title == (
        "At images=1000, v11_one_product · TF32 is fastest end to end with 2.00 ms; 2 of 3 overlapped take at most 1.25× their longest part"
    )
    bars = {bar.name: dict(zip((label.split(" ")[0] for label in bar.y), bar.x, strict=True)) for bar in chart.figure.data}
    assert bars[IN] == pytest.approx({"v05_mixed": 20.0, "v06_pinned": 100 / 13})
    assert bars[OUT] == pytest.approx({"v05_mixed": 25.0, "v06_pinned": 160 / 13, "v11_one_product": 80.0})
    assert bars[COMPUTE]["v07_overlapped"] == pytest.approx(1000 / 12)
    assert bars[REST]["v11_one_product"] == pytest.approx(20.0)
    totals = pd.DataFrame(bars).sum(axis=1)
    assert totals.tolist() == pytest.approx([100.0] * 5)
    (hover,) = (h for bar in chart.figure.data for h in bar.hovertext if bar.name == OUT and "v11" in h)
    assert "alone: copies in 1.00 ms, kernels 1.00 ms, copies out 1.60 ms" in hover
    assert "whole over the longest: <b>1.25×</b>" in hover


def test_parts_that_are_not_known_are_said_to_be_so(data: RunData, frame: pd.DataFrame) -> None:
    chart = charts.parts(frame[frame["case"] == CASES[1]], look(data, "dark"))
    assert chart.title == "At images=10, v07_overlapped · fp32 is fastest end to end with 3.00 ms"
    assert [(bar.name, list(bar.x)) for bar in chart.figure.data] == [("overlapped, parts not known", [100.0])]


def test_phases_that_are_longer_than_the_whole_fill_the_bar(tmp_path: Path) -> None:
    """Each is a median of its own: 1 + 8 + 1 ms of a whole of 9.5."""
    data = write(tmp_path, {("v06_pinned", "", CASES[2]): apart(9.5, 1.0, 8.0, 1.0)})
    chart = charts.parts(generator.generations(data), look(data, "light"))
    assert [list(bar.x) for bar in chart.figure.data] == [[10.0], [80.0], [10.0]]


def test_the_chart_over_images_has_our_time_and_the_report_s_and_names_the_fastest_of_its_precision(
    data: RunData, frame: pd.DataFrame
) -> None:
    chart = charts.over_images(generator.of_report(frame), table_4.published(), look(data, "light"))
    assert chart.title == "1,000 images take 2.60 ms by v09_graph · fp32; the report's fastest took 224 ms on other hardware"
    lines = {line.name: dict(zip(line.x, line.y, strict=True)) for line in chart.figure.data}
    assert lines["v07_overlapped · fp32"] == {10: 3.0 * MS, 1000: 12.0 * MS}
    assert lines["report: 1 GPU a node"][1000] == pytest.approx(278 * MS)
    both = chart.data[(chart.data["variant"] == "v06_pinned") & (chart.data["images"] == 1000)]
    assert both["published_s: 4 GPUs a node"].tolist() == [0.236]


@pytest.mark.thorough
def test_every_chart_of_the_generator_is_exported(data: RunData) -> None:
    names = [chart.name for chart in export.charts_of(data, topics=["details"])]
    assert {"generator-images-1000", "generator-over-images"} <= set(names)


@pytest.mark.thorough
def test_the_page_draws_both_charts_of_the_largest_number_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.setenv("WARPLADDER_DATA_DIR", str(tmp_path))
    app = AppTest.from_file(str(APP), default_timeout=30)
    lead(app, "details")
    app.query_params.update({"run": "generator", "topic": "generator"})
    app.run()
    assert not app.exception, app.exception[0].message
    headings = " ".join(str(block.value) for block in app.main.markdown).replace("\\", "")
    assert "At images=1000, v11_one_product · TF32 is fastest end to end with 2.00 ms" in headings
    assert "1,000 images take 2.60 ms by v09_graph · fp32" in headings
    captions = " ".join(str(block.value) for block in app.main.caption).replace("\\", "")
    assert "warpladder record gan_tconv --case images=1000 --collector nsight_systems" in captions


def test_a_run_of_other_workloads_has_no_generation(tmp_path: Path) -> None:
    other = run_data.load(store.open_run(made_runs.write(tmp_path, rounds=4)))
    assert generator.generations(other).empty
