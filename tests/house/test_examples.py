"""The scripts of examples/: each runs small, and what it measures is what it says it measures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither as library
from example_scripts import script

embeddings, sensitivity, scale = (script(name) for name in ("embeddings", "sensitivity", "scale_from_log"))


def blobs(n=300, d=4, K=3, seed=0):
    """Three clouds, far apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    return library.envs.Classification(
        3 * np.eye(K, d)[y] + rng.normal(size=(n, d)), y, scale="standard", intercept=False
    )


# --- embeddings.py


def test_the_halves_are_the_digits_and_share_no_row():
    from sklearn.datasets import load_digits

    X1, y1, X2, y2 = embeddings.halves()
    X, y = load_digits(return_X_y=True)
    assert abs(len(y1) - len(y2)) <= 1
    both, labels = np.r_[X1, X2], np.r_[y1, y2]
    assert sorted(zip(map(bytes, both), labels, strict=True)) == sorted(zip(map(bytes, X), y, strict=True))
    # seen red: `first` returned twice


def test_scaled_uses_the_first_half_alone_and_gives_rows_of_length_root_d():
    rng = np.random.default_rng(0)
    like, X = rng.normal(2, 3, (50, 4)), rng.normal(size=(20, 4))
    like[:, 1] = 7  # constant
    Z = embeddings.scaled(X, like)
    assert Z.shape == (20, 3)
    assert_allclose(np.sum(Z**2, axis=1), 3)
    kept = [0, 2, 3]
    by_hand = (X[:, kept] - like[:, kept].mean(0)) / like[:, kept].std(0)
    cosine = np.sum(Z * by_hand, axis=1) / np.sqrt(3) / np.linalg.norm(by_hand, axis=1)
    assert_allclose(cosine, 1)  # seen red: standardised by X itself


def test_the_network_is_linear_in_the_embedding_and_stays_frozen():
    X1, y1, X2, _ = embeddings.halves()
    P1, P2 = embeddings.scaled(X1, X1)[:150], embeddings.scaled(X2, X1)
    network = embeddings.pretrained(P1, y1[:150], steps=1)
    before = network.state.theta.copy()
    phi = embeddings.embedding(network, P2)
    assert phi.shape == (len(P2), 10, 8)
    A = np.column_stack([phi.reshape(-1, 8), np.ones(phi.shape[0] * 10)])
    f = network.mean(P2).reshape(-1)
    residual = f - A @ np.linalg.lstsq(A, f)[0]
    assert np.abs(residual).max() < 1e-4 * np.abs(f).max()  # seen red: the first hidden layer
    assert_array_equal(network.state.theta, before)


def test_arms_of_their_own_meet_the_same_rows_in_the_same_order():
    env = blobs()
    own = embeddings.OwnFeatures(np.repeat(env.X[:, None, :], 3, axis=1), env.y)
    labels = []
    for each, shape in ((env, (700, 4)), (own, (700, 3, 4))):
        run, out = each.start(np.random.default_rng(5)), np.empty(shape)
        labels.append(each.fill(run, np.random.default_rng(6), out))
        assert_array_equal(each.means(run, out, labels[-1]).argmax(axis=1), labels[-1])
    assert_array_equal(*labels)  # seen red: rows drawn at random


def test_embeddings_runs_small():
    table, accuracy = embeddings.main(runs=2, rounds=60, steps=1)
    assert 0.7 < accuracy <= 1
    assert list(table) == ["pixels", "embedding", "five digits", "own"]
    for name, found in table.items():
        assert tuple(found) == (embeddings.ON_ARMS if name == "own" else embeddings.ON_CONTEXTS)
        assert all(e.shape == (2,) and np.all((e >= 0) & (e <= 60)) for e in found.values())
    # one θ for ten arms must not have to learn the ten arms one by one
    assert table["own"]["LinFP:c=0.1"].mean() < table["embedding"]["LinFP:c=0.1"].mean()


# --- sensitivity.py


def test_without_noise_both_forms_are_greedy():
    for _, noise, mean, largest, same, correlation, top in sensitivity.agreement(blobs(), c=0.0, at=(5, 20), draws=100):
        assert mean == largest == 0
        assert same == top == 1
        assert correlation == pytest.approx(1)
        assert 0 <= noise < 0.05


def test_where_the_noise_is_small_the_distance_is_that_of_monte_carlo():
    """A network of ReLUs is straight near almost every x, so the two laws are one there."""
    for _, noise, mean, _, _, correlation, _ in sensitivity.agreement(blobs(), c=0.01, at=(20,), draws=1000):
        assert mean < 2 * noise
        assert correlation > 0.999
    # seen red: the scalar form at another t


def test_far_from_straight_they_differ():
    (_, noise, mean, *_), *_ = sensitivity.agreement(blobs(), c=10.0, at=(60,), draws=1000)
    assert mean > 3 * noise


def test_sensitivity_runs_small(monkeypatch, capsys):
    monkeypatch.setattr(sensitivity, "environment", lambda data: blobs())
    errors, near = sensitivity.main(runs=2, rounds=30, scales=(0.3, 1.0), at=(5, 10), contexts=5, draws=50)
    assert list(errors) == ["DeepGreedy", "DeepFP:c=0.3", "DeepFP-scalar:c=0.3", "DeepFP:c=1", "DeepFP-scalar:c=1"]
    assert all(e.shape == (2,) for e in errors.values())
    assert [[row[0] for row in rows] for rows in near.values()] == [[5, 10], [5, 10]]
    sensitivity.show(errors, near, data="blobs", runs=2, rounds=30)
    assert "DeepFP-scalar less DeepFP" in capsys.readouterr().out


# --- scale_from_log.py


def test_the_logged_propensities_are_those_of_the_floor():
    X, a, r, p = scale.logged(blobs(), 200, floor=0.2, seed=0)
    assert X.shape == (200, 4)
    assert set(np.round(p, 12)) == {round(0.2 / 3, 12), round(0.8 + 0.2 / 3, 12)}
    assert set(r) <= {0.0, 1.0}
    _, uniform, _, p = scale.logged(blobs(), 600, floor=1.0, seed=0)
    assert_allclose(p, 1 / 3)
    assert np.all(np.abs(np.bincount(uniform, minlength=3) - 200) < 5 * np.sqrt(600 * 2 / 9))
    assert 0 < np.mean(a == np.bincount(a).argmax()) < 1


def test_the_frozen_estimate_is_the_accuracy_that_the_labels_know():
    env = blobs(n=2000)
    log = scale.logged(env, 800, floor=0.3, seed=1)
    label = dict(zip(map(bytes, env.X), env.y, strict=True))
    one, noisy = scale.frozen(log, (0.0, 300.0), arms=3, judged=400)
    X, a, r, _ = log
    teacher = library.DeepGreedy(dim=4, disjoint=3, seed=0)
    teacher.update(X[:400], r[:400], arm=a[:400])
    known = np.mean([np.argmax(teacher.mean(x)) == label[bytes(x)] for x in X[400:]])
    assert abs(one.value - known) < 5 * one.se + 1e-9  # seen red: rewards of other rows
    assert known > 0.8
    assert noisy.value < one.value  # noise that drowns the features


def test_replay_counts_one_row_in_K():
    log = scale.logged(blobs(), 300, floor=1.0, seed=0)
    for one in scale.replayed(log, (0.0, 3.0), arms=3):
        assert abs(one.n - 100) < 5 * np.sqrt(300 * 2 / 9)
        assert 0 <= one.value <= 1


def test_the_verdict_by_hand():
    errors = np.array([[10.0, 12.0], [4.0, 6.0], [30.0, 30.0]])  # means 11, 5, 30
    values = np.array([[0.7, 0.8, 0.1], [0.9, 0.8, 0.1]])  # the first log is right, the second prefers c = 0
    chosen, mean, default, best, rank = scale.verdict(values, errors, (0.0, 1.0, 3.0))
    assert_array_equal(chosen, [1.0, 0.0])
    assert (mean, default, best) == (8.0, 5.0, 5.0)
    assert rank == pytest.approx((1.0 + 0.5) / 2)  # seen red: correlated with the errors themselves


def test_scale_from_log_runs_small(monkeypatch, capsys):
    monkeypatch.setattr(scale, "environment", lambda data, preprocessing: blobs())
    settings = dict(data="blobs", logs=2, rows=90, runs=2, rounds=40)
    table, errors = scale.main(**settings)
    assert errors.shape == (len(scale.SCALES), 2)
    assert all(values.shape == se.shape == (2, len(scale.SCALES)) for values, se in table.values())
    scale.show(table, errors, **settings)
    shown = capsys.readouterr().out
    assert "frozen: chose c" in shown
    assert "replay: chose c" in shown
