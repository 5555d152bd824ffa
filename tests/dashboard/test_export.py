"""The export: what it writes, what it leaves alone, and what it says when it cannot."""

import base64
import gzip
import html
import io
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from choreographer.channels.pipe import Pipe
from click.testing import CliRunner

from tests.dashboard.core.test_queries_cells import BY_SIZE, run_of, with_ceilings
from tests.synthetic import made_runs
from warpladder.__main__ import command as command_line
from warpladder.dashboard import export, report
from warpladder.dashboard.core.run_data import RunData, load
from warpladder.dashboard.text import summary
from warpladder.dashboard.ui import document, images, tables
from warpladder.dashboard.ui.template import Chart
from warpladder.data import store
from warpladder.errors import Error

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
needs_chromium = pytest.mark.skipif(images.browser() is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    made_runs.write_host_run(folder, "host", label=f"my run {HOSTILE}", rounds=8)
    return folder


@pytest.fixture(scope="module")
def two_charts(runs: Path) -> tuple[RunData, list[Chart]]:
    data = load(store.open_run(runs / "host"))
    return data, list(islice(export.charts_of(data), 2))


@pytest.fixture
def small(two_charts: tuple[RunData, list[Chart]], monkeypatch: pytest.MonkeyPatch) -> RunData:
    """A run of which only two charts are drawn."""
    data, charts = two_charts
    monkeypatch.setattr(export, "charts_of", lambda data, **_: iter(charts))
    return data


@pytest.mark.thorough
def test_topics_part_the_charts(tmp_path: Path) -> None:
    data = load(store.open_run(made_runs.write_host_run(tmp_path, rounds=8, workloads=("conv2d",))))
    every = [chart.name for chart in export.charts_of(data)]
    of_topics = [[chart.name for chart in export.charts_of(data, topics=[topic])] for topic in export.TOPICS]
    assert sorted(every) == sorted(name for names in of_topics for name in names)


@pytest.mark.thorough
def test_an_export_of_a_topic_has_its_charts_alone(runs: Path, tmp_path: Path) -> None:
    code, said = command("host", "--out", tmp_path / "out", "--format", "csv", "--topic", "roofline", "--data-dir", runs)
    assert code == 0, said
    expected = {chart.name for chart in export.charts_of(load(store.open_run(runs / "host")), topics=["roofline"])}
    assert {file.stem for file in (tmp_path / "out").glob("*.csv")} == expected


def test_a_topic_of_which_the_run_has_nothing_is_one_line_and_exit_2(runs: Path, tmp_path: Path) -> None:
    arguments = [
        "export",
        "host",
        "--data-dir",
        str(runs),
        "--out",
        str(tmp_path / "none"),
        "--topic",
        "counters",
        "--format",
        "csv",
    ]
    done = CliRunner().invoke(command_line(), arguments)
    assert done.exit_code == 2 and "nothing to chart of counters; leave out --topic" in done.stderr
    assert not list(tmp_path.iterdir()), "nothing is half-written"


def test_a_text_that_is_a_formula_is_a_text_in_csv_and_a_number_stays_one() -> None:
    texts = ["=1+1", "+1", "-x", "@y", "\tz", "\rz", "＝1", "a=b", "'=1", "a\r=b", None]
    frame = pd.DataFrame({"=head": texts, "number": [-1.5] * 11, "whole": pd.array([-2] * 10 + [None], dtype="Int64")})
    for kind in (object, "str", "category"):
        written = tables.csv(frame.astype({"=head": kind}))
        read = pd.read_csv(io.StringIO(written, newline=""), keep_default_na=False, dtype=str)
        assert list(read.columns) == ["'=head", "number", "whole"]
        assert list(read["'=head"]) == ["'=1+1", "'+1", "'-x", "'@y", r"\tz", "'\nz", "'＝1", "a=b", "'=1", "a\n=b", ""]
        assert set(read["number"]) == {"-1.5"}
        assert set(read["whole"]) == {"-2", ""}


def test_csv_is_written_in_one_place() -> None:
    writers = [file.name for file in Path(export.__file__).parent.rglob("*.py") if ".to_csv(" in file.read_text()]
    assert writers == ["tables.py"]


def test_an_exported_csv_has_no_formula_out_of_a_run(tmp_path: Path) -> None:
    run = made_runs.write_host_run(tmp_path, "host", rounds=8, workloads=("conv2d",))
    variants = pq.read_table(run / "variants.parquet")
    titles = pa.array([f"=HYPERLINK({number})" for number in range(len(variants))]).cast(variants.schema.field("title").type)
    pq.write_table(variants.set_column(variants.schema.get_field_index("title"), "title", titles), run / "variants.parquet")
    code, said = command("host", "--out", tmp_path / "out", "--format", "csv", "--topic", "comparisons", "--data-dir", tmp_path)
    assert code == 0, said
    written = [file.read_text() for file in (tmp_path / "out").glob("*.csv")]
    assert any("'=HYPERLINK(" in text for text in written)
    assert not any(",=" in text or ',"=' in text or "\n=" in text for text in written)


def test_an_empty_data_dir_is_one_clear_line(tmp_path: Path) -> None:
    code, said = command("host", "--out", tmp_path / "out", "--data-dir", "")
    assert (code, said.strip()) == (2, '--data-dir "": names no folder; write --data-dir . for the working directory')
    assert not (tmp_path / "out").exists()


class Links(HTMLParser):
    """What a page's own tags point at; what stands inside a script is the script's."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [str(value) for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]


def command(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(command_line(), ["export", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr


def test_the_export_writes_each_chart_as_page_and_data_and_one_report(
    runs: Path, small: RunData, two_charts: tuple[RunData, list[Chart]], tmp_path: Path
) -> None:
    code, said = command("host", "--out", tmp_path / "out", "--format", "html,csv", "--data-dir", runs)
    assert code == 0, said
    names = {file.name for file in (tmp_path / "out").iterdir()}
    first = two_charts[1][0]
    assert {"report.html", f"{first.name}.html", f"{first.name}.csv", "plotly.min.js"} <= names
    assert pd.read_csv(tmp_path / "out" / f"{first.name}.csv")["variant"].tolist() == first.data["variant"].tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["out"], "nothing else is left behind"


@pytest.mark.thorough
def test_a_run_is_found_by_its_label_and_by_its_folder(runs: Path, small: RunData, tmp_path: Path) -> None:
    for number, name in enumerate((f"my run {HOSTILE}", runs / "host")):
        assert command(name, "--out", tmp_path / str(number), "--format", "csv", "--data-dir", runs)[0] == 0


def test_the_report_asks_nothing_of_the_network(small: RunData, tmp_path: Path) -> None:
    export.write(small, tmp_path / "out", ["html"])
    for file in (tmp_path / "out").glob("*.html"):
        page = file.read_text()
        links = Links()
        links.feed(page)
        assert [link for link in links.found if not link.startswith("#") and link != "plotly.min.js"] == [], file.name
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Content-Security-Policy" in report and "default-src 'none'" in report
    assert report.count('id="plotly"') == 1, "plotly.js stands in it once"


def test_names_out_of_a_run_are_text_in_the_report(small: RunData, tmp_path: Path) -> None:
    hostile = replace(
        small, ceilings=small.ceilings.assign(method=HOSTILE), diagnostics=small.diagnostics.assign(text=HOSTILE, source="</script><b>")
    )  # fmt: skip
    export.write(hostile, tmp_path / "out", ["csv"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert HOSTILE not in page and "</script><b>" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 3, "the label, a ceiling and a finding"


def test_a_hostile_title_is_text_in_the_page_of_one_chart(small: RunData) -> None:
    chart = next(iter(export.charts_of(small)))
    page = document.chart_page(Chart(chart.name, HOSTILE, chart.figure, chart.data.assign(best=HOSTILE), HOSTILE))
    assert HOSTILE not in page and "&lt;img" in page


def test_files_that_were_there_stay(small: RunData, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / "report.html").write_text("old")
    export.write(small, out, ["csv"])
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "report.html").read_text() != "old"
    assert not list(out.glob(".warpladder*"))


def test_an_export_that_fails_leaves_the_folder_as_it_was(
    small: RunData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "report", no_space)
    with pytest.raises(Error, match=r"No space left on device\); free some space"):
        export.write(small, tmp_path / "out", ["csv"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "--format", "csv"], "nowhere: no such run; known runs:\n  my run"),
        (["host", "--format", "gif"], "gif: no such format; known: html, png, svg, csv"),
        (["host", "--format", ","], "--format: no such format"),
        (["host", "--topic", "roof"], f"roof: no such topic; known: {', '.join(export.TOPICS)}"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    runs: Path, tmp_path: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCAL", tmp_path / "no-local-runs")
    monkeypatch.setattr(store, "RECORDED", tmp_path / "no-recorded-runs")
    code, lines = command(*arguments, "--out", tmp_path / "out", "--data-dir", runs)
    assert code == 2
    assert lines.startswith(said) and lines.count("\n") == 1 + said.count("\n")
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_one_line_and_exit_2(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        code, lines = command("host", "--out", out, "--format", "csv", "--data-dir", runs)
        assert code == 2
        assert lines.startswith(f"{out}: cannot be written") and lines.count("\n") == 1


@pytest.mark.thorough
def test_without_chromium_the_rest_is_written_and_a_line_says_what_to_install(
    runs: Path, small: RunData, two_charts: tuple[RunData, list[Chart]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = two_charts[1][0]
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "absent"))
    code, said = command("host", "--out", tmp_path / "a", "--data-dir", runs)
    assert code == 0 and "apt-get install chromium" in said and "BROWSER_PATH" in said
    assert (tmp_path / "a" / f"{first.name}.html").exists() and not list((tmp_path / "a").glob("*.png"))

    code, said = command("host", "--out", tmp_path / "b", "--format", "png,csv", "--data-dir", runs)
    assert code == 2 and "apt-get install chromium" in said
    assert (tmp_path / "b" / f"{first.name}.csv").exists(), "what could be written was"
    assert images.why_not() is not None


def test_a_browser_that_fails_is_told_in_one_line(small: RunData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(broken))
    with pytest.raises(images.ImageError, match="could not draw") as caught:
        images.image(next(iter(export.charts_of(small))), "png")
    assert "\n" not in str(caught.value)


def test_half_a_message_of_a_browser_that_ends_leaves_no_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    pipe = Pipe()
    pipe.open()
    os.write(pipe.from_external_to_choreo, b'{"half\0')
    messages, _ = pipe.read_jsons()
    pipe.close()
    assert not messages
    assert not caplog.records


@pytest.mark.thorough
@needs_chromium
def test_images_have_their_font_in_them(
    runs: Path, small: RunData, two_charts: tuple[RunData, list[Chart]], tmp_path: Path
) -> None:
    out, first = tmp_path / "out", two_charts[1][0]
    code, said = command("host", "--out", out, "--format", "png,svg", "--data-dir", runs)
    assert code == 0, said
    png = (out / f"{first.name}.png").read_bytes()
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") == 2_000
    svg = (out / f"{first.name}.svg").read_text()
    assert svg.startswith("<svg") and "@font-face" in svg and "numba_parallel" in svg


#: Pairs of texts of the drawing that overlap, and texts that are cut off.
FAULTS = """
function faults(width, height) {
  const found = texts();
  const cutOff = found.filter(({ box }) => box.left < -0.5 || box.top < -0.5 || box.right > width + 0.5 || box.bottom > height + 0.5);
  const said = cutOff.map(({ text }) => `cut off: ${text}`);
  found.forEach((one, place) => found.slice(place + 1).forEach(other => {
    const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    if (across > 2 && down > 4) said.push(`overlap: ${one.text} | ${other.text}`);
  }));
  return JSON.stringify(said);
}
"""


@pytest.mark.thorough
@needs_chromium
def test_no_text_is_cut_off_or_lies_on_another(small: RunData, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    draw = images._draw

    async def checked(tab: Any, *job: Any) -> dict[str, bytes]:
        drawn = await draw(tab, *job)
        size = re.search(rb'<svg[^>]*? width="([0-9.]+)" height="([0-9.]+)"', drawn["svg"])
        assert size
        await images._command(tab, "Runtime.evaluate", expression=FAULTS)
        found.append(await images._call(tab, f"faults({float(size[1])}, {float(size[2])})"))
        return drawn

    monkeypatch.setattr(images, "_draw", checked)
    charts = list(export.charts_of(small))
    for chart in charts:
        images.image(chart, "svg")
    assert found == ["[]"] * len(charts) and charts


def test_the_report_opens_with_the_answer_and_has_its_figures_packed(small: RunData, tmp_path: Path) -> None:
    export.write(small, tmp_path / "out", ["csv"])
    page = (tmp_path / "out" / "report.html").read_text()
    for row in summary.texts(summary.figures(small)):
        assert page.index(html.escape(row[3])) < page.index("<h2>Run</h2>")
    assert len(page) < 3_000_000, "plotly.js alone has 4.8 MB"
    packed = re.search('id="figures">([^<]+)<', page)
    assert packed is not None
    figures = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert list(figures) == [f"{chart.name}-plot" for chart in export.charts_of(small)]


def test_a_name_that_does_not_exist_is_one_line_and_exit_2(runs: Path, small: RunData, tmp_path: Path) -> None:
    for arguments, said in (
        (["--workload", "conv2"], "--workload conv2: no workload of this run; did you mean conv2d"),
        (["--variants", "v*,numba_paralel"], "--variants numba_paralel: no variant of this run; did you mean numba_parallel"),
    ):
        code, lines = command("host", "--out", tmp_path / "out", "--format", "csv", "--data-dir", runs, *arguments)
        assert code == 2 and lines.startswith(said) and lines.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_report_counts_the_times_of_memory_by_size_and_leaves_them_out() -> None:
    data = run_of([], [])
    for ceilings, words in (
        (data, "in the same run.</p>"),
        (with_ceilings(data, BY_SIZE), "The run has 4 times of memory by size"),
    ):
        note, shown = report._ceilings(ceilings)
        assert words in note and "device_copy" in shown and "_bytes" not in shown
