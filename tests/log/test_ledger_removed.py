"""A file that is removed or replaced while a ledger has it open: nothing is answered that is not there."""

import os

import numpy as np
import pytest

import dither
from dither import log
from dither.log.database import journal
from ledgers import decision, features

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3)


def remove(home):
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{home}{end}"):
            os.remove(f"{home}{end}")


def recorded(home, n):
    ledger = log.Ledger(home)
    for i in range(n):
        ledger.record(decision(), X=features(i), id=f"d{i}")
    return ledger


@pytest.mark.parametrize("ends", [("",), ("", "-wal"), ("", "-wal", "-shm")])
@pytest.mark.parametrize("wait", [True, False])
def test_a_removed_file_is_refused_until_it_is_back(tmp_path, ends, wait):
    home, away = tmp_path / "a.db", tmp_path / "away"
    ledger = log.Ledger(home, wait=wait)
    for i in range(3):
        ledger.record(decision(), X=features(i), id=f"d{i}")
    away.mkdir()
    for end in ends:
        os.rename(f"{home}{end}", away / f"a.db{end}")
    for _ in range(3):
        with pytest.raises(journal.Removed, match=r"a\.db was removed.*nothing of the call is there. Put the ledger"):
            ledger.record(decision(), X=features(9), id="lost")
        with pytest.raises(OSError, match="was removed"):
            ledger.read()
    assert not home.exists()
    for end in ends:
        os.rename(away / f"a.db{end}", f"{home}{end}")
    try:
        ledger.record(decision(), X=features(4), id="d4")
    except journal.Removed:
        ledger.record(decision(), X=features(4), id="d4")
    assert log.Ledger(home).read().id.tolist() == ["d0", "d1", "d2", "d4"]
    # seen red: the journal's identity alone: "lost" is answered; a connection that makes an empty file


def test_a_live_bandit_without_its_file_answers_nothing(tmp_path):
    home = tmp_path / "a.db"
    live = dither.Live(home, bandit=dither.LinFP(dim=3, seed=0, floor=0.1))
    live.reward(live.choose(X).id, 1.0)
    waiting = live.choose(X).id
    remove(home)
    for _ in range(3):
        with pytest.raises(OSError, match="was removed"):
            live.choose(X)
        with pytest.raises(OSError, match="was removed"):
            live.reward(waiting, 1.0)
    with pytest.raises(OSError, match="was removed"):
        live.close()
    assert live.ledger.closed
    assert os.listdir(tmp_path) == []
    # seen red: ten more decisions, all of them lost


@pytest.mark.parametrize("journals", ["with it", "removed"])
def test_another_file_in_its_place_is_refused_once_and_then_used(tmp_path, journals):
    home, copy = tmp_path / "a.db", tmp_path / "b.db"
    recorded(copy, 2).close()
    ledger = recorded(home, 5)
    if journals == "removed":
        for end in ("-wal", "-shm"):
            os.remove(f"{home}{end}")
    else:
        os.rename(f"{home}-wal", tmp_path / "old")
    os.replace(copy, home)
    with pytest.raises(journal.Removed, match=r"a\.db was removed or replaced"):
        ledger.record(decision(), X=features(9), id="lost")
    ledger.record(decision(), X=features(9), id="there")
    assert ledger.read().id.tolist() == ["d0", "d1", "there"]
    assert log.Ledger(home).read().id.tolist() == ["d0", "d1", "there"]


def test_the_journal_of_the_file_before_is_not_taken_for_that_of_the_new_one(tmp_path):
    home, copy = tmp_path / "a.db", tmp_path / "b.db"
    recorded(copy, 2).close()
    ledger = recorded(home, 50)
    os.replace(copy, home)
    for _ in range(3):
        with pytest.raises(journal.Removed, match=r"a\.db-wal is still the journal of the file before.*Remove"):
            ledger.record(decision(), X=features(9), id="lost")
    for end in ("-wal", "-shm"):
        os.remove(f"{home}{end}")
    with pytest.raises(journal.Removed, match=r"a\.db was removed or replaced"):
        ledger.record(decision(), X=features(9), id="lost")
    ledger.record(decision(), X=features(9), id="there")
    assert ledger.read().id.tolist() == ["d0", "d1", "there"]
    # seen red: connections that are opened at once: SQLite replays 50 rows into a file of two


def test_a_reader_reads_what_is_there_now(tmp_path):
    home, copy = tmp_path / "a.db", tmp_path / "b.db"
    recorded(copy, 2).close()
    recorded(home, 5).close()
    ledger = log.Ledger(home)
    assert len(ledger) == 5
    os.replace(copy, home)
    for end in ("-wal", "-shm"):
        if os.path.exists(f"{home}{end}"):
            os.remove(f"{home}{end}")
    assert len(ledger) == 2
    # seen red: a pool of connections to the file before
