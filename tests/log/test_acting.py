"""What a log says of the policy that wrote it: whether it learnt meanwhile, and what its rewards can be."""

import numpy as np
import polars as pl
import pytest

import dither
from dither import log as logs
from dither.log import acting
from dither.log.check import PolicyChanges, changes

SILENT = PolicyChanges()


def offers(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3, 2))


def bandit(name="LinFP", **settings):
    return getattr(dither, name)(dim=2, seed=0, floor=0.1, **settings)


def of_log(one, learn, path):
    """A folder: the decisions of a bandit, which learns in between or does not."""
    with logs.Log(path, bandit=one) as log:
        for X in offers(12):
            d = log.decide(X)
            log.reward(d.id, 1.0)
            if learn:
                one.update(X[d.arm], 1.0)
    return logs.read(path)


def recorded(one, learn, path):
    """A ledger that is told of decisions, by a bandit that knows nothing of it."""
    with logs.Ledger(path / "ledger.db") as ledger:
        for X in offers(12):
            d = one.choose(X)
            ledger.reward(ledger.record(d, X=X).id, 1.0)
            if learn:
                one.update(X[d.arm], 1.0)
        return ledger.read()


def told(one, learn, path):
    """A log without a bandit that is told of decisions."""
    with logs.Log(path) as log:
        for X in offers(12):
            d = one.choose(X)
            log.reward(log.record(d, X=X).id, 1.0)
            if learn:
                one.update(X[d.arm], 1.0)
        return log.read()


def live(one, learn, path, **more):
    with dither.Live(path / "live.db", bandit=one, learn=learn, **more) as home:
        for X in offers(12):
            home.reward(home.choose(X).id, 1.0)
        return home.read()


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("write", [of_log, recorded, told, live])
def test_a_log_knows_whether_its_policy_learnt(tmp_path, write, learn):
    """Seen red with the column left out of `Recorder.rows`."""
    rows = write(bandit(), learn, tmp_path)
    assert acting.learnt(rows.acting, SILENT).value is learn
    assert len(rows.frame["learnt"].unique()) == (12 if learn else 1)


def test_the_mark_survives_files_and_pieces(tmp_path):
    """Seen red with `wrote` not passed on: the first rows of a log that learnt later say that it did not."""
    one = bandit()
    with dither.Live(bandit=one) as home:
        for i, X in enumerate(offers(40)):
            d = home.choose(X)
            if i >= 30:
                home.reward(d.id, 1.0)
        home.ledger.export(tmp_path / "days")
        home.read().write(tmp_path / "one.parquet")
    for source in (tmp_path / "days", tmp_path / "one.parquet"):
        first = next(logs.batches(source, rows=10))
        assert len(first) == 10
        assert len(first.frame["learnt"].unique()) == 1
        assert acting.learnt(first.acting, SILENT).value is True
        assert acting.learnt(logs.read(source).acting, SILENT).value is True
        assert acting.learnt(logs.read(source).filter(np.arange(40) < 20).acting, SILENT).value is False


def test_what_was_taken_over_keeps_its_mark(tmp_path):
    """Seen red with the batch of `record.stored` from the lesson alone."""
    of_log(bandit(), True, tmp_path / "folder")
    with logs.Ledger() as ledger:
        ledger.take_over(tmp_path / "folder")
        assert ledger.read().frame["learnt"].to_list() == list(range(12))
        assert acting.learnt(ledger.read().acting, SILENT).value is True


def test_a_rule_and_a_function_do_not_learn(tmp_path):
    """What is learnt beside a rule does not act. Seen red without `fixed`."""
    rule = live(bandit(), True, tmp_path, apprentice=lambda X, mask: 0)
    assert len(rule.frame["learnt"].unique()) == 12
    assert acting.learnt(rule.acting, SILENT).value is False
    fixed = dither.Bandit(dither.models.Fixed(_first), dither.policies.Greedy(), dim=2, seed=0)
    assert acting.learnt(of_log(fixed, True, tmp_path / "fixed").acting, SILENT).value is False


def _first(X):
    return X[:, 0]


def test_older_logs_without_the_mark(tmp_path):
    """A bandit's rows count as those of one that learnt, unless arms that came again tell otherwise; other tables are
    silent. Seen red with `None` for all of them."""
    old = of_log(bandit(), False, tmp_path / "old").frame.drop("learnt")
    assert acting.learnt(acting.policies(old), changes(logs.read(old))).value is True
    assert acting.learnt(acting.policies(old), PolicyChanges(0, 500)).value is False
    ruled = old.with_columns(policy=pl.lit("a rule, explored 0.1"))
    assert acting.learnt(acting.policies(ruled), SILENT).value is False
    table = old.drop("policy")
    assert acting.learnt(acting.policies(table), SILENT) == (None, "", False)
    assert acting.learnt(acting.policies(table), PolicyChanges(3, 500))[::2] == (True, False)
    mine = old.with_columns(policy=pl.lit("the best on weekdays"))
    assert acting.learnt(acting.policies(mine), SILENT).value is None


@pytest.mark.parametrize(
    ("name", "settings", "ends"),
    [
        ("GLMFP", {}, (0.0, 1.0)),
        ("GLMFP", {"link": "probit"}, (0.0, 1.0)),
        ("GLMFP", {"link": "log"}, None),
        ("LinFP", {}, None),
        ("LinFP", {"reward_range": (-1.0, 3.0)}, (-1.0, 3.0)),
    ],
)
def test_what_rewards_can_be(tmp_path, name, settings, ends):
    """Seen red with the support of the log link, which has no upper end."""
    rows = of_log(bandit(name, **settings), True, tmp_path)
    assert acting.reward_range(rows.acting) == ends
    rows.write(tmp_path / "one.parquet")
    assert acting.reward_range(next(logs.batches(tmp_path / "one.parquet")).acting) == ends


def test_policies_of_several_texts_need_a_range_each():
    """Seen red with `any` in place of `all`."""
    frame = pl.DataFrame({"policy": ["a on GLM(link='logit')", "b on Ridge()"], "learnt": [0, 0]})
    assert acting.reward_range(acting.policies(frame)) is None
    assert acting.reward_range(acting.policies(frame[:1])) == (0.0, 1.0)
    assert acting.reward_range(()) is None


@pytest.mark.parametrize(
    ("name", "settings", "ends"),
    [
        ("GLMFP", {}, (0.0, 1.0)),
        ("GLMFP", {"link": "probit"}, (0.0, 1.0)),
        ("GLMFP", {"link": "log"}, (0.0, np.inf)),
        ("LinFP", {}, None),
        ("LinFP", {"reward_range": (-1.0, 3.0)}, (-1.0, 3.0)),
    ],
)
def test_a_log_states_what_its_rewards_can_be(tmp_path, name, settings, ends):
    """Whatever the text of its policy is. Seen red without the range in `_about`."""
    rows = of_log(bandit(name, **settings), True, tmp_path / "log")
    assert rows.reward_range == ends
    rows.write(tmp_path / "one.parquet")
    assert next(logs.batches(tmp_path / "one.parquet")).reward_range == ends
    assert logs.read(tmp_path / "log", rewards="last").reward_range is None  # which is not the rule of the log
    with logs.Log(bandit=bandit(name, **settings), policy="mine on GLM(link='logit')") as log:
        log.decide(offers(1)[0])
        assert log.read().reward_range == ends
        assert log.read(rewards="last").reward_range is None


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        (("GLMFP", {}), (0.0, 1.0)),
        (("LinFP", {"reward_range": (-1.0, 0.5)}), (-1.0, 1.0)),
        (("LinFP", {}), None),
        (None, None),
    ],
)
@pytest.mark.parametrize("buffer", [1, 1000])
def test_a_folder_that_several_bandits_wrote_has_the_range_of_all(tmp_path, second, ends, buffer):
    """Seen red with the range of the last bandit, and with None for no limits, so that the range before stayed."""
    bandits = bandit("GLMFP"), second and bandit(second[0], **second[1]), bandit("GLMFP")
    for i, one in enumerate(bandits):
        with logs.Log(tmp_path / "log", bandit=one, buffer=buffer) as log:
            X = offers(1)[0]
            log.record(bandit().choose(X), X=X) if one is None else log.decide(X)
            assert log.read().reward_range == ((0.0, 1.0) if i == 0 else ends)
    assert logs.read(tmp_path / "log").reward_range == ends


def test_a_range_that_a_log_was_told_travels(tmp_path):
    """Seen red with the range left out of `about`."""
    import dataclasses

    rows = dataclasses.replace(of_log(bandit(), True, tmp_path / "log"), reward_range=(0.0, 5.0))
    rows.write(tmp_path / "one.parquet")
    assert logs.read(tmp_path / "one.parquet").reward_range == (0.0, 5.0)
    assert logs.read([tmp_path / "one.parquet", tmp_path / "log"]).reward_range is None
