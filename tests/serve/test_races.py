"""Twenty calls at the same moment, to two workers of one ledger: nothing is lost, and nothing is there twice."""

import collections
import itertools
import random

import numpy as np
import pytest

import dither
import longer
from asking import Client
from dither import serve

pytestmark = pytest.mark.usefixtures("closing")
X = np.eye(3).tolist()
N = 20


@pytest.fixture
def lives(tmp_path, monkeypatch):
    monkeypatch.delenv("DITHER_TOKEN", raising=False)
    first = dither.Live(tmp_path / "a.db", bandit=dither.LinFP(dim=3, floor=0.3, seed=0), wait=False)
    return first, dither.Live(tmp_path / "a.db", wait=False)


@pytest.fixture
def client(lives):
    """Each call goes to the other worker than the one before."""
    workers = itertools.cycle([serve.app(live, may_erase=True) for live in lives])

    async def some(scope, receive, send):
        await next(workers)(scope, receive, send)

    return Client(some)


def sent(client, path, bodies):
    """What is answered to bodies that are sent at the same moment."""
    answers = client.together([("POST", path, {"json": body}) for body in bodies])
    assert max(answer.status_code for answer in answers) < 500, [answer.text for answer in answers]
    return answers


def count(answers, name="answer"):
    """How often each status, and each answer, came."""
    return collections.Counter((one.status_code, one.json().get(name)) for one in answers)


def whole(lives):
    """What was learnt is a function of the ledger, and each reward is in it once."""
    for live in lives:
        live.learn()
    (learner,) = [live for live in lives if live.learns]
    log = learner.read().frame
    assert learner.to_bytes() == learner.replay().to_bytes()
    assert learner.bandit.observations == log["reward"].count()
    return dict(zip(log["id"], log["reward"], strict=True))


def test_the_same_call_from_everywhere(client, lives):
    shown = sent(client, "/decide", [{"id": "v", "X": X}] * N)
    assert {one.content for one in shown} == {shown[0].content}
    assert shown[0].status_code == 200
    assert count(sent(client, "/reward", [{"id": "v", "reward": 1}] * N)) == {
        (200, "counted"): 1,
        (200, "known"): N - 1,
    }
    assert count(sent(client, "/correct", [{"id": "v", "reward": 2}] * N)) == {
        (200, "counted"): 1,
        (200, "known"): N - 1,
    }
    assert whole(lives) == {"v": 2.0}
    assert count(sent(client, "/erase", [{"ids": ["v"]}] * N), "erased") == {(200, 1): 1, (200, 0): N - 1}
    assert whole(lives) == {"v": None}
    # seen red: a correction that does not count for the next one of its transaction


def test_calls_that_contradict_each_other(client, lives):
    """One of them holds; the others are told, and a correction takes the place of the one before."""
    decided = count(sent(client, "/decide", [{"id": "v", "X": X, "extra": {"n": i}} for i in range(N)]), "id")
    assert decided == {(200, "v"): 1, (409, None): N - 1}
    rewarded = sent(client, "/reward", [{"id": "v", "reward": i} for i in range(N)])
    assert count(rewarded) == {(200, "counted"): 1, (409, None): N - 1}
    assert whole(lives) == {"v": [one.status_code for one in rewarded].index(200)}
    corrected = count(sent(client, "/correct", [{"id": "v", "reward": 100 + i} for i in range(N)]))
    assert corrected == {(200, "counted"): N}
    assert 100 <= whole(lives)["v"] < 100 + N
    # seen red: another reward that is answered by 200, and another body that is answered as the first


def test_all_kinds_of_calls_at_once(client, lives):
    """Whatever was answered is there, and no more."""
    luck, ids = random.Random(0), [f"v{i}" for i in range(5)]
    shown, counted, corrected, erased = (collections.defaultdict(set) for _ in range(4))
    for _ in range(longer.size(6, longer=100)):
        calls = []
        for _ in range(N):
            id, r = luck.choice(ids), float(luck.randrange(100))
            body = {"/decide": {"id": id, "X": X}, "/erase": {"ids": [id]}}
            path = luck.choices(["/decide", "/reward", "/correct", "/erase"], [5, 4, 4, 0.5])[0]
            calls.append((id, r, path, body.get(path, {"id": id, "reward": r})))
        answers = client.together([("POST", path, {"json": body}) for _, _, path, body in calls])
        for (id, r, path, _), answer in zip(calls, answers, strict=True):
            assert answer.status_code in (200, 404, 409, 422), answer.text
            if answer.status_code == 200 and path == "/decide":
                shown[id].add(answer.content)
            elif answer.status_code == 200 and path == "/erase":
                erased[id] |= {id} if answer.json()["erased"] else set()
            elif answer.status_code == 200 and answer.json()["answer"] == "counted":
                (counted if path == "/reward" else corrected)[id].add(r)
    stored = whole(lives)
    for id in ids:
        assert (id in stored, len(shown[id]) <= 1, len(counted[id]) <= 1) == (bool(shown[id]), True, True)
        if erased[id] or not counted[id]:
            assert stored.get(id) is None
        else:
            assert stored[id] in (corrected[id] or counted[id])
    # seen red: an erasure that leaves the rewards
