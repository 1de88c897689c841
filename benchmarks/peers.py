"""Other libraries of contextual bandits beside this one: time, memory and start, for docs/peers.md.

    python benchmarks/peers.py             measure what is not there yet, then write the page and its picture
    python benchmarks/peers.py --again     measure all anew
    python benchmarks/peers.py --page      the page and its picture, from the committed numbers

The libraries stand with pinned versions in peers.txt, and are installed into .venv-peers. Each cell (library, K, d) has
a process of its own, which runs `peer_players.py`. The libraries take turns within a cell, and all is done twice. A
line of peers.jsonl is one answer; the first says what was measured where. Where a version, the sources of dither or
the processor have changed, all is measured anew, so that what is compared was measured on one day.

About ten minutes of one core. A run that was interrupted goes on where it was.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers_page import ALL, BY_NAME, CELLS, ROOT, STORE, Line, stored, write

PINS, PEERS = Path(__file__).with_suffix(".txt"), ROOT / ".venv-peers"
PASSES, STARTS = (1, 2), 3  # of the cells; processes that measure a start
TIME = 600  # seconds by the clock that a process may take
LEARNS = 0.6  # of the regret of uniform choices: a player above this is measured broken


def digest(*paths: Path) -> str:
    """Of the bytes of files; those that do not exist are left out."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths) if path.exists())).hexdigest()[:12]


def interpreter() -> Path:
    """The Python of the peers, with the versions of peers.txt and this checkout; made where it is not there."""
    python, stamp = PEERS / "bin" / "python", PEERS / "installed"
    wanted = digest(PINS, ROOT / "pyproject.toml", ROOT / "setup.py", *(ROOT / "src" / "_step").glob("*.[ch]"))
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing the peers into .venv-peers: two minutes or so", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "-r", str(PINS), "-e", str(ROOT)], check=True)
        stamp.write_text(wanted)
    return python


def asked(python: Path, environment: dict[str, str], *words: str) -> str:
    """The last line that a process of the peers' Python prints. Raises RuntimeError with what it said instead."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
    child = subprocess.run(
        [str(python), "-W", "ignore", *words],
        env={**os.environ, **one, **environment},
        capture_output=True,
        text=True,
        timeout=TIME,
        check=False,
    )
    lines = child.stdout.strip().splitlines()
    if child.returncode or not lines:
        raise RuntimeError(f"{words} ended with {child.returncode}: {child.stderr[-1000:]}")
    return lines[-1]


def about(python: Path) -> Line:
    """What is measured, and where: another answer, and all is measured anew."""
    packages = [*dict.fromkeys(peer.package for peer in ALL), "numpy"]
    script = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    versions = json.loads(asked(python, {}, "-c", script, *packages))
    step = "from dither.base import compiled; print(compiled.arithmetic())"
    try:
        arithmetic = asked(python, {"DITHER_COMPILED": "1"}, "-c", step)
    except RuntimeError:  # it was not built here
        arithmetic = "numpy"
    return {
        "what": "about",
        "versions": versions,
        "sources": digest(*(ROOT / "src" / "dither").rglob("*.py"), *(ROOT / "src" / "_step").glob("*.[ch]")),
        "arithmetic": arithmetic,
        "python": platform.python_version(),
        "processor": processor(),
        "cores": os.cpu_count(),
    }


def processor() -> str:
    """The name that Linux gives it, with family and model."""
    names: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        names.setdefault(key.strip(), value.strip())
    return (
        f"{names.get('model name', platform.machine())}, family {names.get('cpu family')}, model {names.get('model')}"
    )


def jobs(compiled: bool) -> Iterator[Line]:
    """What is asked for, in its order: small cells first, and the libraries in turn within each."""
    peers = [peer for peer in ALL if compiled or not peer.environment]
    for what in ["check", *["start"] * STARTS]:
        yield from ({"what": what, "name": peer.name, "K": 10, "d": 10, "pass": 1} for peer in peers)
    for number in PASSES:
        for K, d in sorted(CELLS, key=lambda cell: cell[0] * cell[1]):
            yield from ({"what": "cell", "name": peer.name, "K": K, "d": d, "pass": number} for peer in peers)


def key(line: Line) -> tuple[Any, ...]:
    """What a line answers."""
    return tuple(line[name] for name in ("what", "name", "K", "d", "pass"))


def measure(again: bool) -> None:
    """Append what is not there yet to the store."""
    python = interpreter()
    now, lines = about(python), stored()
    if again or not lines or {name: lines[0].get(name) for name in now} != now:
        lines = [now | {"date": time.strftime("%Y-%m-%d")}]
        STORE.write_text(json.dumps(lines[0]) + "\n", encoding="utf-8")
    left: dict[tuple[Any, ...], int] = {}
    for line in lines[1:]:
        left[key(line)] = left.get(key(line), 0) + 1
    over = {key(line)[:-1] for line in lines[1:] if "over" in line}
    for job in jobs(now["arithmetic"] != "numpy"):
        if left.get(key(job), 0) > 0:
            left[key(job)] -= 1
            continue
        if key(job)[:-1] in over:  # once is enough
            continue
        peer = BY_NAME[job["name"]]
        request = {"what": job["what"], "player": peer.player or peer.name, "K": job["K"], "d": job["d"]}
        script = str(Path(__file__).with_name("peer_players.py"))
        answer = json.loads(asked(python, dict(peer.environment), script, json.dumps(request)))
        if "over" in answer:
            over.add(key(job)[:-1])
        if answer.get("share", 0) > LEARNS:
            raise RuntimeError(f"{peer.name} does not learn: {answer['share']:.2f} of the regret of uniform choices")
        line = job | {name: round(value, 4) if isinstance(value, float) else value for name, value in answer.items()}
        line["load"] = round(os.getloadavg()[0], 1)
        with STORE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(*(f"{value}" for value in line.values()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="measure all anew")
    parser.add_argument("--page", action="store_true", help="write the page and its picture, and measure nothing")
    options = parser.parse_args()
    if not options.page:
        measure(options.again)
    write(stored())


if __name__ == "__main__":
    main()
