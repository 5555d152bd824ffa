"""Problems of the cheats: the head of their files, and an honest variant to be beaten."""

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
SMALL = PROBLEM.format(rows=10, n=1000)

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
