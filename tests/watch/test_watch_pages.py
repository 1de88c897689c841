"""The pages as text: what they say, that they change nothing, and that no text of a ledger is more than text."""

import hashlib
import html.parser
import json
import math
import re
import sqlite3
import threading
from datetime import date, timedelta
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest

import dither
import watched_ledgers
from asking import Client
from dither import live, watch
from dither.watch import charts, latest, pages, query, static_files, watched, wording
from watched_ledgers import ARMS, AUTHOR, LONG, NOTE, QUOTED, SCRIPT, TURNED

PLACES = ["/", "/?days=14", "/arms", "/arms?sort=value", "/decisions", "/decisions/3", "/judge", "/events"]


class Parsed(html.parser.HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def rows(text, label):
    """The cells of each row of the table in the region of that label."""
    region = re.search(rf'aria-label="{label}">(.*?)</table>', text, re.DOTALL)[1]
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", region, re.DOTALL)
    return [[Parsed(cell).text for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)] for line in lines]


def in_percent(p):
    return f"{100 * p:.1f} %"


@pytest.mark.parametrize("place", PLACES)
def test_a_page_is_whole_and_says_how_it_may_be_shown(page, place):
    answer = page.get(place)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    parsed = Parsed(answer.text)
    tags = [tag for tag, _ in parsed.tags]
    assert parsed.tags[0] == ("html", {"lang": "en"})
    assert [tags.count(one) for one in ("h1", "main", "header", "footer", "nav", "title")] == [1] * 6
    assert ("a", {"class": "skip", "href": "#content"}) in parsed.tags
    assert sum(attributes.get("aria-current") == "page" for _, attributes in parsed.tags) == 1
    for tag, attributes in parsed.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        assert tag != "style"
        assert tag != "script" or "src" in attributes or attributes.get("type") == "application/json"
        assert tag != "img" or attributes.get("alt")
    labelled = {attributes.get("for") for tag, attributes in parsed.tags if tag == "label"}
    inputs = [attributes for tag, attributes in parsed.tags if tag in ("input", "select")]
    assert all(one["id"] in labelled or one.get("aria-label") for one in inputs)
    identities = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(identities) == len(set(identities))
    assert "UTC" in parsed.text
    # seen red: `style=` in a template; two parts with one id


@pytest.mark.parametrize("place", PLACES)
def test_no_text_of_a_ledger_is_more_than_text(page, place):
    text = page.get(place).text
    assert "<script>alert" not in text
    assert NOTE not in text
    assert LONG[:500] not in text
    assert "d49&lt;" not in text  # {{7*7}}
    marks = [c for c in text if 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069]
    assert marks == []
    # seen red: `| safe` in `parts.id`; `plain` without `_unseen`; `tojson` left out; the value of an option as it is


def test_what_was_decided_and_earned_is_there(page, rich):
    with dither.log.Ledger(rich[0]) as ledger:
        logged = ledger.read()
    text = Parsed(page.get("/").text).text
    assert "Decisions 290 the latest" in text
    mean = logged.r[~(logged.r != logged.r)].mean()
    assert f"Reward a decision {wording.reward(mean)} 285 have a reward, 5 wait" in text
    table = rows(page.get("/arms").text, "Arms")[1:]
    assert [row[0] for row in table] != sorted(row[0] for row in table)
    shown = [logged.arm_ids()[i][a] for i, a in enumerate(logged.a)]
    for row in table:
        arm = next(one for one in ARMS if wording.plain(one, 36) == row[0])
        assert row[2] == in_percent(shown.count(arm) / 290)
        assert row[3] == in_percent(logged.matrix("probabilities")[:, ARMS.index(arm)].mean())
        paid = [r for r, one in zip(logged.r, shown, strict=True) if one == arm and r == r]
        assert row[4].startswith(wording.number(sum(paid) / len(paid), len(row[4].split(" ")[0].partition(".")[2])))
    # seen red: the share of the rewarded ones; the mean of `propensity` for `stated_mean`


def test_a_table_is_sorted_by_a_link(page):
    def column(place, k):
        return [row[k] for row in rows(page.get(place).text, "Arms")[1:]]

    effective = [int(cell.replace(",", "")) for cell in column("/arms?sort=rows-down", 6)]
    assert effective == sorted(effective, reverse=True)
    assert [int(cell.replace(",", "")) for cell in column("/arms?sort=rows", 6)] == effective[::-1]
    assert column("/arms?sort=arm", 0) == [wording.plain(arm, 36) for arm in sorted(ARMS)]
    assert column("/arms?sort=<script>", 0) == column("/arms", 0)  # what is no column sorts nothing
    heads = page.get("/arms?sort=rows-down").text
    assert 'aria-sort="descending"' in heads
    assert 'href="?sort=rows#arms"' in heads
    # seen red: `order` without `default`


def test_a_day_without_a_decision_is_a_gap(page):
    found = re.search(r'id="reward">(.*?)</script>', page.get("/").text)[1]
    data = json.loads(found)
    (series,) = data["series"]
    assert len(data["x"]) == len(series["y"]) == 30
    assert data["x"][0] == "2026-10-31"
    assert [i for i, y in enumerate(series["y"]) if y is None] == [12]
    assert data["hover"][12] == "– (–), 0 rewards"
    assert re.fullmatch(r"0\.\d+ \(0\.\d+ to 0\.\d+\), 10 rewards", data["hover"][0])
    assert series["low"][0] < series["y"][0] < series["high"][0]
    assert len(json.loads(re.search(r'id="reward">(.*?)</script>', page.get("/?days=14").text)[1])["x"]) == 14
    # seen red: `whole_days` without the days between


def test_curves_of_arms_add_up_to_one(page):
    data = json.loads(re.search(r'id="shares">(.*?)</script>', page.get("/").text)[1])
    assert len(data["series"]) == 6
    assert data["series"][-1]["name"] == "all others"
    for day in range(30):
        ys = [series["y"][day] for series in data["series"]]
        assert (day == 12 and ys == [None] * 6) or sum(ys) == pytest.approx(1)


def test_decisions_are_listed_page_by_page(page, rich):
    _, ids = rich
    seen, place = [], "/decisions"
    while place:
        text = page.get(place).text
        seen += [row[4] for row in rows(text, "Decisions")[1:]]
        older = re.search(r'href="([^"]*)" rel="next"', text)
        place = older and older[1]
    assert seen == [wording.plain(id, 28) for id in reversed(ids)]
    # seen red: `<=` for `before`


def test_a_list_of_decisions_reads_no_features(rich):
    with dither.log.Ledger.to_read(rich[0]) as ledger:
        listed = latest.decisions(ledger, 3)
        one = latest.decision(ledger, listed[0].number)
        assert [decided.row["features"] for decided in listed] == [None] * 3
        assert np.shape(one.row["features"]) == (len(ARMS), 3)
        assert (one.id, one.arm, one.reward) == (listed[0].id, listed[0].arm, None)
        assert latest.decision(ledger, 291) is None
    # seen red: `decisions` that reads all columns


def test_a_decision_is_found_by_its_id_and_its_context_is_not_shown(page, rich):
    path, ids = rich
    answer = page.get("/decisions", params={"id": ids[7]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/decisions/8")
    text = page.get("/decisions/8").text
    assert ids[7] in text
    assert "u7" not in text
    assert "onerror" not in text
    assert "--show-context" in text
    shown = Client(watch.app(path, show_context=True)).get("/decisions/8").text
    assert "u7" in Parsed(shown).text
    assert NOTE in Parsed(shown).text
    assert NOTE not in shown
    lost = page.get("/decisions", params={"id": SCRIPT})
    assert lost.status_code == 200
    assert f"No decision has the id {SCRIPT}" in Parsed(lost.text).text
    # seen red: `context` without the flag


def test_why_an_arm_was_shown_is_what_the_bandit_says_of_it(page, rich):
    path, ids = rich
    with dither.log.Ledger.to_read(path) as ledger:
        said = live.explained(ledger, ids[44]).to_dict()
    text = page.get("/decisions/45").text
    assert Parsed(text).text.count(wording.plain(said["why"], 1500)) == 1
    table = rows(text, "Arms on offer")[1:]
    assert [row[2] for row in table] == [wording.number(arm["probability"]) for arm in said["arms"]]
    assert [row[3] for row in table] == [wording.number(arm["mean"]) for arm in said["arms"]]
    assert table[0][0].endswith("shown")
    fields = rows(text, "What made the difference")[1:]
    assert [row[0] for row in fields] == [one["field"] for one in said["parts"]]
    assert sum(float(row[2].replace("−", "-")) for row in fields) == pytest.approx(
        sum(one["gives"] for one in said["parts"]), abs=0.01
    )
    # seen red: the arms in the order of the row


def test_a_page_does_not_wait_for_a_long_sum(rich, monkeypatch):
    go, read = threading.Event(), live.status.of

    def slow(ledger):
        go.wait(20)
        return read(ledger)

    monkeypatch.setattr(watched, "PATIENCE", 0.01)
    monkeypatch.setattr(watched.status, "of", slow)
    page = Client(watch.app(rich[0]))
    for place in ("/", "/arms"):
        text = page.get(place).text
        assert "Being added up" in text
        assert 'http-equiv="refresh"' in text
    assert page.get("/judge").status_code == 200
    assert "waits" in page.get("/decisions").text
    go.set()
    while "Being added up" in (text := page.get("/").text):
        pass
    assert "290" in Parsed(text).text
    go.clear()
    monkeypatch.setattr(watched, "AGAIN", 0.0)
    assert "290" in Parsed(page.get("/").text).text  # as it was before, while it is read again
    go.set()
    # seen red: `reading.result()` without a limit


def test_a_page_does_not_wait_for_a_long_replay(rich, monkeypatch):
    go = threading.Event()

    def slow(ledger, id):
        go.wait(20)
        return live.explained(ledger, id)

    monkeypatch.setattr(watched, "PATIENCE", 0.01)
    monkeypatch.setattr(watched, "explained", slow)
    page = Client(watch.app(rich[0]))
    text = page.get("/decisions/7").text
    assert "looks again by itself" in text
    assert 'http-equiv="refresh"' in text
    assert "Probability of this arm" in text  # the row is there meanwhile
    go.set()
    while "looks again" in (text := page.get("/decisions/7").text):
        pass
    assert "The arms as they looked then" in text


def test_a_context_that_is_kept_is_shown_where_it_may_be(tmp_path):
    home = tmp_path / "records.db"
    cross = [("country", "topic")]
    fields = dither.Features(context={"country": ["AT", "XQ"]}, arm={"topic": ["art", "war"]}, cross=cross)
    with dither.Live(home, bandit=dither.LinFP(features=fields, floor=0.1), store="records") as kept:
        kept.choose({"country": "XQ"}, [{"topic": "art"}, {"topic": "war"}])
    shown, hidden = (Client(watch.app(home, show_context=may)).get("/decisions/1").text for may in (True, False))
    assert '"country"' in Parsed(shown).text
    assert '"XQ"' in Parsed(shown).text
    assert "XQ" not in hidden
    # seen red: `records=False`


@pytest.mark.parametrize(
    ("place", "status", "title"),
    [("/nothing", 404, "Not found"), ("/decisions/999", 404, "Not found"), ("/static/../pages.py", 404, "Not found"),
     ("/decisions/99999999999999999999999", 404, "Not found"), ("/static/pages.py", 404, "Not found")],
)  # fmt: skip
def test_what_is_not_there_is_a_page_too(page, place, status, title):
    answer = page.get(place)
    assert answer.status_code == status
    assert f"<h1>{title}</h1>" in answer.text


def test_only_reading_is_answered(page):
    assert page.post("/").status_code == 405
    assert page.request("DELETE", "/decisions/1").status_code == 405


def test_a_page_that_is_mounted_links_within_itself(rich):
    inner = Client(watch.app(rich[0], mounted=True), base="http://shop.example", root="/admin/bandit")
    parsed = Parsed(inner.get("/admin/bandit/").text)
    places = [
        a[name] for _, a in parsed.tags for name in ("href", "src", "action") if name in a and a[name][0] not in "?#"
    ]
    assert len(places) > 10
    assert all(place.startswith("/admin/bandit/") for place in places)


def test_strangers_are_refused(rich):
    assert Client(watch.app(rich[0]), base="http://evil.example").get("/").status_code == 400
    assert Client(watch.app(rich[0]), at=("10.0.0.7", 1)).get("/").status_code == 403


def test_an_empty_ledger_says_what_to_do(empty):
    page = Client(watch.app(empty))
    for place in ("/", "/arms", "/decisions", "/events", "/judge"):
        answer = page.get(place)
        assert answer.status_code == 200
        assert 'class="empty"' in answer.text
    assert "live.choose" in page.get("/").text
    assert "has no decisions yet" in page.get("/judge?policy=uniform").text


def test_nothing_is_written_and_no_ledger_is_made(rich, tmp_path):
    path, _ = rich
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    page = Client(watch.app(path))
    for place in [*PLACES, "/judge?policy=uniform", "/judge?policy=greedy", "/judge?policy=shadow"]:
        assert page.get(place).status_code == 200
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    with pytest.raises(FileNotFoundError, match="none"):
        watch.app(tmp_path / "none.db")
    assert not list(tmp_path.iterdir())


def test_a_copy_that_may_only_be_read_is_shown(rich, tmp_path):
    copy = tmp_path / "copy.db"
    with sqlite3.connect(rich[0]) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    copy.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert "290" in Parsed(Client(watch.app(copy)).get("/").text).text
    finally:
        tmp_path.chmod(0o755)


def test_postgres_is_shown_without_its_password(postgres):
    home = postgres.url()
    watched_ledgers.rich(home)
    page = Client(watch.app(home))
    for place in PLACES:
        answer = page.get(place)
        assert answer.status_code == 200
        assert "p@s" not in answer.text
        assert "p%40s" not in answer.text
    for id in ("%00", "nobody", "x" * 9000):
        assert page.get(f"/decisions?id={id}").status_code == 200
    assert "290" in Parsed(page.get("/").text).text
    # seen red: an id that PostgreSQL cannot hold, looked for there


def test_a_ledger_that_is_gone_is_said(tmp_path):
    path = tmp_path / "gone.db"
    watched_ledgers.empty(path)
    page = Client(watch.app(path))
    assert page.get("/").status_code == 200
    path.unlink()
    answer = page.get("/")
    assert answer.status_code == 503
    assert "cannot be read now" in answer.text


def test_events_name_what_was_changed_by_whom(page):
    text = page.get("/events").text
    latest, terms = rows(text, "Events")[1:]
    assert (latest[1], latest[3], latest[4]) == ("change", AUTHOR, "30")  # after 29 days with a batch each
    assert latest[2] == "c: 1.0 → 0.5"
    assert terms[1] == "terms of rewards"
    assert "horizon: 7200" in terms[2]
    assert "<b onclick" not in text
    # seen red: `author` shown by `| safe`


def test_a_long_list_of_an_event_is_counted_and_whole_beside_it(tmp_path):
    home, countries = tmp_path / "wider.db", ["AT", "CH", "DE", "FR", "IT"]
    arm = {"topic": ["art", "war"]}
    fields = [dither.Features(context={"country": countries[:n]}, arm=arm, cross=()) for n in (1, 5)]
    with dither.Live(home, bandit=dither.LinFP(features=fields[0], floor=0.1), store="records") as wider:
        wider.change(features=fields[1])
        added = [one for one in fields[1].columns if one not in fields[0].columns]
    row = rows(Client(watch.app(home)).get("/events").text, "Events")[1]
    short, _, whole = row[2].partition(" All of it ")
    assert f"new columns: {len(added)}, such as {added[0]}, {added[1]} and {added[2]}, columns that went: none" in short
    assert added[3] not in short
    assert all(name in whole for name in added)
    assert "rows: learnt again 0" in whole
    # seen red: `_words` without `listed`


def test_an_arm_is_asked_about_by_what_is_shown_of_it(page):
    options = [a["value"] for tag, a in Parsed(page.get("/judge").text).tags if tag == "option" and a.get("value")]
    shown = wording.visible(TURNED)
    assert shown in options
    while "Being computed" in (text := page.get("/judge", params={"policy": "arm", "arm": shown}).text):
        pass
    assert f"always {shown}:" in Parsed(text).text
    assert "was not on offer" not in text
    # seen red: the arm as it was typed


def test_an_id_that_is_the_text_of_another_one_is_itself():
    class Ledger:
        def status(self):
            ids = ["a\\u202eb", "a\u202eb"]
            days = dither.log.ArmDays(tuple(dither.log.ArmDay(date(2026, 1, 1), id, decisions=1) for id in ids))
            return SimpleNamespace(days=days)

    assert pages._arms(Ledger()) == {"a\\u202eb": "a\\u202eb"}
    # seen red: the one that is shown so


def test_warnings_of_the_ledger_stand_above_everything(page, tmp_path):
    assert "Nothing needs to be looked at." in Parsed(page.get("/").text).text
    home = tmp_path / "late.db"
    with dither.Live(home, bandit=dither.LinFP(dim=3, floor=0.1), horizon=60, default=0.0) as late:
        late.choose(np.eye(3), time="2026-01-01")
    with dither.log.Ledger.to_read(home) as ledger:
        (warning,) = live.status.of(ledger).warnings
    text = Client(watch.app(home)).get("/").text
    assert f"{warning}." in Parsed(text).text
    assert "Nothing needs to be looked at." not in text
    # seen red: the warnings left out


def test_an_alarm_is_shown_with_what_it_says(page, tmp_path):
    assert "Nothing is watched." in Parsed(page.get("/").text).text
    home, rng = tmp_path / "changed.db", np.random.default_rng(0)
    with dither.Live(home, bandit=dither.LinFP(dim=2, lam=1.0, floor=0.5, seed=0), alarm=True) as changed:

        def rewarded(n, more, day=1):
            shown = changed.choose(np.broadcast_to(np.eye(2), (n, 2, 2)), time=f"2026-01-{day:02d}")
            changed.reward(list(shown.id), more + 0.1 * rng.normal(size=n))

        rewarded(100, 0.0)
        rewarded(600, 0.0)
        quiet = Client(watch.app(home)).get("/").text
        for day in range(2, 12):
            rewarded(3, 0.3, day)
        (first, *_) = changed.alarms
    assert first.began < first.time
    assert re.search(r"No alarm in \d+ rewards", Parsed(quiet).text)
    table = rows(Client(watch.app(home)).get("/").text, "Alarms")[1:]
    assert table[-1] == [
        f"{first.time:%Y-%m-%d %H:%M:%S}",
        f"{first.began:%Y-%m-%d %H:%M:%S}",
        wording.signed(first.difference),
        f"{first.rewards:,}",
        f"{first.batch:,}",
    ]
    # seen red: `began` for `time`


def test_budgets_say_what_is_spent_now(rich, monkeypatch):
    table = rows(Client(watch.app(rich[0])).get("/").text, "Budgets")[1:]
    with dither.log.Ledger(rich[0]) as ledger:
        logged = ledger.read()
    shown = sum(logged.arm_ids()[i][a] == "spring" for i, a in enumerate(logged.a))
    assert [row[2:] for row in table] == [["0", "40", "each day"], [str(shown), "1000", "for ever"]]


def test_words_by_hand():
    assert wording.plain(TURNED) == "abc\\u202egnp.exe"
    assert wording.plain("a\nb\x00\u2066\ud800") == "a\\u000ab\\u0000\\u2066\\ud800"
    assert wording.plain("👩‍💻 é") == "👩‍💻 é"
    assert wording.plain("abcdef", 4) == "abc…"
    assert wording.share(0.12345) == "12.3\u00a0%"
    assert wording.share(math.nan) == "–"
    assert wording.lasts(119) == "119 s"
    assert wording.lasts(7199) == "119 min"
    assert wording.lasts(timedelta(days=3).total_seconds()) == "3 d"
    assert str(wording.measured(0.49417, 0.0123)) == '0.494 <span class="unknown">± 0.012</span>'
    assert str(wording.measured(0.5, math.nan)) == "0.5"
    assert wording.interval(math.nan, 1.0) == "–"


def test_what_an_address_asks():
    assert query.whole("17") == 17
    assert [query.whole(text) for text in (None, "", "0", "-1", "1.5", "٣", "9" * 40, "x")] == [None] * 8
    assert query.asked({}) is None
    assert query.asked({"policy": "arm"}) is None
    assert query.asked({"policy": "secret"}) is None
    asked = query.asked({"policy": "arm", "arm": QUOTED, "rows": "7", "missing": "nan", "least": "1", "most": "0"})
    assert asked == ("arm", QUOTED, (), 10_000, None, None)
    asked = query.asked({"policy": "uniform", "arm": "x", "rows": "1000", "missing": "0", "least": "0", "most": "1"})
    assert asked == ("uniform", "", (), 1000, 0.0, (0.0, 1.0))
    asked = query.asked({"policy": "settings", "settings": "c=0.5, floor=1e-1"})
    assert asked == ("settings", "", (("c", 0.5), ("floor", 0.1)), 10_000, None, None)
    wrong = ("", "c", "c=x", "c=inf", "c=1 c=2", "__import__('os')=1", " ".join(f"a{i}=1" for i in range(9)))
    assert [query.asked({"policy": "settings", "settings": text}) for text in wrong] == [None] * 7


def test_days_that_nobody_meant_do_not_fill_the_page():
    far = [
        dither.log.ArmDay(date(1970, 1, 1), None, decisions=1),
        dither.log.ArmDay(date(2026, 1, 1), None, decisions=1),
    ]
    assert [day.day.year for day in charts.whole_days(far, most=None)] == [1970, 2026]
    assert [day.decisions for day in charts.whole_days(far, most=3)] == [0, 0, 1]
    assert charts.whole_days([], most=90) == []


def test_what_processes_count_and_what_fails_in_them_is_on_the_page(tmp_path):
    """Of all processes, also those that are over, and as text alone."""
    home = tmp_path / "a.db"
    with dither.Live(home, bandit=dither.LinFP(dim=2, lam=1.0, seed=0)) as made:
        made.choose(np.eye(2))
        tallies = made.ledger.database.tallies
        tallies.of_features([("unknown", SCRIPT, 3), ("misspelt", SCRIPT, 1)])
        tallies.troubles.add("snapshot", f"it failed: {SCRIPT}")
        tallies.troubles.mended("snapshot")
        tallies.troubles.add("learning", f"it failed: {TURNED}")
        tallies.write()
        text = Client(watch.app(home)).get("/").text
        stands = f"trouble with learning for 0 seconds, once, in {tallies.host}: it failed"
        assert stands in Parsed(text).text.split("Nothing")[0]
    seen = rows(text, "Troubles")
    assert [(row[0], row[3], row[4]) for row in seen[1:]] == [
        ("learning", "1", tallies.host),
        ("snapshot", "1", tallies.host),
    ]
    assert (seen[1][2], seen[2][2][:2]) == ("stands", "20")
    assert "<script>alert(1)" not in text
    assert f"Unknown values: {SCRIPT} 3." in Parsed(text).text
    again = Client(watch.app(home)).get("/").text  # the process has ended
    assert "Nothing needs to be looked at." in Parsed(again).text
    assert "stands" not in {row[2] for row in rows(again, "Troubles")}


def test_a_file_is_asked_for_once(page):
    parsed = Parsed(page.get("/").text)
    places = [a[name] for _, a in parsed.tags for name in ("href", "src") if "/static/" in a.get(name, "")]
    assert len(places) == 6
    for place in places:
        name = place.removeprefix("/static/").partition("?")[0]
        package, file, kind = static_files.FILES[name]
        whole = resources.files(package).joinpath(file).read_bytes()
        answer = page.get(place)
        assert (answer.content, answer.headers["content-encoding"]) == (whole, "gzip")
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        plain = page.get(place, headers={"accept-encoding": "identity"})
        assert (plain.content, plain.headers.get("content-encoding")) == (whole, None)
        # an address of another version, as an older page has it, is asked again and may be fresh all the same
        other = page.get(f"/static/{name}?v=other")
        assert (other.content, other.headers["cache-control"]) == (whole, "no-cache")
        again = page.get(f"/static/{name}", headers={"if-none-match": other.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    # seen red: `immutable` without a look at the version; the zipped bytes for who takes none


def test_what_is_not_known_is_said_and_not_drawn(tmp_path):
    home = tmp_path / "young.db"
    with dither.Live(home, bandit=dither.LinFP(dim=3, floor=0.1)) as young:
        young.choose(np.eye(3), ["a", "b", "c"])
    text = Client(watch.app(home)).get("/").text
    drawn = [attributes["data-of"] for _, attributes in Parsed(text).tags if "data-of" in attributes]
    assert drawn == ["traffic", "shares"]
    assert "No decision of these days has a reward yet." in text
    assert charts.UNKNOWN in text
    assert "Exploration – not known, see below" in Parsed(text).text
    assert rows(text, "Arms")[0] == ["Arm", "", "Shown", "Reward", "If always shown", "Effective rows"]
    # seen red: `empty` left out


def test_others_that_would_press_the_arms_to_the_axis_are_not_drawn():
    def drawn(n):
        sums = [dither.log.ArmDay(date(2026, 1, 1), str(k), decisions=10) for k in range(n)]
        one = charts.shares(
            dither.log.ArmDays(tuple(sums)), [dither.log.ArmDay(date(2026, 1, 1), None, decisions=10 * n)]
        )
        assert one.rows[0][1:] == [wording.share(1 / n)] * min(n, 5) + [wording.share(1 - 5 / n)] * (n > 5)
        return [series.name for series in one.series][5:], one.says.partition("shown most.")[2]

    assert drawn(3) == ([], "")
    assert drawn(12) == (["all others"], "")
    assert drawn(1000) == ([], " All 995 others, 99.5\u00a0% together, are not drawn.")
    # seen red: `others` compared with 1


def test_erased_decisions_are_none_that_wait():
    days = [
        dither.log.ArmDay(date(2026, 1, 1), None, decisions=10, rewarded=4, erased=5),
        dither.log.ArmDay(date(2026, 1, 2), None, decisions=3, rewarded=3),
    ]
    one = charts.traffic(days)
    assert [(series.name, series.y) for series in one.series] == [
        ("with a reward", [4, 3]),
        ("without one by now", [1, 0]),
        ("erased", [5, 0]),
    ]
    assert (one.heads[-1], one.rows) == ("Erased", [["2026-01-02", "3", "3", "0"], ["2026-01-01", "10", "4", "5"]])
    assert len(charts.traffic(days[1:]).series) == 2
    # seen red: `erased` not taken off


def test_a_period_is_said_in_the_longest_unit_that_fits():
    said = [wording.period(length) for length in (None, "day", 3600, 5400, 90, 0.5, 172_800)]
    assert said == ["for ever", "each day", "every 1 h", "every 90 min", "every 90 s", "every 0.5 s", "every 2 d"]
