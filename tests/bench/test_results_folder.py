"""`dither results check` and `merge`."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dither_bench.define import figures
from dither_bench.keep import asked, folders
from dither_bench.keep.store import METADATA, STORE, Store, checksum, of_panel
from dither_bench.plan.plan import Shard
from dither_bench.run import run

FIGURE = figures.select(figures.find("fig3-linear"), panels=["d=10"], rounds=60, algorithms=["LinFP", "EpsGreedy"])
CELLS = of_panel(FIGURE.panels[0], seed=0)


def rows(out):
    return pl.concat([Store(out / STORE).read(cell).sort("run", "round") for cell in CELLS.values()])


def content(out):
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def edit(path, *, frame=lambda frame: frame, about=lambda about: about, sealed=True):
    """Write the file anew with other rows or metadata; sealed: with the checksum of what it has then."""
    rows, said = frame(pl.read_parquet(path)), about(json.loads(pl.read_parquet_metadata(path)[METADATA]))
    said |= {"checksum": checksum(said, rows)} if sealed else {}
    rows.write_parquet(path, metadata={METADATA: json.dumps(said)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    run.reproduce(FIGURE, out=out, runs=6, block=2)
    return out


@pytest.fixture
def parts(tmp_path, whole):
    """Three machines that know nothing of each other."""
    for k in (1, 2, 3):
        run.reproduce(FIGURE, out=tmp_path / f"m{k}", runs=6, block=2, shard=Shard(k, 3))
    return [tmp_path / f"m{k}" for k in (1, 2, 3)]


def test_the_parts_of_machines_are_the_whole(dither, parts, whole, tmp_path):
    into = tmp_path / "into"
    code, said, _ = dither("results", "merge", *parts, into)
    assert (code, said) == (0, f"{into}: 6 files copied, 0 were there already.\n")
    assert_frame_equal(rows(into), rows(whole))
    (request,) = asked.figures(into)  # before the next command asks for the same
    assert request.figure == FIGURE  # seen red: requests not copied
    assert run.reproduce(FIGURE, out=into, runs=6, block=2) == 0
    before = content(into)
    code, said, _ = dither("results", "merge", *parts, into)
    assert (code, said) == (0, f"{into}: 0 files copied, 6 were there already.\n")
    assert content(into) == before


def test_folders_merge_by_copying_by_hand_too(parts, whole, tmp_path):
    for part in parts:
        shutil.copytree(part, tmp_path / "by-hand", dirs_exist_ok=True)
    assert_frame_equal(rows(tmp_path / "by-hand"), rows(whole))


def test_a_run_in_files_of_other_sizes_is_there_once(tmp_path, whole):
    run.reproduce(FIGURE, out=tmp_path / "b", runs=3, block=3)
    assert folders.merge([tmp_path / "b"], tmp_path / "into") == folders.MergedFolders(2, 0)
    assert folders.merge([whole], tmp_path / "into") == folders.MergedFolders(6, 0)
    assert_frame_equal(rows(tmp_path / "into"), rows(whole))  # seen red: `read` without what it has seen
    assert folders.check(tmp_path / "into").wrong == ()


@pytest.mark.parametrize("same_name", [True, False])
def test_other_values_of_a_run_are_refused_by_name(dither, tmp_path, whole, same_name):
    other = tmp_path / "other"
    run.reproduce(FIGURE, out=other, runs=2, block=2 if same_name else 1)
    path = sorted((other / STORE / CELLS["LinFP"].key).rglob("*.parquet"))[-1]
    edit(path, frame=lambda f: f.with_columns(regret=pl.col("regret") + 1e-3 * (pl.col("run") == 1)))
    shutil.copytree(whole, tmp_path / "into")
    before = content(tmp_path / "into")
    code, _, said = dither("results", "merge", other, tmp_path / "into")
    assert code == 2
    assert str(path) in said
    assert "run 1" in said
    assert content(tmp_path / "into") == before  # seen red: copying before all was looked at
    code, _, _ = dither("results", "merge", other, whole, tmp_path / "new")  # two sources that disagree
    assert code == 2
    assert not (tmp_path / "new").exists()  # seen red: only the files of INTO compared


def test_rounding_of_another_processor_is_no_conflict(tmp_path, whole):
    shutil.copytree(whole, tmp_path / "other")
    for path in (tmp_path / "other").rglob("*.parquet"):
        edit(path, frame=lambda f: f.with_columns(pl.col("regret", "realised") * (1 + 1e-12)))
    assert folders.merge([tmp_path / "other"], whole) == folders.MergedFolders(0, 6)  # seen red: TOLERANCE = 0


def test_a_folder_that_is_right_says_what_made_it(dither, whole):
    code, said, _ = dither("results", "check", whole)
    assert code == 0
    said = " ".join(said.split())  # the terminal breaks long paths
    assert "6 files, 2 cells" in said
    assert "Every file is whole" in said
    found = folders.check(whole)
    assert {name for entry in found.codes for name in entry.algorithms} == {"LinFP", "EpsGreedy"}
    assert sum(entry.runs for entry in found.codes) == 12
    ((machine, files),) = found.machines.items()
    assert files == 6
    assert "not recorded" not in machine  # seen red: `_said` without what the file says
    assert all(entry.code in said for entry in found.codes)


def without_checksum(about):
    return {name: value for name, value in about.items() if name != "checksum"}


def test_runs_of_two_seeds_are_not_added_up(dither, tmp_path):
    """Seen red with one line for a code, whose runs were those of both seeds."""
    for seed, runs in ((0, 3), (7, 2)):
        run.reproduce(FIGURE, out=tmp_path, runs=runs, seed=seed)
    found = folders.check(tmp_path)
    assert sorted((of.seed, of.runs) for of in found.codes) == [(0, 3), (0, 3), (7, 2), (7, 2)]
    lines = [line.split()[1:3] for line in dither("results", "check", tmp_path)[1].splitlines()]
    for seed, runs in (("0", "3"), ("7", "2")):
        assert lines.count([seed, runs]) == 2


def test_altered_numbers_are_found_and_not_shown(dither, tmp_path, whole):
    """Seen red without the look at the checksum: the folder passes, and the altered number is in the table."""
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    path = sorted((out / STORE / CELLS["LinFP"].key).rglob("*.parquet"))[0]
    edit(path, frame=lambda f: f.with_columns(regret=pl.col("regret") + 1e-9), sealed=False)
    code, said, _ = dither("results", "check", out)
    assert (code, "checksum is another one" in " ".join(said.split())) == (1, True)
    with pytest.raises(ValueError, match="not those that were written"):
        rows(out)
    edit(path, sealed=True)
    assert folders.check(out).wrong == ()


def test_a_file_of_an_earlier_version_has_no_checksum_and_is_said_to_have_none(dither, tmp_path, whole):
    """Seen red with the checksum demanded, and without the sentence."""
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    edit(sorted((out / STORE).rglob("*.parquet"))[0], about=without_checksum, sealed=False)
    code, said, _ = dither("results", "check", out)
    assert code == 0
    assert "1 of 6 files have no checksum, since an earlier version wrote them" in " ".join(said.split())
    assert_frame_equal(rows(out), rows(whole))
    assert "no checksum" not in dither("results", "check", whole)[1]


WRONG = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "no results": lambda path: pl.DataFrame({"run": [1]}).write_parquet(path),
    "rows lost": lambda path: edit(path, frame=lambda f: f.head(len(f) - 3)),
    "a run lost": lambda path: edit(path, frame=lambda f: f.filter(pl.col("run") != 1)),
    "all rows lost": lambda path: edit(path, frame=lambda f: f.clear()),
    "runs exchanged": lambda path: edit(path, frame=lambda f: f.with_columns(run=1 - pl.col("run"))),
    "other rounds": lambda path: edit(path, frame=lambda f: f.with_columns(round=pl.col("round") + pl.col("run"))),
    "a round twice": lambda path: edit(path, frame=lambda f: f.with_columns(pl.col("round").replace(1, 2))),
    "the end lost": lambda path: edit(path, frame=lambda f: f.filter(pl.col("round") < 60)),
    "not finite": lambda path: edit(path, frame=lambda f: f.with_columns(regret=pl.lit(np.nan))),
    "another cell": lambda path: edit(path, about=lambda a: a | {"cell": a["cell"] | {"seed": 1}}),
    "another code": lambda path: edit(path, about=lambda a: a | {"code": "0" * 16}),
    "other runs": lambda path: edit(path, about=lambda a: a | {"runs": [0, 2]}),
    "moved": lambda path: path.rename(path.with_name("000004-000005.parquet")),
    "no runs": lambda path: edit(path, about=lambda a: a | {"runs": []}),
    "altered": lambda path: edit(path, frame=lambda f: f.with_columns(realised=pl.col("regret")), sealed=False),
    "no cell": lambda path: edit(path, about=lambda a: {name: a[name] for name in a if name != "cell"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_right_is_named_and_not_merged(dither, tmp_path, whole, name):
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    path = sorted((out / STORE).rglob("*.parquet"))[0]
    WRONG[name](path)
    place = str(path.parent)  # "moved" has another name
    code, said, _ = dither("results", "check", out)
    assert code == 1
    assert place in " ".join(said.split()).replace(" ", "") or place in said
    code, _, said = dither("results", "merge", out, tmp_path / "new")
    assert code == 2
    assert place in said
    assert not (tmp_path / "new").exists()
    # seen red: each condition of `_read` left out in turn


def test_check_finds_a_run_with_two_values(tmp_path, whole):
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    run.reproduce(FIGURE, out=tmp_path / "one", runs=1)
    for path in (tmp_path / "one" / STORE).rglob("*.parquet"):
        edit(path, frame=lambda f: f.with_columns(realised=pl.col("realised") - 0.5))
        shutil.copy(path, out / path.relative_to(tmp_path / "one"))
    assert len(folders.check(out).wrong) == 2
    assert all("run 0 has other values" in said for said in folders.check(out).wrong)
    # seen red: `regret` alone compared


def test_a_folder_without_results_is_no_folder_of_results(dither, tmp_path):
    code, _, said = dither("results", "check", tmp_path)
    assert code == 2  # seen red: an empty folder taken for results
    assert "no folder of results" in said
    code, _, said = dither("results", "merge", tmp_path)
    assert code == 2
    assert "at least two folders" in said
