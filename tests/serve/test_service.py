"""A ledger over HTTP: what is decided, rewarded and said is what `Live` decides, takes and says."""

import asyncio
import json
import math
import threading

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

import dither
from asking import HERE, Client
from dither import serve
from dither.log.database import home as homes

pytestmark = pytest.mark.usefixtures("closing")
FIELDS = {"context": {"country": ["AT", "CH"]}, "arm": {"topic": ["art", "war"]}}
ARMS = {"a17": {"topic": "art"}, "a23": {"topic": "war"}, "a5": {"topic": "art"}}
SEEN = ("id", "arm", "place", "propensity", "propensity_kind", "propensity_se", "z", "fallback")
X = np.eye(3)


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("DITHER_TOKEN", raising=False)


def begin(**settings):
    return dither.LinFP(**{"dim": 3, "lam": 1.0, "floor": 0.3, "seed": 0} | settings)


def shop(home=None, **more):
    features = dither.Features(**FIELDS, cross=[("country", "topic")])
    stock = dither.Catalogue(features, ARMS)
    return dither.Live(home, bandit=dither.LinFP(features=features, floor=0.3, seed=0), catalogue=stock, **more)


@pytest.fixture
def live():
    return shop()


@pytest.fixture
def client(live):
    return Client(serve.app(live))


def said(response, status):
    """The words of a refusal."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == status
    return response.json()["detail"]


def test_a_decision_is_that_of_the_ledger(live, client):
    """Numbers are read as they were, to the bit."""
    for i in range(10):
        answer = client.post("/decide", json={"context": {"country": "AT"}, "extra": {"user": f"u{i}"}}).json()
        row = live.read().frame.row(i, named=True)
        assert tuple(answer) == SEEN
        for name in ("id", "propensity", "propensity_kind", "z"):
            assert answer[name] == row[name]
        assert answer["arm"] == row["arms"][row["arm"]] == ["a17", "a23", "a5"][answer["place"]]
        assert row["user"] == f"u{i}"
        assert client.post("/reward", json={"id": row["id"], "reward": 0.1 * i}).json() == {"answer": "counted"}
    assert live.read().r.tolist() == [0.1 * i for i in range(10)]
    assert live.bandit.observations == 10


def test_the_same_request_again(live, client):
    """However it is spelt: the order of names and blanks say nothing. Another one is 409."""
    extra = {"user": "u", "place": 2}
    body = {"id": "v1", "context": {"country": "AT"}, "arms": ["a17", "a5"], "extra": extra}
    first = client.post("/decide", json=body)
    turned = body | {"extra": dict(reversed(extra.items()))}
    others = [dict(reversed(body.items())), turned, body | {"mask": None}]
    for one in (json.dumps(body, indent=3), *map(json.dumps, others)):
        again = client.post("/decide", content=one, headers={"content-type": "application/json; charset=utf-8"})
        assert (again.status_code, again.content) == (200, first.content)
    for change in ({"context": {"country": "CH"}}, {"arms": ["a5", "a17"]}, {"extra": {}}, {"fallback": "a5"}):
        assert "another request" in said(client.post("/decide", json=body | change), 409)
    assert len(live.ledger) == 1
    # seen red: the bytes of the body in place of what it says


def test_many_together(live, client):
    body = {"ids": ["u", "v"], "contexts": [{"country": "AT"}, {"country": "CH"}], "arms": ["a23", "a17"]}
    first = client.post("/decide/many", json=body)
    assert [one["id"] for one in first.json()["decisions"]] == ["u", "v"]
    assert client.post("/decide/many", json=body).content == first.content
    assert "another request" in said(client.post("/decide/many", json=body | {"ids": ["u", "w"]}), 409)
    assert "another request" in said(client.post("/decide", json={"id": "u", "context": {"country": "AT"}}), 409)
    assert len(live.ledger) == 2
    rewards = {"ids": ["u", "v"], "rewards": [1.0, 0.0]}
    assert client.post("/reward/many", json=rewards).json() == {"answers": ["counted", "counted"]}
    assert client.post("/reward/many", json=rewards | {"rewards": [1.0, 0.5]}).json()["answers"] == [
        "known",
        "conflict",
    ]
    assert "no decision 'w'" in said(client.post("/reward/many", json={"ids": ["u", "w"], "rewards": [1, 1]}), 404)
    assert "one reward for each id" in said(client.post("/reward/many", json={"ids": ["u"], "rewards": [1, 1]}), 422)
    assert "how many" in said(client.post("/decide/many", json={"arms": ["a17"]}), 422)


def test_features_in_place_of_a_context():
    live = dither.Live(None, bandit=begin(), parts=["click", "sale"])
    client = Client(serve.app(live))
    one = client.post("/decide", json={"X": X.tolist(), "arms": [7, "b", "c"], "mask": [False, True, True]}).json()
    assert one["arm"] in ("b", "c")
    many = client.post("/decide/many", json={"X": [X.tolist()] * 2, "values": [[1, 2, 3]] * 2}).json()["decisions"]
    assert [one["arm"] for one in many] == [one["place"] for one in many]
    assert np.array_equal(live.read().X[0][:2], X[1:])
    assert np.array_equal(live.read().X[1], X)
    assert client.post("/reward", json={"id": one["id"], "reward": 1, "part": "click"}).json() == {"answer": "counted"}
    assert "part must be one of" in said(client.post("/reward", json={"id": one["id"], "reward": 1, "part": "x"}), 422)
    assert "rows of one length" in said(client.post("/decide", json={"X": [[1.0, 2.0], [3.0]]}), 422)
    both = {"X": X.tolist(), "context": {"a": 1}}
    assert "two ways" in said(client.post("/decide", json=both), 422)
    slots = Client(serve.app(dither.Live(None, bandit=begin(disjoint=2))))
    assert slots.post("/decide", json={"X": [1, 0, 0]}).json()["arm"] in (0, 1)
    assert len(slots.post("/decide/many", json={"X": [[1, 0, 0]] * 3}).json()["decisions"]) == 3


BANDITS = {
    "X": begin,
    "slots": lambda: begin(disjoint=2),
    "features": lambda: dither.LinFP(features=dither.Features(**FIELDS, cross=())),
}


@pytest.mark.parametrize("kind", BANDITS)
def test_the_decisions_of_no_requests(kind):
    """As those of an X of no rows, which JSON cannot say."""
    live = dither.Live(None, bandit=BANDITS[kind]())
    client = Client(serve.app(live))
    for more in ({}, {"ids": []}, {"mask": []}, {"values": []}, {"extra": {"user": []}}, {"arms": ["a", "b"]}):
        for name in ("contexts", "X"):
            answer = client.post("/decide/many", json={name: []} | more)
            assert (answer.status_code, answer.json()) == (200, {"decisions": []})
    for more, words in (({"ids": ["v"]}, "ids"), ({"mask": [[True]]}, "mask"), ({"extra": {"user": ["u"]}}, "user")):
        refused = client.post("/decide/many", json={"contexts": []} | more)
        assert said(refused, 422) == f"{words} must have an entry for each request, and there are none; got 1"
    assert len(live.ledger) == 0
    # seen red: handed on to `Live`: "X must have width 3 ... got width 0"


def test_records_for_one_request(live, client):
    """null: the catalogue has the record, as None says in `Live.choose`."""
    body = {"id": "v", "context": {"country": "AT"}, "arms": {"a17": None, "a5": {"topic": "war"}}}
    shown = client.post("/decide", json=body)
    assert shown.status_code == 200, shown.text
    assert client.post("/decide", json=body).json() == shown.json()
    said(client.post("/decide", json=body | {"arms": {"a17": {}, "a5": {"topic": "war"}}}), 409)
    features = live.bandit.features.encode({"country": "AT"}, [{"topic": "art"}, {"topic": "war"}])
    assert live.read().frame["features"].to_list() == [features.tolist()]
    # seen red: a record alone: 422


def test_what_is_not_known_is_null():
    live = dither.Live(None, bandit=dither.LinPHE(dim=3, seed=0, monte_carlo=0))
    answer = Client(serve.app(live)).post("/decide", json={"X": X.tolist()}).json()
    assert (answer["propensity"], answer["propensity_kind"], answer["z"]) == (None, "none", None)


def test_rewards(live, client):
    client.post("/decide", json={"id": "v", "context": {"country": "AT"}})
    assert (
        client.post("/reward", json={"id": "v", "reward": 1, "time": "2026-03-01T12:00"}).json()["answer"] == "counted"
    )
    assert client.post("/reward", json={"id": "v", "reward": 1.0}).json()["answer"] == "known"
    assert "another reward" in said(client.post("/reward", json={"id": "v", "reward": 2}), 409)
    assert "no decision 'w'" in said(client.post("/reward", json={"id": "w", "reward": 2}), 404)
    assert "time" in said(client.post("/reward", json={"id": "v", "reward": 1, "time": "yesterday"}), 422)
    live.erase(["v"])
    assert "erased" in said(client.post("/reward", json={"id": "v", "reward": 2}), 404)
    assert live.bandit.observations == 0


def test_the_store_is_away(tmp_path, monkeypatch):
    """A decision may have a fallback; a reward is to be sent again; nothing is half there."""
    live = shop(tmp_path / "a.db")
    client = Client(serve.app(live))
    body = {"id": "f", "context": {"country": "AT"}, "fallback": "a5"}
    assert client.get("/ready").status_code == 200

    def away(self, alone):
        raise OSError("the disk at /secret/place is full")

    with monkeypatch.context() as outage:
        outage.setattr(homes.Home, "_begun", away)
        shown = client.post("/decide", json=body)
        assert (shown.json()["arm"], shown.json()["fallback"], shown.json()["propensity"]) == ("a5", True, None)
        assert client.post("/decide", json=body).content == shown.content
        for path, asked in (("/reward", {"id": "f", "reward": 1}), ("/decide", {"context": {"country": "AT"}})):
            response = client.post(path, json=asked)
            assert "again" in said(response, 503)
            assert response.headers["retry-after"] == "1"
            assert "secret" not in response.text
    assert client.post("/reward", json={"id": "f", "reward": 1}).json() == {"answer": "counted"}
    assert client.post("/decide", json=body).content == shown.content
    assert len(live.ledger) == 1


def test_it_says_how_it_goes(live, client):
    client.post("/decide", json={"id": "v/1", "context": {"country": "AT"}})
    client.post("/reward", json={"id": "v/1", "reward": 1})
    assert client.get("/health").json() == client.get("/ready").json() == {"status": "ok"}
    assert client.get("/explain", params={"id": "v/1"}).json() == json.loads(json.dumps(live.explain("v/1").to_dict()))
    assert "no decision" in said(client.get("/explain", params={"id": "nobody"}), 404)
    assert client.get("/status").json()["days"] == json.loads(json.dumps(live.status().to_dict()["days"]))
    client.get("/a/name/of/a/stranger")
    text = client.get("/metrics").text
    assert 'dither_http_requests_total{path="/decide",status="200"} 1.0' in text
    assert "stranger" not in text
    assert "dither_decisions_total" in text
    live.close()
    assert client.get("/health").status_code == 200
    fresh = Client(serve.app(live))
    assert fresh.get("/ready").headers["retry-after"] == "1"
    assert "is closed" in said(fresh.post("/decide", json={"context": {"country": "AT"}}), 422)


def test_long_calls_do_not_make_it_unready(live, monkeypatch):
    """Whoever balances loads would take a process away that only has much to explain."""
    app, door, inside = serve.app(live), threading.Event(), []

    def slow(id):
        inside.append(id)
        door.wait(60)
        raise LookupError(f"no decision {id!r}")

    monkeypatch.setattr(live, "explain", slow)

    async def scene():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=HERE)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            long = [asyncio.create_task(client.get("/explain?id=v")) for _ in range(60)]
            while len(inside) < 40:  # all of the threads
                await asyncio.sleep(0.001)
            try:
                ready = await asyncio.wait_for(client.get("/ready"), 20)
                decided = await asyncio.wait_for(client.post("/decide", json={"context": {"country": "AT"}}), 20)
            finally:
                door.set()
                await asyncio.gather(*long)
            return ready.status_code, decided.status_code

    assert asyncio.run(scene()) == (200, 200)
    # seen red: the look at the ledger in the threads of Starlette


def test_limits_are_those_of_the_app(live):
    client = Client(serve.app(live, arms=2, requests=3))
    context = {"country": "AT"}
    assert client.post("/decide", json={"context": context, "arms": ["a17", "a5"]}).status_code == 200
    for body in ({"arms": ["a17", "a23", "a5"]}, {"mask": [True] * 3}, {"X": [[1.0]] * 3}):
        assert "at most 2 arms, got 3" in said(client.post("/decide", json=body), 422)
    assert "at most 2 arms" in said(
        client.post("/decide/many", json={"contexts": [context], "mask": [[True] * 3]}), 422
    )
    assert "at most 3 requests" in said(client.post("/decide/many", json={"contexts": [context] * 4}), 422)
    assert "at most 3 rewards" in said(client.post("/reward/many", json={"ids": ["a"] * 4, "rewards": [1] * 4}), 422)
    for wrong in ({"arms": 0}, {"requests": 1.5}):
        with pytest.raises(ValueError, match="must be a whole number"):
            serve.app(live, **wrong)
    with pytest.raises(TypeError, match="must be a dither"):
        serve.app("a.db")


def test_the_token(live, monkeypatch):
    monkeypatch.setenv("DITHER_TOKEN", "x" * 20)
    client = Client(serve.app(live, hosts=["bandit.example"]), "https://bandit.example", at=("192.0.2.7", 1))
    for path in ("/status", "/metrics", "/openapi.json", "/explain?id=v", "/events", "/nowhere"):
        assert client.get(path).status_code == 401
    for path, body in (("/correct", {"id": "v", "reward": 1}), ("/erase", {"ids": ["v"]})):
        assert client.post(path, json=body).status_code == 401
    assert client.post("/decide", json={"context": {"country": "AT"}}).status_code == 401
    assert len(live.ledger) == 0
    assert client.get("/health").status_code == client.get("/ready").status_code == 200
    right = {"Authorization": "Bearer " + "x" * 20}
    assert client.post("/decide", json={"context": {"country": "AT"}}, headers=right).status_code == 200
    assert client.get("/status", headers=right).status_code == 200


def test_what_is_wrong_with_it_is_said_at_once(live, monkeypatch):
    """And not with the first request; nor is the token read only then."""
    with pytest.raises(ValueError, match="DITHER_TOKEN"):
        serve.app(live, hosts=["*"])
    app = serve.app(live)
    monkeypatch.setenv("DITHER_TOKEN", "short")
    with pytest.raises(ValueError, match="DITHER_TOKEN must have"):
        serve.app(live)
    assert Client(app).get("/status").status_code == 200


def test_an_application_mounts_it(live):
    """Who may ask is the application's to say."""
    outer = FastAPI()
    outer.mount("/bandit", serve.app(live, mounted=True))
    client = Client(outer, "https://any.example", at=("192.0.2.7", 1))
    assert client.post("/bandit/decide", json={"context": {"country": "AT"}}).status_code == 200
    assert client.get("/bandit/health").json() == {"status": "ok"}
    assert client.get("/bandit/openapi.json").json()["info"]["title"] == "dither"


def test_openapi_has_examples_that_are_answered(live):
    client = Client(serve.app(live, may_erase=True))
    paths = client.get("/openapi.json").json()
    for path in ("/decide", "/decide/many", "/reward", "/reward/many", "/correct", "/erase"):
        about = paths["paths"][path]["post"]
        model = about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for example in paths["components"]["schemas"][model]["examples"]:
            assert client.post(path, json=example).status_code == 200
        assert {"200", "400", "401", "403", "409", "413", "415", "422", "503"} <= about["responses"].keys()
    for page in ("/docs", "/redoc"):
        assert client.get(page).status_code == 404


def test_numbers_are_exact(live, client):
    for x in (0.1, 1 / 3, 5e-324, 1e70, math.pi * 1e-200, 2**53 - 1):
        id = client.post("/decide", json={"context": {"country": "AT"}}).json()["id"]
        answer = client.post("/reward", json={"id": id, "reward": x})
        assert answer.status_code == 200
        assert live.read().r[-1] == x
    answer = client.post("/reward", json={"id": id, "reward": 1.7976931348623157e308})
    assert (answer.status_code, "between -1e+70 and 1e+70" in answer.text) == (422, True)
