"""What mypy --strict and pyright say of code that uses dither: examples/, the Python blocks of README.md and docs/*.md.

Nothing is downloaded: pyright and node come as wheels, by the extra `lint`.

A page is one file, and its blocks stand on the lines where the page has them. A block whose first line is `# name.py`
is a file of the reader's, too. The library is taken as users have it: the checkers say nothing of its inside. In
`.ci/misspelt.py` they must find a mistake on each line that is marked so, and on no other.

    python .ci/check_types.py             everything (`make types`); the exit code is 1 where something is wrong
    python .ci/check_types.py live.md     these pages and examples alone
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MISSPELT = Path(__file__).with_name("misspelt.py")
MARK = "# refused"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
OF_READER = re.compile(r"\A# (\w+\.py)\n")
MYPY = ("mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary")
CHECKERS = {
    "mypy": (*MYPY, "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'users'}", "--python-version=3.12"),
    "pyright": ("pyright", "--pythonpath", sys.executable, "--pythonversion=3.12"),
}
PLACE = re.compile(r"(?:.*/)?(\w+\.py):(\d+)(?::\d+)?(?: -|:) error: (.*)")


def extracted(page: Path, folder: Path) -> None:
    """Write the blocks of a page into a folder."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first, code = text.count("\n", 0, block.start(1)), block[1].splitlines()
        lines[first : first + len(code)] = code
        for name in OF_READER.findall(block[1]):
            (folder / name).write_text(block[1], encoding="utf-8")
    (folder / f"{page.stem.replace('-', '_')}_page.py").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def mistakes(folder: Path, checker: str) -> list[tuple[str, int, str]]:
    """File, line and text of what a checker finds in the files of a folder."""
    files = sorted(path.name for path in folder.glob("*.py"))
    command = [sys.executable, "-m", *CHECKERS[checker], *files]
    env = os.environ | dict.fromkeys(("MYPYPATH", "PYTHONPATH"), str(ROOT / "src"))  # the second is pyright's
    env["PYRIGHT_PYTHON_IGNORE_WARNINGS"] = "1"  # without it, pyright asks a registry for a later version of itself
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)
    places = [match.groups() for line in done.stdout.splitlines() if (match := PLACE.match(line))]
    if done.returncode not in (0, 1) or bool(done.returncode) != bool(places):
        raise SystemExit(f"{checker} did not come to an end:\n{done.stdout}{done.stderr}")
    return [(file, int(line), text) for file, line, text in places]


def unlike(lines: dict[str, set[int]]) -> list[str]:
    """The lines of `misspelt.py` that a checker takes, or should have taken. lines : checker -> those it refuses."""
    code = MISSPELT.read_text(encoding="utf-8").splitlines()
    wanted = {number for number, line in enumerate(code, start=1) if MARK in line}
    return [
        f"misspelt.py:{n}: {checker}: {code[n - 1]}" for checker in CHECKERS for n in sorted(wanted ^ lines[checker])
    ]


def main(names: list[str]) -> int:
    """Check pages and examples of these names, or all of them; print what is wrong."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages = [page for page in pages if BLOCK.search(page.read_text(encoding="utf-8"))]
    examples = sorted((ROOT / "examples").glob("*.py"))
    with tempfile.TemporaryDirectory() as place:
        for path in (path for path in (*pages, *examples) if not names or path.name in names):
            extracted(path, Path(place)) if path.suffix == ".md" else shutil.copy(path, place)
        if not names:
            shutil.copy(MISSPELT, place)  # in the same call: a checker that begins reads the whole library
        of_checkers = {checker: mistakes(Path(place), checker) for checker in CHECKERS}
    every = [(checker, mistake) for checker, found in of_checkers.items() for mistake in found]
    wrong = [f"{file}:{line}: {checker}: {text}" for checker, (file, line, text) in every if file != MISSPELT.name]
    if not names:
        wrong += unlike(
            {
                checker: {line for file, line, _ in found if file == MISSPELT.name}
                for checker, found in of_checkers.items()
            }
        )
    print("\n".join([*wrong, f"{len(wrong)} mistakes"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
