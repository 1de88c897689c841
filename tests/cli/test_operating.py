"""The commands that change a ledger which others have open: `dither change`, `rollback`, `correct`, `erase`."""

import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

import dither as library
from dither import log
from dither.cli import app
from dither.log.database import home as homes
from longer import size

X = np.eye(3)
pytestmark = pytest.mark.usefixtures("closing")


@pytest.fixture
def file(tmp_path):
    """A home that several processes can open."""
    return tmp_path / "ledger.db"


def begun(home, n=6):
    """A `Live` that learns, with some decisions and rewards."""
    bandit = library.LinFP(dim=3, lam=1.0, c=1.0, floor=0.2, seed=0)
    live = library.Live(home, bandit=bandit, shadow=library.Greedy(dim=3, floor=0.1, seed=1))
    for i in range(n):
        live.choose(X, arms=["a", "b", "c"], id=f"d{i}", extra={"user": f"u{i % 3}"})
        live.reward(f"d{i}", float(i))
    return live


def true(live):
    """What the service has learnt is that of a replay, and it is the one that learns."""
    live.choose(X)
    assert live.to_bytes() == live.replay().to_bytes()
    assert live.to_bytes("shadow") == live.replay(of="shadow").to_bytes()
    assert live.learns
    return live.bandit


def test_a_service_goes_on_with_what_is_changed_beside_it(dither, file):
    live = begun(file)
    code, out, err = dither("change", file, "c=3", "floor=0.3", "horizon=3600", "--author", "eve")
    assert (code, err) == (0, "")
    assert "c: 1.0 → 3, floor: 0.2 → 0.3" in out
    bandit = true(live)
    assert (bandit.policy.c, bandit.floor, live.ledger.horizon.total_seconds()) == (3, 0.3, 3600)
    code, out, _ = dither("rollback", file, 4, "--author", "eve")
    assert (code, "as it was after batch 4" in out) == (0, True)
    assert (true(live).observations, live.bandit.floor) == (4, 0.2)
    assert dither("relearn", file)[0] == 0
    assert (true(live).observations, live.bandit.floor) == (6, 0.2)
    assert "Nothing was left out" in dither("relearn", file)[1]
    code, out, _ = dither("promote", file, "--keep")
    assert (code, "The bandit of before is the shadow." in out) == (0, True)
    assert (true(live).floor, live.shadow.floor) == (0.1, 0.2)
    code, out, _ = dither("events", file, "--json")
    events = live.events()
    assert json.loads(out) == [one._asdict() | {"time": one.time.isoformat()} for one in events]
    assert [(one.what, one.author == "eve") for one in events] == [
        ("change", True),
        ("rollback", True),
        ("relearn", False),
        ("promote", False),
    ]
    lines = dither("events", file)[1].splitlines()
    assert [row.split()[0] for row in lines if re.match(r" +\d", row)] == ["1", "2", "3", "4"]
    assert dither("change", file, "lam=2", 'budgets={"a": [[50, "day"]]}')[0] == 0
    assert (true(live).model.lam, live.budgets["a"]) == (2, (library.Budget(50, "day"),))
    # seen red: "All batches are learnt" where none was left out; an event without what was before


def test_it_is_so_on_postgresql(dither, postgres, tmp_path, closing):
    url, folder = postgres.url(), tmp_path / "days"
    live = begun(url, n=3)
    assert dither("change", url, "floor=0.3", "--author", "eve")[0] == 0
    assert dither("correct", url, "d2", 9)[0] == dither("erase", url, "user=u1", "--yes")[0] == 0
    assert (true(live).observations, live.bandit.floor, live.read().r[2]) == (2, 0.3, 9)
    assert [one["author"] for one in json.loads(dither("events", url, "--json")[1])] == ["eve"]
    assert dither("export", url, folder)[0] == 0
    assert log.read(folder).frame["id"].to_list() == live.read().frame["id"].to_list()


def test_a_reward_is_corrected_and_a_person_forgotten_beside_a_service(dither, file):
    live = begun(file)
    assert dither("correct", file, "d3", -2.5)[:2] == (0, "counted: the reward of 'd3' is -2.5\n")
    assert dither("correct", file, "d3", -2.5)[:2] == (0, "known: the reward of 'd3' is -2.5 already\n")
    true(live)
    assert live.read().r[:6].tolist() == [0, 1, 2, -2.5, 4, 5]
    code, out, _ = dither("erase", file, "user=u1", "--yes")
    assert (code, "2 decisions were erased" in out) == (0, True)
    assert (true(live).observations, live.read().erased.tolist()[:6]) == (4, [False, True, False, False, True, False])
    assert dither("erase", file, "id=d0", "id=d5", "--yes")[0] == 0
    assert true(live).observations == 2
    code, out, _ = dither("erase", file, "user=u1", "--yes")
    assert (code, "Nothing was erased" in out) == (1, True)
    # seen red: -2.5 read as an option; a number of decisions that were erased before


def test_an_export_is_that_of_the_ledger(dither, file, tmp_path):
    live, folder = begun(file), tmp_path / "days"
    code, out, _ = dither("export", file, folder)
    assert code == 0
    assert re.match(rf"{re.escape(str(folder))} has \d days? of decisions, 2\d", out)
    assert log.read(folder).frame["id"].to_list() == live.read().frame["id"].to_list()
    there = [(path, path.stat().st_ino) for path in sorted(folder.rglob("*.parquet"))]
    assert dither("export", file, folder)[0] == 0
    assert [(path, path.stat().st_ino) for path in sorted(folder.rglob("*.parquet"))] == there
    live.reward("d0", 3.0)  # a conflict
    assert dither("export", file, folder)[0] == 0
    assert log.read(folder).frame["rewards"].to_list() == live.read().frame["rewards"].to_list()
    code, out, err = dither("export", file, file)
    assert (code, out, "is a file, and an export is a folder of days" in err) == (2, "", True)
    # seen red: days that have not changed written again; "[Errno 17] File exists"


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A file that nobody has open, and all that it holds."""
    path = tmp_path_factory.mktemp("left") / "offers.db"
    live = begun(path)
    live.replace_shadow(None)
    live.close()
    return path, content(path)


def content(path):
    with sqlite3.connect(path) as connection:
        return [line for line in connection.iterdump() if "dither_lease" not in line]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["change", "c="], "write NAME=VALUE, got 'c='"),
        (["change", "=3"], "write NAME=VALUE, got '=3'"),
        (["change", "c"], "write NAME=VALUE, got 'c'"),
        (["change", "c=1", "c=2"], "c is given twice"),
        (["change", "c=NaN"], "c must lie in [0, 1e+100], got nan"),
        (["change", "c=-Infinity"], "got -inf"),
        (["change", "c=abc"], "no schedule of c 'abc'"),
        (["change", f"c={'[' * 5000}"], "no schedule of c"),
        (["change", "floor=2"], "floor"),
        (["change", "flor=0.3"], "no setting 'flor': did you mean 'floor'?"),
        (["change", "temperature=1"], "has one"),
        (["change", "late=cont"], "did you mean 'counts'?"),
        (["change", "reward_range=[1,0]"], "reward_range must be two numbers"),
        (["change", "author=ana"], "say --author NAME"),
        (["change", "self=1"], "self is no setting that can be typed"),
        (["change", "bandit=LinTS"], "call dither.Live(home).change(bandit=...)"),
        (["change", 'budgets={"a": 50}'], "budgets are typed as"),
        (["change", 'budgets={"a": [[50, "dy"]]}'], "no period 'dy': did you mean 'day'?"),
        (["change", "c=2", "--author", ""], "author must be a text that is not empty"),
        (["change", "c=2", "--author", "a\0b"], "NUL"),
        (["rollback", 99], "the ledger has 6 batches, and no batch 99"),
        (["promote"], "this ledger has no shadow that could be promoted"),
        (["correct", "nobody", 1], "no decision 'nobody'"),
        (["correct", "d1", "nan"], "reward must be a finite number"),
        (["correct", "d1\udcff", 1], "half of a surrogate pair"),
        (["correct", "d1\x1b[31m", 1], r"no decision 'd1\x1b[31m'"),
        (["erase", "usr=u1", "--yes"], "no decision has a column 'usr'"),
        (["erase", "user", "--yes"], "write KEY=VALUE, got 'user'"),
        (["erase", "arm=1", "--yes"], "arm is a column of the log"),
        (["erase", "user=u1", "user=u2", "--yes"], "one column and one value, or ids alone"),
        (["erase", "user=u1", "id=d1", "--yes"], "one column and one value, or ids alone"),
    ],
)
def test_what_is_refused_has_changed_nothing(dither, left, words, said):
    path, before = left
    code, out, err = dither(words[0], path, *words[1:])
    assert (code, out, err[:8], err.count("\n")) == (2, "", "dither: ", 1)
    assert said in err
    assert content(path) == before
    # seen red: c= as an empty text; "got multiple values for keyword argument"


ALL = (
    ["export", "days"],
    ["erase", "user=u1", "--yes"],
    ["change", "c=2"],
    ["rollback", 1],
    ["promote"],
    ["relearn"],
    ["events"],
    ["correct", "d1", 1],
    ["explain", "d1"],
)


def test_no_ledger_is_made_where_none_is(dither, postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = postgres.url()
    (tmp_path / "other.db").write_bytes(b"no database at all, and long enough to be read as one" * 20)
    there = sorted(tmp_path.iterdir())
    for name, *rest in ALL:
        places = [(tmp_path / "typo.db", "no ledger in"), (tmp_path, "is a folder")]
        if name in ("export", "change", "explain"):  # one of each way to open it
            places.append((url, "no ledger in"))
        for place, said in places:
            code, _, err = dither(name, place, *rest)
            assert (code, said in err, err.count("\n")) == (2, True, 1), err
        code, _, err = dither(name, tmp_path / "other.db", *rest)
        assert (code, "not a ledger" in err) == (2, True), err
    assert sorted(tmp_path.iterdir()) == there
    with pytest.raises(FileNotFoundError):
        log.Ledger.to_read(url)
    with pytest.raises(ValueError, match="begins with its process"):
        log.Ledger.to_go_on(None)
    # seen red: the tables made in an empty PostgreSQL database, by `explain`


def test_who_may_only_read_reads(dither, left, monkeypatch, tmp_path):
    monkeypatch.setattr(homes, "_writable", lambda file: False)
    path, before = left
    for name, *rest in ALL:
        rest = [tmp_path / "days"] if name == "export" else rest
        code, out, err = dither(name, path, *rest)
        if name in ("export", "events", "explain"):
            assert code == 0, err
        else:
            assert (code, out, "could not be written" in err) == (2, "", True)
    assert content(path) == before


def test_a_ledger_that_is_locked_is_waited_for_and_then_refused(dither, left, monkeypatch):
    monkeypatch.setattr(homes, "WAIT", 0.01)
    path, before = left
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for words in (["change", "c=2"], ["correct", "d1", "5"], ["erase", "user=u1", "--yes"]):
        code, _, err = dither(words[0], path, *words[1:])
        assert (code, "database is locked" in err, err.count("\n")) == (2, True, 1)
    assert dither("events", path)[0] == 0  # which only reads
    other.execute("ROLLBACK")
    other.close()
    assert content(path) == before


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 1), (None, 1), ("y\n", 0)])
def test_erase_asks(dither, file, monkeypatch, answer, code):
    begun(file).close()
    monkeypatch.setattr(sys, "stdin", answer if answer is None else io.StringIO(answer))
    done, out, err = dither("erase", file, "user=u1")
    assert done == code
    assert "of the decisions with 'user=u1' in" in out
    assert ("say --yes where nobody can be asked" in err) == (code == 1)
    with log.Ledger.to_read(file) as ledger:
        assert ledger.read().erased.sum() == (2 if code == 0 else 0)
    # seen red: "Aborted!"; a traceback where stdin is closed


def test_no_copy_stays_in_the_journal_after_an_erasure(dither, file, monkeypatch):
    from dither.cli import mending

    live, journal = begun(file), Path(f"{file}-wal")
    with sqlite3.connect(file, isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM dither_decisions").fetchone()  # it reads that moment from now on
        monkeypatch.setattr(mending, "PATIENCE", 0.05)
        code, out, err = dither("erase", file, "user=u1", "--yes")
        assert (code, "2 decisions were erased" in out, "run the same again" in err) == (1, True, True)
        assert b'"u1"' in journal.read_bytes() + file.read_bytes()  # so that it would be seen
        waits = iter([1, 2, 3])  # the reader goes while the command waits for it
        monkeypatch.setattr(homes.time, "sleep", lambda seconds: next(waits, 0) == 2 and reader.execute("ROLLBACK"))
        monkeypatch.setattr(mending, "PATIENCE", 60.0)
        code, out, err = dither("erase", file, "user=u2", "--yes")
        assert (code, "run the same again" in err) == (0, False)
        assert b'"u2"' not in journal.read_bytes() + file.read_bytes()
    reader.close()
    monkeypatch.undo()
    true(live)
    # seen red: the copies left to whoever opens the ledger next


@pytest.mark.parametrize("words", [["events", "--json"], ["events"], ["change", "c=7"]])
def test_a_pipe_that_is_closed_is_no_traceback(left, file, monkeypatch, capfd, words):
    from dither import cli

    shutil.copy(left[0], file)
    begin, end = os.pipe()
    os.close(begin)
    monkeypatch.setattr(sys, "argv", ["dither", words[0], str(file), *words[1:]])
    with os.fdopen(end, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with pytest.raises(SystemExit):
            cli.main()
        monkeypatch.undo()
        end = os.open(os.devnull, os.O_WRONLY)
        os.dup2(end, pipe.fileno())  # what is left in it goes nowhere
        os.close(end)
    assert "Traceback" not in capfd.readouterr().err


def test_ids_and_columns_of_any_letters(dither, file):
    ids = ["-1", "--yes", "a=b", "é\u202e", "<b>[red]", "x y\n"]
    with library.Live(file, bandit=library.LinFP(dim=3, seed=0)) as live:
        for id in ids:
            live.choose(X, id=id, extra={"who is it": id})
            live.reward(id, 1.0)
    for id in ids:
        code, out, err = dither("correct", file, "--", id, 2)
        assert (code, out) == (0, f"counted: the reward of {id!r} is 2\n"), err
    for id in ids[:3]:
        assert dither("erase", file, "--yes", f"id={id}")[0] == 0
    for id in ids[3:]:
        assert dither("erase", file, "--yes", f"who is it={id}")[0] == 0
    with log.Ledger.to_read(file) as ledger:
        assert ledger.read().erased.all()


def test_an_event_of_others_moves_no_cursor(dither, file):
    with library.Live(file, bandit=library.LinFP(dim=3, floor=0.1, seed=0)) as live:
        assert dither("events", file)[1].startswith("No event: ")
        assert json.loads(dither("events", file, "--json")[1]) == []
        live.change(floor=0.2, author="\x1b[2Jeve\u202e[red]")
    out = dither("events", file)[1]
    assert r"\u001b[2Jeve\u202e[red]" in out


def test_what_fails_beside_a_change_is_an_exit_code(dither, file, monkeypatch):
    from dither.live import learner

    begun(file).close()

    def full(self):
        raise OSError("no room")

    monkeypatch.setattr(learner.Learner, "keep", full)
    code, out, _ = dither("change", file, "floor=0.5")
    assert (code, "floor: 0.2 → 0.5" in out) == (1, True)


def test_the_help_shows_each_command_once_on_the_road(dither, monkeypatch):
    monkeypatch.setenv("COLUMNS", "124")
    out = dither("--help")[1]
    boxes = dict(re.findall(r"╭─ ([^─]+) ─+╮\n(.*?)╰", out, flags=re.DOTALL))
    assert list(boxes) == ["Options", *app.PANELS]
    for panel, commands in app.PANELS.items():
        shown = re.findall(r"^│ (\w+)  ", boxes[panel], flags=re.MULTILINE)
        assert sorted(shown) == sorted({name.partition(" ")[0] for name in commands})
    # seen red: `results` in a panel of its own


PAGES = Path(__file__).parents[2] / "docs"
RUN = {"status", "explain", *app.PANELS["Change a running bandit"], "events", "export"}
RUN |= size(set(), longer={"evaluate", "tune"})


def typed(page):
    """The lines of shell that a page shows of the ledger offers.db, as words."""
    blocks = re.findall(r"```text\n(dither .*?)```", (PAGES / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [words[1:] for words in lines if words and words[1] in RUN and "offers.db" in words and ">" not in words]


def test_what_the_pages_type_is_done(dither, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, X, arms = np.random.default_rng(0), np.eye(4), ["none", "mail", "call", "visit"]
    algorithm = size(library.LinFP, longer=library.GLMFP)
    bandit, shadow = (algorithm(dim=4, lam=1.0, floor=floor) for floor in (0.05, 0.1))
    with library.Live("offers.db", bandit=bandit, shadow=shadow) as live:
        for i in range(42):
            live.choose(X, arms=arms, id={39: "ID", 40: "d1", 41: "d2"}.get(i, f"n{i}"), extra={"user": f"u{i}"})
            live.reward("ID" if i == 39 else f"d{i - 39}" if i > 39 else f"n{i}", float(rng.random() < 0.3))
    lines = [tuple(words) for page in ("run-it.md", "production.md") for words in typed(page)]
    assert len(lines) >= 22
    for words in dict.fromkeys(lines):
        code, _, err = dither(*words)
        assert (code, "dither: " in err) == (0, False), (words, err)
    # seen red: a setting that the bandit has not; `rollback` to a batch that is not there
