"""Short names of kernels: what is left out, and how names that would be alike are told apart."""

import pytest

from tests.limits import cpu_seconds
from warpladder.dashboard.trace.describe import short_names


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void gemm<float>(float*)", "gemm"),
        ("relu(float *, int)", "relu"),
        ("void cub::CUB_300_NS::detail::Reduce<cub::policy<double, cuda::std::plus<void>>::P1, double *>(T2, T5 *)", "Reduce"),
        ("void <unnamed>::softmax<float, (int)4>(T2 *, const bool *)", "softmax"),
        ("(anonymous namespace)::scale(float *)", "scale"),
        ("void at::native::elementwise<(int)4, at::native::add(at::Iterator &)::[lambda() (instance 1)]>(int)", "elementwise"),
        ("void cutlass::Kernel2<cutlass_80_simt>(T1::Params)", "Kernel2"),
        ("Outer<int>::run<float>(int)", "run"),
        ("ns::Functor::operator()(int) const", "operator()"),
        ("[CUDA graph]", "[CUDA graph]"),
        ("_Z3addPf", "add"),
        ("std::enable_if<(((8)>(0)))&&ns::has<T>::value, void>::type vllm::norm<T, 8>(T*)", "norm"),
        ("kernel_cutlass_add_kernel_tensorptrf32gmemo16128_0", "add_kernel"),
        ("cupy_copy__float64_float64", "cupy_copy__float64_float64"),
        ("a<b", "a<b"),
        ("a>b", "a>b"),
        ("<img src=x onerror=alert(1)>[a](b)", "<img src=x onerror=alert(1)>[a](b)"),
        ("", ""),
    ],
)
def test_namespaces_arguments_and_parameters_are_left_out(name: str, short: str) -> None:
    assert short_names([name]) == {name: short}


def test_names_alike_show_the_arguments_in_which_they_differ() -> None:
    names = [f"void product<(int){tile}, (int)64, (bool){flag}>(float *)" for tile, flag in ((128, 0), (128, 1), (64, 1))]
    assert list(short_names(names).values()) == ["product<128, …, false>", "product<128, …, true>", "product<64, …, true>"]
    hidden = ["void hidden<(bool)1>(int)", "void hidden<(int)64, (int)6>(int)"]
    assert list(short_names(hidden).values()) == ["hidden<true>", "hidden<64, …>"]
    assert list(short_names(["update(float *)", "void update<(bool)1>(float *)"]).values()) == ["update", "update<true>"]


def test_the_shortest_arguments_that_suffice_tell_names_apart() -> None:
    names = [f"void map<{'x' * 50}<{kind}>, mine::{kind}>(int)" for kind in ("add", "scale")]
    assert list(short_names(names).values()) == ["map<…, add>", "map<…, scale>"]


def test_names_alike_show_their_namespace_or_else_a_number() -> None:
    assert list(short_names(["a::one::f(int)", "a::two::f(int)"]).values()) == ["one::f", "two::f"]
    assert list(short_names(["f(int)", "f(float)", "g"]).values()) == ["f #1", "f #2", "g"]


@pytest.mark.slow
def test_thousands_of_hostile_names_take_no_time() -> None:
    names = [f"{'<' * 4_000}{number}" for number in range(200)] + [f"f<{number}{', g<' * 1_000}" for number in range(200)]
    names += [f"void k<(int){number}, float>({'T1 *, ' * 1_000})" for number in range(1_500)]
    with cpu_seconds(2):
        found = short_names(names)
    assert len(set(found.values())) == len(names)
