"""`compare_functions`: functions on arguments that are at hand, against each other."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpladder
from warpladder.comparing import Comparison
from warpladder.workloads.api import WorkloadError

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).random((20, 500), np.float32)


def double(x: np.ndarray) -> Any:
    return 2 * x


def added(x: np.ndarray) -> Any:
    return x + x


def halved(x: np.ndarray) -> Any:
    return x / 2


def doubled_in_place(x: np.ndarray) -> None:
    x *= 2


def doubled_into(x: np.ndarray, out: np.ndarray) -> None:
    np.multiply(x, 2, out=out)


def kept(x: np.ndarray, first: list[Any] = []) -> Any:  # noqa: B006
    """A function that computes once."""
    if not first:
        first.append(2 * x)
    return first[0].copy()


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., Comparison]:
    return partial(warpladder.compare_functions, data_dir=tmp_path, max_rounds=8, seconds=0.05)


def statuses(run: Comparison) -> dict[str, str]:
    table = run.table()
    return dict(zip(table["variant"], table["status"], strict=True))


def test_functions_are_verified_against_the_first_and_timed_in_the_same_rounds(compare: Callable[..., Comparison]) -> None:
    run = compare(double, added, halved, kept, args=(X,))
    table = run.table()
    found = dict(zip(table["variant"], table["status"], strict=True))
    assert found == {"double": "ok", "added": "ok", "halved": "wrong_result", "kept": "wrong_result"}
    assert list(table["case"].unique()) == ["arguments=float32[20x500]"]
    assert list(table["baseline"].dropna().unique()) == ["double"]
    rounds = run.samples().groupby("variant")["round"].agg(set)
    assert rounds["double"] == rounds["added"]
    assert run.notes == (
        "each sample had other arguments than yours: each real number was multiplied by a random factor from 0.5 to 1",
    )
    text = str(run)
    assert [line.split()[0] for line in text.splitlines()[1:-1]] == ["variant", "double", "added", "halved", "kept"]
    assert text.splitlines()[-1] == run.notes[0]
    assert repr(run) == text and "the baseline itself" in run._repr_html_()


def test_arguments_are_given_by_position_by_name_alone_or_by_a_function(compare: Callable[..., Comparison]) -> None:
    def scaled(x: Any, factor: float, arguments: float = 1.0) -> Any:
        return x * np.float32(factor * arguments)

    for args in ([X, 2.0], {"factor": 2.0, "x": X, "arguments": 1.0}):
        assert statuses(compare(scaled, scaled, args=args, names=["one", "other"])) == {"one": "ok", "other": "ok"}
    assert set(statuses(compare(double, added, args=X)).values()) == {"ok"}
    run = compare(double, added, args=lambda rng: rng.integers(0, 9, 50))
    assert (set(statuses(run).values()), run.notes) == ({"ok"}, ())


@pytest.mark.thorough
def test_what_a_function_changes_is_its_output_where_it_returns_nothing(compare: Callable[..., Comparison]) -> None:
    before = X.copy()
    run = compare(doubled_in_place, double, halved, args=X)
    assert statuses(run) == {"doubled_in_place": "ok", "double": "ok", "halved": "wrong_result"}
    out = np.empty_like(X)
    doubled_into(X, out)  # as after a warm-up
    run = compare(
        doubled_into, lambda x, out: np.add(x, x, out=out) and None, args={"x": X, "out": out}, names=["multiply", "add"]
    )
    assert set(statuses(run).values()) <= {"ok", "launch_error"} and statuses(run)["multiply"] == "ok"
    assert np.array_equal(X, before)


def test_without_arguments_outputs_are_compared_once_and_the_result_says_what_is_not_checked(
    compare: Callable[..., Comparison],
) -> None:
    run = compare(lambda: double(X), lambda: added(X), lambda: halved(X))
    assert statuses(run) == {"function 1": "ok", "function 2": "ok", "function 3": "wrong_result"}
    (note,) = run.notes
    assert note.startswith(
        "not checked: the functions take no arguments; outputs were compared once, before the rounds, and every"
    )
    assert "of the floor" not in str(run) and note in str(run)
    out = np.empty_like(X)
    run = compare(lambda: doubled_into(X, out), lambda: doubled_into(X, out))
    assert set(statuses(run).values()) == {"ok"} and "no output was compared" in run.notes[0]


@pytest.mark.thorough
def test_the_run_has_the_source_of_each_function(compare: Callable[..., Comparison]) -> None:
    for run in (compare(double, added, args={"x": X}), compare(doubled_in_place, double, args=X)):
        texts = run._run.table("variants").set_index("variant")["source_text"]
        assert "def double(x: np.ndarray) -> Any:\n    return 2 * x\n" in texts["double"]
    run = compare(lambda: double(X), lambda: added(X))
    assert "lambda: added(X)" in run._run.table("variants")["source_text"].iloc[1]


def test_arguments_that_may_not_change_stay_as_they_are_and_the_result_says_so(compare: Callable[..., Comparison]) -> None:
    def symmetric(a: np.ndarray) -> Any:
        assert (a == a.T).all()
        return np.linalg.cholesky(a)

    def given(a: np.ndarray) -> Any:
        assert a[0, 0] == 1.5
        return a + a

    run = compare(symmetric, lambda a: np.linalg.cholesky(a), args=np.eye(8) + 0.5)
    assert (set(statuses(run).values()), run.notes) == ({"ok"}, ())
    run = compare(given, double, args=np.eye(8) + 0.5)
    assert set(statuses(run).values()) == {"ok"} and "fails with arguments other than these" in run.notes[0]
    run = compare(np.sort, partial(np.sort, kind="stable"), args=np.arange(50))
    assert set(statuses(run).values()) == {"ok"} and "no argument holds real numbers" in run.notes[0]


T = 0.3
ROTATION = np.array([[np.cos(T), -np.sin(T)], [np.sin(T), np.cos(T)]])
SHARES = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
SORTED = np.sort(np.random.default_rng(1).standard_normal(100))
AS_A_WHOLE = "function 2 agrees only where each array is multiplied as a whole"
#: Arguments with a property that random factors destroy, two functions that are right on them, and part of the note; empty for none.
KEPT: dict[str, tuple[tuple[Any, ...], Callable[..., Any], Callable[..., Any], str]] = {
    "entropy_of_shares": (
        (SHARES,),
        lambda p: -(p * np.log(p)).sum(1),
        lambda p: np.log(3) - (p * np.log(3 * p)).sum(1),
        "function 2 would not agree with function 1 any more",
    ),
    "step_of_a_chain": (
        (SHARES[:, :2] / SHARES[:, :2].sum(1, keepdims=True), np.array([0.25, 0.75])),
        lambda step, x: x @ step,
        lambda step, x: x @ step / (x @ step).sum(),
        "function 2 would not agree with function 1 any more",
    ),
    "inverse_of_a_rotation": (
        (ROTATION,), np.linalg.inv, lambda a: a.T.copy(), "function 2 would not agree with inv any more"
    ),
    "search_in_sorted_numbers": (
        (SORTED, np.array([0.0, 1.0])), np.searchsorted, lambda a, v: (a[:, None] < v).sum(0), AS_A_WHOLE
    ),
    "median_of_sorted_numbers": ((SORTED,), np.median, lambda a: (a[49] + a[50]) / 2, AS_A_WHOLE),
    "merge_of_sorted_numbers": (
        (SORTED[::2].copy(), SORTED[1::2].copy()),
        lambda a, b: np.sort(np.concatenate([a, b])),
        lambda a, b: np.insert(b, np.searchsorted(b, a), a),
        AS_A_WHOLE,
    ),
    "eigenvalues_of_a_symmetric_matrix": (
        (np.eye(8) + 0.5,), np.linalg.eigvalsh, lambda a: np.linalg.eigvalsh(a, UPLO="U"), AS_A_WHOLE
    ),
    "complex_numbers": ((np.exp(1j * SORTED).astype(np.complex64),), np.conj, lambda z: z.real - 1j * z.imag, ""),
    "a_scan_in_float32": (
        (np.random.default_rng(2).standard_normal(300_000).astype(np.float32),),
        np.cumsum,
        lambda x: np.cumsum(x, dtype=np.float64).astype(np.float32),
        "",
    ),
    "a_number_of_Python": ((SORTED,), lambda a: float(a.sum()), lambda a: float(np.add.reduce(a)), ""),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", KEPT)
def test_arguments_keep_what_functions_need_of_them(name: str, compare: Callable[..., Comparison]) -> None:
    args, first, second, said = KEPT[name]
    run = compare(first, second, args=args)
    assert set(statuses(run).values()) == {"ok"}, run.table()["detail"].to_list()
    assert said in "".join(run.notes) and bool(run.notes) == bool(said)


@pytest.mark.thorough
def test_ties_have_a_comparison_of_their_own(compare: Callable[..., Comparison]) -> None:
    ties = np.repeat(np.arange(5.0), 20)

    def reversed_order(x: np.ndarray) -> np.ndarray:
        return len(x) - 1 - np.argsort(x[::-1], kind="stable")

    def stable(x: np.ndarray) -> np.ndarray:
        return np.argsort(x, kind="stable")

    run = compare(stable, reversed_order, args=lambda rng: rng.permutation(ties), compare=warpladder.compare.order_of("x"))
    assert set(statuses(run).values()) == {"ok"}


def failing(x: Any) -> Any:
    raise ValueError("no such tile")


@pytest.mark.parametrize(
    ("functions", "options", "said"),
    [
        ((double,), {"args": X}, "compare_functions: give two functions or more"),
        ((double, added), {"args": X, "names": ["one"]}, "names has 1 names for 2 functions; give one for each"),
        (
            (double, added),
            {"args": (X, np.array([1, "a"], object))},
            r"^compare_functions: args\[1\]: arrays of object cannot be measured; ",
        ),
        ((double, added), {"args": (X, (3, 3))}, r"args\[1\] is a tuple; give arrays of NumPy, PyTorch, CuPy or JAX, numbers"),
        ((failing, double), {"args": X}, "failing, the first function, raises ValueError: no such tile; mend it"),
        ((lambda x: None, double), {"args": X}, "returns None and changes no argument"),
        ((lambda x: "text", double), {"args": X}, "out is a text; return an array"),
        ((lambda: failing(X), lambda: X), {}, "the first function, raises ValueError: no such tile"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    compare: Callable[..., Comparison], functions: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(WorkloadError, match=said):
        compare(*functions, **options)


def test_three_lines_of_a_script_print_the_table(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy, warpladder\n"
        "x = numpy.random.rand(1000)\n"
        f"print(warpladder.compare_functions(numpy.exp, lambda x: numpy.exp(x), args=x, data_dir={str(tmp_path)!r}, seconds=0.05))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    title, head, *rows = done.stdout.splitlines()
    assert title.startswith("arguments=float64[1000] · ") and head.split()[0] == "variant"
    assert [row.split()[0] for row in rows] == ["exp", "function"]


def test_texts_only_are_no_arguments_to_compare_with(tmp_path: Path) -> None:
    with pytest.raises(warpladder.Error, match="args are texts only; give an array or a number too, or bind the texts"):
        warpladder.compare_functions(len, lambda text: sum(1 for _ in text), args="a text", data_dir=tmp_path)
