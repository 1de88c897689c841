"""Criteo's counterfactual text, Yahoo's Today module, KuaiRand and coba's results, on lines in the published form."""

import bz2
import gzip
import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dither
from dither import log, ope
from dither.log.sources import LogSource

# --- Criteo

CRITEO = [
    "68965824 |l 0.999 |p 112.6 |f 0:300 1:250 2:1 10:1",
    "68965824 |f 0:300 1:250 3:1",
    "68965824 |f 0:300 1:250 4:2",
    "71 |l 0.001 |p 4 |f 0:728 1:90 5:1",
    "71 |f 0:728 1:90 6:1",
    "1234 |l .999 |p 1.0|f 0:1 1:1",
]
PREDICT = ["99 |f 0:1 1:1 7:1", "99 |f 0:1 1:1 8:1"]  # an impression to predict for


def test_impressions_of_criteo():
    """|p is 1/p, .001 is a click, and a row without a click stands for ten.

    Seen red with p for 1/p, with the label for the reward, and without weights.
    """
    read = log.criteo([*PREDICT, *CRITEO], features=True)
    assert_allclose(read.p, [1 / 112.6, 1 / 4, 1], rtol=1e-15)
    assert read.r.tolist() == [0, 1, 0]
    assert read.K.tolist() == [3, 2, 1]
    assert read.frame["weight"].to_list() == [10, 1, 10]
    assert read.id.tolist() == ["68965824", "71", "1234"]
    assert read.report.left_out == {"no label: an impression to predict for": 1}
    place = {name: i for i, name in enumerate(read.names)}
    shown = [rows[a] for rows, a in zip(read.frame["features"].to_list(), read.a, strict=True)]
    assert [row[place["2"]] for row in shown] == [1, 0, 0]  # the candidate of the first line, wherever it stands
    assert [row[place["5"]] for row in shown] == [0, 1, 0]
    assert shown[0][place["0"]] == 300
    others = {tuple(row) for row in read.frame["features"].to_list()[0]}
    assert {row[place["4"]] for row in others} == {0, 2}
    used = read.usable(duplicates="leave out")
    assert used.check().ok or not used.check().bets.doubted


def test_the_place_of_what_was_shown_says_nothing():
    """Its share is 1/K in each place, at five standard errors. Seen red with the order of the file: always first."""
    n, K = 3000, 4
    text = [f"{i * 7919} {'|l 0.999 |p 4 ' if k == 0 else ''}|f 0:1 {k + 1}:1" for i in range(n) for k in range(K)]
    read = log.criteo(text)
    share = np.bincount(read.a, minlength=K) / n
    assert np.all(np.abs(share - 1 / K) < 5 * np.sqrt((1 / K) * (1 - 1 / K) / n))
    assert log.criteo(text).a.tolist() == read.a.tolist()


def test_a_value_of_criteo_by_hand():
    """ips of the uniform policy: Σ weight · reward · (1/K)/p over Σ weight. Seen red with every weight 1."""
    rng = np.random.default_rng(0)
    text, top, total, i = [], 0.0, 0.0, 0
    while i < 400:
        K, click = int(rng.integers(2, 6)), int(rng.random() < 0.3)
        if not click and rng.random() > 0.1:
            continue  # it was not published
        P = 0.5 / K + 0.5 * rng.dirichlet(np.ones(K))
        inverse = 1 / rng.choice(P, p=P)
        text.append(f"{i} |l {0.001 if click else 0.999} |p {inverse} |f 0:1")
        text += [f"{i} |f 0:{k}" for k in range(1, K)]
        weight, i = 1 if click else 10, i + 1
        top, total = top + weight * click * inverse / K, total + weight
    used = log.criteo(text).usable()
    shares = [[1 / K] * K for K in used.K.tolist()]
    Q = np.array([row + [0.0] * (used.K.max() - len(row)) for row in shares])
    found = ope.ips(used.r, used.a, used.p, Q, weight=used.frame["weight"].to_numpy())
    assert_allclose(found.value, top / total, rtol=1e-12)
    assert log.criteo(text, kept=1).frame["weight"].to_list() == [1.0] * 400


BAD_CRITEO = [
    ("5 |l 0.5 |p 2 |f 0:1", 1, "the label must be 0.001 .* or 0.999"),
    ("5 |l 0.001 |p 0.5 |f 0:1", 1, "inverse of the propensity, and so at least 1"),
    ("5 |l 0.001 |p 0 |f 0:1", 1, "at least 1"),
    ("5 |l 0.001 |p nan |f 0:1", 1, "must be finite"),
    ("5 |l 0.001 |f 0:1", 1, "has .l and .p"),
    ("5 |l 0.001 |p 2", 1, "there is no .f"),
    ("5 |l 0.001 |p 2 |f 0", 1, "a feature is number:value"),
    ("5 |l 0.001 |p 2 |f 0:x", 1, "must be a number"),
    ("5 |l 0.001 |p 2 |f 0:1\n5 |l 0.001 |p 2 |f 0:1", 2, "no other line has them"),
    ("5 |l 0.001 |p 2 |f 0:1\n5 |f 1:1\nbroken line\n5 |f 2:1", 3, "begins with the id"),
    ("5 |l 0.001 |p 2 |q 3 |f 0:1", 1, "each once at most"),
    (" |f 0:1", 1, "begins with the id"),
]


@pytest.mark.parametrize(("text", "line", "words"), BAD_CRITEO)
def test_damaged_lines_of_criteo_are_named(text, line, words):
    """Seen red with the number of the first line of the impression."""
    whole = [*CRITEO[:3], *text.split("\n"), *CRITEO[3:5]]
    with pytest.raises(ValueError, match=f"line {3 + line} of the lines: .*{words}"):
        log.criteo(whole)
    read = log.criteo(whole, malformed="leave out")
    assert read.report.left_out == {"malformed": 1}
    assert read.K.tolist() == ([2] if text.startswith(" ") else [3, 2])  # a line without an id may be a candidate


@pytest.mark.parametrize(
    ("wrong", "line", "left"),
    [
        ({1: "6"}, 2, [2, 1]),  # a candidate in the middle
        ({2: "6"}, 3, [2, 1]),  # the last one
        ({0: "6"}, 2, [2, 1]),  # the line of what was shown
        ({3: "\ufeff71"}, 5, [3, 1]),  # a file with a mark of its order of bytes, put behind another one
    ],
)
def test_a_candidate_with_a_mistyped_id_is_no_other_impression(wrong, line, left):
    """Seen red with the impression one arm short, and the candidate as one to predict for."""
    text = [f"{wrong[i]} |{one.partition(' |')[2]}" if i in wrong else one for i, one in enumerate(CRITEO)]
    with pytest.raises(ValueError, match=f"line {line} of the lines: the id is .*, where .* was before"):
        log.criteo(text)
    read = log.criteo(text, malformed="leave out")
    assert read.report.left_out == {"malformed": 1}
    assert read.K.tolist() == left
    assert log.criteo(PREDICT + CRITEO).report.left_out == {"no label: an impression to predict for": 1}


# --- Yahoo

R6A = [
    "1241160900 109513 0 |user 2:0.000012 3:0.000000 6:0.999958 1:1.000000 |109498 2:0.306008 1:1.000000 "
    "|109509 2:0.5 1:1.000000 |109513 2:0.211406 1:1.000000",
    "1241160900 109509 1 |user 2:0.25 1:1.000000 |109498 2:0.306008 1:1.000000 |109509 2:0.5 1:1.000000",
]
R6B = [
    "1317513291 id-560620 0 |user 1 9 11 13 23 16 18 |id-552077 |id-555224 |id-555528 |id-560620",
    "1317513292 id-552077 1 |user 1 7 |id-552077 |id-560620",
]


def test_lines_of_r6a():
    """The article is drawn uniformly from those of its line. Seen red with the number of all articles for K."""
    read = log.yahoo(R6A, features=True)
    assert_array_equal(read.p, [1 / 3, 1 / 2])
    assert read.K.tolist() == [3, 2]
    assert read.arm_ids()[0][read.a[0]] == "109513"
    assert read.arm_ids()[1][read.a[1]] == "109509"
    assert read.r.tolist() == [0, 1]
    assert read.frame["time"][0] == datetime(2009, 5, 1, 6, 55, tzinfo=UTC)
    place = {name: i for i, name in enumerate(read.names)}
    assert set(place) == {"user^1", "user^2", "user^3", "user^6", "article^1", "article^2"}
    row = read.frame["features"].to_list()[0][2]
    assert row[place["user^6"]] == 0.999958
    assert row[place["article^2"]] == 0.211406
    assert read.check().inverse.ok


def test_lines_of_r6b():
    read = log.yahoo(R6B, features=True, cross=True)
    assert_array_equal(read.p, [1 / 4, 1 / 2])
    assert read.arm_ids()[0] == ["id-552077", "id-555224", "id-555528", "id-560620"]
    row = dict(zip(read.names, read.frame["features"].to_list()[0][3], strict=True))
    assert row["user^9"] == 1
    assert row["user^9*arm=id-560620"] == 1
    assert row["user^9*arm=id-552077"] == 0
    with pytest.warns(UserWarning, match="the arms of each row of the lines have the same features"):
        log.yahoo(R6B, features=True)
    assert log.yahoo(iter(R6B)).usable().report.used == 2


BAD_YAHOO = [
    ("1241160900 7 0 |user 1:1 |109498 |109509", "the article shown, 7, is not among the 2 on offer"),
    ("1241160900 109498 2 |user 1:1 |109498", "the click must be 0 or 1, got '2'"),
    ("1241160900 109498 |user 1:1 |109498", "begins with time, article and click"),
    ("1241160900 109498 0 |109498 |109509", "come .user"),
    ("1241160900 109498 0", "come .user"),
    ("1241160900 109498 0 |user 1:1 |", "come .user"),
    ("1241160900 109498 0 |user 1: |109498", "a feature is a number, or number:value; got '1:'"),
    ("1241160900 109498 0 |user 1:x |109498", "feature 1 must be a number"),
    ("1241160900 109498 0 |user 1:1 |109498 |109498", "an article is on offer twice"),
    ("soon 109498 0 |user 1:1 |109498", "the time must be a number"),
    ("1e300 109498 0 |user 1:1 |109498", "time must be"),
    ("1241160900 5 0 |user 1:1 |5 |61241160900 6 0 |user 1:1 |6", "user stands there twice"),
    ("1241160900 5 0 |user 1:1_0 |5", "feature 1 must be a number, got '1_0'"),
]


@pytest.mark.parametrize(("line", "words"), BAD_YAHOO)
def test_damaged_lines_of_yahoo_are_named(line, words):
    with pytest.raises(ValueError, match=f"line 2 of the lines: .*{words}"):
        log.yahoo([R6A[0], line, R6A[1]])
    assert log.yahoo([R6A[0], line, R6A[1]], malformed="leave out").report.left_out == {"malformed": 1}


@pytest.mark.parametrize(("reader", "text"), [(log.criteo, CRITEO[:5]), (log.yahoo, R6A)])
def test_a_file_that_is_cut_within_its_last_line_is_refused(tmp_path, reader, text):
    """Seen red with the arms that were left, and of Yahoo with 1/K of these."""
    path, whole = tmp_path / "cut.txt", "\n".join(text) + "\n"
    path.write_text(whole)
    assert len(reader(path)) == 2
    for cut in (1, 5, 9):
        path.write_text(whole[:-cut])
        with pytest.raises(ValueError, match=f"line {len(text)} of .*: the file ends within this line"):
            reader(path)
        read = reader(path, malformed="leave out")
        assert (read.K.tolist(), read.report.left_out) == ([3], {"malformed": 1})


# --- KuaiRand

KUAI = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,long_view,play_time_ms,is_rand,tab\n"
ROWS = "0,4,20220422,0005,1650643530301,1,0,0,151024,1,1\n0,7,20220422,1900,1650643531301,0,0,1,0,1,0\n"
STANDARD = "1,9,20220422,1900,1650643532301,1,0,0,5,0,1\n"


def test_rows_of_kuairand(tmp_path):
    """Drawn from 7,583 videos. Seen red with the number of videos that the file has."""
    path = tmp_path / "log_random.csv"
    path.write_text(KUAI + ROWS)
    read = log.kuairand(path)
    assert_array_equal(read.p, [1 / 7583] * 2)
    assert read.K.tolist() == [7583] * 2
    assert [read.catalogue[a] for a in read.a] == ["4", "7"]
    assert read.r.tolist() == [1, 0]
    assert read.frame["time"][0] == datetime(2022, 4, 22, 16, 5, 30, 301_000, tzinfo=UTC)
    assert read.column("user_id").tolist() == ["0", "0"]
    assert log.kuairand(path, signal="play_time_ms").r.tolist() == [151024, 0]
    assert_array_equal(log.kuairand(pl.read_csv(path), arms=10).p, [0.1, 0.1])
    with pytest.raises(LookupError, match=r"no column of .* 'is_clicked': did you mean 'is_click'"):
        log.kuairand(path, signal="is_clicked")


@pytest.mark.parametrize("click", ["2", "-1", "0.5"])
def test_a_click_of_kuairand_is_0_or_1(tmp_path, click):
    """Seen red with a click that earns 2."""
    path = tmp_path / "log_random.csv"
    path.write_text(KUAI + STANDARD + ROWS.replace("1,0,0,151024", f"{click},0,0,151024"))
    with pytest.raises(ValueError, match=f"is_click must be 0 or 1, got {click} in row 1 of .*: correct it"):
        log.kuairand(path, standard="leave out")
    assert log.kuairand(path, signal="long_view", standard="leave out").r.tolist() == [0, 1]


def test_rows_that_the_recommender_chose_have_no_propensity(tmp_path):
    """Seen red with 1/7583 for all rows."""
    path = tmp_path / "log.csv"
    path.write_text(KUAI + ROWS + STANDARD)
    with pytest.raises(ValueError, match=r"1 of 3 rows .* by the recommender, .* such as row 2: read log_random"):
        log.kuairand(path)
    read = log.kuairand(path, standard="leave out")
    assert len(read) == 2
    assert read.usable().report.left_out == {"is_rand is 0: the recommender chose": 1}
    path.write_text(KUAI + STANDARD)
    with pytest.raises(ValueError, match="holds no rows with is_rand 1"):
        log.kuairand(path, standard="leave out")
    path.write_text(KUAI + ROWS.replace(",1,1\n", ",,1\n"))
    with pytest.raises(ValueError, match="is_rand must be 0 or 1, got None in row 0"):
        log.kuairand(path)


# --- coba


def results(*more, **packed):
    """Lines of a file of results with interactions."""
    head = [
        ["version", 4],
        ["experiment", {"n_learners": 1}],
        ["E", 0, {"env": "x"}],
        ["L", 0, {"family": "y"}],
        ["V", 0, {}],
    ]
    return [json.dumps(line, separators=(",", ":")) for line in (*head, ["I", [0, 0, 0], {"_packed": packed}], *more)]


BASE = {"action": ["a", "b", "a"], "probability": [0.5, 0.25, 1], "reward": [1, 0, 0.5]}


def test_results_of_coba():
    read = log.coba(results(**BASE))
    assert (read.p.tolist(), read.r.tolist(), read.a.tolist()) == ([0.5, 0.25, 1], [1, 0, 0.5], [0, 1, 0])
    assert read.catalogue == ("a", "b")
    assert not read.known_arms
    known = log.coba(results(**BASE), arms=3)
    assert known.K.tolist() == [3] * 3
    assert known.catalogue[:2] == ("a", "b")
    numbers = log.coba(results(**BASE | {"action": [2, 0, 2]}), arms=4)
    assert numbers.catalogue == ("0", "1", "2", "3")
    assert numbers.a.tolist() == [2, 0, 2]


def test_results_of_coba_with_actions_and_contexts():
    """Seen red with the index of the action among those shown."""
    more = {"actions": [["b", "a"], ["a", "b", "c"], ["c", "a"]], "context": [[0.5, 2], {"age": 3}, "x"]}
    read = log.coba(results(**BASE | more), features=True, cross=True)
    assert read.a.tolist() == [1, 1, 1]
    assert read.K.tolist() == [2, 3, 2]
    assert read.arm_ids()[1] == ["a", "b", "c"]
    row = dict(zip(read.names, read.frame["features"].to_list()[0][1], strict=True))
    assert row["context[1]*action=a"] == 2
    assert row["context[1]*action=b"] == 0
    lists = {"action": [[1, 0]], "actions": [[[1, 0], [0, 1]]], "probability": [0.5], "reward": [1], "context": [None]}
    read = log.coba(results(**lists), features=True)
    assert read.arm_ids()[0] == ["[1,0]", "[0,1]"]
    assert read.frame["features"].to_list()[0] == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="says in its actions how many were on offer: leave out arms"):
        log.coba(results(**BASE | more), arms=3)


def test_one_learner_of_several_is_asked_for():
    other = ["I", [0, 1], {"_packed": BASE | {"reward": [5, 5, 5]}}]
    with pytest.raises(ValueError, match=r"interactions of several .*0, 0, 0; 0, 1, 0.* say which with learner="):
        log.coba(results(other, **BASE))
    assert log.coba(results(other, **BASE), learner=1).r.tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="no interactions of these numbers; it has"):
        log.coba(results(**BASE), learner=7)


BAD_COBA = [
    (['["version",3]'], 'line 1 of the lines must be .*"version",4'),
    (['{"a":1}'], "line 1 of the lines must be a JSON array"),
    (["[1"], "line 1 of the lines: it is no JSON"),
    (results(**BASE)[:-1], "holds no interactions"),
    (results(action=["a"], reward=[1]), r"line 6 .* lack 'probability'; they have 'action', 'reward': record it"),
    (results(**BASE | {"reward": [1]}), "line 6 .* must be of one length"),
    (results(**BASE | {"probability": [0.5, "x", 1]}), "line 6 .* the probability of interaction 1 must be a number"),
    (
        results(**BASE | {"actions": [["a"], ["a"], ["a"]]}),
        "the action of interaction 1, b, must be one of its actions",
    ),
    (results(**BASE | {"actions": [["a", "a"]] * 3}), "which differ"),
    ([*results(**BASE), '["I",[0,'], "line 7 of the lines: it is no JSON"),
    ([*results(**BASE), '["I",[0],{}]'], "line 7 of the lines must be"),
]


@pytest.mark.parametrize(("text", "words"), BAD_COBA)
def test_damaged_results_of_coba_are_named(text, words):
    with pytest.raises(ValueError, match=words):
        log.coba(text)


def test_missing_rewards_and_odd_probabilities_of_coba():
    read = log.coba(results(**BASE | {"reward": [1, None, 0], "probability": [0.5, 0.5, 0]}))
    with pytest.raises(ValueError, match="no reward came"):
        read.usable(invalid="leave out")
    assert read.usable(missing=0, invalid="leave out").report.used == 2  # five digits made this probability 0


# --- the command


FILES = {
    "criteo": ("\n".join(CRITEO), ()),
    "yahoo": ("\n".join(R6B * 5), ()),
    "kuairand": (KUAI + ROWS * 5, ("--arms", "9")),
    "coba": ("\n".join(results(**BASE)), ("--arms", "2")),
}


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("pack", ["", ".gz", ".bz2"])
def test_the_sources_of_the_command_are_the_readers(tmp_path, format, pack):
    text, options = FILES[format]
    path = tmp_path / f"data.csv{pack}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[pack](f"\ufeff{text}\r\n".encode()))
    arms = int(options[1]) if options else None
    source = LogSource(path, format, arms=arms, options={"kept": "1"} if format == "criteo" else {})
    rows = list(source.pieces(set()).each)
    reader = getattr(log, format)
    whole = reader(path, **({} if arms is None else {"arms": arms}), **({"kept": 1.0} if format == "criteo" else {}))
    assert sum(map(len, rows)) == len(whole) > 1
    assert_array_equal(np.concatenate([part.p for part in rows]), whole.p)


def test_a_bandit_learns_from_yahoo():
    read = log.yahoo(R6A * 20, features=True, cross=True)
    bandit = dither.LinFP(dim=len(read.names), seed=0)
    assert log.warm_start(bandit, read).used == 40


def test_interactions_that_stand_twice_are_refused():
    """Seen red where the second line was read in silence, and where a key of lists was `unhashable type: 'list'`."""
    first = results(**BASE)
    with pytest.raises(ValueError, match=r"has the interactions that line .* has .*leave one of the two lines out"):
        log.coba([*first, results(**BASE | {"reward": [9, 9, 9]})[-1]])
    for key in ('["I", [[0], 0, 0]', '["I", ["0", 0, 0]', '["I", [true, 0, 0]'):
        what = json.loads(first[-1])
        with pytest.raises(ValueError, match=r"must be \["):
            log.coba([*first[:-1], f"{key}, {json.dumps(what[2])}]"])
