"""Programs as texts, and the problems of the cheats: the head of their files, and an honest variant to be beaten."""

import re

HEAD = """import ctypes
import gc
import os
import signal
import sys
import threading
import time

import numpy as np

import warpladder

"""

PROBLEM = """bench = warpladder.Benchmark("case", rows=[{rows}], n=[{n}])


@bench.inputs
def inputs(rows, n, rng):
    return rng.standard_normal((rows, n), np.float32)


def work(x):
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x))


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

LARGE = PROBLEM.format(rows=100, n=1000)

WHOLE = """bench = warpladder.Benchmark("case", n=[60_000])


@bench.inputs
def inputs(n, rng):
    return rng.integers(0, 1 << 40, n)


def work(x):
    return np.sort(x) ^ np.sort(x[::-1] >> 3)


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

NUMBER = """bench = warpladder.Benchmark("case", n=[200_000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def work(x):
    return float(np.tanh(x).sum())


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return work(x)


"""

PYTHON = """bench = warpladder.Benchmark("case", n=[2000])


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal(n)


def lists(x):
    made = [[value, [value]] for value in x.tolist()]
    return np.array([first * second[0] for first, second in made])


@bench.variant(name="honest", baseline=True)
@bench.reference
def honest(x):
    return lists(x)


"""

OUT = """bench = warpladder.Benchmark("case", rows=[{rows}], n=[1000])


@bench.inputs
def inputs(rows, n, rng):
    return rng.standard_normal((rows, n), np.float32)


def work(x):
    return np.tanh(x) * np.exp(-x * x) + np.sqrt(np.abs(x))


bench.reference(work)


@bench.variant(baseline=True)
def honest(x, out):
    out[:] = work(x)


"""

DRAWN = "    return rng.standard_normal((rows, n), np.float32)"
HONEST = "    return work(x)\n"
ROOTS = LARGE.replace("np.sqrt(np.abs(x))", "np.nan_to_num(np.sqrt(x))")
DOUBLE = LARGE.replace(", np.float32)", ")")
LEAVES = LARGE.replace("@bench.inputs", "results = {}\n\n\n@bench.inputs")
#: By the name in the heading of a cheat. A cheat with a problem of its `own` has it in its text.
PROBLEMS = {
    "own": "",
    "large": LARGE,
    "small": PROBLEM.format(rows=10, n=1000),
    "huge": PROBLEM.format(rows=2000, n=2000),
    "whole": WHOLE,
    "number": NUMBER,
    "python": PYTHON,
    "out": OUT.format(rows=100),
    "list": LARGE.replace(HONEST, "    return list(work(x))\n"),
    "dict": LARGE.replace(HONEST, '    return {"y": work(x)}\n'),
    "double": DOUBLE,
    "three_digits": DOUBLE.replace(
        DRAWN.replace(", np.float32)", ")"), "    return np.round(rng.standard_normal((rows, n)), 3)"
    ),
    "buffered": LARGE.replace("return np.tanh(x)", "return np.add(x, 1.0, dtype=np.float64).astype(np.float32) + np.tanh(x)"),
    "roots": ROOTS,
    "many_roots": ROOTS.replace(HONEST, "    return sum(work(part) for part in np.split(x, 100)[:1]) + work(x)\n"),
    "leaves_results": LEAVES.replace(
        DRAWN, f"{DRAWN.replace('return', 'x =')}\n    results[(x[0, :64] > 0).tobytes()] = x, work(x)\n    return x"
    ),
    "leaves_slopes": LEAVES.replace(
        DRAWN,
        f"{DRAWN.replace('return', 'x =')}\n    step = np.float32(1e-3)\n    results[(x[0, :64] > 0).tobytes()] = x, work(x), "
        "(work(x + step) - work(x - step)) / (2 * step)\n    return x",
    ),
    "leaves_results_of_three_digits": LEAVES.replace(
        DRAWN,
        "    x = np.round(rng.standard_normal((rows, n)), 3)\n    results[(x[0, :64] > 0).tobytes()] = x, work(x)\n    return x",
    ),
    "keeps_results": LARGE.replace("@bench.inputs", "kept = {}\n\n\n@bench.inputs").replace(
        HONEST, "    kept[x[0, 0].item()] = y = work(x)\n    return y\n"
    ),
}


def programs(text: str) -> dict[str, tuple[str, str, str]]:
    """The programs of a text that are headed `## NAME | WORD | WORD`: by name the two words, of which the last may be left out, and the program."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    headings = [f"{heading} | ".split(" | ") for heading in parts[::2]]
    return {name: (first, second, body) for (name, first, second, *_), body in zip(headings, parts[1::2], strict=True)}
