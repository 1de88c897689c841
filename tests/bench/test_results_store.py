"""The store and what is missing in it. Each test says what was broken to see it red."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dither.algorithms import Spec
from dither.simulation.simulate import recorded
from dither_bench.define import figures
from dither_bench.define.environments import describe
from dither_bench.define.panels import Figure
from dither_bench.keep import asked
from dither_bench.keep.store import COLUMNS, STORE, Cell, Store, of_panel
from dither_bench.plan import plan
from dither_bench.run import computing, run

SMALL = ["fig3-linear", "--panel", "d=10", "--rounds", "60", "--algorithm", "LinFP", "--algorithm", "EpsGreedy"]
FIGURE = figures.select(figures.find("fig3-linear"), panels=["d=10"], rounds=60, algorithms=["LinFP", "EpsGreedy"])

KILLED = """
import os, signal, sys
from dither import cli
real, count, last = os.replace, 0, int(sys.argv[1])
def replace(part, path):
    global count
    count += str(path).endswith(".parquet")
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
    real(part, path)
os.replace = replace
sys.argv = ["dither", "reproduce", *sys.argv[2:]]
cli.main()
"""

TOGETHER = """
import sys
from dither_bench.define import figures
from dither_bench.run import run
names = ["LinFP", "EpsGreedy"]
figure = figures.select(figures.find("fig3-linear"), panels=["d=10"], rounds=60, algorithms=names)
run.reproduce(figure, out=sys.argv[1], runs=4, block=int(sys.argv[2]))
"""


def rows(out, figure=FIGURE, *, seed=0):
    """All that is stored of a figure."""
    store = Store(out / STORE)
    cells = {name: cell for panel in figure.panels for name, cell in of_panel(panel, seed=seed).items()}
    return pl.concat([store.read(cell).sort("run", "round").with_columns(a=pl.lit(n)) for n, cell in cells.items()])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    assert run.reproduce(FIGURE, out=out, runs=4, block=4) == 1
    return rows(out)


def start(code, *arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment, stderr=subprocess.PIPE)


def test_a_killed_command_resumes_and_repeats_nothing(tmp_path, undisturbed):
    process = start(KILLED, 6, *SMALL, "--runs", 4, "--block", 1, "--out", tmp_path)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / STORE).rglob("*.parquet")}
    assert len(stored) == 5  # two whole blocks of two algorithms, and half of the third
    assert len(list(tmp_path.rglob("*.part"))) == 1  # what it was at: it is ignored
    assert run.reproduce(FIGURE, out=tmp_path, runs=4, block=1) == 2
    assert_frame_equal(rows(tmp_path), undisturbed)
    assert {path: path.stat().st_mtime_ns for path in stored} == stored
    assert run.reproduce(FIGURE, out=tmp_path, runs=4, block=1) == 0
    # seen red: writing under the final name; `missing` counting every run of an algorithm as missing


def test_two_processes_at_once_end_with_the_same_rows(tmp_path, undisturbed):
    both = [start(TOGETHER, tmp_path, block) for block in (1, 2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert_frame_equal(rows(tmp_path), undisturbed)
    # seen red: `read` without its set of runs seen, on a folder with blocks of 1 and of 2


def test_runs_that_stand_in_two_files_count_once(tmp_path, undisturbed):
    store, cell = Store(tmp_path / STORE), next(iter(of_panel(FIGURE.panels[0], seed=0).values()))
    marks = np.array([1, 60])
    for runs in (range(2), range(1, 3)):
        regret = np.array([[run, run + 10.0] for run in runs])
        store.write(cell, runs, code="one", rounds=marks, regret=regret, realised=regret)
    assert store.read(cell)["run"].to_list() == [0, 0, 1, 1, 2, 2]
    assert store.runs(cell) == {0, 1, 2}
    # seen red: `read` without its set of runs seen


def test_processes_give_what_one_process_gives(tmp_path, undisturbed):
    seen = []
    settings = dict(runs=4, block=2, jobs=2, on_progress=lambda done, total: seen.append((done, total)))
    assert run.reproduce(FIGURE, out=tmp_path, **settings) == 2
    assert_frame_equal(rows(tmp_path), undisturbed)
    done, total = seen[-1]
    assert done == pytest.approx(total)
    assert total > 0
    # seen red: `_metered` not telling


def computed(monkeypatch):
    """What is simulated from now on: (algorithms, runs) a call."""
    calls, real = [], computing.simulate

    def simulate(env, specs, *, runs, **more):
        calls.append((sorted(specs), list(runs)))
        return real(env, specs, runs=runs, **more)

    monkeypatch.setattr(computing, "simulate", simulate)
    return calls


def test_only_what_is_missing_is_computed(tmp_path, monkeypatch):
    two, three = FIGURE, figures.select(FIGURE, algorithms=["LinFP", "EpsGreedy", "Greedy"])
    calls = computed(monkeypatch)
    run.reproduce(two, out=tmp_path, runs=3, block=2)
    assert calls == [(["EpsGreedy", "LinFP"], [0, 1]), (["EpsGreedy", "LinFP"], [2])]
    calls.clear()
    run.reproduce(two, out=tmp_path, runs=5, block=4)  # more runs, and another block
    assert calls == [(["EpsGreedy", "LinFP"], [3]), (["EpsGreedy", "LinFP"], [4])]
    calls.clear()
    run.reproduce(three, out=tmp_path, runs=6, block=10)  # one more algorithm, and one more run of the others
    assert calls == [(["Greedy"], [0, 1, 2, 3, 4, 5]), (["EpsGreedy", "LinFP"], [5])]
    calls.clear()
    run.reproduce(three, out=tmp_path, runs=2)
    assert calls == []
    run.reproduce(two, out=tmp_path, runs=1, seed=1)  # another seed is another result
    assert calls == [(["EpsGreedy", "LinFP"], [0])]
    # seen red: the seed left out of `Cell.content`


def test_stretches_are_consecutive_and_end_with_a_block():
    assert plan.stretches({0, 2, 3, 4, 5, 9}, block=4) == [range(1), range(2, 4), range(4, 6), range(9, 10)]
    # seen red: without the cut at gaps; without the cut at multiples


def test_the_key_is_the_content():
    cell = Cell(describe("linear", dim=5), 100, Spec.parse("LinFP:c=1.0"), 0)
    same = Cell(dict(reversed(describe("linear", dim=5, norm=1).items())), 100, Spec.parse("LinFP:c=1"), 0)
    others = [
        Cell(describe("linear", dim=6), 100, cell.algorithm, 0),
        Cell(cell.env, 101, cell.algorithm, 0),
        Cell(cell.env, 100, Spec.parse("LinFP:c=1.5"), 0),
        Cell(cell.env, 100, Spec.parse("LinFP:c=1,preset=own_paper"), 0),
        Cell(cell.env, 100, Spec.parse("LinTS:c=1"), 0),
        Cell(cell.env, 100, cell.algorithm, 1),
    ]
    assert same.key == cell.key
    assert len({cell.key, *(other.key for other in others)}) == 7
    # seen red: `_canonical` left out; each line of `content` left out in turn


def test_a_file_carries_what_made_it(tmp_path):
    run.reproduce(FIGURE, out=tmp_path, runs=2)
    cell = of_panel(FIGURE.panels[0], seed=0)["EpsGreedy"]
    (about,) = Store(tmp_path / STORE).about(cell)
    assert about["cell"] == cell.content()
    assert about["runs"] == [0, 1]
    assert set(about["versions"]) == {"dither", "numpy", "python"}
    assert "horizon=60" in about["policy"]  # what it was told stands there too
    assert about["created"].endswith("+00:00")


@pytest.mark.parametrize("break_it", ["cut", "foreign", "other cell"])
def test_a_file_that_is_not_ours_is_named(tmp_path, break_it):
    run.reproduce(FIGURE, out=tmp_path, runs=1)
    cells = of_panel(FIGURE.panels[0], seed=0)
    path, other = (next((tmp_path / STORE / cells[name].key).rglob("*.parquet")) for name in ("LinFP", "EpsGreedy"))
    if break_it == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif break_it == "foreign":
        pl.DataFrame({column: [1] for column in COLUMNS}).write_parquet(path)
    else:
        path.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match=path.name):
        run.reproduce(FIGURE, out=tmp_path, runs=1)
    # seen red: `_files` without the comparison of keys; without its `except`


def test_ours_are_recorded_where_published_curves_end(tmp_path, monkeypatch):
    figure = figures.select(FIGURE, rounds=2000, algorithms=["Greedy"])
    plain = set(recorded(2000).tolist())
    assert not {1777, 1888} & plain
    monkeypatch.setattr(computing.published, "marks", lambda panel: {1777, 1888})
    run.reproduce(figure, out=tmp_path, runs=1)
    assert set(rows(tmp_path, figure)["round"]) == plain | {1777, 1888}  # seen red: `recorded` alone


@pytest.mark.parametrize(("jobs", "blocks"), [(1, 1), (2, 2)])
def test_runs_are_computed_many_at_once_and_stored_few_in_a_file(tmp_path, jobs, blocks):
    assert run.reproduce(FIGURE, out=tmp_path / "open", runs=23, jobs=jobs) == blocks
    assert run.reproduce(FIGURE, out=tmp_path / "ten", runs=23, block=10) == 3
    names = ["000000-000009.parquet", "000010-000019.parquet", "000020-000022.parquet"]
    for out in (tmp_path / "open", tmp_path / "ten"):
        assert sorted({path.name for path in out.rglob("*.parquet")}) == names  # seen red: a file of all 23
    assert_frame_equal(rows(tmp_path / "open"), rows(tmp_path / "ten"))  # seen red: the rows of the first block thrice


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from dither import cli
sys.argv = ["dither", "compare", "LinFP", "--rounds", "400", "--runs", "20", "--dim", "2", "--arms", "3", "--out", "r"]
cli.main()
"""


def test_a_disk_that_takes_no_more_is_one_line_that_names_the_file(tmp_path):
    # seen red: polars writes the file itself, and its ComputeError ended with a traceback
    ended = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True)
    said = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert said.startswith("dither: ")
    assert ".parquet" in said
    assert not [path for path in (tmp_path / "r").rglob("*") if path.suffix in (".part", ".parquet")]


# The paper's preset: what was stored before it had a name


def panel(*algorithms, dim=2, rounds=30):
    """What `compare` asks for. The file mine.py need not be there."""
    (adhoc,) = figures.adhoc(describe("linear", dim=dim), ["LinFP"], rounds=rounds, runs=2).panels
    return replace(adhoc, algorithms=tuple(map(Spec.read, algorithms)))


def test_what_was_stored_before_the_preset_paper_is_found_in_the_papers_figures():
    keys = {"LinFP": "57cc8f198bd0edc7", "LinUCB": "569a0113d0f4b394", "Greedy": "96faf1227250902d"}
    of_h1 = {"LinFP": "10d3da143298b993", "LinPHE:preset=as_run": "00c4384f815ae617"}
    for name, panel, theirs in (("fig3-linear", "d=10", keys), ("h1", "d=5", of_h1)):
        cells = of_panel(figures.find(name).panel(panel), seed=0)  # their names are what they were
        assert {spec: cells[spec].key for spec in theirs} == theirs
        assert {cells[spec].algorithm.preset for spec in theirs} <= {"paper", "as_run"}
    # seen red: `IN_CELLS` empty; `of_panel` without `as_in`


def test_the_default_of_today_is_another_cell_than_that_of_earlier_versions():
    cells = of_panel(panel("LinFP", "LinFP:preset=paper", "mine.py:P", dim=10, rounds=20_000), seed=0)
    assert cells["LinFP:preset=paper"].key == "57cc8f198bd0edc7"
    assert cells["LinFP"].key != "57cc8f198bd0edc7"  # seen red: "default" left out of `IN_CELLS`
    assert cells["LinFP"].content()["preset"] != cells["mine.py:P"].content()["preset"] == "default"
    # seen red: `_preset` without `built_in`


def test_a_request_of_an_earlier_version_is_of_the_papers_preset(tmp_path):
    new = Figure("compare", "Comparison", (panel("LinFP", "mine.py:P"),))
    data = figures.to_data(new)
    assert figures.from_data(data) == new
    del data["panels"][0]["preset"]
    old = figures.from_data(data)
    cells = of_panel(old.panels[0], seed=0)
    assert (cells["LinFP"].algorithm.preset, cells["mine.py:P"].algorithm.preset) == ("paper", "default")
    # seen red: `from_data` with the default of `Panel`; `as_in` without `built_in`
    asked.record(tmp_path, old, seed=0)
    asked.record(tmp_path, figures.select(new, algorithms=["LinTS"]), seed=0)
    (request,) = asked.figures(tmp_path)
    assert list(map(str, request.figure.algorithms)) == ["LinTS"]  # seen red: panels of two presets joined
    assert request.figure.panels[0].preset == "default"


def test_a_figure_of_the_paper_refuses_the_default_by_name():
    with pytest.raises(ValueError, match="with the preset paper: dither compare has the default"):
        figures.select(figures.find("h1"), algorithms=["LinFP", "LinFP:c=0.3,preset=default"])
    figures.select(figures.find("h1"), algorithms=["LinFP:preset=paper"])  # seen red: without the look for the name
