"""The ledger in its three homes: what a machine of random steps does not reach."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
import warnings
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from numpy.testing import assert_array_equal
from polars.testing import assert_frame_equal

import dither
from dither import log, ope
from dither.log import ledger, record, stated, storage
from dither.log.database import committing, entering, journal, rewarding, sql_tables
from dither.log.database import home as homes
from ledgers import decision, features, moment
from logs import filled

pytestmark = pytest.mark.usefixtures("closing")  # newer Pythons warn of connections that are left open


def entered(home, n=3, **settings):
    """A ledger with decisions d0, d1, ... of user u0, u1, u0, ..."""
    made = log.Ledger(home, **settings)
    for i in range(n):
        made.record(decision(), X=features(i), id=f"d{i}", time=moment(i), extra={"user": f"u{i % 2}"})
    return made


# Tables


def test_the_migrations_make_the_tables(shared):
    log.Ledger(shared).close()
    with homes.Home(shared).writing() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "version_table": homes.VERSIONS})
        assert compare_metadata(context, sql_tables.metadata) == []
        look, names = sa.inspect(connection), sql_tables.metadata.tables
        found = [index for name in names for index in look.get_indexes(name)]
        partial = {i["name"] for i in found if any(key.endswith("_where") for key in i["dialect_options"])}
        assert partial == {
            "dither_open",
            "dither_once",
            "dither_unlearnt",
            "dither_gone",
        }  # alembic does not compare conditions
    # seen red: a column that the migration lacks; an index without its condition


def test_the_newest_migration_is_the_one_that_is_looked_for():
    from alembic.script import ScriptDirectory

    assert ScriptDirectory.from_config(homes.migrations()).get_current_head() == homes.NEWEST


def test_several_processes_may_open_a_new_ledger_at_once(shared):
    code = "import sys; from dither import log; log.Ledger(sys.argv[1]).close(); print('ok')"
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", code, str(shared)]
    running = [subprocess.Popen(command, env=path, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [one.communicate()[0].strip() for one in running] == ["ok"] * 4


def test_new_ids_are_uuids_that_begin_with_the_time():
    before = time.time_ns() // 1_000_000
    ids = [record.new_id() for _ in range(1000)]
    found = [uuid.UUID(id) for id in ids]
    assert {(one.version, one.variant) for one in found} == {(7, uuid.RFC_4122)}
    assert all(before <= one.int >> 80 <= time.time_ns() // 1_000_000 for one in found)
    assert all(id == one.hex for id, one in zip(ids, found, strict=True))
    random = [one.int & (1 << 62) - 1 for one in found]
    share = np.array([[bits >> i & 1 for i in range(62)] for bits in random]).mean(axis=0)
    assert len(set(random)) == 1000
    assert np.all(abs(share - 0.5) < 5 * np.sqrt(0.25 / 1000))
    # seen red: the version and the variant left out; the time in microseconds


# What is there, what is not


def test_what_is_no_ledger_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"memory .* file .* PostgreSQL.*mysql"):
        log.Ledger("mysql://me@here/there")
    with pytest.raises(ValueError, match="is a folder"):
        log.Ledger(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        log.Ledger(tmp_path / "none" / "a.db")
    with pytest.raises(OSError, match="could not be"):
        log.Ledger(f"postgresql://nobody@/nothing?host={tmp_path}")
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be looked at" * 20)
    with pytest.raises(ValueError, match="not a ledger, or a damaged one"):
        log.Ledger(tmp_path / "text.db")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(ValueError, match=r"another program \(it has 'mine'\)"):
        log.Ledger(tmp_path / "other.db")
    log.Ledger(tmp_path / "new.db").close()
    with sqlite3.connect(tmp_path / "new.db") as new:
        new.execute("UPDATE dither_version SET version_num = '0999'")
    new.close()
    with pytest.raises(ValueError, match=r"version 0999.*upgrade dither"):
        log.Ledger(tmp_path / "new.db")


def test_a_damaged_file_says_so(tmp_path):
    made = entered(tmp_path / "a.db", n=50)
    made.close()
    data = bytearray((tmp_path / "a.db").read_bytes())
    data[8192:-4096] = os.urandom(len(data) - 8192 - 4096)
    (tmp_path / "a.db").write_bytes(data)
    with pytest.raises(ValueError, match="damaged"), log.Ledger(tmp_path / "a.db") as again:
        again.read()


def test_settings_are_kept_and_others_are_refused(home):
    made = entered(home, rewards="last", horizon=timedelta(seconds=10), default=0.5)
    assert (made.rewards, made.horizon, made.default, made.late) == ("last", timedelta(seconds=10), 0.5, "kept")
    if home is not None:
        again = log.Ledger(home)
        assert (again.rewards, again.horizon, again.default, again.late) == ("last", timedelta(seconds=10), 0.5, "kept")
        log.Ledger(home, rewards="last", horizon=10)
        with pytest.raises(ValueError, match="has rewards='last', not 'sum'"):
            log.Ledger(home, rewards="sum")
    for wrong in ({"default": 1.0}, {"default": 1.0, "horizon": 5, "late": "counts"}):
        with pytest.raises(ValueError, match="needs a horizon"):
            log.Ledger(None, **wrong)
    with pytest.raises(LookupError, match="rule for rewards"):
        log.Ledger(None, rewards="mean")
    with pytest.raises(ValueError, match="horizon must be"):
        log.Ledger(None, horizon=-1)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda one: one.reward("nobody", 1), LookupError, "no decision 'nobody'"),
        (lambda one: one.reward("d0", np.nan), ValueError, "finite number"),
        (lambda one: one.reward("d0", "1"), ValueError, "finite number"),
        (lambda one: one.reward("d0", 1, part=""), ValueError, "part must be"),
        (lambda one: one.reward(["d0", "d1"], [1]), ValueError, "one reward for each id"),
        (lambda one: one.reward(["d0", "nobody"], [1, 2]), LookupError, "no decision 'nobody'"),
        (lambda one: one.erase(), TypeError, "ids, or one column"),
        (lambda one: one.erase(user="a", item="b"), TypeError, "ids, or one column"),
        (lambda one: one.record(decision(arm=5), X=features(0)), ValueError, "not on offer"),
        (lambda one: one.record(decision(), X=features(0), extra={"a": object()}), ValueError, "extra must hold"),
    ],
)
def test_what_is_refused_changes_nothing(home, call, error, words):
    made = entered(home)
    before = made.read().frame
    with pytest.raises(error, match=words):
        call(made)
    assert_frame_equal(made.read().frame, before)
    assert made.reward("d0", 1) == "counted"


def test_a_row_comes_back_as_it_was(home):
    made = log.Ledger(home)
    X = np.array([[0.1, -1e300], [np.pi, 5e-324], [0, 1]])
    noon = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    extra = {"user": "Ünal 'x'", "age": 5, "ok": True, "none": None, "list": [0.1, 0.2], "at": noon, "nan": np.nan}
    probabilities = [0.25, 0.5, 0.25]
    arms = ["ä", "b", "c"]
    given = {"time": noon, "arms": arms, "extra": extra, "probabilities": probabilities, "floor": 0.1}
    rows = rows_of(decision(1), X, id="é", constants={"policy": "p", "version": "1", "z_law": "points"}, **given)
    made.committer.enter(rows)
    made.record(decision(1), X=[[1.0, 2, 3], [4, 5, 6]], id="other", mask=[False, True])
    frame = made.read().frame
    row = frame.row(0, named=True)
    assert row["features"] == X.tolist()
    assert (row["id"], row["time"], row["arms"], row["arm"], row["K"]) == ("é", noon, arms, 1, 3)
    assert (row["policy"], row["version"], row["z_law"], row["preset"]) == ("p", "1", "points", None)
    assert (row["z"], row["floor"], row["propensity"], row["probabilities"]) == (0.25, 0.1, 0.5, probabilities)
    assert (row["user"], row["age"], row["ok"]) == ("Ünal 'x'", 5, True)
    assert (row["none"], row["list"], row["at"], row["nan"]) == (None, [0.1, 0.2], noon.isoformat(), None)
    assert frame.row(1, named=True)["features"] == [[4, 5, 6]]
    assert frame.row(1, named=True)["arms"] == ["1"]


def test_a_column_of_ones_own_may_have_any_name_that_the_log_has_not(home):
    """Also one that the table of decisions has for itself."""
    names = ("x", "slot", "batch", "deadline", "closed", "erased", "number", "extra", "width")
    extra = {name: i + 0.5 for i, name in enumerate(names)}
    made = log.Ledger(home)
    made.record(decision(), X=features(0), id="a", extra=extra)
    assert made.read().frame.select(names).row(0) == tuple(extra.values())
    with made.database.reading() as connection:
        own = connection.execute(sa.select(sql_tables.decisions.c["x", "slot", "batch", "deadline", "closed"])).one()
    assert own == (features(0)[0].tobytes(), None, None, None, False)
    # seen red: the row as it is given in place of its own columns


def test_pending_goes_on_while_rewards_come(home, monkeypatch):
    monkeypatch.setattr(ledger, "_TOGETHER", 2)
    made = entered(home, n=7, horizon=100)
    seen = []
    for one in made.pending():
        seen.append(one.id)
        made.reward(one.id, 1.0, moment(50))
    assert seen == [f"d{i}" for i in range(7)]
    assert list(made.pending()) == []
    made.record(decision(), X=features(9), id="last", time=moment(9))
    assert list(made.pending()) == [log.Pending("last", moment(9), moment(109))]
    assert len(list(entered(None, n=7).pending(limit=5))) == 5


@pytest.mark.parametrize(("default", "reward"), [(None, None), (0.0, 0.0)])
def test_a_closed_decision_takes_no_reward_not_even_an_early_one(home, default, reward):
    made = entered(home, n=2, horizon=10, default=default)
    assert made.reward("d0", 1.0, moment(11)) == "late"
    assert made.reward("d1", 1.0, moment(11)) == "counted"
    assert made.expire(moment(9)) == 0
    assert made.expire(moment(30)) == 1
    assert made.reward("d0", 1.0, moment(5)) == "late"
    assert made.reward("d0", 0.0, moment(5)) == "late"
    assert made.reward("d1", 1.0, moment(50)) == "known"
    assert made.reward("d1", 1.0, moment(5), part="more") == "late"
    assert made.read().frame["reward"].to_list() == [reward, 1.0]
    assert made.frames()[1]["conflict"].sum() == 4
    # seen red: a reward of a closed decision that counts by its time


# Failures


def limited(made):
    """A file in which there is no more room."""
    with made.database.writing() as connection:
        pages = connection.scalar(sa.text("PRAGMA page_count"))
        connection.execute(sa.text(f"PRAGMA max_page_count={pages}"))


def unlimited(made):
    with made.database.writing() as connection:
        connection.execute(sa.text("PRAGMA max_page_count=1000000"))


def _only_reads(connection, *_):
    connection.execute("PRAGMA query_only=ON")


def frozen(made):
    sa.event.listen(made.database._engine, "checkout", _only_reads)
    with made.database.writing() as connection:  # this one is not checked out anew
        _only_reads(made.database.driver(connection))


def thawed(made):
    sa.event.remove(made.database._engine, "checkout", _only_reads)
    with made.database._engine.connect() as one, made.database._engine.connect() as other:  # all that are in the pool
        for connection in (one, other):
            made.database.driver(connection).execute("PRAGMA query_only=OFF")


@pytest.mark.parametrize(("fail", "mend", "words"), [(limited, unlimited, "full"), (frozen, thawed, "readonly")])
@pytest.mark.parametrize("kind", [None, "file"])
def test_a_write_that_fails_leaves_nothing_half_done(tmp_path, kind, fail, mend, words):
    made = entered(kind and tmp_path / "a.db", n=2)
    made.reward("d0", 1.0, moment(5))
    before = made.read().frame
    fail(made)
    X = np.ones((2, 2000))  # more than the room that is left in a page
    several = [decision() for _ in range(3)]
    with pytest.raises(OSError, match=f"could not be written.*{words}.*nothing of the call"):
        made.committer.enter(
            [row for i, d in enumerate(several) for row in rows_of(d, X, id=f"new{i}", time=moment(1))]
        )
    if words == "readonly":
        with pytest.raises(OSError, match=words):
            made.reward("d1", 1.0, moment(6))
        with pytest.raises(OSError, match=words):
            made.erase(user="u0")
    assert_frame_equal(made.read().frame, before)
    mend(made)
    assert made.reward("d1", 1.0, moment(6)) == "counted"
    made.record(decision(), X=X, id="new0")
    assert len(made) == 3


def rows_of(made, X, *, arms=None, floor=None, constants=(), **more):
    """The rows of a decision that was made elsewhere."""
    constants = dict.fromkeys(("policy", "preset", "version", "z_law")) | dict(constants)
    recorder = record.Recorder(True, False, False, False, constants)
    request = stated.request(made, X=X)
    request = request._replace(ids=None if arms is None else record.ids(arms, request.shape[-1]))
    return recorder.rows(stated.choice(made, request, floor=floor), **more)


def test_requests_of_one_transaction_fail_each_alone(home):
    """Thread by thread they would not share one, so the group is called with all of them."""
    made = entered(home)
    rows = [rows_of(decision(), features(0), id=id, time=moment(0)) for id in ("a", "d0", "b", "a")]
    asked = [committing.Entering([entering.IN_ORDER(record.stored(row)) for row in one]) for one in rows]
    at = record.micros(moment(9))
    sent = [[("b", 1.0), ("d1", 2.0)], [("b", 3.0)], [("nobody", 1.0), ("d2", 9.0)], [("b", 1.0)]]
    asked += [committing.Rewarding([rewarding.Sent(id, r, None, at) for id, r in one]) for one in sent]
    requests = [committing.QueuedRequest(one) for one in asked]
    made.committer.commit(requests)
    refused = {i: type(one.error) for i, one in enumerate(requests) if one.error is not None}
    assert refused == {1: ValueError, 3: ValueError, 6: LookupError}
    answers = [one.result for one in requests[4:]]
    assert answers == [["counted", "counted"], ["conflict"], None, ["known"]]
    frame = made.read().frame
    assert dict(zip(frame["id"], frame["reward"], strict=True)) == {"d0": None, "d1": 2, "d2": None, "a": None, "b": 1}


def test_threads_and_objects_count_each_reward_once(home):
    held = [log.Ledger(home)] if home is None else [log.Ledger(home), log.Ledger(home)]
    answers, errors = [], []

    def work(which):
        try:
            for i in range(15):
                own = f"{which}-{i}"
                held[which % len(held)].record(decision(), X=features(i), id=own)
                held[(which + 1) % len(held)].reward(own, 1.0)
                one = f"same-{i}"
                with contextlib.suppress(ValueError):  # ids must differ
                    held[which % len(held)].record(decision(), X=features(i), id=one)
                answers.append((one, held[which % len(held)].reward(one, float(which))))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    assert len(held[0]) == 6 * 15 + 15
    for i in range(15):
        said = [answer for one, answer in answers if one == f"same-{i}"]
        assert (said.count("counted"), said.count("conflict")) == (1, 5)
    frame = held[-1].read().frame
    assert frame["rewards"].to_list() == [1] * frame.height
    # seen red: BEGIN in place of BEGIN IMMEDIATE


def test_threads_share_a_transaction(tmp_path):
    made = entered(tmp_path / "a.db")
    commits = []
    with made.database.writing() as connection:
        made.database.driver(connection).set_trace_callback(
            lambda text: commits.append(text) if text == "COMMIT" else 0
        )
    with made.committer.turn:  # all of them come while another commits
        threads = [threading.Thread(target=made.reward, args=(f"d{i % 3}", 1.0)) for i in range(20)]
        for one in threads:
            one.start()
        while len(made.committer._queue) < 20:
            pass
    for one in threads:
        one.join()
    assert len(commits) == 1 + 1  # that of `writing` above, which ended after the trace began, and theirs
    # seen red: a group that takes one request at a time


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_of_a_fork_has_connections_of_its_own(home):
    code = """
import os, sys
from dither import log
from ledgers import decision
home = None if sys.argv[1] == "None" else sys.argv[1]
made = log.Ledger(home)
made.record(decision(), id="parent", mask=[True, True])
if (child := os.fork()) == 0:
    try:
        made.record(decision(), id="child", mask=[True, True])
        made.reward("parent", 2.0)
        made.close()
    except ValueError as error:
        os._exit(3 if "fork" in str(error) else 4)
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
made.reward("parent", 1.0)
print(status, len(made), made.reward("parent", 1.0))
"""
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    command = [sys.executable, "-W", "ignore", "-c", code, str(home)]
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == (["3", "1", "known"] if home is None else ["0", "2", "conflict"]), done.stderr


def test_without_waiting_the_file_is_synced_by_the_timer_and_by_flush(tmp_path, monkeypatch):
    synced, due, whole = [], threading.Event(), journal._sync

    def seen(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        whole(handle)
        due.set()

    monkeypatch.setattr(journal, "_sync", seen)
    made = log.Ledger(tmp_path / "a.db", wait=False, flush_seconds=0.01)
    made.record(decision(), X=features(0), id="d0")
    assert due.wait(30)
    assert any(name.endswith("a.db-wal") for name in synced)
    assert made.reward("d0", 1.0) == "counted"
    made.flush()
    made.close()
    assert log.Ledger(tmp_path / "a.db").reward("d0", 1.0) == "known"
    with pytest.raises(ValueError, match="is closed"):
        made.reward("d0", 1.0)


def test_a_sync_keeps_the_locks_of_the_file(tmp_path):
    """Without them another process that closes the ledger takes itself for the last, and removes the journal."""
    made = entered(tmp_path / "a.db", n=1, wait=False, flush_seconds=1e6)
    code = "import sys; from dither import log; made = log.Ledger(sys.argv[1]); print(len(made)); made.close()"
    path = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": os.environ["PATH"]}
    seen = []
    for i in (1, 2):
        made.flush()
        command = [sys.executable, "-c", code, str(tmp_path / "a.db")]
        seen.append(int(subprocess.run(command, env=path, capture_output=True, text=True, check=True).stdout))
        made.record(decision(), X=features(0), id=f"d{i}")
    assert seen == [1, 2]
    # seen red: a sync that opens and closes the file of the database too: [1, 1], and d1 stood in a file without a name


# Erasure


def test_what_is_erased_is_gone_from_the_file(tmp_path):
    made = log.Ledger(tmp_path / "a.db")
    X = np.full((2, 3), np.frombuffer(b"SECRET!!", dtype="<f8")[0])
    for i in range(30):
        user = "zaphod" if i % 3 == 0 else "trillian"
        made.record(decision(), X=X if i % 3 == 0 else features(i), id=f"d{i}", extra={"user": user, "n": i})
        made.reward(f"d{i}", 4242.0 + i)

    def stored():
        return b"".join(path.read_bytes() for path in sorted(tmp_path.glob("a.db*")))

    assert b"zaphod" in stored()
    assert b"SECRET!!" in stored()
    assert made.erase(user="zaphod") == 10
    assert b"zaphod" not in stored()
    assert b"SECRET!!" not in stored()
    assert b"trillian" in stored()
    frame = made.read().frame
    assert frame["user"].to_list() == [None if i % 3 == 0 else "trillian" for i in range(30)]
    assert frame["reward"].to_list() == [None if i % 3 == 0 else 4242.0 + i for i in range(30)]
    with made.database.reading() as connection:
        event = connection.execute(sa.select(sql_tables.erasures)).one()
    assert (event.by, event.decisions) == ("user", 10)
    # seen red: without the checkpoint


@pytest.mark.parametrize(("value", "found"), [(1, 3), (1.0, 3), (True, 1), ("1", 3), ("1.0", 2), ("[" * 9000, 0)])
def test_a_number_and_its_text_are_one_value_to_erase(home, value, found):
    """A person with the number 7 may have been stored as text.

    Seen red with values that were compared as JSON, and with a text of brackets, which ended the stack of Python.
    """
    made = log.Ledger(home)
    for i, own in enumerate([1, 1.0, True, "1"]):
        made.record(decision(), X=features(i), id=f"d{i}", extra={"key": own})
    made.record(decision(), X=features(9), id="without")
    assert made.erase(key=value) == found


# Archives


def test_a_folder_of_a_log_is_taken_over_whole(home, tmp_path):
    written = filled(tmp_path / "log", n=30, buffer=7)
    written.reward("d3", 99.0, 40)  # a conflict
    written.close()
    made = log.Ledger(home)
    assert made.take_over(tmp_path / "log") == 30
    assert made.take_over(tmp_path / "log") == 0
    want = log.read(tmp_path / "log").frame
    assert_frame_equal(made.read().frame.select(want.columns), want)
    _, events, _ = made.frames()
    assert events["conflict"].to_list().count(True) == 1
    assert made.reward("d3", 99.0) == "conflict"
    with pytest.raises(ValueError, match="no decisions of a log"):
        made.take_over(tmp_path)


def test_days_are_folders_of_their_own(home, tmp_path):
    made = log.Ledger(home)
    for day in range(3):
        for i in range(4):
            when = moment(86_400 * day + 3600 * i)
            made.record(decision(), X=features(i), id=f"{day}-{i}", time=when)
            made.reward(f"{day}-{i}", float(i), when + timedelta(days=5))
    written = made.export(tmp_path / "out")
    assert [path.name for path in written] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert [len(log.read(path)) for path in written] == [4, 4, 4]
    want = made.read().frame
    assert_frame_equal(log.read(tmp_path / "out").frame, want)
    assert_frame_equal(pl.concat([part.frame for part in log.batches(tmp_path / "out", rows=3)]), want)
    made.reward("0-0", 7.0)
    assert made.export(tmp_path / "out") == written
    again = log.Ledger(None)
    assert again.take_over(tmp_path / "out") == 12
    assert_frame_equal(again.read().frame, made.read().frame)
    storage.days(tmp_path / "none")


def test_a_folder_of_days_is_judged_as_the_ledger_is(tmp_path):
    made = log.Ledger(None)
    for i in range(12):
        made.record(decision(), X=features(i), id=str(i), time=moment(40_000 * i))
        made.reward(str(i), float(i % 3))
    assert len(made.export(tmp_path / "out")) > 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.EvaluationWarning)
        found = ope.evaluate(tmp_path / "out", ["uniform"], ["ips"])
        want = ope.evaluate(made.read(), ["uniform"], ["ips"])
    assert found.estimates["uniform", "ips"].value == want.estimates["uniform", "ips"].value
    with pytest.raises(ValueError, match="leave out arms"):
        ope.evaluate(tmp_path / "out", ["uniform"], arms=3)
    # seen red: "holds no Parquet files", as no decisions-* lies in the folder itself


def test_a_ledger_is_judged_as_a_log_is(home):
    bandit = dither.LinFP(dim=3, seed=0, floor=0.1)
    rng, made = np.random.default_rng(0), log.Ledger(home)
    for _ in range(50):
        X = rng.normal(size=(4, 3))
        chosen = bandit.choose(X)
        d = made.record(chosen, X=X, floor=0.1)
        r = float(X[d.arm, 0])
        made.reward(d.id, r)
        bandit.update(X[d.arm], r)
    seen = made.read()
    assert seen.check().ok
    assert_array_equal(seen.x[:, 0], seen.r)
    assert seen.kind == "exact"
