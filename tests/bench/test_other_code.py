"""Stored results know the code that made them. Each test says what was broken to see it red."""

import functools
import hashlib
import importlib
import json
import re
import shutil
import sys
import textwrap
import types
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dither
from dither.algorithms import Algorithm
from dither_bench.define import environments, figures
from dither_bench.define.environments import describe
from dither_bench.judge import tables
from dither_bench.keep import code, texts
from dither_bench.keep.imported import Sources
from dither_bench.keep.store import STORE, UNRECORDED, Store, of_panel
from dither_bench.run import computing, run

POLICY = '''
"""A policy of the user's own."""
from dataclasses import dataclass
import numpy as np
from dither.policies import views
from {module}_helper import scaled

@dataclass(frozen=True)
class Mine:
    temperature: float = 1.0
    needs = frozenset({{"mean"}})

    def draw(self, rng, n, *, arms, dim):
        return (rng.gumbel(size=(n, arms)),)

    def view(self, model, state, X, *, t):
        m = model.mean(state, X)
        return views.Drawn(lambda noise: {sign}m + scaled(self.temperature * noise))
'''


class Own:
    """An algorithm of the user's, in two files that can be edited."""

    def __init__(self, folder, monkeypatch, name):
        self.folder, self.monkeypatch, self.module = folder, monkeypatch, name
        monkeypatch.syspath_prepend(str(folder))
        self.edit()

    def edit(self, *, policy=POLICY, sign="", temperature=0.1):
        """The files say this from now on, and are imported as by a new process."""
        (self.folder / f"{self.module}_helper.py").write_text(f"def scaled(x):\n    return {temperature} * x\n")
        (self.folder / f"{self.module}.py").write_text(policy.format(module=self.module, sign=sign))
        self.load()

    def load(self):
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        for name in (self.module, f"{self.module}_helper"):
            self.monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        self.register(importlib.import_module(self.module).Mine)
        sys.dont_write_bytecode = before

    def register(self, policy, **more):
        words = dict(summary="Of my own, for a test.", source="none", perturbs="utility", propensity="Monte Carlo")
        self.monkeypatch.setitem(dither.ALGORITHMS, "Mine", Algorithm("Mine", policy, **words, **more))


@pytest.fixture
def own(tmp_path, monkeypatch, request):
    folder = tmp_path / "own"
    folder.mkdir()
    return Own(folder, monkeypatch, re.sub(r"\W", "_", f"own_{request.node.name}"))


def figure(*names):
    return figures.adhoc(describe("linear", dim=3, arms=4), names or ["Mine", "LinFP"], rounds=40, runs=3)


def rows(out, fig=None):
    """What a table of the last request shows."""
    request = next(r for r in run.asked.figures(out) if r.figure.name == "compare")
    found = tables.curves(fig or request.figure, Store(out / STORE), seed=request.seed, codes=request.codes)
    return found.sort("algorithm", "run", "round")


def test_other_code_is_computed_anew_and_no_other_algorithm(tmp_path, own):
    said = []
    assert run.reproduce(figure(), out=tmp_path / "a", runs=3) == 1
    old = rows(tmp_path / "a")
    own.edit(sign="-")
    calls = []
    own.monkeypatch.setattr(
        computing,
        "simulate",
        lambda env, specs, **more: (calls.append([*specs]), dither.simulate(env, specs, **more))[1],
    )
    assert run.reproduce(figure(), out=tmp_path / "a", runs=3, on_other_code=said.append) == 1
    assert calls == [["Mine"]]
    assert said == [
        "Stored runs of Mine were made by other code than this: they are computed anew (--accept-other-code would take "
        "them)."
    ]
    run.reproduce(figure(), out=tmp_path / "b", runs=3)
    assert_frame_equal(rows(tmp_path / "a"), rows(tmp_path / "b"))
    assert not rows(tmp_path / "a").equals(old)
    assert run.reproduce(figure(), out=tmp_path / "a", runs=3) == 0
    own.edit()  # back: its results are still there, and are what is shown
    assert run.reproduce(figure(), out=tmp_path / "a", runs=3) == 0
    assert_frame_equal(rows(tmp_path / "a"), old)
    # seen red: `missing` without its codes; `asked.record` without them (the newest are shown)


def test_what_is_accepted_is_taken_and_said(tmp_path, own):
    run.reproduce(figure(), out=tmp_path, runs=2)
    old = rows(tmp_path)
    own.edit(temperature=2.0)
    said = []
    assert run.reproduce(figure(), out=tmp_path, runs=2, accept=True, on_other_code=said.append) == 0
    assert said == ["Stored runs of Mine were made by other code than this, and are accepted."]
    assert_frame_equal(rows(tmp_path), old)
    assert run.reproduce(figure("Mine"), out=tmp_path, runs=3, accept=True) == 1  # one run more, by the new code
    cell = of_panel(figure().panels[0], seed=0)["Mine"]
    about = Store(tmp_path / STORE).about(cell, Store(tmp_path / STORE).codes(cell))
    assert [a["runs"] for a in about] == [[2], [0, 1]]
    # seen red: `accept` without effect in `reproduce`


@pytest.mark.parametrize("what", ["comment", "docstring", "layout"])
def test_what_says_the_same_is_the_same_code(tmp_path, own, what):
    edited = {
        "comment": POLICY + "# a remark\n",
        "docstring": POLICY.replace("of the user's own", "changed"),
        "layout": POLICY.replace("\n\n", "\n\n\n"),
    }[what]
    run.reproduce(figure("Mine"), out=tmp_path, runs=1)
    own.edit(policy=edited)
    assert run.reproduce(figure("Mine"), out=tmp_path, runs=1) == 0
    # seen red: a hash of the file's bytes


def test_a_module_that_the_policy_imports_is_its_code(tmp_path, own):
    run.reproduce(figure("Mine"), out=tmp_path, runs=1)
    own.edit(temperature=0.2)
    assert run.reproduce(figure("Mine"), out=tmp_path, runs=1) == 1
    # seen red: `closure` without the modules that are imported


def mine():
    """The fingerprint of an algorithm "Mine"."""
    cells = list(of_panel(figure("Mine").panels[0], seed=0).values())
    return code.fingerprints(cells)[cells[0].key]


def test_code_that_runs_counts_beside_what_its_file_says(own):
    first = mine()
    helper = f"{own.module}_helper"
    old = sys.modules[helper].scaled
    path = own.folder / f"{own.module}_helper.py"
    path.write_text(path.read_text().replace("return 0.1", "return 0.2"))  # edited, and not imported again
    stale = mine()
    own.load()
    new = mine()
    own.monkeypatch.setattr(sys.modules[helper], "scaled", old)  # what a notebook may do
    assert len({first, stale, new}) == 3
    assert mine() == stale
    assert None not in (first, stale, new)
    # seen red: `_hash` of the source alone


def test_settings_and_closures_of_an_algorithm_count(own):
    kind = dither.ALGORITHMS["Mine"].policy

    def scaled(k):
        return lambda dim, given: {"temperature": k}

    def made(k):
        class Made(kind):
            def view(self, model, state, X, *, t):
                return dither.policies.views.Drawn(lambda noise: k * noise)

        return Made

    found = [mine()]
    for more in ({"default": {"temperature": 2.0}}, {"default": scaled(3.0)}, {"default": scaled(4.0)}):
        own.register(kind, presets=more)
        found.append(mine())
    for k in (1, 2):
        own.register(made(k))
        found.append(mine())
    assert len(set(found)) == len(found)
    assert None not in found
    # seen red: `_said` of a class without its methods; of a policy without its settings


def test_what_has_no_source_is_computed_anew_each_time(tmp_path, own):
    module = types.ModuleType(f"{own.module}_typed")  # as typed at a prompt
    own.monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(textwrap.dedent(POLICY.format(module=own.module, sign="")), module.__dict__)
    own.register(module.Mine)
    assert mine() is None
    said = []
    for _ in range(2):
        assert run.reproduce(figure("Mine", "LinFP"), out=tmp_path, runs=2, on_other_code=said.append) == 1
        assert set(rows(tmp_path)["run"]) == {0, 1}
    assert said == ["The source of Mine cannot be looked at: all runs are computed anew."] * 2
    # seen red: one code for all that has no source


def test_results_of_a_version_that_recorded_no_code(tmp_path):
    run.reproduce(figure("LinFP"), out=tmp_path, runs=2)
    old = rows(tmp_path)
    cell = of_panel(figure("LinFP").panels[0], seed=0)["LinFP"]
    (path,) = (tmp_path / STORE / cell.key).rglob("*.parquet")
    about = json.loads(pl.read_parquet_metadata(path)["dither"])
    del about["code"], about["checksum"]
    frame = pl.read_parquet(path).with_columns(regret=pl.col("regret") + 1000.0)
    frame.write_parquet(path.parent.parent / path.name, metadata={"dither": json.dumps(about)})
    shutil.rmtree(path.parent)
    shutil.rmtree(tmp_path / "asked")
    store, said = Store(tmp_path / STORE), []
    assert store.codes(cell) == [UNRECORDED]
    assert store.runs(cell) == {0, 1}
    assert run.reproduce(figure("LinFP"), out=tmp_path, runs=2, accept=True, on_other_code=said.append) == 0
    assert rows(tmp_path)["regret"].min() > 999
    assert run.reproduce(figure("LinFP"), out=tmp_path, runs=2, on_other_code=said.append) == 1
    assert_frame_equal(rows(tmp_path), old)
    assert said[0] == "Stored runs of LinFP were made by other code than this, and are accepted."
    assert said[1].startswith("Stored runs of LinFP do not say which code made them: they are computed anew")
    # seen red: files without a code counted as the cell's


def test_a_file_in_the_folder_of_another_code_is_refused(tmp_path):
    run.reproduce(figure("LinFP"), out=tmp_path, runs=1)
    cell = of_panel(figure("LinFP").panels[0], seed=0)["LinFP"]
    (path,) = (tmp_path / STORE / cell.key).rglob("*.parquet")
    shutil.copytree(path.parent, path.parent.parent / "other")
    with pytest.raises(ValueError, match="holds results of the code"):
        Store(tmp_path / STORE).codes(cell)
    # seen red: `_files` without the comparison of codes


def test_what_counts_as_the_code_of_the_library_s_own(monkeypatch):
    greedy = set(Sources().closure(["dither.policies.greedy"]))
    assert {"dither.policies.greedy", "dither.base.arrays", "dither.base.errors"} <= greedy
    assert not greedy & {"dither.policies.utility", "dither.algorithms", "dither.models.glm", "numpy", "math"}
    assert "dither.models.network.autograd" in Sources().closure(["dither.models.network.network"])  # imported late
    assert "dither.policies.utility" in Sources().closure(["dither"])
    before = code.of(dither.policies.Greedy(), dither.models.Ridge())
    monkeypatch.setattr(dither.base.arrays, "argmax", lambda *given, **more: None)
    assert code.of(dither.policies.Greedy(), dither.models.Ridge()) == before  # a name, of another module
    monkeypatch.undo()

    def argmax(scores, u, *, keys=()):
        return 0

    argmax.__module__ = "dither.base.arrays"
    monkeypatch.setattr(dither.base.arrays, "argmax", argmax)
    assert code.of(dither.policies.Greedy(), dither.models.Ridge()) not in (before, None)
    # seen red: imports inside functions left out; loaded code left out


@pytest.fixture
def parsed(monkeypatch):
    """The texts that are parsed from now on."""
    calls, parse = [], texts.ast.parse
    monkeypatch.setattr(
        texts.ast, "parse", lambda text, *more, **rest: calls.append(text) or parse(text, *more, **rest)
    )
    return calls


@pytest.fixture
def anew(monkeypatch):
    """`anew(path)`: this process knows of no text what it says, as one that has just begun and whose file is `path`."""

    def begun(path):
        texts.read.cache_clear()
        monkeypatch.setattr(texts, "of_library", functools.cache(lambda: texts.KeptTexts(path)))

    return begun


def test_what_the_library_s_texts_say_is_worked_out_once(tmp_path, anew, parsed):
    def now():
        return code.of(dither.policies.Greedy(), dither.models.Ridge())

    anew(None)  # as where nothing is kept
    first = now()
    assert (first, len(parsed)) == (now(), len(set(parsed)))  # seen red: `read` without a cache
    anew(tmp_path / "cache" / "texts.json")
    assert now() == first
    library, count = {path.read_bytes() for path in Path(dither.__file__).parent.rglob("*.py")}, len(parsed)
    anew(tmp_path / "cache" / "texts.json")
    assert now() == first  # seen red: codes that are not what was written
    assert not library & set(parsed[count:])  # seen red: `keep` without effect
    assert library & set(parsed[:count])
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["texts.json"]


def test_a_text_that_was_kept_says_nothing_of_another_one(tmp_path, parsed):
    path = tmp_path / "texts.json"
    kept = texts.KeptTexts(path)
    says = [kept.of("a", text) for text in (b"from .x import y\ndef f(): return 1\n", b"def f(): return 2\n")]
    assert says[0].hash != says[1].hash
    assert (says[0].imports, says[1].imports) == (((1, "x", ("y",)),), ())
    kept.keep()
    later, count = texts.KeptTexts(path), len(parsed)
    assert later.of("a", b"def f(): return 2\n") == says[1]
    assert len(parsed) == count
    texts.read.cache_clear()
    assert later.of("a", b"from .x import y\ndef f(): return 1\n") == says[0]  # seen red: a module's name alone
    assert len(parsed) == count + 1
    with pytest.raises(SyntaxError):
        later.of("a", b"def f( return 1\n")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\x80", "rows", "Python"])
def test_a_file_of_kept_texts_that_is_not_ours_is_left_aside(tmp_path, parsed, content):
    path = tmp_path / "texts.json"
    if content == "rows":
        content = json.dumps({"python": sys.version, "texts": {"a": ["0", "1"]}}).encode()
    if content == "Python":  # another one made it
        row = (hashlib.sha256(b"x = 1\n").hexdigest(), "a hash", [], [])
        content = json.dumps({"python": "1.5", "texts": {"a": row}}).encode()
    if content is not None:
        path.write_bytes(content)
    kept = texts.KeptTexts(path)
    assert kept.of("a", b"x = 1\n") == texts.read(b"x = 1\n")
    kept.keep()
    assert texts.KeptTexts(path).of("a", b"x = 1\n") == texts.read(b"x = 1\n")
    # seen red: an error in place of the file; a file of another Python


def test_where_no_text_can_be_kept_each_process_reads_it(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    kept = texts.KeptTexts(tmp_path / "file" / "texts.json")  # no folder can be made there
    assert kept.of("a", b"x = 1\n") == texts.read(b"x = 1\n")
    kept.keep()
    assert (tmp_path / "file").read_bytes() == b""  # seen red: `keep` that raises


def test_the_bench_is_not_the_code_of_a_result_but_for_what_builds_the_environment(monkeypatch):
    """A caption or a table that is written anew makes no result old. So only the builders count."""
    read, closure = set(), Sources.closure

    def noting(self, modules):
        found = closure(self, modules)
        read.update(found)
        return found

    monkeypatch.setattr(Sources, "closure", noting)
    for env in ("linear", "digits"):
        panel = figures.adhoc(describe(env), ["LinFP"], rounds=40, runs=3).panels[0]
        assert None not in code.fingerprints(of_panel(panel, seed=0).values()).values()
    assert {name for name in read if name.startswith("dither_bench")} == {environments.__name__}
    assert {"dither.simulation.simulate", "dither.envs.linear", "dither.models.ridge"} <= read
    of_user = closure(Sources(), ["dither"])  # what a file imports that says `import dither`
    assert "dither.deciding.decision" in of_user
    assert not [
        name
        for name in of_user
        if name.startswith(("dither_bench", "dither.experiments", "dither.cli", "dither.algorithms"))
    ]
    # seen red: `BESIDE` without the experiments


@pytest.mark.parametrize("accept", [False, True])
def test_the_command_says_it_and_shows_what_was_asked(dither, tmp_path, own, accept):
    out = ("--out", tmp_path, "--dim", 3, "--arms", 4, "--rounds", 40, "--runs", 3)
    assert dither("compare", "Greedy", "LinUCB", *out)[0] == 0
    first = dither("compare", "Mine", "LinFP", *out, "--noise", 0.5)[1]
    own.edit(sign="-")
    status, text, err = dither("compare", "Mine", "LinFP", *out, "--noise", 0.5, *["--accept-other-code"] * accept)
    fresh = dither("compare", "Mine", "LinFP", *out[2:], "--out", tmp_path / "fresh", "--noise", 0.5)[1]
    mine_, theirs, anew = (
        next(line for line in shown.splitlines() if line.startswith(" Mine")) for shown in (text, first, fresh)
    )
    assert status == 0
    assert mine_ == (theirs if accept else anew)
    assert theirs != anew
    word = "and are accepted." if accept else "they are computed anew"
    for shown in (text, err):
        assert word in " ".join(shown.split())
    assert "Greedy" not in text  # asked before, in another setting
    assert "The files leave out what was asked for earlier in this folder: linear, dim=3, arms=4, T=40." in " ".join(
        text.split()
    )
    assert dither("report", tmp_path, "-o", tmp_path / "r.html")[0] == 0
    html = (tmp_path / "r.html").read_text("utf-8")
    assert ("Runs of Mine were made by other code" in html) is accept
    assert mine_.split()[1] in html
    # seen red: tables of all that the folder holds; `asked` without codes
