"""What `dither status` says: of which rows, which exit code, and that looking changes nothing."""

import json
import os
import shutil
import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

import dither as package
from dither import log
from dither.bandit.bandit import Decision
from dither.live import status
from dither.log.database import sql_tables
from dither.log.database.home import Home
from ledgers import features, moment
from longer import size
from sums_by_hand import by_hand, same

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")
MARCH = moment(0)


def lived(home, **settings):
    """A ledger with ten decisions, of which every other one has a reward."""
    live = package.Live(home, bandit=package.LinFP(dim=3, lam=1.0, floor=0.2, seed=0), probabilities=True, **settings)
    for n in range(10):
        d = live.choose(X, arms=["a", "b", "c"], id=n, time=moment(n * 20_000))
        if n % 2:
            live.reward(d.id, float(n), moment(n * 20_000))
    return live


def values(text):
    """The metrics of a text: (name, labels) -> value."""
    families = text_string_to_metric_families(text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_status_is_that_of_the_rows(home):
    live = lived(home, budgets={"a": package.Budget(50, "day"), "b": package.Budget(100, None)})
    live.reward(1, 7.0)  # a conflict
    live.erase([3])
    seen = live.status()
    same(seen.days, by_hand(live.ledger))
    total = seen.days.total()
    assert (total.decisions, total.erased, total.rewarded, total.conflicts, seen.pending) == (10, 1, 4, 1, 5)
    assert seen.pending == len(list(live.pending()))
    assert seen.learning.waiting == 0
    assert seen.learning.batches == live.batch == 5
    assert seen.latest == moment(9 * 20_000)
    assert seen.version == package.__version__
    assert (seen.exit_code, seen.warnings) == (0, [])
    shown = {row.arm: row.decisions for row in seen.days.by_arm()}
    assert {one.arm: (one.most, one.spent) for one in seen.budgets} == {"a": (50, 0.0), "b": (100, shown["b"])}
    told = json.loads(json.dumps(seen.to_dict(), allow_nan=False))
    assert told["total"]["decisions"] == 10
    assert [row["day"] for row in told["days"]] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert {row["arm"]: row["decisions"] for row in told["arms"]} == shown
    assert told["here"]["batch"] == 5
    later = live.status(since="2026-03-02T05:00")
    assert [row.day for row in later.days.by_day()] == [row.day for row in seen.days.by_day()[1:]]
    assert later.pending == 5  # of all days
    live.close()


def test_metrics_are_those_of_the_status(home):
    live = lived(home, budgets={"a": package.Budget(100, "day")})
    seen = live.status()
    text = seen.prometheus()
    found = values(text)
    for row in seen.days.by_arm():
        assert found["dither_decisions_total", row.arm] == row.decisions
        assert found["dither_reward_sum", row.arm] == row.reward
        assert found["dither_arm_stated_ratio", row.arm] == row.stated_mean
    assert found[("dither_pending_decisions",)] == 5
    assert found[("dither_learning_lag_seconds",)] == 0
    assert found["dither_budget_limit", "a", "day"] == 100
    assert found[("dither_standing_troubles",)] == 0
    assert found[("dither_refused_rewards_total",)] == 0
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert name.endswith("_total") == (kind == "counter")
    live.close()
    # seen red: a gauge called dither_alarms_total


def test_what_waits_is_a_warning(shared):
    live = lived(shared)
    live._learner.close()
    with package.Live(shared, learn=False) as other:
        other.reward(0, 1.0, moment(0))
        with log.Ledger.to_read(shared) as ledger:
            seen = status.of(ledger)
        assert (seen.learning.waiting, seen.learning.holder, seen.exit_code) == (1, None, 1)
        assert seen.learning.lag == (seen.now - moment(0)).total_seconds()
        assert "1 rewards wait to be learnt" in seen.warnings[0]
        assert "nobody learns" in seen.warnings[0]
        assert other.status(limits=status.WarningLimits(max_lag=1e11)).exit_code == 0
    live.learn()
    assert live.status().exit_code == 0
    live.close()


def test_a_horizon_that_nobody_closes_is_a_warning(home):
    with lived(home, horizon=3600, default=0.0) as live:
        seen = live.status()
        assert (seen.overdue, seen.overdue_since) == (10, moment(3600))
        assert "call expire()" in seen.warnings[0]
        assert seen.pending == 0
        live.expire()
        seen = live.status()
        assert (seen.overdue, seen.exit_code, seen.days.total().defaults) == (0, 0, 5)


def test_silence_is_a_warning(home):
    with lived(home) as live:
        assert live.status(limits=status.WarningLimits(max_silence=1e11)).exit_code == 0
        assert live.status(limits=status.WarningLimits(max_silence=60)).warnings == [
            "there was no decision since 2026-03-03 02:00 UTC"
        ]


@pytest.mark.parametrize("wrong", [False, True])
def test_draws_that_are_not_what_was_stated_are_a_warning(wrong):
    rng, n = np.random.default_rng(0), size(400, longer=4000)
    with log.Ledger(None) as ledger:
        for i in range(n):
            P = rng.dirichlet([1.0, 2.0, 5.0])
            arm = int(rng.choice(3, p=P[::-1] if wrong else P))
            d = Decision(arm, float(P[arm]), "exact", None, None)
            ledger.record(d, X=features(i, K=3), probabilities=P)
        seen = status.of(ledger)
    assert len(seen.warnings) == (2 if wrong else 0)  # the middle arm is drawn as it was stated
    z = [status.drift(row) for row in seen.days.by_arm()]
    assert wrong == (max(map(abs, z)) > 5)
    # seen red: the variance of the mean in place of that of the sum


def test_troubles_and_what_features_did_not_know(home):
    fields = package.Features(context={"country": ["AT", "CH"]}, arm={"topic": ["art", "war"]}, cross=())
    with package.Live(home, bandit=package.LinFP(features=fields, floor=0.1)) as live:
        live.choose({"country": "DE"}, arms=[{"topic": "art"}, {"topic": "war"}])
        live.ledger.database.troubles.add("snapshot", "it failed (OSError: no room): it is tried again in 1 s")
        seen = live.status()
        assert seen.unknown == {"country": 1}
        assert seen.exit_code == 1
        assert "trouble with snapshot" in seen.warnings[0]
        assert "unknown values: country: 1" in seen.text()
        assert values(seen.prometheus())["dither_unknown_values_total", "country"] == 1


# The command


def test_the_command_says_it_while_a_process_runs_and_on_a_copy(dither, tmp_path):
    file = tmp_path / "a.db"
    live = lived(file)
    code, out, err = dither("status", file, "--max-lag", "1h")
    assert (code, err) == (0, "")
    assert "10 decisions, the newest at 2026-03-03 02:00:00 UTC" in out
    assert "Nothing needs to be looked at." in out
    assert dither("status", file, "--max-silence", "1h")[0] == 1
    live.close()
    code, out, _ = dither("status", file, "--json", "--since", "2026-03-02")
    assert code == 0
    assert [row["day"] for row in json.loads(out)["days"]] == ["2026-03-02", "2026-03-03"]
    folder = tmp_path / "sealed"
    folder.mkdir()
    shutil.copy(file, folder / "copy.db")
    os.chmod(folder / "copy.db", 0o444)
    before = (folder / "copy.db").read_bytes()
    code, out, _ = dither("status", folder / "copy.db", "--prometheus")
    assert (code, values(out)[("dither_pending_decisions",)]) == (0, 5)
    assert sorted(path.name for path in folder.iterdir()) == ["copy.db"]
    assert (folder / "copy.db").read_bytes() == before


def test_a_ledger_that_was_begun_and_not_finished(dither, tmp_path):
    """Its process was killed between the tables and the terms: what is missing is the bandit, and no right to write."""
    home = tmp_path / "begun.db"
    Home(home).close()
    code, _, err = dither("status", home)
    assert (code, "could not be written" in err) == (2, False)
    assert "was begun, and has no bandit yet: dither.Live(home, bandit=...) gives it one" in " ".join(err.split())


def test_the_command_reads_a_database(dither, postgres):
    url = postgres.url()
    lived(url).close()
    assert dither("status", url, "--json")[0] == 0
    empty = postgres.url()
    code, _, err = dither("status", empty)
    assert (code, "no ledger in" in err, "***" in err) == (2, True, True)
    with pytest.raises(FileNotFoundError):  # nothing was made
        log.Ledger.to_read(empty)


def test_the_command_makes_nothing(dither, tmp_path):
    for wrong, words in (("none.db", "none was made"), ("no/folder/a.db", "none was made"), (".", "is a folder")):
        code, out, err = dither("status", tmp_path / wrong)
        assert (code, out) == (2, "")
        assert words in err
    (tmp_path / "text.db").write_text("hello")
    assert dither("status", tmp_path / "text.db")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["text.db"]
    assert dither("status", tmp_path / "text.db", "--json", "--prometheus")[0] == 2
    with pytest.raises(ValueError, match="in memory"):
        log.Ledger.to_read(None)


@pytest.mark.parametrize(("version", "cure"), [("0005", "which upgrades it"), ("9999", "upgrade dither")])
def test_a_ledger_of_another_version_is_left_alone(dither, tmp_path, version, cure):
    file = tmp_path / "a.db"
    lived(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute(f"UPDATE dither_version SET version_num = '{version}'")
    connection.close()
    before = file.read_bytes()
    code, _, err = dither("status", file)
    assert (code, cure in err) == (2, True)
    assert file.read_bytes() == before


def test_whoever_only_looks_writes_nothing(shared):
    live = lived(shared)
    with log.Ledger.to_read(shared) as ledger:
        for call in (
            lambda: ledger.reward(0, 1.0),
            lambda: ledger.erase([0]),
            lambda: ledger.change(late="counts"),
            lambda: ledger.record(live.bandit.choose(X), X=X),
        ):
            with pytest.raises(PermissionError, match="only be read"):
                call()
        assert len(ledger) == 10
        assert ledger.read().frame.height == 10
    with live.ledger.database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(sql_tables.erasures)) == 0
    live.close()


def test_what_a_terminal_gets_moves_no_cursor_and_turns_no_writing():
    """Of ids, which may be anybody's."""
    live = package.Live(None, bandit=package.LinFP(dim=2, lam=1.0, seed=0))
    d = live.choose(np.eye(2), ["\x1b]0;mine\x07[red]a", "b\u202ec"], id="d")
    live.reward(d.id, 1.0)
    for text in (live.status().text(), str(live.explain("d"))):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "\\u202ec" in text
        assert "\\u001b]0;mine\\u0007[red]a" in text
    # seen red: as they are
