"""Times that scatter, and times that fall as the work grows."""

from tests.dashboard.core.test_queries_cells import run_of, samples, variant
from warpladder.dashboard.compare.suspect import unsteady
from warpladder.dashboard.core.run_data import RunData
from warpladder.dashboard.text import summary

STEADY = (1.0, 1.001, 0.999, 1.0, 1.002, 0.998, 1.0, 1.001)
WILD = (1.0, 4.0, 1.0, 4.0, 1.0, 4.0, 1.0, 4.0)


def run(
    times: dict[str, tuple[float, float]], spread: tuple[float, ...] = STEADY, bytes_of: tuple[int, int] = (10, 20)
) -> RunData:
    """Each variant takes these nanoseconds at n=1 and at n=2, times the spread."""
    made = [
        row
        for name, both in times.items()
        for case, ns in zip(("n=1", "n=2"), both, strict=True)
        for row in samples(name, [round(ns * each) for each in spread], case=case)
    ]
    cases = [
        {"workload": "w", "case": f"n={n}", "size_rank": n, "params": f'{{"n":{n}}}', "flops": 0, "min_bytes": least}
        for n, least in zip((1, 2), bytes_of, strict=True)
    ]
    return run_of([variant(name) for name in times], made, cases=cases)


def test_a_time_that_falls_as_the_work_grows_is_doubted() -> None:
    found = unsteady(run({"v01_a": (3000, 2000), "v02_b": (3000, 2900), "v03_c": (2000, 3000)}))
    assert found[["variant", "case", "what"]].to_numpy().tolist() == [["v01_a", "n=2", "falling time"]]
    assert found["text"].tolist() == ["n=1 takes 1.5 times as long, although it is smaller"]
    assert unsteady(run({"v01_a": (3000, 2000)}, bytes_of=(10, 10))).empty, "as much work"


def test_a_median_that_is_known_to_no_more_than_half_of_it_is_doubted_and_told_beside_the_answer() -> None:
    """The interval of eight samples is from the least to the largest: 1000 to 4000 around 2500, ±60 %."""
    data = run({"v01_a": (1000, 2000)}, WILD)
    found = unsteady(data)
    assert found[["case", "what", "text"]].to_numpy().tolist() == [
        [case, "wide interval", "its median is known to ±60 %"] for case in ("n=1", "n=2")
    ]
    (line,) = summary.figures(data).to_dict("records")
    assert "2 cells of wide interval" in line["distrust"]
    assert unsteady(run({"v01_a": (1000, 2000)})).empty
