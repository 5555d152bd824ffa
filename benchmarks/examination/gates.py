"""Changes that a gate must see, or tell that it cannot, and pairs of equal files that it must pass: written from docs/compare.md without a look at the checker."""

FILE = """import numpy as np

import warpladder

bench = warpladder.Benchmark("gate", rows=[100, 400, 1600]{options})


@bench.inputs
def inputs(rows, rng):
    return rng.standard_normal((rows, 256), np.float32)


@bench.variant(name="plain", baseline=True)
@bench.reference
def plain(x):
    return {reference}


@bench.variant
def by_rows(x):
    y = np.empty_like(x)
    for i in range(0, len(x), 50):
        np.tanh(x[i : i + 50], out=y[i : i + 50])
    return y


@bench.variant
def by_exp(x):
    e = np.exp(2 * x)
    return 1 - 2 / (e + 1)

{extra}"""

CHANGED = """
@bench.variant
def changed(x):
    y = np.tanh(x)
    {more}
    return y
"""


def file(more="pass", reference="np.tanh(x)", options="", extra=CHANGED):
    return FILE.format(reference=reference, options=options, extra=extra.format(more=more))


EQUAL = file()
# name: before, after, further options of `record`, of `compare`, the code that is owed
GATES = {
    "+5 %": (EQUAL, file("np.tanh(x[: len(x) // 20])"), (), (), (1, 3)),
    "+10 %": (EQUAL, file("np.tanh(x[: len(x) // 10])"), (), (), (1, 3)),
    "+15 % at one size": (EQUAL, file("np.tanh(x[: len(x) * 15 // 100]) if len(x) == 400 else None"), (), (), (1,)),
    "+30 %": (EQUAL, file("np.tanh(x[: len(x) * 3 // 10])"), (), (), (1,)),
    "few rounds and +30 %": (
        EQUAL,
        file("np.tanh(x[: len(x) * 3 // 10])"),
        ("--max-rounds", "4", "--processes", "1"),
        (),
        (1, 3),
    ),
    "few rounds and equal source but a comment": (EQUAL, file("z = 1"), ("--max-rounds", "4", "--processes", "1"), (), (3,)),
    "changed reference": (EQUAL, file(reference="np.tanh(x) + 0 * x"), (), (), (1,)),
    "halved reference": (EQUAL, file(reference="np.tanh(x) / 2"), (), (), (1,)),
    "changed tolerance": (EQUAL, file(options=", tolerance=0.2"), (), (), (1,)),
    "allowed tolerance": (EQUAL, file(options=", tolerance=0.2"), (), ("--allow", "tolerance"), (0,)),
    "changed inputs": (
        EQUAL,
        EQUAL.replace("rng.standard_normal((rows, 256), np.float32)", "rng.random((rows, 256), np.float32)"),
        (),
        (),
        (0, 1, 3),
    ),
    "removed variant": (EQUAL, file(extra=""), (), (), (1,)),
    "renamed variant": (EQUAL, EQUAL.replace("def changed", "def renamed"), (), (), (1,)),
    "removed size": (EQUAL, EQUAL.replace("rows=[100, 400, 1600]", "rows=[100, 400]"), (), (), (1,)),
    "removed size of a partial run": (
        EQUAL,
        EQUAL.replace("rows=[100, 400, 1600]", "rows=[100, 400]"),
        (),
        ("--partial",),
        (0,),
    ),
    "wrong": (EQUAL, file("y[0, 0] += 1"), (), (), (1,)),
    "wrong at one size": (EQUAL, file("y[len(x) - 1600 :] *= 1 + (len(x) == 1600)"), (), (), (1,)),
    "raises": (EQUAL, file("raise ValueError"), (), (), (1,)),
    "faster": (file("np.tanh(x[: len(x) // 2])"), EQUAL, (), (), (0,)),
    "another name of equal work": (EQUAL, file("z = len(x)"), (), (), (0,)),
    "too noisy to detect 5 %": (
        file("import time, random; time.sleep(random.random() ** 4 * 0.01)"),
        file("import time, random; time.sleep(random.random() ** 4 * 0.010001)"),
        ("--max-rounds", "12"),
        ("--detect", "5%"),
        (3,),
    ),
    "detects 200 %": (EQUAL, file("z = len(x)"), (), ("--detect", "200%"), (0,)),
    "slower only in first process state": (EQUAL, file("np.tanh(x[: len(x) // 4]) if id(x) % 2 == 0 else None"), (), (), (1,)),
}
GATES |= {f"equal {k}": (EQUAL, EQUAL, (), (), (0,)) for k in range(20)}
