"""No secret of a URL stands in what anybody is shown: messages, `repr`, logs, names of files. And it is not lost."""

import logging
import os
import pickle
import subprocess
import sys
import traceback
from urllib.parse import quote

import numpy as np
import pytest
import sqlalchemy as sa

import dither as library
from dither import log
from dither.log import address
from ledgers import decision, features

SECRET = "Zx1@Zx2:Zx3/Zx4%Zx5?Zx6#Zx7"  # each piece of it can be seen
CODED = quote(SECRET, safe="")
X = np.eye(3)

REFUSED = [  # what cannot be opened, as no server is there, or as it is no URL of one
    "postgresql://app:{}@127.0.0.1:1/news",
    "postgres://app:{}@127.0.0.1:1/news",
    "postgresql+psycopg://app:{}@127.0.0.1:1/news",
    "postgresql+asyncpg://app:{}@127.0.0.1:1/news",
    "PostgreSQL://app:{}@127.0.0.1:1/news",
    " postgresql://app:{}@127.0.0.1:1/news\n",
    "postgresql://app:{}@127.0.0.1:1,127.0.0.1:2/news?target_session_attrs=read-write",
    "postgresql://app:{}@/news?host=127.0.0.1:1&host=127.0.0.1:2",
    "postgresql://127.0.0.1:1/news?user=app&password={}",
    "//app:{}@127.0.0.1:1/news",
    "postgresql:///news?host=127.0.0.1&port=1&user=app&sslpassword={}",
    "postgresql://app@127.0.0.1:1/news?passwrd={}",
    "postgresql://app:" + 30 * "0123456789" + "{}@127.0.0.1:1/news",
    "postgresql://app@127.0.0.1:1/news?passfile=/nowhere/{}",
    "postgresql://app@127.0.0.1:1/news?options=-c%20my.token%3D{}",
    "postgresql://app:{}@127.0.0.1:one/news",
    "postgresql://app:{}",
    "postgresql://app:{}@[::1/news",
    "postgresql://app:{}@127.0.0.1:1/news?connect_timeout=soon",
    "postgresql://app:{}@127.0.0.1:1/news?sslmode=sometimes",
    "postgresql://app:{}@127.0.0.1:1/news?prepare_threshold=often",
    "postgres//app:{}@127.0.0.1/news",
    "postgresq://app:{}@127.0.0.1/news",
    "postgresql:/app:{}@127.0.0.1/news",
    "postgresql:app:{}@127.0.0.1/news",
    "postgresql//127.0.0.1/news?user=app&password={}",
    "pg://app:{}@127.0.0.1/news",
    "psql://app:{}@127.0.0.1/news",
    "mysql://app:{}@127.0.0.1/news",
    "jdbc:postgresql://127.0.0.1/news?user=app&password={}",
    "app:{}@127.0.0.1/news",
    "app:{}@127.0.0.1",
    "host=127.0.0.1 port=1 user=app password={}",
    "password={}  host = 127.0.0.1",
    "dbname=news user=app password = '{}'",
]


def texts(error):
    """All that an error says, and those that led to it."""
    said = ["".join(traceback.format_exception(error))]
    while error is not None:
        said += [str(error), repr(error), repr(error.args), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return said


def roads(where, folder):
    """What a user may do with the text of a URL."""
    return {
        "Ledger": lambda: log.Ledger(where),
        "Live": lambda: library.Live(where, bandit=library.LinFP(dim=3, seed=0)),
        "read": lambda: log.read(where),
        "Log": lambda: log.Log(where),
        "dsjson": lambda: log.dsjson(where),
        "from_columns": lambda: log.from_columns(where, arm="a", reward="r", propensity="p"),
        "export": lambda: log.Ledger(folder).export(where),
        "take_over": lambda: log.Ledger(folder).take_over(where),
    }


@pytest.mark.parametrize("form", REFUSED)
@pytest.mark.parametrize("coded", [True, False])
def test_what_is_refused_is_not_repeated(form, coded, tmp_path, monkeypatch, caplog, capfd):
    """Seen red with the name that SQLAlchemy makes of a URL, and with what was passed in the errors of paths."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    where = form.format(CODED if coded else SECRET)
    for name, road in roads(where, tmp_path / "own.db").items():
        with pytest.raises((OSError, ValueError)) as refused:
            road()
        assert not [said for said in texts(refused.value) if "Zx" in said], name
    assert "Zx" not in caplog.text
    assert "Zx" not in "".join(capfd.readouterr())
    assert {path.name.partition("-")[0] for path in tmp_path.rglob("*")} == {"own.db"}


@pytest.mark.parametrize("form", REFUSED[1::3])
def test_the_commands_do_not_repeat_it(form, dither, tmp_path, monkeypatch):
    """Seen red with a mistyped scheme: 'no log at postgresq:/app:...'."""
    monkeypatch.chdir(tmp_path)
    for command in (("evaluate", form.format(SECRET), "--policy", "uniform"), ("tune", form.format(CODED), "LinFP")):
        code, out, err = dither(*command)
        assert code == 2
        assert "Zx" not in out + err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://app:pw@host/db", "postgresql://app:***@host/db"),
        ("postgres://app:p:w/x?y#z%w@h:5/db", "postgresql://app:***@h:5/db"),
        ("postgresql://app@h1:1,[::1]:2/db?sslmode=require", "postgresql://app@h1:1,[::1]:2/db?sslmode=require"),
        ("postgresql:///db?user=a%40b&password=pw&host=/tmp", "postgresql://a@b:***@/db?host=/tmp"),
        ("postgresql://app@%2Ftmp/db", "postgresql://app@/db?host=/tmp"),
        (
            "postgresql://h/d?options=-csearch_path%3Ds%20-ca.b%3Dpw",
            "postgresql://h/d?options=-csearch_path=s -ca.b=***",
        ),
        ("postgresql://h/d?host=a:1&host=b", "postgresql://a:1,b/d"),
    ],
)
def test_the_name_that_is_shown(text, shown):
    """Seen red with the query as it was written."""
    place = address.of(text)
    assert place.shown == shown
    assert "pw" not in repr(place)
    assert place.options["prepare_threshold"] is None


def test_libpq_reads_the_same_of_a_url():
    """Beside the driver's own parser. Seen red with user and password taken apart at the last @."""
    conninfo = pytest.importorskip("psycopg.conninfo")
    for text in (
        f"postgresql://app:{CODED}@h:5/news%20s?sslmode=require&connect_timeout=3",
        "postgresql://a%40b@h1:1,h2:2/db?target_session_attrs=read-write",
        "postgresql:///db?user=u&password=p%26q&host=/tmp",
        "postgresql://[::1]:54/db",
        "postgresql://%2Ftmp/db",
        "postgresql://",
    ):
        options = {name: value for name, value in address.of(text).options.items() if name != "prepare_threshold"}
        assert options == {name: str(value) for name, value in conninfo.conninfo_to_dict(text).items()}, text


@pytest.mark.parametrize(
    "text",
    ["news.db", "user=7/news.db", "pg/news.db", "data//news.db", "a@b.db", "/a:b@c.db", "C:/a.db", "x=password.db"],
)
def test_what_is_a_path_stays_one(text):
    """Seen red with every text that has an '=' taken for a keyword string."""
    assert address.of(text).kind == "file"
    assert address.shown(text) == text
    assert address.local(text).name == text.rpartition("/")[2]


def test_what_is_no_place_is_refused_by_its_type():
    """Seen red with `str` of whatever was passed: a file of that name."""
    for odd in ({"password": SECRET}, 5, object()):
        with pytest.raises(TypeError, match=type(odd).__name__) as refused:
            log.Ledger(odd)
        assert "Zx" not in str(refused.value)


@pytest.fixture
def role(postgres):
    """A schema of a role whose password is the secret: its URLs, in each form."""
    name = postgres.new_name()
    postgres.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'", f"CREATE SCHEMA {name} AUTHORIZATION {name}")
    at = f"host={quote(str(postgres.folder))}&port={postgres.port}"  # the schema of a role's own name is searched first
    yield {
        "coded": f"postgresql://{name}:{CODED}@/postgres?{at}",
        "query": f"postgresql:///postgres?{at}&user={name}&password={CODED}",
        "host": f"postgresql://{name}:{CODED}@{quote(str(postgres.folder), safe='')}:{postgres.port}/postgres",
        "environment": f"postgresql://{name}@/postgres?{at}",
        "sqlalchemy": sa.make_url(f"postgresql://{name}:{CODED}@/postgres?{at}"),
        "passfile": f"postgresql://{name}@/postgres?{at}&passfile=",
    }
    postgres.execute(f"DROP SCHEMA {name} CASCADE", f"DROP ROLE {name}")


@pytest.mark.parametrize("form", ["coded", "query", "host", "environment", "sqlalchemy", "passfile"])
def test_a_password_opens_the_ledger_and_is_not_shown(role, form, tmp_path, monkeypatch, caplog, closing):
    """Seen red with `?password=` in `repr`, and with a URL of SQLAlchemy, whose text has *** for the password."""
    caplog.set_level(logging.DEBUG)
    if form == "environment":
        monkeypatch.setenv("PGPASSWORD", SECRET)
    where = role[form]
    if form == "passfile":
        (tmp_path / "Zx").write_text(f"*:*:*:*:{SECRET.replace(':', chr(92) + ':')}")
        (tmp_path / "Zx").chmod(0o600)
        where += str(tmp_path / "Zx")
    with library.Live(where, bandit=library.LinFP(dim=3, seed=0)) as live:
        assert live.reward(live.choose(X).id, 1.0) == "counted"
        shown = [repr(live), str(live), repr(live.ledger), live.ledger.database.where, repr(vars(live.ledger))]
        shown += [repr(vars(live.ledger.database)), repr(live.ledger.database._engine)]
        for refused in (
            lambda: live.ledger.reward("none", 1.0),
            lambda: live.ledger.expire(),
            lambda: pickle.dumps(live),
        ):
            with pytest.raises((LookupError, ValueError, TypeError)) as error:
                refused()
            shown += texts(error.value)
    with pytest.raises(ValueError, match="is closed") as error:
        live.ledger.read()
    shown += [*texts(error.value), caplog.text, repr(live)]
    assert not [said for said in shown if "Zx" in said]


def test_a_wrong_password_is_not_shown(role, caplog):
    """Seen red with the query of the URL in the message."""
    caplog.set_level(logging.DEBUG)
    for where in (role["coded"].replace("Zx4", "Zx8"), role["query"].replace("Zx4", "Zx8")):
        with pytest.raises(OSError, match="password authentication failed") as error:
            log.Ledger(where)
        assert not [said for said in [*texts(error.value), caplog.text] if "Zx" in said]


@pytest.mark.parametrize("form", ["coded", "query"])
def test_a_fork_has_the_password(role, form, closing):
    """Seen red with the URL that is shown, read again in the child: 'password authentication failed'."""
    live = library.Live(role[form], bandit=library.LinFP(dim=3, seed=0))
    kept = live.choose(X).id
    child = os.fork()
    if child == 0:
        try:
            fine = live.reward(kept, 1.0) == "counted" and len(live.ledger) == 1
            fine = fine and live.ledger.record(decision(), X=features(1, 3, 3)).id is not None
            os._exit(0 if fine else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(live.ledger) == 2
    assert live.reward(live.choose(X).id, 1.0) == "counted"


def test_what_the_interpreter_prints(role):
    """A script that ends with the error. Seen red with the query of the URL in the message."""
    script = "import dither, sys; dither.Live(sys.argv[1].replace('Zx4', 'Zx8'))"
    path = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script, role["query"]],
        env=path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "password authentication failed" in done.stderr
    assert "Zx" not in done.stdout + done.stderr.replace(script, "")
