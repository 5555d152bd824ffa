"""Variants that are wrong, each with its verdict. One file holds them all, between variants that are right."""

from typing import Final, NamedTuple


class Wrong(NamedTuple):
    """A wrong variant: its decorator and function, the status of its result, and what the detail says."""

    source: str
    status: str
    detail: str


HEAD: Final = '''
import asyncio, contextlib, ctypes, os, signal, sys, threading, time, warnings
import numpy as np
import warpladder

bench = warpladder.Benchmark("wrong", n=[8])
TWO = np.float32(2)
calls, kept, buffer = {}, {}, np.empty((8, 9), np.float32)


def count(name):
    calls[name] = calls.get(name, 0) + 1
    return calls[name]


class Launch:
    """As Triton's: it has no end, and no length."""

    def __getitem__(self, number):
        return self


class Hostile:
    def __getattribute__(self, name):
        raise RuntimeError("no attribute")

    def __repr__(self):
        raise RuntimeError("no text")

    __len__ = __iter__ = __bool__ = __repr__


class Endless:
    def __getattr__(self, name):
        return Endless()

    def __call__(self, *args, **keywords):
        return Endless()

    def __iter__(self):
        while True:
            yield 1

    def __len__(self):
        return 2**62

    def __repr__(self):
        return "x" * 10**8


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@bench.inputs
def inputs(n, rng):
    return rng.standard_normal((n, n + 1), np.float32)


@bench.reference
def reference(x):
    return x * 2


@bench.variant(baseline=True)
def first(x):
    return x * TWO
'''
LAST: Final = """
@bench.variant
def last(x):
    with np.errstate(all="ignore"):
        print("last", end="")
        return x + x
"""
#: Variants beside wrong ones that are right, and stay so.
RIGHT: Final = ("first", "last")


def _variant(body: str, status: str = "wrong_result", detail: str = "", parameters: str = "x", options: str = "") -> Wrong:
    decorator = f"@bench.variant({options})" if options else "@bench.variant"
    return Wrong(f"{decorator}\ndef NAME({parameters}):\n    {body}\n", status, detail)


def _raises(body: str, detail: str) -> Wrong:
    return _variant(body, "launch_error", detail)


def _fine(body: str, detail: str = "", parameters: str = "x", options: str = "") -> Wrong:
    return _variant(body, "ok", detail, parameters, options)


RETURNS: Final = {
    "nothing": _variant("x * 2", detail="returns None; return the output"),
    "a_generator": _variant("return (row for row in x)", detail="returns a generator; return an array"),
    "an_endless_generator": _variant(
        """
    def endless():
        while True:
            yield x
    return endless()""",
        detail="returns a generator; return an array",
    ),
    "a_coroutine": _variant("return asyncio.sleep(0)", detail="returns a coroutine; return an array"),
    "a_launch": _variant("return Launch()", detail="returns a Launch; return an array"),
    "a_launch_beside_out": _variant(
        "np.multiply(x, 2, out=out); return Launch()",
        detail="returns a Launch; return None after writing to `out`",
        parameters="x, out",
    ),
    "a_hostile_object": _variant("return Hostile()", detail="returns a Hostile; return an array"),
    "an_endless_object": _variant("return Endless()", detail="returns an Endless; return an array"),
    "a_class": _variant("return np.ndarray", detail="returns a class; return an array"),
    "a_number": _variant("return 3.0", detail="output out is a float; return an array"),
    "a_text": _variant("return 'out'", detail="returns a text; return an array"),
    "a_set": _variant("return {1, 2}", detail="returns a set; return an array"),
    "lists": _variant("return (x * TWO).tolist()", detail="returns a list that holds a list; return an array"),
    "a_nested_tuple": _variant("return ((x * TWO,),)", detail="returns a tuple that holds a tuple; return an array"),
    "an_empty_tuple": _variant("return ()", detail="returns 0 outputs, and the reference 1; make them the same"),
    "two_outputs": _variant("return x * TWO, x * TWO", detail="returns 2 outputs, and the reference 1"),
    "another_name": _variant("return {'y': x * TWO}", detail="returns a dict of y, and the reference's outputs are out"),
    "a_row_less": _variant(
        "return (x * TWO)[:-1]", detail=r"has shape \(7, 9\), and the reference's has \(8, 9\); make them the same"
    ),
    "transposed": _variant("return (x * TWO).T", detail=r"has shape \(9, 8\), and the reference's has \(8, 9\); transpose it"),
    "a_scalar": _variant("return TWO", detail=r"has shape \(\)"),
    "float64": _variant(
        "return x * np.float64(2)", detail="has type float64, not float32; convert it; a Benchmark can declare the type"
    ),
    "objects": _variant("return (x * TWO).astype(object)", detail="has type object, not float32; convert it$"),
    "records": _variant("return np.zeros((8, 9), [('a', 'f4')])", detail="has type void32, not float32; convert it$"),
    "big_endian": _variant("return (x * TWO).astype('>f4')", detail="has the type >f4 of other processors; convert it"),
    "a_view_of_an_input": _variant("return x[:]", detail="output out is a view of input x: nothing was computed"),
    "one_row_repeated": _variant("return np.broadcast_to(x[0] * TWO, x.shape)", detail="relative L2 error"),
    "an_unwritten_output": _variant("out = x * TWO", detail="elements of out are not finite", parameters="x, out"),
    "half_an_output": _variant("out[:4] = x[:4] * TWO", detail="36 of 72 elements of out are not finite", parameters="x, out"),
}
RAISES: Final = {
    "raises": _raises("raise ValueError('no such tile')", "ValueError: no such tile"),
    "raises_without_a_text": _raises("assert x is None", "AssertionError"),
    "raises_a_page": _raises(r"raise ValueError('a\nb' + 'x' * 10**7)", "ValueError: a bx+$"),
    "raises_what_cannot_be_shown": _raises("raise Mute", "Mute"),
    "raises_a_lone_surrogate": _raises(r"raise ValueError('\ud800')", "ValueError"),
    "recurses": _raises("return recurses(x)", "RecursionError: maximum recursion depth exceeded"),
    "exits": _raises("sys.exit(3)", "SystemExit: 3"),
    "exits_with_a_text": _raises("sys.exit('usage: x')", "SystemExit: usage: x"),
    "interrupts": _raises("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "ends_a_generator": _raises("raise GeneratorExit", "GeneratorExit"),
    "ends_a_file": _raises("raise EOFError('end')", "EOFError: end"),
    "breaks_a_pipe": _raises("raise BrokenPipeError('pipe')", "BrokenPipeError: pipe"),
    "wants_memory": _variant("return np.empty(1 << 50, np.float32)", "out_of_memory", "MemoryError: Unable to allocate"),
    "reads_stdin": _raises("return x * TWO * float(input())", "EOFError"),
    "raises_in_the_third_call": _raises(
        "return x * TWO if count('third') < 3 else 1 / 0", "ZeroDivisionError: division by zero"
    ),
    "raises_in_the_twentieth_call": _raises("return x * TWO if count('twentieth') < 20 else 1 / 0", "ZeroDivisionError"),
    "takes_another_input": _variant(
        "return x * y", "launch_error", r"takes x, y, and `inputs` gives 1 value \(x\); make them the same", "x, y"
    ),
    "takes_nothing": _variant("return 1", "launch_error", r"takes no inputs, and `inputs` gives 1 value \(x\)", ""),
    "takes_its_input_by_name": _variant("return x * TWO", "launch_error", "takes x, which is neither an axis", "*, x"),
    "takes_a_value_that_no_config_gives": _variant(
        "return x * TWO", "launch_error", "takes block, which is neither an axis, a config's value nor one of", "x, *, block"
    ),
    "skip_raises": _variant("return x * TWO", "launch_error", "skip, raises ZeroDivisionError", options="skip=lambda n: 1 / 0"),
    "skip_gives_true": _variant(
        "return x * TWO", "launch_error", "skip gives True; return the reason", options="skip=lambda n: True"
    ),
    "skip_gives_a_reason": _variant("return x * TWO", "skipped", "too small", options="skip=lambda n: 'too small'"),
    "needs_a_module": _variant("return x * TWO", "skipped", "needs the Python package no_such", options="requires=['no_such']"),
}
CHANGES: Final = {
    "writes_its_input": _variant("x *= 2; return x.copy()", detail="changes its input x, which the other variants read"),
    "unlocks_its_input": _variant(
        "x.flags.writeable = True; x *= 2; return x.copy()", detail="changes its input x, which the other variants read"
    ),
    "writes_by_pointer": _variant(
        "y = x * TWO; ctypes.memset(x.ctypes.data, 0, 64); return y",
        detail="changes its input x, which the other variants read",
    ),
    "writes_by_pointer_later": _variant(
        "y = x * TWO; count('later') > 6 and ctypes.memset(x.ctypes.data, 0, 64); return y", detail="changes its input x"
    ),
    "keeps_its_first_output": _variant("return kept.setdefault('y', x * TWO)", detail="with other inputs: "),
    "copies_its_first_output": _variant("return kept.setdefault('z', x * TWO).copy()", detail="with other inputs: "),
    "wrong_later": _variant("return x * TWO * (count('wrong') < 9)", detail="right at first, and wrong in a timed sample"),
    "returns_before_it_computes": _variant(
        """y = np.zeros_like(x)
    threading.Timer(0.2, lambda: np.multiply(x, 2, out=y)).start()
    return y""",
        detail="relative L2 error 1 is above",
    ),
    "says_that_it_writes": _variant("pass", detail="relative L2 error 0.5", options="writes_inputs=True"),
}
FINE: Final = {
    "writes_what_it_says": _fine("x *= 2", "writes its inputs, which are copied anew", options="writes_inputs=True"),
    "in_the_order_of_fortran": _fine("return np.asfortranarray(x * TWO)"),
    "backwards": _fine("return (x[::-1] * TWO)[::-1]"),
    "in_one_buffer": _fine("return np.multiply(x, 2, out=buffer)"),
    "in_a_list": _fine("return [x * TWO]"),
    "by_name": _fine("return {'out': x * TWO}"),
    "prints": _fine("print('y' * 10**5); return x * TWO"),
    "leaves_a_thread": _fine(
        "count('thread') > 1 or threading.Thread(target=time.sleep, args=(3600,)).start(); return x * TWO"
    ),
    "seeds": _fine("np.random.seed(0); return x * TWO"),
}
#: Variants that change a setting of their process, or leave it at work, with what the diagnostic names.
SETTINGS: Final = {
    "forks": ("os.fork()", "processes behind, which may work on; wait for each"),
    "loses_its_reference": ("global reference; reference = None", "functions of your file"),
    "raises_on_overflow": ("np.seterr(all='raise')", "NumPy's error handling"),
    "goes_elsewhere": ("os.chdir('/')", "the working folder"),
    "closes_stdout": ("sys.stdout.close()", "sys.stdout"),
    "loses_stderr": ("sys.stderr = None", "sys.stderr"),
    "closes_the_file_of_stdout": ("count('close') == 1 and os.close(1)", "stdout or stderr"),
    "raises_warnings": ("warnings.simplefilter('error')", "the filters of warnings"),
}
ALL: Final = {
    **RETURNS,
    **RAISES,
    **CHANGES,
    **FINE,
    **{name: _fine(f"{body}; return x * TWO") for name, (body, _) in SETTINGS.items()},
}
#: Variants that end or block their process, which costs a new one each.
DEADLY: Final = {
    "ends_its_process": _variant("os._exit(0)", "launch_error", r"its process died \(exit code 0\)"),
    "aborts": _variant("os.abort()", "launch_error", r"its process died \(signal 6\)"),
    "reads_address_0": _variant("ctypes.string_at(0)", "launch_error", r"its process died \(signal 11\)"),
    "loses_its_pipe": _variant("os.closerange(3, 300); return x * TWO", "launch_error", "its process died"),
    "never_ends": _variant("threading.Event().wait()", "timeout", "no progress for 6 s, so its process was ended"),
}


def text_of(variants: dict[str, Wrong]) -> str:
    """A file of these variants, between the right ones."""
    return HEAD + "\n".join(wrong.source.replace("NAME", name) for name, wrong in variants.items()) + LAST
