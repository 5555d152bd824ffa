"""The figures of machine code, for one workload."""

import pytest

from benchmarks import machine_code


@pytest.mark.slow
def test_figures_of_one_workload_for_two_architectures() -> None:
    pytest.importorskip("cuda.bindings")
    old, new = machine_code.measure(("sm_80", "sm_90"), ("call_routes",))
    for figures, architecture in ((old, "sm_80"), (new, "sm_90")):
        assert figures.architecture == architecture
        assert figures.variants > 0 and 0 < figures.kernels <= figures.launches
        assert figures.instructions > 10 * figures.kernels
        assert min(figures.compile_s, figures.disassemble_s, figures.cubin_mb, figures.sass_mb, figures.ptx_mb) > 0
