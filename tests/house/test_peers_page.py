"""docs/peers.md: what its tables and sentences are made of, what is measured again, and the committed numbers."""

import importlib
import json
from pathlib import Path

import PIL.Image
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def modules():
    """The benchmark, its page and its players, as a script in their folder sees them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return [importlib.import_module(name) for name in ("peers", "peers_page", "peer_players")]


@pytest.fixture(scope="module")
def bench(modules):
    return modules[0]


@pytest.fixture(scope="module")
def pages(modules):
    return modules[1]


def cell(name, K, d, us, number=1, **more):
    return {"what": "cell", "name": name, "K": K, "d": d, "pass": number, "us": us, "memory": 60.0, "load": 2.0} | more


@pytest.fixture
def lines(pages):
    """Two cells of a few libraries, in two passes."""
    versions = {peer.package: "1.2.3" for peer in pages.ALL} | {"numpy": "2.4.6"}
    about = {"what": "about", "versions": versions, "arithmetic": "numpy", "processor": "X", "cores": 2}
    over = {"what": "cell", "name": "coba", "K": 100, "d": 40, "pass": 1, "over": "100 ms", "memory": 9.0, "load": 3.5}
    return [
        about | {"python": "3.11.7", "date": "2026-11-30"},
        {"what": "check", "name": "coba", "K": 10, "d": 10, "pass": 1, "share": 0.0216, "load": 1.0},
        *({"what": "start", "name": "coba", "seconds": s, "memory": m, "load": 1} for s, m in ((0.5, 40), (0.2, 44))),
        cell("dither", 5, 10, 50.0),
        cell("dither", 5, 10, 40.0, 2),
        cell("dither", 100, 40, 1964.6, memory=71.26),
        cell("gittins", 5, 10, 10.0),
        cell("gittins", 100, 40, 2161.0),
        cell("coba", 5, 10, 4933.0),
        over,
        cell("river", 5, 10, 39.0),
        cell("river", 100, 40, 1e5),
    ]


def test_a_table_has_the_lower_pass_the_ratio_and_the_limits(pages, lines):
    """Seen red: with the mean of the passes; with the ratio over the table's last column; with a limit left out."""
    rows = pages.table(lines, "whole", "each").splitlines()
    assert rows[0] == "| K | d | dither | coba | gittins |"
    assert rows[2] == "| 5 | 10 | 40.0 | 4,930 (120) | 10.0 (0.25) |"
    assert "| 100 | 40 | 1,960 | over 100 ms | 2,160 (1.1) |" in rows
    assert "| 1,000 | 200 |  |  |  |" in rows
    assert len(rows) == 2 + 4 * 3
    assert pages.table(lines, "disjoint").splitlines()[2] == "| 5 | 10 | 39.0 |"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (4.934, "4.93"),
        (86.0, "86.0"),
        (99.96, "100"),
        (100.4, "100"),
        (999.6, "1,000"),
        (1964.6, "1,960"),
        (43298, "43,300"),
    ],
)
def test_times_have_three_digits(pages, x, text):
    assert pages.number(x) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0672, "0.067"), (0.6, "0.60"), (0.994, "0.99"), (0.996, "1.0"), (1.06, "1.1"), (9.94, "9.9"), (123.3, "120")],
)
def test_ratios_have_two_digits(pages, x, text):
    assert pages.ratio(x) == text


def test_who_is_first_follows_from_the_numbers(pages, lines):
    """Seen red: where a peer's limit counts as no time; where a disjoint peer is left out of all."""
    assert pages.verdicts(lines).split("\n\n") == [
        "**Among the joint linear models with a covariance** (coba):",
        "- `dither` is first in all 2 cells.",
        "**Among all joint linear models** (coba, gittins):",
        "- `dither` is first in 1 of 2 cells; not in 5 × 10 (gittins, 0.25).",
        "**Among all peers, whatever their model** (coba, gittins, river):",
        "- `dither` is first in 1 of 2 cells; not in 5 × 10 (gittins, 0.25).",
    ]
    alone = pages.first(lines, "dither", [pages.BY_NAME["river"]])
    assert alone.endswith("1 of 2 cells; not in 5 × 10 (river, 0.97).")


def test_start_and_memory_and_what_was_called(pages, lines):
    costs, models = pages.costs(lines).splitlines(), pages.models(lines).splitlines()
    assert "| coba | 0.20 | 42 | 9.00 |  |  |" in costs
    assert "| dither |  |  | 71.3 |  |  |" in costs
    (row,) = (row for row in models if row.startswith("| coba |"))
    assert row.startswith("| coba | 1.2.3 | joint, with a covariance | LinUCB")
    assert row.endswith("| 0.02 |")


def test_the_passes_and_the_load_are_told(pages, lines):
    told = pages.circumstances(lines)
    assert "The load was 1 to 3.5." in told or "The load was 1.0 to 3.5." in told
    assert "1 of 7 cells were measured twice. The two differ by 25 % in the middle" in told
    assert "`dither` is NumPy alone" in told
    lines[0]["arithmetic"] = "compiled 1 avx2"
    assert "The compiled step was there (compiled 1 avx2)." in pages.circumstances(lines)


def test_a_page_without_a_mark_is_refused(pages, lines):
    with pytest.raises(ValueError, match="part joint has not one mark <!-- joint --> and one"):
        pages.page(lines, pages.PAGE.read_text(encoding="utf-8").replace("<!-- joint -->", ""))


# What is measured again


@pytest.fixture
def told(bench, pages, tmp_path, monkeypatch):
    """A run of the benchmark with stand-ins for the processes. -> (what `about` says, what the players were asked)"""
    requests, now = [], {"what": "about", "versions": {"coba": "1"}, "arithmetic": "numpy"}

    def asked(python, environment, *words):
        requests.append((json.loads(words[1]), environment))
        answers = {"check": {"share": 0.1}, "start": {"seconds": 1.0, "memory": 2.0}}
        slow = {"over": "100 ms", "memory": 2.0}
        quick = {"us": 3.0, "memory": 2.0}
        request = requests[-1][0]
        return json.dumps(answers.get(request["what"], slow if request["player"] == "coba" else quick))

    monkeypatch.setattr(bench, "STORE", tmp_path / "peers.jsonl")
    monkeypatch.setattr(pages, "STORE", tmp_path / "peers.jsonl")
    monkeypatch.setattr(bench, "interpreter", lambda: Path("python"))
    monkeypatch.setattr(bench, "about", lambda python: dict(now))
    monkeypatch.setattr(bench, "asked", asked)
    return now, requests


def test_a_run_goes_on_where_it_was_interrupted(bench, pages, told):
    """Seen red: where a start that was made once counts for all three of a pass."""
    _, requests = told
    bench.measure(again=False)
    whole, lines = len(requests), pages.stored()
    slow = [request for request, _ in requests if request["what"] == "cell" and request["player"] == "coba"]
    assert len(slow) == 12  # a cell over the limit is not asked twice
    assert whole == 10 * (1 + 3 + 2 * 12) - 12
    assert all(environment == {} for _, environment in requests)
    bench.STORE.write_text("".join(json.dumps(line) + "\n" for line in lines[:26]), encoding="utf-8")
    requests.clear()
    bench.measure(again=False)  # 10 checks and 15 of 30 starts are there
    assert len(requests) == whole - 25
    assert [bench.key(line) for line in pages.stored()[1:]] == [bench.key(line) for line in lines[1:]]
    requests.clear()
    bench.measure(again=False)
    assert requests == []


@pytest.mark.parametrize("why", ["a version", "again"])
def test_all_is_measured_anew(bench, pages, told, why):
    """Seen red: where the versions are not looked at."""
    now, requests = told
    bench.measure(again=False)
    whole = len(requests)
    if why == "a version":
        now["versions"] = {"coba": "2"}
    bench.measure(again=why == "again")
    assert len(requests) == 2 * whole
    assert len(pages.stored()) == whole + 1
    assert pages.stored()[0]["versions"] == now["versions"]


def test_with_the_compiled_step_ours_is_measured_both_ways(bench, told):
    now, requests = told
    now["arithmetic"] = "compiled 1 avx2"
    bench.measure(again=False)
    off = {request["player"] for request, environment in requests if environment == {"DITHER_COMPILED": "0"}}
    assert off == {"dither", "dither, scale set", "dither, slots"}
    assert len(requests) == 13 * (1 + 3 + 2 * 12) - 12


def test_a_player_that_does_not_learn_is_not_measured(bench, told, monkeypatch):
    monkeypatch.setattr(bench, "asked", lambda *words: json.dumps({"share": 0.9}))
    with pytest.raises(RuntimeError, match=r"dither does not learn: 0\.90 of the regret of uniform choices"):
        bench.measure(again=False)


def test_each_way_has_a_player(modules):
    _, pages, players = modules
    assert {peer.player or peer.name for peer in pages.ALL} == set(players.KINDS)
    pinned = {line.partition("==")[0] for line in (ROOT / "benchmarks" / "peers.txt").read_text().splitlines()}
    assert {peer.package for peer in pages.ALL if not peer.ours} <= pinned


# The committed numbers


@pytest.fixture(scope="module")
def committed(pages):
    return pages.stored()


def test_the_page_shows_the_committed_numbers(pages, committed):
    """Seen red: one digit of a table; the sentence on who is first."""
    text = pages.PAGE.read_text(encoding="utf-8")
    assert pages.page(committed, text) == text


def test_the_picture_is_of_the_committed_numbers(pages, committed):
    drawn = json.loads(PIL.Image.open(pages.PICTURE).text["Description"])
    assert drawn == pages.described(committed)


def test_every_cell_was_measured_and_every_player_learns(bench, committed):
    jobs = bench.jobs(committed[0]["arithmetic"] != "numpy")
    assert {bench.key(job) for job in jobs if job["pass"] == 1} <= {bench.key(line) for line in committed[1:]}
    assert max(line["share"] for line in committed if line["what"] == "check") < bench.LEARNS
