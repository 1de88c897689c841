"""Estimates of other policies on the page: the numbers of `dither.ope`, one computation for a question, limits."""

import threading
import time

import numpy as np
import pytest

import dither
from asking import Client
from dither import ope, watch
from dither.watch import desk as desks
from dither.watch import judging
from dither.watch.desk import AnswerDesk, Busy
from dither.watch.judging import Asked, PolicyJudge
from dither.watch.watched import WatchedLedger
from watched_ledgers import ARMS, SCRIPT


@pytest.fixture
def ledger(rich):
    with dither.log.Ledger.to_read(rich[0]) as opened:
        yield opened


def no_bandit():
    raise ValueError("no bandit here")


def answered(judge, asked):
    answer = judge.answer(asked, wait=20)
    assert answer is not None
    return answer


def used(ledger):
    logged = ledger.read()
    return logged.filter(~np.isnan(logged.r))


def test_the_estimate_is_that_of_the_log(ledger):
    judge, logged = PolicyJudge(ledger, no_bandit, 30), used(ledger)
    evaluation = answered(judge, Asked("arm", SCRIPT)).evaluation
    q = np.array([ARMS.index(SCRIPT) == a for a in logged.a], dtype=float)
    (name,) = evaluation.policies
    assert evaluation.estimates[name, "snips"].value == pytest.approx(
        np.sum(q / logged.p * logged.r) / np.sum(q / logged.p)
    )
    evaluation = answered(judge, Asked("uniform")).evaluation
    (name,) = evaluation.policies
    assert evaluation.estimates[name, "ips"].value == pytest.approx(np.mean(logged.r / logged.p / len(ARMS)))
    assert evaluation.report.left_out  # five wait
    # seen red: `Uniform` for every policy


def test_what_did_not_come_may_count_as_a_number(ledger):
    logged = ledger.read()
    evaluation = answered(PolicyJudge(ledger, no_bandit, 30), Asked("uniform", missing=0.0, span=(0.0, 1.0))).evaluation
    (name,) = evaluation.policies
    paid = np.nan_to_num(logged.r)
    assert evaluation.estimates[name, "ips"].value == pytest.approx(np.mean(paid / logged.p / len(ARMS)))
    assert evaluation.estimates[name, "ips"].interval_method == "anytime"  # what ran learnt
    assert evaluation.report.used == 290


def test_only_the_latest_decisions_are_asked(ledger, monkeypatch):
    monkeypatch.setattr(judging, "FEATURED", 50)
    judge = PolicyJudge(ledger, lambda: dither.LinFP(dim=3, seed=0), 30)
    assert answered(judge, Asked("uniform", rows=100)).rows == 100
    assert answered(judge, Asked("now", rows=100)).rows == 50


def test_the_shadow_is_judged_by_what_was_logged_of_it(ledger):
    logged = used(ledger)
    judged = logged.matrix("judged")[np.arange(len(logged)), logged.a]
    evaluation = answered(PolicyJudge(ledger, no_bandit, 30), Asked("shadow")).evaluation
    (name,) = evaluation.policies
    weights = judged / logged.p
    assert evaluation.estimates[name, "snips"].value == pytest.approx(np.sum(weights * logged.r) / np.sum(weights))


def test_without_exploration_is_the_best_arm_of_the_bandit(rich, ledger):
    with dither.Live(rich[0], learn=False) as live:
        bandit = live.replay()
    logged = used(ledger)
    best = np.argmax(bandit.mean(logged.X), axis=1)
    weights = (best == logged.a) / logged.p
    evaluation = answered(PolicyJudge(ledger, lambda: bandit, 30), Asked("greedy")).evaluation
    (name,) = evaluation.policies
    assert evaluation.estimates[name, "snips"].value == pytest.approx(np.sum(weights * logged.r) / np.sum(weights))


def test_other_settings_decide_with_what_was_learnt(rich, ledger):
    with dither.Live(rich[0], learn=False) as live:
        bandit = live.replay()
        with dither.Live(None, bandit=bandit) as apart:
            apart.change(c=3.0, floor=0.6)
            other = apart.bandit
            logged = used(ledger)
            P = other.propensities(logged.X)
    judge = PolicyJudge(ledger, lambda: bandit, 30)
    evaluation = answered(judge, Asked("settings", settings=(("c", 3.0), ("floor", 0.6)))).evaluation
    assert evaluation.policies == ("c=3 floor=0.6",)
    weights = P[np.arange(len(logged)), logged.a] / logged.p
    assert evaluation.estimates["c=3 floor=0.6", "ips"].value == pytest.approx(np.mean(weights * logged.r))
    assert "lam: the policy has c, " in answered(judge, Asked("settings", settings=(("lam", 2.0),))).words
    assert "floor must" in answered(judge, Asked("settings", settings=(("floor", 2.0),))).words
    # seen red: the bandit as it is


def test_the_bandit_of_the_page_is_the_one_that_acts_now(rich):
    watched = WatchedLedger(rich[0], show_context=False, seconds=30)
    with dither.Live(rich[0], learn=False) as live:
        assert watched.bandit().to_bytes() == live.replay().to_bytes()
    answer = watched.judge.answer(Asked("now"), wait=20)
    assert answer.evaluation is not None
    watched.close()


def test_what_cannot_be_judged_is_said(ledger):
    judge = PolicyJudge(ledger, no_bandit, 30)
    assert "no bandit here" in answered(judge, Asked("now")).words
    assert "was not on offer" in answered(judge, Asked("arm", "nobody")).words


def test_a_question_is_answered_once_for_all_who_ask(ledger, monkeypatch):
    calls, go = [], threading.Event()

    def evaluate(logged, policies, **more):
        calls.append(policies)
        go.wait(20)
        return ope.evaluate(logged, policies, **more)

    monkeypatch.setattr(judging, "evaluate", evaluate)
    judge = PolicyJudge(ledger, no_bandit, 30)
    assert [judge.answer(Asked("uniform"), wait=0) for _ in range(3)] == [None] * 3  # nobody waits
    go.set()
    first = answered(judge, Asked("uniform"))
    assert answered(judge, Asked("uniform")) is first
    assert len(calls) == 1
    monkeypatch.setattr(desks, "KEPT", 0.0)
    assert answered(judge, Asked("uniform")) is not first
    # seen red: `_job` without looking for one


def test_more_questions_than_may_wait_are_refused(ledger, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(judging, "evaluate", lambda *_, **__: go.wait(20))
    judge = PolicyJudge(ledger, no_bandit, 30)
    for rows in range(1, desks.MOST + 2):
        assert judge.answer(Asked("uniform", rows=rows), wait=0) is None
    with pytest.raises(Busy):
        judge.answer(Asked("uniform", rows=99), wait=0)
    assert judge.answer(Asked("uniform", rows=1), wait=0) is None  # one that waits is no new one
    go.set()
    judge.close()


def test_what_takes_too_long_is_given_up(ledger, monkeypatch):
    def evaluate(logged, policies, *, on_progress, **more):
        while True:
            time.sleep(0.01)
            on_progress(1, 2)

    monkeypatch.setattr(judging, "evaluate", evaluate)
    answer = answered(PolicyJudge(ledger, no_bandit, 0.05), Asked("uniform"))
    assert answer.evaluation is None
    assert "longer than 0.05 s" in answer.words


def test_the_page_waits_and_then_answers(rich, monkeypatch):
    go = threading.Event()

    def evaluate(*arguments, **more):
        go.wait(20)
        return ope.evaluate(*arguments, **more)

    monkeypatch.setattr(judging, "evaluate", evaluate)
    page = Client(watch.app(rich[0]))
    place = "/judge?policy=uniform&rows=1000"
    text = page.get(place).text
    assert "Being computed" in text
    assert '<meta http-equiv="refresh" content="2">' in text
    go.set()
    while "Being computed" in (text := page.get(place).text):
        pass
    assert "refresh" not in text
    assert "every arm alike" in text
    assert "285 of 290 decisions were used" in text


def test_an_error_is_that_of_who_asked_and_a_timeout_no_answer_that_waits():
    desk = AnswerDesk("test")

    def raises():
        raise TimeoutError("of the work")

    with pytest.raises(TimeoutError, match="of the work"):
        desk.answer("slow", raises, wait=20)
    assert desk.answer("quick", lambda: 7, wait=5) == 7
    desk.close()
