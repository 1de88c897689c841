"""Features that belong to a bandit: names, files, and logs that other features made."""

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import dither
from dither import log, ope
from dither.features import Numeric

CONTEXT = {"age": 50}
ARMS = [{"price": 1.0, "topic": "a"}, {"price": 2.0, "topic": "b"}]


def features(mean=40, **settings):
    fields = dict(context={"age": Numeric(mean=mean, scale=10)}, arm={"price": Numeric(2, 0.5), "topic": ["a", "b"]})
    return dither.Features(**fields | {"cross": "all"} | settings)


def test_a_bandit_has_the_columns_of_its_features():
    f = features()
    bandit = dither.LinFP(features=f, seed=0)
    assert bandit.dim == f.dim
    assert bandit.columns == f.columns
    X = f.encode(CONTEXT, ARMS)
    d = bandit.choose(X)
    bandit.update(X[d.arm], 1.0)
    shuffled = pd.DataFrame(X, columns=f.columns).iloc[:, ::-1]
    assert_array_equal(bandit.propensities(shuffled), bandit.propensities(X))  # seen red: by place
    with pytest.raises(ValueError, match="must have the columns"):
        bandit.choose(pd.DataFrame(X, columns=[*f.columns[1:], "other"]))
    general = dither.FP(lambda X: X[:, 0], features=f, Sigma=0.1, seed=0)
    assert general.columns == f.columns
    assert copy.deepcopy(bandit).features == f
    assert dither.LinFP(dim=3).features is None
    slots = dither.LinFP(features=dither.Features(context={"age": Numeric(0, 1)}, form="disjoint"), disjoint=4, seed=0)
    assert slots.choose(slots.features.encode({"age": 2})).arm in range(4)


def test_features_that_do_not_go_with_the_bandit():
    f = features()
    with pytest.raises(ValueError, match=f"dim must be {f.dim}, the number of columns of the features; got 3"):
        dither.LinFP(dim=3, features=f)
    with pytest.raises(ValueError, match="form 'shared' do not go with disjoint=3: leave disjoint out"):
        dither.LinFP(features=f, disjoint=3)
    with pytest.raises(ValueError, match="form 'disjoint' do not go with disjoint=None: give the bandit disjoint=K"):
        dither.LinFP(features=dither.Features(context={"age": Numeric(0, 1)}, form="disjoint"))
    with pytest.raises(ValueError, match="'age' must be fitted first"):
        dither.LinFP(features=dither.Features(context={"age": "numeric"}, arm={"topic": ["a"]}, cross="all"))
    for wrong in ("f", dither.Catalogue(f)):
        for make in (lambda w: dither.LinFP(features=w), lambda w: dither.LinFP(dim=2, features=w)):
            with pytest.raises(TypeError, match=rf"features must be dither\.Features, got {type(wrong).__name__}"):
                make(wrong)
    with pytest.raises(TypeError, match=r"LinFP needs dim, .* or features="):
        dither.LinFP()


def test_a_file_holds_the_features(tmp_path):
    f = features()
    bandit = dither.LinFP(features=f, seed=0)
    bandit.update(f.encode(CONTEXT, ARMS)[0], 1.0)
    bandit.save(tmp_path / "b.npz")
    for again in (dither.load(tmp_path / "b.npz"), dither.from_bytes(bandit.to_bytes(), features=features())):
        assert again.features == f
        assert again.features.to_bytes() == f.to_bytes()
        assert again.to_bytes() == bandit.to_bytes()
        X = again.features.encode(CONTEXT, ARMS)
        assert_array_equal(again.propensities(X), bandit.propensities(f.encode(CONTEXT, ARMS)))
    words = "features= are not those of the bandit in .*b.npz: .*'age' of the context was numeric, mean 40, .*mean 41"
    with pytest.raises(ValueError, match=words):
        dither.load(tmp_path / "b.npz", features=features(mean=41))
    others = {
        "'topic' of the arm was category, 2 values.* and is not there": features(arm={"price": Numeric(2, 0.5)}),
        "'new' of the arm was not there and is category": features(
            arm={"price": Numeric(2, 0.5), "topic": ["a", "b"], "new": ["x"]}
        ),
        "fields of the arm have another order": features(arm={"topic": ["a", "b"], "price": Numeric(2, 0.5)}),
        "intercept was True and is False": features(intercept=False),
        r"missing='zero' and is .* missing='column'": features(context={"age": Numeric(40, 10, missing="column")}),
    }
    for told, other in others.items():
        with pytest.raises(ValueError, match=told):
            dither.load(tmp_path / "b.npz", features=other)
    plain = dither.LinFP(dim=2, seed=0).to_bytes()
    assert dither.from_bytes(plain).features is None
    with pytest.raises(ValueError, match="holds a bandit without features: leave features= out"):
        dither.from_bytes(plain, features=f)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"mean": 40.0', b'"mean": 41.0'),  # the fingerprint does not fit
        (b'"columns": ["intercept", "age"', b'"columns": ["intercept", "agf"'),
        (b'"kind": "category"', b'"kind": "catfgory"'),
        (b'"cross": [["age"', b'"cross": [["agf"'),
    ],
)
def test_features_in_a_damaged_file_are_refused(old, new):
    data = dither.LinFP(features=features(), seed=0).to_bytes()
    assert data.count(old) == 1
    wrong = data.replace(old, new)
    import zipfile

    with pytest.raises(ValueError, match="is not a dither file"):
        dither.from_bytes(_mended(wrong, zipfile))


def _mended(data, zipfile):
    """The archive with the checksums of what is in it now, so that only the content is wrong."""
    import io
    import zlib

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for member in members:
            start = member.header_offset + 30
            name, extra = (int.from_bytes(data[start - 4 + 2 * i : start - 2 + 2 * i], "little") for i in (0, 1))
            body = data[start + name + extra :][: member.file_size]
            assert zlib.crc32(body) == member.CRC or member.filename == "header.npy"
            archive.writestr(member.filename, body)
    return out.getvalue()


def served(f, n=60, **settings):
    """A log of a bandit with these features."""
    bandit = dither.LinFP(features=f, seed=0, floor=0.2)
    book = log.Log(bandit=bandit, features=True, probabilities=True, **settings)
    rng = np.random.default_rng(1)
    for i, age in enumerate(rng.uniform(20, 60, size=n)):
        d = book.decide(f.encode({"age": age}, ARMS), id=str(i))
        book.reward(str(i), float(d.arm == (age > 40)))
    return book


def test_a_log_knows_the_features_that_made_it(tmp_path):
    f, other = features(), features(mean=41)
    one = served(f).read()
    assert one.encoded_by == f.fingerprint
    assert one.names == f.columns
    one.write(tmp_path / "one.parquet")
    again = log.read(tmp_path / "one.parquet")
    assert again.encoded_by == f.fingerprint  # seen red: lost by `write`
    same, wrong = (dither.LinFP(features=g, seed=0) for g in (features(), other))
    plain = dither.LinFP(dim=f.dim, seed=0)
    for bandit in (same, plain):
        log.warm_start(bandit, again)
    assert_array_equal(same.theta, plain.theta)
    before = wrong.to_bytes()
    words = f"other Features made the features of the log .{f.fingerprint}. than the bandit has .{other.fingerprint}."
    for use in (
        lambda: log.warm_start(wrong, again),
        lambda: log.warm_start(wrong, tmp_path / "one.parquet"),
        lambda: ope.replay(wrong, again),
    ):
        with pytest.raises(ValueError, match=words):
            use()
    assert wrong.to_bytes() == before
    with pytest.raises(ValueError, match="different Features made the features of"):
        log.read([again, served(other).read()])
    assert log.read([again, served(features(), n=3).read()]).encoded_by == f.fingerprint
    assert served(f).bandit.features is f


def test_a_folder_belongs_to_one_set_of_features(tmp_path):
    f = features()
    served(f, path=tmp_path / "log", n=5).close()
    assert log.read(tmp_path / "log").encoded_by == f.fingerprint
    with pytest.raises(ValueError, match=r"other Features made the features in .*: give it a folder of its own"):
        log.Log(tmp_path / "log", bandit=dither.LinFP(features=features(mean=41), seed=0))
    with log.Log(tmp_path / "log", bandit=dither.LinFP(features=features(), seed=1)) as book:
        assert len(book.read()) == 5


def test_a_crossed_context_is_learnt_from_a_log():
    f = features()
    rows = served(f, n=400).read()
    bandit = dither.Greedy(features=f, lam=1.0, seed=0)
    log.warm_start(bandit, rows)
    for age, best in itertools.product((25, 55), (0, 1)):
        assert (np.argmax(bandit.mean(f.encode({"age": age}, ARMS))) == best) == ((age > 40) == best)
