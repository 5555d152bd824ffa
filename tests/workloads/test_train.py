"""The program that trains the perceptron: what the network learns by each variant's step."""

import pytest

from warpladder.workloads.api import HostVariant
from warpladder.workloads.mlp_training import train
from warpladder.workloads.mlp_training.workload import WORKLOAD

pytestmark = pytest.mark.slow

#: Most that the report's precision on the dev set differs by, between 1 and 6 processes: 0.972 to 0.976 (its table 2).
REPORT_SPREAD = 0.004


@pytest.mark.thorough
def test_the_network_learns_the_digits():
    step = train.make_step(WORKLOAD.variant("numpy"), train.training_case(train.BATCH))
    reached = list(train.train(step, epochs=12))
    assert len(reached) == 12
    assert reached[0] < 0.9 < 0.94 < reached[-1]


@pytest.mark.thorough
@pytest.mark.xdist_group("numba")
def test_precision_does_not_depend_on_the_variant_by_more_than_the_report_s_on_processes():
    reached = {}
    for name in ("numpy", "numba_serial", "numba_parallel"):
        step = train.make_step(WORKLOAD.variant(name), train.training_case(train.BATCH))
        reached[name] = list(train.train(step, epochs=2))[-1]
    assert max(reached.values()) - min(reached.values()) <= REPORT_SPREAD


@pytest.mark.gpu
@pytest.mark.parametrize("name", [v.name for v in WORKLOAD.variants if not isinstance(v, HostVariant) and train.trains(v)])
def test_precision_on_the_gpu_is_that_of_the_host(name):
    variant = WORKLOAD.variant(name)
    for module in getattr(variant, "requires", ()):
        pytest.importorskip(module)
    reached = [
        list(train.train(train.make_step(each, train.training_case(train.BATCH)), epochs=10))[-1]
        for each in (WORKLOAD.variant("numpy"), variant)
    ]
    assert abs(reached[0] - reached[1]) <= REPORT_SPREAD


def test_the_command_prints_the_precision_of_every_epoch(capsys):
    assert train.main(["--variant", "numpy", "--epochs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "numpy on 1497 digits, precision on 300 others"
    assert [line.split()[:2] for line in lines[1:]] == [["epoch", "1"], ["epoch", "2"]]
    assert float(lines[2].split()[2]) > 0.5


def test_the_command_says_in_one_line_what_a_variant_lacks(capsys, monkeypatch):
    monkeypatch.setattr(train, "find_spec", lambda module: None)
    assert train.main(["--variant", "v03_final"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "v03_final: needs the Python package cupy; pip install 'warpladder[gpu]', or take --variant numpy"
    ]


def test_the_command_offers_the_variants_that_need_no_tensor_map(capsys):
    assert not train.trains(WORKLOAD.variant("v07_warpgroups_3xtf32"))
    assert train.trains(WORKLOAD.variant("v06_one_product"))
    with pytest.raises(SystemExit) as stopped:
        train.main(["--variant", "v07_warpgroups_3xtf32"])
    assert stopped.value.code == 2
    assert "invalid choice: 'v07_warpgroups_3xtf32'" in capsys.readouterr().err
