"""Names and sizes in src: a class name stands once, functions are short and take little, names say what they hold.

Every exception is listed with its reason, and fails once it is not needed.
"""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
LINES = 60  # of a function, without its docstring, blank lines and comments
PARAMETERS = 12
WORDS = {"found", "own", "given", "known", "made"}  # they say how a value came, and not what it is

CLASSES = {  # class name -> why it stands in several files
    "Log": "dither.log.Log writes a log; links.Log is the link that is called so in the table of links",
    "Probit": "envs.Probit is the environment that has the link links.Probit",
}
LONG: dict[str, str] = {}  # file:function -> why it is long
MANY = {  # file:function -> why it takes so much
    "dither/cli/evaluate.py:evaluate": "a command; its groups of options count as one each",
    "dither/live/serving.py:__init__": "the facade `dither.Live`: a keyword is a setting of the service",
    "dither/ope/choosing.py:choose_c": "the facade `dither.ope.learning.choose_c`: the columns of a log, and its rules",
    "dither/ope/judge.py:evaluate": "the facade `dither.ope.evaluate`",
    "dither/ope/tuning.py:tune": "the facade `dither.tune`",
}
CONTRACTS = {  # (word, file or folder) -> the keyword that is so called there
    ("known", "dither/bandit/restoring.py"): "known= of `dither.load`: classes that a file may hold",
    ("known", "dither/bandit/saving.py"): "the same, handed on",
    ("known", "dither/live/explaining.py"): "known= of `dither.live.explained`: the same, handed on",
    ("known", "dither/live/serving.py"): "known= of `dither.Live`",
    ("known", "dither/testing/model_checks.py"): "known= of `check_model`",
    ("known", "dither/testing/policy_checks.py"): "known= of `check_policy`",
    ("own", "dither/base/arrays.py"): "own= of `arrays.replace`: the array may be overwritten",
    ("own", "dither/models"): "own= of `Model.update`: the state may be overwritten",
}


@cache
def modules():
    """File below src -> its tree."""
    paths = sorted(SRC.rglob("*.py"))
    return {path.relative_to(SRC).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def functions():
    """file:name, the function and the lines of its file."""
    for file, tree in modules().items():
        lines = (SRC / file).read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file}:{node.name}", node, lines


def code_lines(function, lines):
    """The lines of a function from its `def` on that are neither blank, nor a comment, nor its docstring."""
    first = function.body[0]
    told = range(first.lineno, first.end_lineno + 1) if ast.get_docstring(function) is not None else ()
    texts = (lines[i - 1].strip() for i in range(function.lineno, function.end_lineno + 1) if i not in told)
    return sum(1 for text in texts if text and not text.startswith("#"))


def parameters(function):
    """How many parameters a function takes, without self."""
    takes = function.args
    names = [p.arg for p in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)]
    more = (takes.vararg is not None) + (takes.kwarg is not None)
    return len(names) + more - (names[:1] in (["self"], ["cls"]))


def names(tree):
    """The names that a file gives to variables, arguments, attributes and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_the_sources_are_there():
    assert len(modules()) > 300


def test_a_class_name_stands_in_one_file():
    files = defaultdict(set)
    for file, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name].add(file)
    twice = {name: sorted(places) for name, places in files.items() if len(places) > 1}
    assert twice.keys() == CLASSES.keys(), twice
    # seen red: `BestSetting` of the bench called Choice, as the one of `deciding`


def test_functions_are_short():
    long = {name: size for name, node, lines in functions() if (size := code_lines(node, lines)) > LINES}
    assert long.keys() == LONG.keys(), long
    # seen red: the options of an environment written into the command `compare`


def test_functions_take_little():
    many = {name: count for name, node, _ in functions() if (count := parameters(node)) > PARAMETERS}
    assert many.keys() == MANY.keys(), many
    # seen red: the same


@pytest.mark.parametrize("word", sorted(WORDS))
def test_names_say_what_they_hold(word):
    places = [place for called, place in CONTRACTS if called == word]
    files = {file for file, tree in modules().items() if word in names(tree)}
    allowed = {file: [place for place in places if file == place or file.startswith(f"{place}/")] for file in files}
    assert not [file for file in sorted(files) if not allowed[file]]
    assert {place for each in allowed.values() for place in each} == set(places)
    # seen red: `Sweep.search` called found, `Summary.day` called made, an argument of an inner function called given
