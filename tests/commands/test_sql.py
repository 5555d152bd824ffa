"""`warpladder sql`: rows, forms, what is refused, and that no file is reached."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.collectors.kineto.made_events import document
from tests.collectors.kineto.test_processes import KERNELS as KERNELS_A_STEP
from tests.collectors.kineto.test_processes import STEPS, rank_of_job
from tests.synthetic import made_runs
from warpladder.__main__ import command
from warpladder.collectors.jobs.job import Request, import_job
from warpladder.collectors.trace.notes import Notes
from warpladder.data import schema

pytest.importorskip("duckdb")

KERNELS = [
    made_runs.row("kernels", correlation=number, process=1, name=name, full_name=name, start_ns=start, end_ns=end)
    for number, (name, start, end) in enumerate((("gemm", 0, 30), ("relu", 30, 35), ("gemm", 40, 60)))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    made_runs.write_tables(folder, made_runs.run_row("one", "=first"), {"kernels": KERNELS})
    return folder


def ask(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(command(), ["sql", "--data-dir", str(folder), *words])


SUMS = "SELECT name, sum(end_ns - start_ns) AS ns FROM kernels GROUP BY name ORDER BY name"


@pytest.mark.slow
def test_the_rows_of_a_query_in_each_form(folder: Path) -> None:
    assert ask(folder, SUMS).stdout.split() == ["name", "ns", "gemm", "50", "relu", "5"]
    assert json.loads(ask(folder, "one", SUMS, "--format", "json").stdout) == [
        {"name": "gemm", "ns": 50},
        {"name": "relu", "ns": 5},
    ]
    text = ask(folder, "=first", "SELECT label, 'nan'::FLOAT AS x, NULL AS y FROM run", "--format", "csv").stdout
    assert list(csv.reader(io.StringIO(text))) == [["label", "x", "y"], ["'=first", "", ""]]


@pytest.mark.slow
def test_tables_that_the_run_lacks_are_empty_and_columns_of_a_join_have_names_of_their_own(folder: Path) -> None:
    assert json.loads(ask(folder, "SELECT count(*) AS n FROM memory_ops", "--format", "json").stdout) == [{"n": 0}]
    joined = ask(folder, "SELECT a.name, b.name FROM kernels a JOIN kernels b USING (correlation) LIMIT 1", "--format", "json")
    assert set(json.loads(joined.stdout)[0]) == {"name", "name_1"}
    assert ask(folder, "SHOW TABLES").stdout.split() == ["name", *sorted(schema.TABLES)]
    assert ask(folder, "SELECT count(*) AS n FROM query_table('ker' || 'nels')").stdout.split() == ["n", "3"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM kernel", "Table with name kernel does not exist!; Did you mean"),
        ("SELEC 1", "syntax error"),
        ("SELECT 1; SELECT 2", "the query has 2 statements; give one"),
        ("DROP TABLE kernels", "the query does more than read"),
        ("COPY kernels TO '{0}'", "the query does more than read"),
        ("SET enable_external_access = true", "the query does more than read"),
        ("SELECT * FROM read_text('{0}')", "the query asks for a file"),
        ("SELECT * FROM '{0}'", "the query asks for a file"),
    ],
)
def test_what_is_refused_takes_one_line_and_no_file_is_reached(folder: Path, tmp_path: Path, query: str, said: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nhidden\n")
    done = ask(folder, query.format(secret))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1) and said in done.stderr
    assert "hidden" not in done.stderr and secret.read_text() == "word\nhidden\n"


@pytest.mark.thorough
def test_the_kernels_of_a_job_have_their_ranks_as_processes(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(document(rank_of_job(rank))))
    import_job(Request(sorted(tmp_path.glob("*.json")), "both", workers=1), tmp_path / "runs", Notes())
    done = ask(
        tmp_path / "runs", "SELECT process, count(*) AS n FROM kernels GROUP BY process ORDER BY process", "--format", "json"
    )
    assert [tuple(row.values()) for row in json.loads(done.stdout)] == [(rank, STEPS * KERNELS_A_STEP) for rank in range(2)]


def test_the_tables_are_documented(folder: Path) -> None:
    text = ask(folder, "--schema", "kernels").stdout
    assert all(column.name in text for column in schema.KERNELS.columns) and "memory_ops:" not in text
    assert ask(folder, "--schema", "kernel").stderr.startswith("kernel: no such table; there are run, ")


def test_without_duckdb_the_line_tells_how_to_install_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = ask(folder, SUMS)
    assert done.exit_code == 2 and done.stderr == "warpladder sql: duckdb is not installed; pip install 'warpladder[sql]'\n"
