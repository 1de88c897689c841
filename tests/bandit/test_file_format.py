"""Files that last: a file of every format since 2 is kept in the folder files, is read, and answers as it did.

`python tests/bandit/test_file_format.py` writes the files of the present format, once. They are never written again.
"""

import io
import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dither
from dither.bandit import saving
from dither.models import digits
from properties import exactly, paid

FOLDER = Path(__file__).parent / "files"
FORMATS = range(2, saving.FORMAT + 1)
DIM, ROUNDS = 3, 8
SLOTS = ["LinFP", "LinTS", "GLMFP", "DeepFP"]  # that are kept with disjoint slots too
CASES = [*dither.ALGORITHMS, *(f"{name} of slots" for name in SLOTS)]
LATER: set[str] = set()  # algorithms that were added after the files of the present format: they are in the next one


def taught(case):
    """A small bandit that has learnt, of one algorithm with the settings that were the default when it was kept."""
    name = case.removesuffix(" of slots")
    settings = {"preset": "paper"} | exactly(name) | ({"disjoint": 4} if case != name else {})
    bandit = dither.ALGORITHMS[name](dim=DIM, seed=0, floor=0.1, **settings)
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS):
        X = rng.normal(size=(4, DIM)) / 2
        r = float(paid(bandit.model, np.float64(rng.normal())))
        bandit.choose(X[0] if bandit.slots else X)
        bandit.update(X[0], r, **({"arm": int(rng.integers(4))} if bandit.slots else {}))
    return bandit


def answers(bandit):
    """What it says of four arms, and what it shows next."""
    X = np.random.default_rng(2).normal(size=(4, DIM)) / 2
    X = X[0] if bandit.slots else X
    p, _, kind = bandit.propensities(X, detail=True, draws=400)
    return {
        "kind": kind,
        "p": None if kind == "none" else p.tolist(),
        "predict": bandit.predict(X).tolist() if "predict" in bandit.model.abilities else None,
        "arms": [int(bandit.choose(X).arm) for _ in range(12)],
        "decisions": bandit.decisions,
        "observations": bandit.observations,
        "columns": bandit.columns,
    }


def members(data):
    """The names, types and numbers of axes of what a file holds."""
    with np.load(io.BytesIO(data)) as file:
        return {name: (file[name].dtype.str, file[name].ndim) for name in file.files}


def header(data):
    with np.load(io.BytesIO(data)) as file:
        return json.loads(file["header"].tobytes())


def kept(format):
    """What the files of a format answered when they were written."""
    told = FOLDER / f"format-{format}" / "answers.json"
    return json.loads(told.read_text()) if told.exists() else {}


def path(format, case):
    return FOLDER / f"format-{format}" / f"{case.replace(' ', '-')}.npz"


@pytest.mark.parametrize(("format", "case"), [(format, case) for format in FORMATS for case in kept(format)])
def test_a_file_of_every_format_is_read_and_answers_as_it_did(format, case):
    told, bandit = kept(format)[case], dither.load(path(format, case))
    now = answers(bandit)
    assert now["kind"] == told["kind"]
    for name in ("p", "predict"):
        if told[name] is not None:
            assert_allclose(now[name], told[name], rtol=1e-6, atol=1e-9)  # kernels round differently
    for name in ("arms", "decisions", "observations", "columns"):
        assert now[name] == told[name]
    again = dither.from_bytes(bandit.to_bytes())
    assert answers(again) == answers(bandit)
    # seen red: another stream for "policy"; the answers of another algorithm


@pytest.mark.parametrize("case", ["LinFP", "LinTS of slots", "GLOC", "NeuralLinear"])
def test_what_rounding_had_done_by_the_traces_of_format_2_is_still_certain(case):
    """Its D and q are the same. The diagonal of V is that of (FF')⁻¹, and it goes on from there."""
    with np.load(path(2, case)) as file:
        old = next(file[name] for name in file.files if name.rpartition(".")[2] == "lost")
    bandit = dither.load(path(2, case))
    state = bandit.state.ridge if hasattr(bandit.state, "ridge") else bandit.state
    shown = getattr(bandit.model, "ridge", bandit.model).rounding(state)
    assert_allclose(np.ravel(shown.rho), digits.LOST * np.ravel(old[..., 4]), rtol=1e-12)
    assert_allclose(np.ravel(shown.omega), digits.LOST * np.ravel(old[..., 2]), rtol=1e-12)
    v, c = (
        state.lost[..., digits.SCALARS + k : digits.SCALARS + k + state.theta.shape[-1]]
        for k in (0, state.theta.shape[-1])
    )
    V = np.linalg.inv(state.F @ state.F.mT)
    assert_allclose(v, np.diagonal(V, axis1=-2, axis2=-1), rtol=1e-9)
    assert_allclose(c, np.diagonal(state.F @ state.F.mT, axis1=-2, axis2=-1), rtol=1e-12)
    assert_allclose(np.sum(v, axis=-1), old[..., 0], rtol=1e-9)
    # seen red: the diagonal of FF' in place of that of its inverse; D in place of D²


@pytest.mark.parametrize("case", ["GLMFP", "OFUGLB", "GLMFP of slots"])
def test_the_traces_of_format_3_become_the_diagonals_of_the_same_matrices(case):
    """Seen red with F in place of the factor of the objective, G."""
    state = dither.load(path(3, case)).state
    F = state.F if state.G is None else state.G
    covariance = F @ F.mT
    H = np.linalg.inv(covariance)
    assert_allclose(state.lazy.diagonal, np.diagonal(H, axis1=-2, axis2=-1), rtol=1e-9)
    assert_allclose(state.lazy.inverse, np.diagonal(covariance, axis1=-2, axis2=-1), rtol=1e-12)
    with np.load(path(3, case)) as file:
        trace = next(file[name] for name in file.files if name.endswith("lazy.trace"))
    assert_allclose(np.sum(state.lazy.diagonal, axis=-1), trace, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_now_has_the_form_of_the_files_that_are_kept(case):
    """If this fails, older files may not be read: raise FORMAT, write an upgrade, and write the files of the format."""
    if case in LATER:
        assert case not in kept(saving.FORMAT)
        return
    old, new = path(saving.FORMAT, case).read_bytes(), taught(case).to_bytes()
    assert members(new) == members(old)
    for part in ("model", "policy"):
        before, after = header(old)[part], header(new)[part]
        assert before["class"] == after["class"]
        assert before.keys() <= after.keys()  # a setting may be added, with a default that is what the files mean
    # seen red: a leaf of the state that is renamed; a setting that is removed


def good():
    return dither.LinFP(dim=2, seed=0).to_bytes()


def rewritten(**changes):
    """A good file with another header."""
    with np.load(io.BytesIO(good())) as file:
        parts = {name: file[name] for name in file.files}
    told = json.loads(parts.pop("header").tobytes()) | changes
    text, made = np.frombuffer(json.dumps(told).encode(), np.uint8), io.BytesIO()
    np.savez(made, header=text, **parts)
    return made.getvalue()


def archive(**parts):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return made.getvalue()


def npz(**arrays):
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


@pytest.mark.parametrize(
    ("data", "which"),
    [
        (b"", "It is empty"),
        (b"\x80\x04\x95", r"It is a foreign file: it begins with b'\\x80\\x04\\x95'"),
        (b"PAR1....", "It is a foreign file: it begins with b'PAR1'"),
        (good()[:3], "It is cut off"),
        (good()[:-1], "It is cut off"),
        (good()[: len(good()) // 2], "It is cut off"),
        (archive(), "It is a foreign file|It is cut off"),
        (npz(a=np.zeros(3)), "It is a foreign file: a zip archive of a, without a header"),
        (npz(header=np.frombuffer(b"{}", np.uint8)), "It is a foreign file: its header names no format"),
        (npz(header=np.frombuffer(b"{", np.uint8)), "It is damaged"),
        (rewritten(format="2"), "It is damaged: its format is '2'"),
        (rewritten(format=1), "It is of too old a version: .* in format 1, .*: learn again from the log"),
        (
            rewritten(format=saving.FORMAT + 1, version="9.9"),
            rf"It is of a newer version: it was written by dither 9.9 in format {saving.FORMAT + 1}, .*upgrade dither",
        ),
        (rewritten(dim=3), r"It is damaged: state\.\w+ is float64\(2,.*, its configuration has float64\(3,"),
        (rewritten(dim=3, version="9.9"), r"It is damaged, or of another version \(by dither 9.9, and"),
        (good().replace(b'"dim": 2', b'"dim": 3'), "It is damaged: .*CRC"),
    ],
)
def test_a_file_that_cannot_be_read_says_which_kind_it_is(data, which):
    with pytest.raises(ValueError, match=f"is not a dither file that this version can read. {which}"):
        dither.from_bytes(data)
    # seen red: "a damaged one" of all


def test_an_older_file_is_turned_into_the_present_form(monkeypatch):
    """As a format 3 that renames a setting and doubles a number would do it."""

    def upgrade(header, arrays):
        header["seed"] = header.pop("seed") + 1

    data, n = good(), saving.FORMAT
    monkeypatch.setattr(saving, "FORMAT", n + 2)
    monkeypatch.setattr(saving, "UPGRADES", {n: upgrade, n + 1: upgrade})
    assert dither.from_bytes(data).seed == 2
    monkeypatch.setattr(saving, "UPGRADES", {n + 1: upgrade})
    with pytest.raises(ValueError, match=rf"too old a version: .* in format {n}, "):
        dither.from_bytes(data)
    monkeypatch.setattr(saving, "UPGRADES", {n: lambda header, arrays: header["nothing"], n + 1: upgrade})
    with pytest.raises(ValueError, match="It is damaged: KeyError"):
        dither.from_bytes(data)
    # seen red: one upgrade for two steps


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "versions").mkdir()
    link, file = tmp_path / "current.npz", tmp_path / "versions" / "b.npz"
    link.symlink_to(file)
    dither.LinFP(dim=2, seed=0).save(link)  # the file is not there yet
    dither.LinFP(dim=3, seed=0).save(link)
    assert link.is_symlink()
    assert dither.load(file).dim == dither.load(link).dim == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    # seen red: the file in place of the link, and readers of the other name kept the old one


def test_the_file_says_which_version_wrote_it():
    assert header(good())["version"] == dither.__version__
    assert header(good())["format"] == saving.FORMAT


def main():
    """Write the files of the present format, which must not be there."""
    folder = FOLDER / f"format-{saving.FORMAT}"
    folder.mkdir(parents=True)
    told = {}
    for case in CASES:
        bandit = taught(case)
        path(saving.FORMAT, case).write_bytes(bandit.to_bytes())
        told[case] = answers(bandit)
    (folder / "answers.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
