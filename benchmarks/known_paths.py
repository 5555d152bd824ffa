"""In how many trials a delay's slope is right within its interval, on a kernel with a known critical path. Needs a GPU; half a minute.

    python -m benchmarks.known_paths [TRIALS]

A trial is both marks of `tests/inside/paths.cu` at one of 17 shares of its steps.
"""

import sys

import numpy as np

from tests.inside.paths import WORKLOAD, true_slopes
from warpladder.collectors.inside import experiment, marks
from warpladder.data.names import Experiment


def trial(number: int) -> tuple[list[tuple[str, float, float, float, float]], float]:
    """Of each mark: its name, the true slope, the slope, and the ends of its interval. Last, what the probes add to the time."""
    case = WORKLOAD.cases[number % len(WORKLOAD.cases)]
    inside = experiment.Inside(WORKLOAD, WORKLOAD.variants[0], {}, case, seconds=0.3, seed=number)
    rows = list(inside.of_marks())
    slopes = {row["what"].partition(" ")[0]: row for row in rows if row.get("experiment") == Experiment.DELAY}
    overhead = next(row["value"] for row in rows if row.get("what") == "probes") / inside.original_ns[0] - 1
    found = [
        (name, true, *(slopes[name][each] for each in ("value", "low", "high"))) for name, true in true_slopes(case).items()
    ]
    return found, overhead


def main() -> None:
    """Print the slopes of every trial, and how many are right."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    right, errors, overheads = 0, list[float](), list[float]()
    for number in range(trials):
        found, overhead = trial(number)
        overheads.append(overhead)
        for name, true, value, low, high in found:
            right += low <= true <= high
            errors.append(value - true)
            print(
                f"{number:>3} {name}: {value:.4f} ({low:.4f} to {high:.4f}), true {true:.4f} {'' if low <= true <= high else 'OUT'}"
            )
    print(
        f"right within the interval: {right} of {len(errors)}; error {np.mean(errors):+.4f}, at most {np.abs(errors).max():.4f}"
    )
    print(f"the probes add {np.median(overheads):+.2%} (at most {max(overheads):+.2%}) with {marks.MOST} marks at most")


if __name__ == "__main__":
    main()
