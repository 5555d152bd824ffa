"""Files that cannot be planned, each with its message. `{file}` stands for the file's path and what was planned before for the rest."""

from typing import Final

_HEAD: Final = "import numpy as np\nimport warpladder\n"
_BENCH: Final = 'bench = warpladder.Benchmark("wrong", n=[8])\n'
_INPUTS: Final = """
@bench.inputs
def inputs(n, rng):
    return rng.standard_normal((n, n + 1), np.float32)
"""
_REFERENCE: Final = """
@bench.reference
def reference(x):
    return x * 2
"""
_VARIANT: Final = """
@bench.variant
def first(x):
    return x * np.float32(2)
"""
RIGHT: Final = _HEAD + _BENCH + _INPUTS + _REFERENCE + _VARIANT


def _benchmark(arguments: str) -> str:
    return RIGHT.replace(_BENCH, f"bench = warpladder.Benchmark({arguments})\n")


def _axis(values: str) -> str:
    return _benchmark(f'"wrong", n={values}')


def _variant(options: str) -> str:
    return RIGHT.replace("@bench.variant", f"@bench.variant({options})")


def _given(inputs: str) -> str:
    return RIGHT.replace("rng.standard_normal((n, n + 1), np.float32)", inputs)


#: Name -> text of the file, and what its message holds.
FILES: Final[dict[str, tuple[str, str]]] = {
    # the file
    "empty": ("", "file.py: declares no Benchmark at its top level, outside of `if __name__`, and sets no WORKLOAD"),
    "syntax": (_HEAD + "def f(:\n", "file.py:3: SyntaxError: invalid syntax; mend it"),
    "missing_module": (
        "import no_such_module\n",
        "file.py:1: ModuleNotFoundError: No module named 'no_such_module'; install it",
    ),
    "raises": (_HEAD + "1 / 0\n", "file.py:3: ZeroDivisionError: division by zero; mend it"),
    "exits": ("import sys\nsys.exit(3)\n", "file.py:2: SystemExit: 3; the file ends the program"),
    "within_a_function": (
        _HEAD + "def make():\n    return warpladder.Benchmark('a', n=[1])\n\n\nmake()\n",
        "declares no Benchmark at its top level",
    ),
    "in_a_list": (_HEAD + "benches = [warpladder.Benchmark('a', n=[1])]\n", "declares no Benchmark at its top level"),
    "two_of_one_name": (RIGHT + RIGHT.replace("bench", "other"), "wrong: two workloads of this name; rename one"),
    # what is missing, or twice
    "no_inputs": (RIGHT.replace(_INPUTS, ""), "file.py: wrong: has no inputs; declare them with @bench.inputs"),
    "no_reference": (RIGHT.replace(_REFERENCE, ""), "file.py: wrong: has no reference; declare one with @bench.reference"),
    "no_variant": (RIGHT.replace(_VARIANT, ""), "file.py: wrong: has no variant; declare one with @bench.variant"),
    "forgotten_at": (RIGHT.replace("@bench.variant", "bench.variant"), "wrong: has no variant; declare one"),
    "one_name_twice": (RIGHT + _VARIANT, "file.py:17: wrong: variant first is declared twice; give each its own name"),
    "two_baselines": (
        _variant("baseline=True") + '\nbench.variant(first, name="second", baseline=True)\n',
        "file.py:17: wrong: first and second are both the baseline; choose one",
    ),
    # decorators
    "misspelt_decorator": (RIGHT.replace("@bench.variant", "@bench.varient"), "file.py:13: AttributeError"),
    "misspelt_keyword": (_variant("basline=True"), "first: basline is no argument of a variant; do you mean baseline?"),
    "name_without_keyword": (
        _variant("'fast'"),
        "file.py:13: variant is the text 'fast'; decorate a function, and name it by name='fast'",
    ),
    "lambda": (RIGHT + "bench.variant(lambda x: x)\n", "file.py:16: <lambda> has no name; give the variant one"),
    "async": (RIGHT.replace("def first", "async def first"), "first gives a coroutine; write a plain function"),
    "yields": (RIGHT.replace("return x * np", "yield x * np"), "first gives a generator; write a plain function"),
    "inputs_yield": (RIGHT.replace("return rng", "yield rng"), "inputs gives a generator; write a plain function"),
    "reference_is_async": (RIGHT.replace("def reference", "async def reference"), "reference gives a coroutine; write a plain"),
    "precision": (_variant("precision='float32'"), "first: precision='float32': choose one of fp64, fp32"),
    "arrays": (_variant("arrays=np"), "first: arrays=<module 'nump"),
    "two_roles": (_variant("role='peers'"), "first: role='peers': choose one of ceiling, rung, peer, host, specimen"),
    "an_old_flag": (_variant("peer=True"), "first: peer= has gone; give role='peer'"),
    "no_such_argument": (_variant("speed=3"), "first: speed is no argument of a variant; leave it out"),
    "requires_a_text": (_variant("requires='cupy'"), "first: requires is 'cupy'; give a list of modules"),
    "skip_is_no_function": (_variant("skip=True"), "skip is bool; decorate a function"),
    "variant_named_by_number": (_variant("name=3"), "wrong: a variant's name is 3; give a name as a text"),
    "variant_of_two_lines": (_variant(r"name='a\nb'"), r"wrong: a variant's name is 'a\nb'; give 1 to 200 characters"),
    "title_of_a_number": (_variant("title=3"), "first: title is 3; give a text"),
    "configs_dict": (_variant("configs={'block': 1}"), "first: configs is {'block': 1}; give a list of dicts"),
    "configs_none": (_variant("configs=None"), "first: configs is None; give a list of dicts"),
    "configs_empty": (_variant("configs=[]"), "first: configs is empty; leave it out"),
    "configs_numbers": (_variant("configs=[1, 2]"), "first: configs has 1; make it a dict"),
    "configs_arrays": (
        _variant("configs=[{'block': np.ones(3)}]"),
        "first: config value block is array([1., 1., 1.]); give a number",
    ),
    "configs_twice": (_variant("configs=[{'n2': 1}, {'n2': 1}]"), "first: config n2=1 is given twice; leave one out"),
    "configs_misspelt": (_variant("configs=[{'blok': 1}]"), "first has no parameter blok, which configs gives; it has x"),
    "configs_out": (_variant("configs=[{'out': 1}]"), "first: config value out has the name of an axis, `out` or `stream`"),
    "outputs": (
        RIGHT.replace("@bench.reference", "@bench.reference(outputs='floaty')"),
        "outputs is 'floaty'; give the name of a type",
    ),
    # the benchmark's own arguments
    "name_missing": (_benchmark("n=[8]"), "file.py:3: the benchmark's name is ''; give 1 to 200 characters"),
    "name_none": (_benchmark("None, n=[8]"), "file.py:3: the benchmark's name is None; give a name as a text"),
    "name_empty": (_benchmark("'', n=[8]"), "file.py:3: the benchmark's name is ''; give 1 to 200 characters"),
    "name_huge": (_benchmark("'a' * 10**6, n=[8]"), "file.py:3: the benchmark's name is 'aaaaaaaaaaaa...aaaaaaaaaaaaa'"),
    "tolerance_negative": (
        _benchmark("'a', n=[8], tolerance=-1"),
        "file.py:3: tolerance is -1; give a number from 0 to below 1",
    ),
    "tolerance_text": (_benchmark("'a', n=[8], tolerance='small'"), "file.py:3: tolerance is 'small'; give a number"),
    "tolerance_of_a_type": (
        _benchmark("'a', n=[8], tolerance={'float32': 0.1}"),
        "tolerance of a precision='float32': choose one of",
    ),
    "tolerance_misspelt": (
        _benchmark("'a', n=[8], tolerence=1e-3"),
        "axis tolerence is 0.001; give a list of values, such as tolerence=[1024, 4096]; or do you mean the option tolerance?",
    ),
    "device": (_benchmark("'a', n=[8], device='cuda'"), "file.py:3: device='cuda': choose one of gpu, cpu"),
    "flops_text": (_benchmark("'a', n=[8], flops='many'"), "file.py:3: flops is 'many'; give a number, or a function of axes"),
    "flops_fraction": (
        _benchmark("'a', n=[8], flops=lambda n: n / 3"),
        "flops gives 2.6666666666666665 for {'n': 8}; give a whole number",
    ),
    "flops_raises": (
        _benchmark("'a', n=[8], flops=lambda n: n / 0"),
        "<lambda>, flops, raises ZeroDivisionError: division by zero",
    ),
    "flops_of_another_axis": (
        _benchmark("'a', n=[8], flops=lambda m: m"),
        "<lambda> takes m, which is no axis; the axes are n",
    ),
    "bytes_text": (_benchmark("'a', n=[8], bytes='many'"), "file.py:3: bytes is 'many'; give a number, or a function of axes"),
    "bytes_negative": (_benchmark("'a', n=[8], bytes=-8"), "bytes gives -8 for {'n': 8}; give a whole number"),
    "quick_text": (
        _benchmark("'a', n=[8], quick='n=8'"),
        "file.py:3: quick is 'n=8'; give a function of axes that tells whether a case is quick",
    ),
    "quick_raises": (
        _benchmark("'a', n=[8], quick=lambda n: n / 0"),
        "<lambda>, quick, raises ZeroDivisionError: division by zero",
    ),
    # axes
    "axis_empty": (_axis("[]"), "file.py:3: axis n is []; give a list of values, such as n=[1024, 4096]"),
    "axis_number": (_axis("8"), "file.py:3: axis n is 8; give a list of values"),
    "axis_text": (_axis("'8'"), "file.py:3: axis n is '8'; give a list of values"),
    "axis_none": (_axis("None"), "file.py:3: axis n is None; give a list of values"),
    "axis_set": (_axis("{8}"), "file.py:3: axis n is {8}; give a list of values"),
    "axis_of_tuples": (_axis("[(8, 8)]"), "file.py:3: axis n: (8, 8) is tuple; give numbers or texts"),
    "axis_of_types": (_axis("[np.float32]"), "file.py:3: axis n: <class 'numpy.float32'> is type; give numbers or texts"),
    "axis_value_twice": (_axis("[8, '8']"), "file.py:3: axis n: 8 is given twice; leave one out"),
    "axis_huge": (_axis("[10**30]"), "cannot be recorded; give numbers between -2^62 and 2^62"),
    "axis_nan": (_axis("[float('nan')]"), "axis n: nan cannot be recorded"),
    "axis_negative": (_axis("[-8]"), "file.py:7: inputs raises ValueError: negative dimensions are not allowed"),
    "axis_float": (_axis("[8.0]"), "file.py:7: inputs raises TypeError: 'float' object cannot be interpreted as an integer"),
    "axis_bool": (_axis("[True]"), "file.py:7: inputs raises TypeError: an integer is required"),
    "axis_with_a_comma": (_axis("['a,b']"), "axis n: 'a,b' is empty, or has a comma, an equals sign or a line break"),
    "axis_out": (
        _benchmark("'a', out=[8]"),
        "axis out: a parameter of this name has a meaning of its own; choose another name",
    ),
    "axis_keyword": (_benchmark("'a', **{'class': [8]}"), "axis 'class': no parameter can have this name; choose another name"),
    "axis_other": (_benchmark("'a', m=[8]"), "inputs takes n, which is no axis; the axes are m"),
    "no_axes": (_benchmark("'a'"), "inputs takes n, which is no axis; the axes are none"),
    "cases_without_end": (
        _benchmark("'a', n=range(1, 1001), m=range(1000)"),
        "axes n, m make 1,000,000 cases; give fewer values",
    ),
    "axis_without_end": (_axis("range(10**18)"), "axis n has too many values; give at most 10,000"),
    # what `inputs` gives
    "inputs_none": (_given("None"), "inputs gives None; return an array, or a tuple or dict of arrays"),
    "inputs_number": (_given("'3'"), "inputs gives no array and no number; return what the variants read"),
    "inputs_lists": (_given("[[1.0], [1.0, 2.0]]"), "inputs: x0 is a list; give arrays, numbers or texts"),
    "inputs_generator": (_given("(rng for _ in range(3))"), "inputs gives a generator; return an array"),
    "inputs_class": (_given("np.ndarray"), "inputs: x is a class; give arrays, numbers or texts"),
    "inputs_objects": (_given("np.array([None])"), "inputs: x: arrays of object cannot be measured; give arrays of numbers"),
    "inputs_texts": (
        _given("np.array(['a'])"),
        "inputs: x: arrays of str32 cannot be measured; give their characters, x.view('uint32')",
    ),
    "inputs_wide": (_given("np.ones(3, np.longdouble)"), "cannot be measured; convert them to numbers"),
    "inputs_with_gaps": (
        _given("np.ones((6, 6))[::2]"),
        "inputs: x: its elements do not lie side by side in memory; make it contiguous",
    ),
    "inputs_backwards": (_given("np.ones(6)[::-1]"), "inputs: x: its elements do not lie side by side in memory"),
    "inputs_repeated": (
        _given("np.broadcast_to(np.ones(3), (3, 3))"),
        "inputs: x: its elements do not lie side by side in memory",
    ),
    "inputs_named_by_number": (_given("{1: np.ones(3)}"), "inputs: 1 names an input; name it as a parameter of the variants"),
    "inputs_named_as_an_axis": (_given("{'n': np.ones(3)}"), "inputs: input n has the name of an axis, `out` or `stream`"),
    "inputs_raise": (_given("1 / 0"), "inputs raises ZeroDivisionError: division by zero; mend it"),
    "inputs_exit": (_given("exit(3)"), "inputs raises SystemExit: 3"),
    "inputs_want_memory": (_given("np.empty(1 << 50)"), "inputs raises MemoryError: Unable to allocate 8.00 PiB"),
    "inputs_recurse": (_given("inputs(n, rng)"), "inputs raises RecursionError: maximum recursion depth exceeded"),
}
#: Files that look odd and are right.
FINE: Final[dict[str, str]] = {
    "name_with_a_slash": _benchmark("'a/b', n=[8]"),
    "name_of_html": _benchmark("'<script>alert(1)</script>', n=[8]"),
    "name_in_greek": _benchmark("'λ', n=[8]"),
    "variant_of_html": _variant("name='<b>a</b>'"),
    "axis_of_numpy": _axis("np.array([8, 9])"),
    "flops_as_a_float": _benchmark("'a', n=[8], flops=lambda n: 2.0 * n**3"),
    "benchmark_as_workload": RIGHT + "WORKLOAD = bench\n",
    "two_benchmarks": RIGHT + RIGHT.replace("bench", "other").replace("wrong", "other"),
}
