"""Hours on the overview: when they are drawn, and that they are those of the log. Each test says what was broken."""

import json
import re
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy as sa

import dither
from asking import Client
from browsing import Page
from dither.bandit.bandit import Decision
from dither.base.errors import MINUS
from dither.log.database import days, home, sql_tables
from dither.watch import query
from page_text import Parsed, rows
from watched_ledgers import served

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)  # by the clock of the database
LATEST = [  # day, hour and minute, the arm that was shown, and its reward
    (19, 9, 20, 0, 1.0),
    (19, 9, 40, 1, 0.0),
    (19, 9, 59, 2, None),
    (20, 11, 59, 0, 0.25),
    (20, 12, 0, 0, None),
    (20, 12, 10, 2, None),
    (20, 13, 5, 0, None),  # is yet to come
]
OLDER = [(18, 12, 59, 0, 1.0), (18, 13, 0, 1, 0.5)]  # the second one is in the first of 48 hours
WHOLE = [["2026-11-20 12:00", "2", "0"], ["2026-11-20 11:00", "1", "1"], ["2026-11-20 10:00", "0", "0"]]


@pytest.fixture(autouse=True)
def stopped(monkeypatch):
    """The clock of the database stands."""
    monkeypatch.setattr(home.Home, "now", lambda self, connection: int(NOW.timestamp()) * 10**6)


def made(path, decisions):
    """A ledger of these decisions, of which arm 0 was the most probable one in each."""
    ledger = dither.log.Ledger(path)
    P = np.array([0.6, 0.2, 0.2])
    for n, (day, hour, minute, arm, reward) in enumerate(decisions):
        time = datetime(2026, 11, day, hour, minute, tzinfo=UTC)
        decision = Decision(arm, float(P[arm]), "exact", None, None)
        ledger.record(decision, X=np.eye(3), id=n, time=time, probabilities=P, floor=0.15)
        if reward is not None:
            ledger.reward(n, reward)
    return ledger


def drawn(text, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', text)[1])


def links(text):
    """The words of the choice -> where they lead; None: what is shown."""
    group = re.search(r'aria-label="What the charts show">(.*?)</div>', text, re.DOTALL)[1]
    return {words: place for place, words in re.findall(r'<(?:a href="([^"]*)"|strong[^>]*)>(.*?)</', group)}


def test_a_young_ledger_shows_its_hours_as_they_are_counted_by_hand(tmp_path):
    made(tmp_path / "young.db", LATEST).close()
    text = Client(dither.watch.app(tmp_path / "young.db")).get("/").text
    traffic = rows(text, "Decisions")
    assert traffic[0] == ["Hour (UTC)", "Decisions", "With a reward"]
    assert traffic[1:4] == WHOLE
    assert (len(traffic), traffic[-1]) == (1 + 28, ["2026-11-19 09:00", "3", "2"])
    assert {tuple(row[1:]) for row in traffic[4:-1]} == {("0", "0")}
    reward = rows(text, "Reward a decision")
    assert [row[1:] for row in (reward[1], reward[2], reward[-1])] == [
        ["–", "–", "0"],
        ["0.25", "–", "1"],
        ["0.5", f"{MINUS}0.48 to 1.48", "2"],
    ]
    exploration = rows(text, "Exploration")
    assert [row[1:] for row in (exploration[1], exploration[2], exploration[3], exploration[-1])] == [
        ["50.0 %", "15.0 %"],
        ["0.0 %", "15.0 %"],
        ["–", "–"],
        ["66.7 %", "15.0 %"],
    ]
    data = drawn(text, "traffic")
    assert (data["step"], data["x"][0], data["x"][-1]) == (3_600_000, "2026-11-19T09:00Z", "2026-11-20T12:00Z")
    assert [series["y"][-2:] for series in data["series"]] == [[1, 0], [0, 2]]
    assert [row[0] for row in rows(text, "Arms shown")] == ["Day", "2026-11-20", "2026-11-19"]
    assert "By day, as arms are not counted by hour." in Parsed(text).text
    assert links(text)["48 hours"] == ""
    # seen red: the hour that is yet to come; `step` of a day


def test_hours_are_drawn_where_they_are_asked_for(tmp_path):
    made(tmp_path / "older.db", OLDER + LATEST).close()
    page = Client(dither.watch.app(tmp_path / "older.db"))
    text = page.get("/").text
    assert links(text)["90 days"] == ""
    assert (drawn(text, "traffic")["step"], drawn(text, "traffic")["x"][0]) == (86_400_000, "2026-11-18")
    assert "not counted by hour" not in text
    traffic = rows(page.get("/?by=hours").text, "Decisions")
    assert traffic[1:4] == WHOLE
    assert (len(traffic), traffic[-1]) == (1 + 48, ["2026-11-18 13:00", "1", "1"])
    for place in ("/?by=<script>", "/?by=hours&days=14"):
        assert drawn(page.get(place).text, "traffic")["step"] == 86_400_000
    # seen red: YOUNG = 4; `by` before `days`


def test_the_choice_is_kept_by_links(tmp_path):
    made(tmp_path / "kept.db", LATEST).close()
    page = Client(dither.watch.app(tmp_path / "kept.db"))
    text = page.get("/?by=hours&sort=rows-down&other=x").text
    assert links(text) == {
        "48 hours": "",
        "14 days": "?days=14&amp;sort=rows-down#time",
        "90 days": "?days=90&amp;sort=rows-down#time",
        "all days": "?days=all&amp;sort=rows-down#time",
    }
    assert 'href="?sort=rows&amp;by=hours#arms"' in text
    text = page.get("/?days=14&sort=arm").text
    assert links(text)["48 hours"] == "?by=hours&amp;sort=arm#time"
    assert 'href="?sort=arm-down&amp;days=14#arms"' in text
    assert query.link({"sort": '"><b>', "by": "x" * 41}, days="14") == "?days=14&sort=%22%3E%3Cb%3E"
    assert query.link({"by": "x" * 41}, sort="arm") == "?sort=arm"
    # seen red: a link that keeps nothing; one that keeps `by` beside `days`


def test_hours_that_are_not_there_are_said_and_days_are_drawn(tmp_path):
    ledger = made(tmp_path / "upgraded.db", LATEST)
    with ledger.holding() as connection:
        days.keep(connection, ledger.database, most=100)
        connection.execute(sa.delete(sql_tables.settings).where(sql_tables.settings.c.name == days.OF_HOURS))
    ledger.close()
    page = Client(dither.watch.app(tmp_path / "upgraded.db"))
    text = page.get("/").text
    assert (drawn(text, "traffic")["step"], 'role="status">Hours' in text) == (86_400_000, False)
    text = page.get("/?by=hours").text
    assert (drawn(text, "traffic")["step"], links(text)["90 days"]) == (86_400_000, "")
    assert "Hours are not kept yet." in Parsed(text).text
    made(tmp_path / "past.db", [(10, 9, 0, 0, 1.0)]).close()
    page = Client(dither.watch.app(tmp_path / "past.db"))
    assert drawn(page.get("/").text, "traffic")["x"] == ["2026-11-10"]
    assert "No decision in the latest 48 hours. Days are drawn." in Parsed(page.get("/?by=hours").text).text
    # seen red: `chosen` without a look at None


@pytest.fixture
def far_away(chromium):
    """The browser is in another zone."""
    chromium.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    yield chromium
    chromium.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_the_ticks_of_hours_are_whole_and_said_in_utc(far_away, tmp_path):
    made(tmp_path / "drawn.db", OLDER + LATEST).close()
    ticks = """
        const axis = arguments[0]._fullLayout.xaxis;
        return axis._vals.map((tick) => [tick.x, tick.text.replaceAll("<br>", " ")]);
    """
    with served(dither.watch.app(tmp_path / "drawn.db")) as base:
        for width in (360, 1000):
            page = Page(far_away, base + "/?by=hours", width=width)
            plots = page.plots()
            assert page.run("return document.documentElement.scrollWidth") == width
            half = 1_800_000  # of an hour
            begin, end = (
                datetime(2026, 11, day, hour, tzinfo=UTC).timestamp() * 1000 for day, hour in ((18, 13), (20, 12))
            )
            for plot in (plots[0], plots[1], plots[3]):
                assert [text for _, text in page.run(ticks, plot)] == ["00:00 Nov 19", "12:00", "00:00 Nov 20", "12:00"]
                assert page.run("return arguments[0]._fullLayout.xaxis._rl", plot) == [begin - half, end + half]
                assert page.run("return arguments[0].querySelector('.xtitle').textContent", plot) == "UTC"
            assert page.run("return arguments[0].querySelector('.xtitle')", plots[2]) is None
            assert page.complaints() == []
    # seen red: a range and ticks in numbers, which are of another zone there; times without Z; ticks from the first on
