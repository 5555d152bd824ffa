"""The sizes that are drawn are cases of their workloads, and the best rung is set against the strongest peer."""

from random import Random

import pytest

from benchmarks.drawn_sizes import DRAWN, against_peers
from warpladder.dashboard.core import run_data
from warpladder.data import store
from warpladder.workloads import registry


@pytest.mark.parametrize("workload", DRAWN)
def test_a_drawn_size_is_a_case(workload: str) -> None:
    drawn = {DRAWN[workload](Random(seed)) for seed in range(4)}
    assert len(drawn) == 4 and {registry.load(workload).case(case).name for case in drawn} == drawn


def test_the_strongest_peer_of_each_case_and_precision_stands_beside_the_best_rung() -> None:
    found = against_peers(run_data.load(store.find_run("H200 gan_tconv_bf16", [store.RECORDED])), "gan_tconv_bf16")
    assert len(found) == 9 and set(found["peer"]) == {"torch_compile"}
    ten = found.set_index("case").loc["images=10"]
    assert (ten["rung"], ten["verdict"]) == ("v03_few_images[columns=128]", "faster")
    assert ten["ratio"] == pytest.approx(ten["peer_us"] / ten["us"], rel=0.02) == pytest.approx(2.06, rel=0.02)
