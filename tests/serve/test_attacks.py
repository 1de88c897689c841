"""What a stranger may send: it is refused in words, changes nothing, and is never an error of the code."""

import json
import logging

import pytest

import dither
from asking import Client, body, raw
from dither import serve
from dither.serve import guard

NUMERIC = dither.features.Numeric(mean=0, scale=1)
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def live():
    features = dither.Features(context={"country": ["AT", "CH"], "age": NUMERIC}, arm={"size": NUMERIC}, cross=())
    stock = dither.Catalogue(features, {"a17": {"size": 1.0}, "a23": {"size": 2.0}})
    bandit = dither.LinFP(features=features, floor=0.3, seed=0)
    with dither.Live(None, bandit=bandit, catalogue=stock) as live:
        live.choose({"country": "AT", "age": 1.0}, id="v1")
        yield live


@pytest.fixture(scope="module")
def client(live):
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("DITHER_TOKEN", raising=False)
        return Client(serve.app(live, may_erase=True, limits=guard.Limits(body=200_000, seconds=0.05)))


@pytest.fixture(autouse=True)
def nothing_changes(live, caplog):
    """Nothing is stored, and nothing is an error of the code."""
    before = len(live.ledger), live.to_bytes()
    yield
    assert (len(live.ledger), live.to_bytes()) == before
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


DEEP = 50_000
NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"NaN"', '"1"', "true", "null", "[]", "9" * 400]
NUMBERS += ["9" * 9000]
METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "X" * 1000]
IDS = ["../v1", "..%2f..%2fetc%2fpasswd", "%00", "%ff%fe", "v1%0d%0aSet-Cookie:a=b", "v1'--", "%22%3Cscript%3E"]
IDS += ["x" * 5000]


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_no_finite_number(client, number):
    bodies = {
        "/reward": f'{{"id": "v1", "reward": {number}}}',
        "/reward/many": f'{{"ids": ["v1"], "rewards": [{number}]}}',
        "/correct": f'{{"id": "v1", "reward": {number}}}',
        "/decide": f'{{"X": [[{number}, 1, 1]]}}',
        "/decide/many": f'{{"X": [[[{number}, 1, 1]]]}}',
    }
    for path, text in bodies.items():
        response = client.post(path, content=text, headers=JSON)
        assert response.status_code in (400, 422), (path, response.text)
        assert response.json()["detail"]
    if number not in ("null", "true"):  # of which the features say what they are
        text = f'{{"context": {{"country": "AT", "age": {number}}}}}'
        assert client.post("/decide", content=text, headers=JSON).status_code in (400, 422)
    # seen red: "NaN" in a text, for a field of numbers


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"id": "\xff", "reward": 1}',
    "half of a pair": b'{"id": "\\ud800", "reward": 1}',
    "a list": b"[]",
    "no field at all": b"{}",
    "deep lists": b"[" * DEEP,
    "deep dicts": b'{"a":' * DEEP,
    "a deep context": b'{"context": {"age": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "a deep field that there is not": b'{"z": ' + b"[" * 190 + b"]" * 190 + b"}",
    "nested values": b'{"context": {"age": [[1]], "country": "AT"}}',
    "a dict as a value": b'{"context": {"age": {"a": 1}, "country": "AT"}}',
    "another field": b'{"context": {"age": 1, "country": "AT"}, "admin": true}',
    "another field of the context": b'{"context": {"age": 1, "countri": "AT"}}',
    "a deep value": b'{"where": {"user": ' + b"[" * 190 + b"]" * 190 + b"}}",
    "a dict to find": b'{"where": {"user": {"a": 1}}}',
    "a column of NUL": b'{"where": {"\\u0000": 1}, "ids": ["\\u0000"]}',
    "ids with half of a pair": b'{"ids": ["\\ud800"]}',
    "NUL": b'{"id": "a\\u0000", "context": {"age": 1, "country": "AT"}}',
    "an empty id": b'{"id": "", "context": {"age": 1, "country": "AT"}}',
    "a long id": b'{"id": "' + b"x" * 1001 + b'", "context": {"age": 1, "country": "AT"}}',
    "an id that is long in bytes": b'{"id": "' + "ä".encode() * 900 + b'", "context": {"age": 1, "country": "AT"}}',
    "a list as an id": b'{"id": ["a"], "context": {"age": 1, "country": "AT"}}',
    "an arm that there is not": b'{"arms": ["../../etc/passwd"], "context": {"age": 1, "country": "AT"}}',
    "an arm twice": b'{"arms": ["a17", "a17"], "context": {"age": 1, "country": "AT"}}',
    "no arms": b'{"arms": [], "context": {"age": 1, "country": "AT"}}',
    "100,000 arms": b'{"arms": [' + b",".join([b"1"] * 90_000) + b"]}",
    "100,000 masks": b'{"mask": [' + b",".join([b"true"] * 30_000) + b"]}",
    "a mask of another length": b'{"mask": [true], "context": {"age": 1, "country": "AT"}}',
    "no arm on offer": b'{"mask": [false, false], "context": {"age": 1, "country": "AT"}}',
    "minima above 1": b'{"minimum": {"a17": 0.9, "a23": 0.9}, "context": {"age": 1, "country": "AT"}}',
    "values that are negative": b'{"values": [-1, 1], "context": {"age": 1, "country": "AT"}}',
    "costs without budgets": b'{"costs": [1, 1], "context": {"age": 1, "country": "AT"}}',
    "a baseline where there is none": b'{"baseline": "a17", "context": {"age": 1, "country": "AT"}}',
    "a fallback that there is not": b'{"fallback": "zz", "context": {"age": 1, "country": "AT"}}',
    "a column of the log's own": b'{"extra": {"propensity": 1}, "context": {"age": 1, "country": "AT"}}',
    "a column without a name": b'{"extra": {"": 1}, "context": {"age": 1, "country": "AT"}}',
    "X of another width": b'{"X": [[1, 2]]}',
    "X that is huge": b'{"X": [[1e300, 1e300, 1e300, 1e300]]}',
    "a large whole number": b'{"context": {"age": 99999999999999999999, "country": "AT"}}',
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_no_request(client, name):
    for path in ("/decide", "/decide/many", "/reward", "/reward/many", "/correct", "/erase"):
        response = client.post(path, content=BODIES[name], headers=JSON)
        assert response.status_code in (400, 413, 422), (path, response.text)
        assert response.json()["detail"]
        assert len(response.content) < 5000 + len(BODIES[name]) // 10


def test_of_two_fields_of_one_name_the_last_one_counts(client, live):
    text = b'{"id": "v1", "id": "nobody", "reward": 1}'
    assert client.post("/reward", content=text, headers=JSON).status_code == 404


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_another_kind_of_body(client, kind):
    """A form of another page can send these without asking first."""
    headers = {} if kind is None else {"content-type": kind}
    for path, text in (("/reward", b'{"id": "v1", "reward": 1}'), ("/erase", b'{"ids": ["v1"]}')):
        response = client.post(path, content=text, headers=headers)
        assert (response.status_code, "JSON" in response.json()["detail"]) == (415, True)


def test_a_body_that_is_compressed(client):
    headers = JSON | {"content-encoding": "gzip"}
    assert client.post("/reward", content=b"\x1f\x8b", headers=headers).status_code == 415


def test_a_body_that_is_too_large_in_pieces(client):
    pieces = [body(b" " * 60_000) for _ in range(10)]
    status, text, taken = raw(client._app, pieces, path="/reward", headers=list(JSON.items()))
    assert (status, taken) == (413, 4)
    assert "at most 200000 bytes" in json.loads(text)["detail"]


def test_a_body_that_does_not_end(client):
    status, _, _ = raw(client._app, [body(b'{"id": ')], path="/reward", headers=list(JSON.items()))
    assert status == 408


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "X" * 1000]
)
def test_other_methods(client, method):
    for path in ("/decide", "/erase"):
        response = client.request(method, path)
        assert response.status_code == 405
        assert response.headers["allow"] == "POST"
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("id", IDS)
def test_ids_in_an_address(client, id):
    response = client.get(f"/explain?id={id}")
    assert response.status_code in (404, 422)
    assert "set-cookie" not in response.headers
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == "application/problem+json"


def test_words_of_a_stranger_are_no_header_and_no_page(client):
    evil = "v\r\nSet-Cookie: a=b<script>alert(1)</script>"
    response = client.post("/reward", json={"id": evil, "reward": 1})
    assert response.status_code == 404
    assert "set-cookie" not in response.headers
    assert response.headers["content-type"] == "application/problem+json"
    assert evil in json.loads(response.text)["detail"].encode().decode("unicode_escape")
