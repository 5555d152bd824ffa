"""Links that ask for what cannot be: each page opens, with a line on it, and never with a traceback."""

from pathlib import Path

import pytest

from tests.dashboard.pages import run_of
from tests.dashboard.test_app import PAGES, Open, open_app, words
from tests.synthetic import made_code, made_devices, made_jobs, made_operators, made_sweeps, made_traces

__all__ = ["open_app"]

pytestmark = [pytest.mark.xdist_group("bad input"), pytest.mark.slow]
#: The run to open a page on, where `counted`, which has two workloads and counters, has nothing for it.
RUNS = {
    "timeline": "trace",
    "calls": "trace",
    "transfers": "trace",
    "operators": "operators",
    "forecast": "operators",
    "gpus": "scaling",
    "devices": "h100",
    "machine_code": "code",
    "ranks": "job",
    **dict.fromkeys(("collectives", "job_kernels", "critical_path"), "job"),
}
#: Each parameter that a page reads.
KEYS = (
    "workload", "scope", "cache", "case", "case.n", "case.perm", "case.images", "metric", "variants", "series", "precision", "table", "show",
    "variant", "intensity", "topic", "cell", "color", "lanes", "chosen", "window", "summary", "summed", "timing", "counters",
    "counters_of", "search", "measure", "machine", "isa", "config", "launch", "code_of", "a_config", "a_launch",
    "why_a", "why_b", "rules_of", "figure", "as",
    "iteration", "kernel", "groups", "ranks", "by", "operator", "recording", "rank", "other", "beside",
    "with", "judge", "a", "b", "of", "of_scope", "of_cache", "like", "at", "below", "none of ours",
)  # fmt: skip
VALUES = {
    "empty": "",
    "long": "a" * 3_000,
    "unicode": "\u202e\x00\U0001f600\u0663-\u0664",
    "markup": "**b** [l](http://evil.example) <script>alert(1)</script>",
    "a number beyond all": "9" * 30,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for write in (
        made_code.write,
        made_devices.write_both,
        made_jobs.write,
        made_operators.write,
        made_sweeps.write_counted,
        made_sweeps.write_scaling,
        made_traces.write,
    ):
        write(folder)
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("page", PAGES)
def test_a_value_that_cannot_be_used_is_no_traceback(open_app: Open, made: Path, page: str, value: str) -> None:
    app = open_app(made, page, run=RUNS.get(page, "counted"), **dict.fromkeys(KEYS, VALUES[value]))
    assert [each.value[:10] for each in app.error] in ([], ["**Wrong or"]), "Compare names what is wrong in B"
    assert run_of(app) == RUNS.get(page, "counted")
    assert "a" * 100 not in words(app), "what a link asks for is said in short"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "value", ["kernels-999999", "kernels--1", "kernels-", "-1", "5-1", "7-7", f"{'9' * 30}-0", "9999999999999-0", "nan-inf"]
)
@pytest.mark.parametrize(("key", "what"), [("chosen", ""), ("window", "the window "), ("measure", "the measured span ")])
def test_a_place_that_a_trace_has_not_is_one_line(open_app: Open, made: Path, key: str, what: str, value: str) -> None:
    app = open_app(made, "timeline", run="trace", **{key: value})
    assert not app.error
    assert f"The link asks for {what}{value}, which is not in this trace" in words(app)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", VALUES)
def test_a_run_that_cannot_be_used_is_no_traceback(open_app: Open, made: Path, value: str) -> None:
    app = open_app(made, "sizes", run=VALUES[value])
    assert run_of(app)


def test_repeated_values_of_several_are_each_shown_once(open_app: Open, made: Path) -> None:
    app = open_app(made, "sizes", run="counted", workload="conv2d", variants=["v02_shared", "NaN", "v02_shared", "v01_naive"])
    assert len(app.button_group(key="choose variants").value) == 2
    assert "The link asks for variants NaN, which is not here; showing v02_shared, v01_naive." in words(app)


def test_a_repeated_value_is_one_choice(open_app: Open, made: Path) -> None:
    app = open_app(made, "ladder", run="counted", workload=["conv2d", "tensor_transpose", "conv2d"], cache=["hot", "x", "x"])
    assert (app.query_params["workload"], app.query_params["cache"]) == ("conv2d", "hot")
    assert app.segmented_control(key="choose cache").value == "hot"
    assert "The link asks for l2 x, which is not here; showing hot." in words(app)
