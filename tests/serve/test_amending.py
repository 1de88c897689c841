"""What is asked over HTTP of decisions that are there: explained, corrected, erased; and the events of the ledger."""

import json

import numpy as np
import pytest

import dither
from asking import Client
from dither import serve
from dither.log.database import home as homes

pytestmark = pytest.mark.usefixtures("closing")
ODD = [
    "a\n",
    "a\nb",
    "\n",
    "\r\n",
    ".",
    "..",
    "a//b",
    "/a",
    "a/",
    "a%2fb",
    "%",
    "%0a",
    "?",
    "#",
    "a b",
    "a+b",
    " ",
    "ü",
]
ODD += ["\u2028", "\x7f", "\x01", "'\"<", "a;b=c&d", "a\\b", "x" * 1000]


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("DITHER_TOKEN", raising=False)


def begin(home=None, **more):
    return dither.Live(home, bandit=dither.LinFP(dim=3, lam=1.0, floor=0.3, seed=0), **more)


@pytest.fixture
def live():
    return begin()


@pytest.fixture
def client(live):
    return Client(serve.app(live, may_erase=True))


X = np.eye(3).tolist()


def decided(client, *ids, **extra):
    body = {"ids": ids, "X": [X] * len(ids), "extra": {name: [value] * len(ids) for name, value in extra.items()}}
    assert client.post("/decide/many", json=body).status_code == 200


def said(response, status):
    """The words of a refusal."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return response.json()["detail"]


def test_an_id_may_be_any_text(live, client):
    """What `/decide` takes, all else takes: nothing is read out of a path, where some texts have a meaning."""
    decided(client, *ODD)
    reasons = client.together([("GET", "/explain", {"params": {"id": id}}) for id in ODD])
    assert [(one.status_code, one.json().get("id")) for one in reasons] == [(200, id) for id in ODD]
    for path, reward in (("/reward", 1.0), ("/correct", 0.0)):
        answers = client.together([("POST", path, {"json": {"id": id, "reward": reward}}) for id in ODD])
        assert [one.json() for one in answers] == [{"answer": "counted"}] * len(ODD)
    answers = client.post("/reward/many", json={"ids": ODD, "rewards": [1.0] * len(ODD)}).json()["answers"]
    assert answers == ["known"] * len(ODD)
    assert live.read().r.tolist() == [0.0] * len(ODD)
    assert client.post("/erase", json={"ids": ODD}).json() == {"erased": len(ODD)}
    # seen red: the id as the path of `/explain/{id:path}`, which takes no new line and no ".."


def test_a_correction_is_that_of_live(live, client):
    decided(client, "v", "w")
    client.post("/reward/many", json={"ids": ["v", "w"], "rewards": [1, 1]})
    answer = client.post("/correct", json={"id": "v", "reward": -0.5, "time": "2026-03-01T12:00"})
    assert answer.json() == {"answer": "counted"}
    assert client.post("/correct", json={"id": "v", "reward": -0.5}).json() == {"answer": "known"}
    other = begin()
    for id in ("v", "w"):
        other.choose(np.eye(3), id=id)
    other.reward(["v", "w"], [1, 1])
    other.correct("v", -0.5)
    assert live.read().r.tolist() == [-0.5, 1.0]
    assert live.to_bytes() == other.to_bytes() == live.replay().to_bytes()
    assert live.read().frame["reward_time"].to_list()[0].isoformat().startswith("2026-03-01T12:00")
    # what was answered before stays so
    assert client.post("/reward", json={"id": "v", "reward": 1}).json() == {"answer": "known"}


def test_corrections_that_are_refused(live, client):
    decided(client, "v", "w", "x")
    client.post("/reward", json={"id": "v", "reward": 1})
    before = live.to_bytes()
    for body, status, words in (
        ({"id": "nobody", "reward": 1}, 404, "no decision 'nobody'"),
        ({"id": "w", "reward": 1}, 422, "none to correct"),
        ({"id": "v", "reward": 1, "part": "click"}, 422, "part"),
        ({"id": "v", "reward": 2, "time": "yesterday"}, 422, "time"),
        ({"id": "v"}, 422, "reward"),
        ({"id": "v", "reward": "2"}, 422, "reward"),
        ({"id": "v", "reward": 2, "was": 1}, 422, "was"),
    ):
        assert words in said(client.post("/correct", json=body), status)
    assert live.to_bytes() == before
    assert live.read().frame["reward"].to_list() == [1.0, None, None]
    client.post("/erase", json={"ids": ["v"]})
    assert "erased" in said(client.post("/correct", json={"id": "v", "reward": 1}), 404)


def test_a_fallback_that_waits_is_not_said_to_be_nowhere(tmp_path, monkeypatch):
    live = begin(tmp_path / "a.db")
    client = Client(serve.app(live, may_erase=True))

    def away(self, alone):
        raise OSError("no disk")

    with monkeypatch.context() as outage:
        outage.setattr(homes.Home, "_begun", away)
        assert client.post("/decide", json={"id": "f", "X": X, "fallback": 1}).json()["fallback"] is True
        for path, body in (("/correct", {"id": "f", "reward": 1}), ("/erase", {"ids": ["f"]})):
            response = client.post(path, json=body)
            assert "again" in said(response, 503)
            assert response.headers["retry-after"] == "1"
    assert "none to correct" in said(client.post("/correct", json={"id": "f", "reward": 1}), 422)
    assert client.post("/erase", json={"ids": ["f"]}).json() == {"erased": 1}
    # seen red: `correct` of a `Live` that does not store what waits: 404


def test_erasing(live, client):
    decided(client, "v", "w", user="u7")
    decided(client, "x", user=8)
    client.post("/reward/many", json={"ids": ["v", "w", "x"], "rewards": [1, 2, 3]})
    assert client.post("/erase", json={"ids": ["v", "nobody"]}).json() == {"erased": 1}
    assert client.post("/erase", json={"ids": ["v", "nobody"]}).json() == {"erased": 0}
    assert client.post("/erase", json={"where": {"user": "u7"}}).json() == {"erased": 1}
    assert client.post("/erase", json={"where": {"user": "8"}}).json() == {"erased": 1}
    assert client.post("/erase", json={"ids": []}).json() == {"erased": 0}
    assert live.bandit.observations == 0
    assert live.to_bytes() == begin().to_bytes()
    assert client.get("/explain", params={"id": "v"}).json()["unknown"]
    assert "erased" in said(client.post("/decide", json={"id": "v", "X": X, "extra": {"user": "u7"}}), 409)


def test_it_is_said_once_and_rightly_what_is_erased(live, client):
    decided(client, "v", user="u7", ids="v", self="v")
    for body, words in (
        ({}, "send ids, or where"),
        ({"ids": ["v"], "where": {"user": "u7"}}, "send ids, or where"),
        ({"where": {}}, "one column"),
        ({"where": {"user": "u7", "a": 1}}, "one column"),
        ({"where": {"user": None}}, "without a value"),
        ({"where": {"usr": "u7"}}, "no decision has a column 'usr'"),
        ({"where": {"propensity": 1}}, "column of the log"),
        ({"where": {"ids": ["v"]}}, "cannot be searched"),
        ({"where": {"self": "v"}}, "cannot be searched"),
        ({"where": {"user": [["u7"]]}}, "value"),
        ({"ids": "v"}, "ids: "),
        ({"ids": ["v"] * 1001}, "at most 1000 ids, got 1001"),
        ({"ids": ["\0"]}, "NUL"),
    ):
        assert words in said(client.post("/erase", json=body), 422)
    assert live.read().frame["user"].to_list() == ["u7"]
    # seen red: a column `ids` handed on by its name, which erases the decisions with these ids


def test_nothing_is_erased_unless_the_app_may(live):
    client = Client(serve.app(live))
    decided(client, "v")
    words = said(client.post("/erase", json={"ids": ["v"]}), 403)
    assert "--may-erase" in words
    assert "may_erase=True" in words
    assert client.get("/explain", params={"id": "v"}).json()["unknown"] == []
    with pytest.raises(TypeError, match="may_erase must be True or False"):
        serve.app(live, may_erase="no")
    # seen red: without the look at `may_erase`


def test_events_are_read(live, client):
    assert client.get("/events").json() == {"events": []}
    live.change(c=0.5, author="ada")
    live.rollback(0, author="ben")
    read = client.get("/events").json()["events"]
    assert read == json.loads(json.dumps([one.to_dict() for one in live.events()]))
    assert [(one["number"], one["what"], one["author"]) for one in read] == [
        (1, "change", "ada"),
        (2, "rollback", "ben"),
    ]
    assert read == client.get("/status").json()["events"]
    said(client.post("/events", json={}), 405)


def test_an_address_of_another_form(client):
    """As a body of another form is refused: the value is not repeated."""
    for params, words in (({}, "id"), ({"id": ""}, "at least 1"), ({"id": "secret" * 500}, "at most 1000")):
        response = client.get("/explain", params=params)
        assert words in said(response, 422)
        assert "secret" not in response.text
    # seen red: FastAPI's own answer, which is another document and has the value
