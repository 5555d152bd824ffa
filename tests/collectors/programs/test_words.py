"""Command lines of programs: how they are split and named, and which are refused."""

import pytest

from warpladder.collectors.programs.names import Names, names_of, parse, parse_all
from warpladder.errors import Error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("./solver 2048", ["./solver", "2048"]),
        ("'./my solver é' \"a b\"", ["./my solver é", "a b"]),
        ("grep 'a|b' x", ["grep", "a|b", "x"]),
        (r"echo \$HOME a\;b", ["echo", "$HOME", "a;b"]),
        ("awk '{print $1}'", ["awk", "{print $1}"]),
        ("./solver a~b c#d --n=3", ["./solver", "a~b", "c#d", "--n=3"]),
        ('echo "a*b"', ["echo", "a*b"]),
    ],
)
def test_a_command_line_is_split_as_by_a_shell(text: str, words: list[str]) -> None:
    assert list(parse(text).words) == words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty command"),
        (" \t", "an empty command"),
        ("./a 'x", "./a 'x: cannot be split into words (No closing quotation); close its quotes"),
        ("./a | wc", "./a | wc: the character | has a meaning to a shell only; quote it, or write sh -c '…'"),
        ("./a > out", "./a > out: the character > has"),
        ("./a $N", "./a $N: the character $ has"),
        ('./a "$N"', './a "$N": the character $ has'),
        ("./a *.csv", "./a *.csv: the character * has"),
        ("~/a", "~/a: the character ~ has"),
        ("./a # fast", "./a # fast: the character # has"),
        ("./a\n./b", r"./a\n./b: a line break has a meaning to a shell only"),
        ("N=1 ./a", "N=1 ./a: sets a variable, which a shell does; write env N=1"),
        ("''", "'': names no program"),
    ],
)
def test_what_needs_a_shell_or_names_no_program_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(Error) as error:
        parse(text)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("texts", [[], ["./a"]])
def test_fewer_than_two_programs_are_no_comparison(texts: list[str]) -> None:
    with pytest.raises(Error, match=r"^versus: (no|one) program to compare; name two or more"):
        parse_all(texts)


@pytest.mark.parametrize(
    ("commands", "workload", "case", "variants"),
    [
        (["./solver_v1 2048", "./solver_v2 2048"], "solver", "2048", ["solver_v1", "solver_v2"]),
        (["true", "false"], "true vs false", "whole", ["true", "false"]),
        (["./solver --fast 2048", "./solver --slow 2048"], "solver", "2048", ["--fast", "--slow"]),
        (["python a.py 10", "python b.py 10"], "python", "10", ["a.py", "b.py"]),
        (["old/solver 1", "new/solver 1"], "solver", "1", ["old/solver", "new/solver"]),
        (["/h/x/s", "/h/y/s", "/i/x/s"], "s", "whole", ["h/x/s", "h/y/s", "i/x/s"]),
        (["./a", "./a", "./a"], "a", "whole", ["a", "a #2", "a #3"]),
        (["./a 1", "./b 2", "./c 3"], "a 1 vs 2 others", "whole", ["a 1", "b 2", "c 3"]),
        (["./conv", "./convex"], "conv", "whole", ["conv", "convex"]),
        (["./p[x] 1", "./q\u0007 1"], "p(x) vs q", "1", ["p(x)", "q"]),
        (["./p --in=/data/x.csv", "./q --in=/data/x.csv"], "p vs q", "--in=x.csv", ["p", "q"]),
    ],
)
def test_programs_are_named_by_what_tells_them_apart(
    commands: list[str], workload: str, case: str, variants: list[str]
) -> None:
    found = names_of([command.split() for command in commands])
    assert found == Names(workload, case, tuple(variants))


def test_names_are_distinct_valid_and_short_whatever_the_programs_are_called() -> None:
    words = [["./" + "x" * 300 + "1"], ["./" + "x" * 300 + "2"], ["./\udcff"], ["./\n"], ["./\n"]]
    found = names_of(words, "mine [1]")
    assert found.workload == "mine (1)"
    assert len(set(found.variants)) == 5
    assert all(name.encode() and len(name) < 70 and name.isprintable() for name in found.variants)
