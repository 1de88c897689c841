"""A ledger, and what it exports, is a log for the commands."""

import html
import re
import sqlite3
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import dither as library
from databases import PASSWORD
from dither import log, ope
from dither.log import address
from longer import size


def test_the_commands_read_what_a_ledger_exported(dither, tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "export"
    live = library.Live(None, bandit=library.LinFP(dim=3, floor=0.3, seed=0))
    for _ in range(200):
        X = rng.normal(size=(4, 3))
        d = live.choose(X)
        live.reward(d.id, float(X[d.arm, 0] > 0))
    live.ledger.export(folder)
    live.close()
    whole = log.read(folder)
    ips = ope.ips(whole.r, whole.a, whole.p, np.full((200, 4), 0.25))
    code, out, err = dither("evaluate", folder, "--policy", "uniform", "--estimator", "ips")
    assert code == 0, err
    shown = re.search(r"uniform +ips +(0\.\d+)", out)
    assert shown is not None
    assert abs(float(shown[1]) - ips.value) < 1e-3
    code, out, err = dither("tune", folder, "LinFP:c=0.3|1", "--floor", 0.3, "--reward-range", 0, 1)
    assert code == 0, err
    assert f"Chosen: {ope.tune(whole, ['LinFP:c=0.3|1'], floor=0.3, reward_range=(0, 1)).chosen}" in out
    code, _, err = dither("evaluate", folder, "--policy", "uniform", "--arms", 4)
    assert code == 2
    assert "how many arms were on offer: leave out --arms" in err
    # seen red: "holds no Parquet files: there is nothing to evaluate"


def filled(home, n=60):
    """A ledger of three days, whose bandit learnt, with some rewards missing and one erased."""
    rng = np.random.default_rng(0)
    with library.Live(home, bandit=library.LinFP(dim=3, lam=1.0, floor=0.3, seed=0), apprentice=rule) as live:
        for i in range(n):
            X, extra = rng.normal(size=(4, 3)), {"user": f"u{i % 7}"}
            d = live.choose(X, arms=[*"abcd"], id=f"d{i}", time=1_700_000_000.0 + 4000 * i, extra=extra)
            if i % 9:
                live.reward(d.id, float(X[d.place, 0] > 0))
        live.correct("d1", 0.25)
        live.erase(["d5"])


def rule(X, mask):
    return 1


def answers(evaluation):
    return {
        key: (one.value, one.se, *one.interval, one.ess, one.n)
        for key, one in [*evaluation.estimates.items(), *(((p, *k), e) for p, k, e in periods(evaluation))]
    }


def periods(evaluation):
    return [(p, k, e) for p, one in evaluation.periods.items() for k, e in one.estimates.items()]


def test_a_ledger_and_its_export_are_one_log(tmp_path):
    home, folder = tmp_path / "news.db", tmp_path / "days"
    filled(home)
    with log.Ledger(home) as ledger:
        ledger.export(folder)
    other = library.LinFP(dim=3, lam=1.0, floor=0.1, seed=1)
    asked = (["uniform", "column:judged", "arm:b", other], ["snips", "ips"])
    more = dict(missing="leave out", reward_range=(0, 1))
    questions = ({"by": "day"}, {}, {"cluster": "user"}, {"model": "ridge"}, {"horizon": "1h", "missing": 0.0})
    for question in questions[: size(2, longer=5)]:
        one, two = (ope.evaluate(place, *asked, **more | question) for place in (home, folder))
        assert answers(one) == {key: pytest.approx(e, rel=1e-12, nan_ok=True) for key, e in answers(two).items()}
        assert [str(said) for said in one.verdicts()] == [str(said) for said in two.verdicts()]
        assert (one.notes(), in_lines(one.report)) == (two.notes(), in_lines(two.report))
    # seen red: "weights of each arm: not checkable" of the ledger


def test_rows_that_do_not_say_what_was_learnt_are_asked_for_their_features(tmp_path):
    home, folder, rng = tmp_path / "news.db", tmp_path / "days", np.random.default_rng(0)
    with log.Ledger(home) as ledger:
        for i in range(40):
            bandit = library.Greedy(dim=2, floor=0.1 + 0.02 * i, seed=i)  # another one each time
            bandit.update(np.eye(2), np.array([0.0, 1.0]))
            ledger.record(bandit.choose(np.eye(2)), X=np.eye(2), id=f"d{i}")
            ledger.reward(f"d{i}", float(rng.random() < 0.5))
    with sqlite3.connect(home) as connection:  # as in a log of an earlier version that was taken over
        connection.execute("UPDATE dither_decisions SET batch = NULL")
    with log.Ledger(home) as ledger:
        ledger.export(folder)
    one, two = (ope.evaluate(place, reward_range=(0, 1)) for place in (home, folder))
    assert one.changes == two.changes
    assert one.changes.rows > 20
    assert one.notes() == two.notes()
    # seen red: features left out, as no policy needs them


def in_lines(text):
    """The lines of a text, in any order: rows are left out by what comes first."""
    return sorted(str(text).splitlines())


def test_the_commands_answer_a_ledger_as_its_export(dither, shared, tmp_path):
    folder = tmp_path / "days"
    filled(shared)
    assert dither("export", shared, folder)[0] == 0
    commands = (
        ("evaluate", "--policy", "uniform", "--missing", "leave-out"),
        ("tune", "LinFP:c=0.3|1", "--floor", 0.3, "--reward-range", 0, 1, "--missing", "leave-out"),
        ("plan", "--difference", 0.1, "--missing", "leave-out"),
    )
    for name, *words in commands if isinstance(shared, Path) else commands[:1]:
        page = [] if isinstance(shared, Path) else ["--html", tmp_path / "page.html"]
        there = ["--from"] if name == "plan" else []
        code, out, err = dither(name, *there, shared, *words, *page)
        assert code == 0, err
        again = dither(name, *there, folder, *words)[1]
        shown = address.of(shared).shown
        assert in_lines(out.replace(shown, "X").partition("wrote")[0]) == in_lines(again.replace(str(folder), "X"))
        if page:
            text = (tmp_path / "page.html").read_text()
            assert html.escape(shown) in text
            assert quote(PASSWORD, safe="") not in text + out
    # seen red: the URL with its password in the page


def test_a_span_of_time_is_judged_alone(dither, tmp_path):
    home, folder, file = tmp_path / "news.db", tmp_path / "days", tmp_path / "log.parquet"
    filled(home)
    with log.Ledger(home) as ledger:
        ledger.export(folder)
        ledger.read().write(file)
        rows = len(ledger.read(since="2023-11-15"))
    assert 0 < rows < 60
    for place in (home, folder, file):
        words = ("--policy", "uniform", "--missing", "leave-out", "--with", "since=2023-11-15")
        code, out, err = dither("evaluate", place, *words)
        assert (code, f"{rows} rows read" in " ".join(out.split())) == (0, True), (place, out, err)
    # seen red: "pieces() got an unexpected keyword argument 'since'"


def test_a_ledger_is_read_once_for_all_that_is_said_of_it(tmp_path, monkeypatch):
    filled(tmp_path / "news.db")
    opened, open = [], log.Ledger.to_read
    monkeypatch.setattr(log.Ledger, "to_read", lambda home: opened.append(home) or open(home))
    seen = ope.evaluate(tmp_path / "news.db", missing="bounds", reward_range=(0, 1), invalid="leave out")
    assert (len(opened), seen.report.read) == (1, 60)
    # seen red: two readings, the second with what came since


def test_what_a_ledger_says_itself_is_left_out(dither, tmp_path):
    filled(tmp_path / "news.db", n=3)
    for word, value in (("arm", "a"), ("kind", "exact"), ("arms", 4), ("format", "table"), ("reward", "r")):
        for command in (
            ("evaluate", tmp_path / "news.db", "--policy", "uniform"),
            ("tune", tmp_path / "news.db", "LinFP"),
        ):
            code, _, err = dither(*command, f"--{word}", value)
            assert (code, f"leave out --{word}" in err) == (2, True), err
    code, _, err = dither("evaluate", tmp_path / "news.db", "--policy", "uniform", "--with", "sinc=2030")
    assert (code, "did you mean 'since'?" in err) == (2, True)


def test_a_reader_of_files_refuses_a_database_with_the_way_to_a_log(dither, tmp_path):
    filled(tmp_path / "news.db", n=3)
    for name in (tmp_path / "news.db", "postgresql://me:secret@127.0.0.1:1/news"):
        with pytest.raises(ValueError, match=r"Ledger\(...\)\.read\(\)"):
            log.read(name)
    for words in (["evaluate", "--policy", "uniform", "--"], ["plan", "--difference", 1, "--from"]):
        for place in ("postgresql://me:secret@127.0.0.1:1/news", "postgres:/me:secret@127.0.0.1:1/news"):
            code, _, err = dither(*words, place)
            assert (code, "secret" in err) == (2, False)
    # seen red: "must be a CSV"; "no log at postgresql:/me:secret@127.0.0.1/news"
