"""Draw architecture.svg: the rooms of `src/dither` on the floors that the contract in pyproject.toml gives them.

    python docs/architecture.py

A test draws the picture again and compares, so a room that moves moves in the picture.
"""

import html
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOLDS = {
    "dither_bench": "the paper's bench: figures, plans, runs, pictures",
    "cli": "the command dither: parse, call, show",
    "testing": "checks of parts that users write",
    "simulation": "many runs in lockstep",
    "datasets": "tables as worlds",
    "envs": "where contexts and rewards come from",
    "watch": "a page over a ledger",
    "serve": "a ledger over HTTP, and who may ask",
    "live": "a bandit and its ledger: decide, record, learn, go on",
    "ope": "what would another policy have earned?",
    "log": "what was decided, how probable, what came of it",
    "algorithms": "names: a model, a policy, presets",
    "bandit": "configuration, state, streams, one lock; its files",
    "features": "fields and ids become columns of X",
    "deciding": "request, demands, view, chance, choice, probability",
    "policies": "where the randomness enters",
    "propensity": "exact probabilities of lines",
    "models": "what is believed",
    "noise": "laws of z",
    "theory": "radii and bounds",
    "links": "μ and its constants",
    "drift": "an alarm",
    "base": "arrays, errors, streams, files",
}
ROADS = {"decision": {"live", "bandit", "deciding", "policies", "propensity", "models"}, "log": {"log", "ope", "cli"}}
FILLS = {"decision": ("#ddf4ff", "#0969da"), "log": ("#dafbe1", "#1a7f37"), None: ("#f6f8fa", "#57606a")}
WIDTH, HEIGHT, STEP, GAP = 760, 34, 42, 12


def layers() -> list[list[str]]:
    """The rooms from the top, those of one floor together."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (first, *_) = contracts["contracts"]
    floors = [[part.strip().removeprefix("dither.") for part in line.split("|")] for line in first["layers"]]
    return [floor for floor in floors if not floor[0].startswith("_")]


def draw() -> str:
    """The picture as SVG."""
    floors = layers()
    tall = len(floors) * STEP + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 40} {tall}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14">',
        f'<rect width="{WIDTH + 40}" height="{tall}" fill="#ffffff"/>',
    ]
    for n, floor in enumerate(floors):
        wide = (WIDTH - GAP * (len(floor) - 1)) / len(floor)
        for k, room in enumerate(floor):
            fill, edge = FILLS[next((road for road, rooms in ROADS.items() if room in rooms), None)]
            x, y = 20 + k * (wide + GAP), 10 + n * STEP
            parts.append(
                f'<rect x="{x:g}" y="{y}" width="{wide:g}" height="{HEIGHT}" rx="6" fill="{fill}" stroke="{edge}"/>'
            )
            text = f'<tspan font-weight="bold">{room}</tspan>  {html.escape(HOLDS[room])}'
            parts.append(f'<text x="{x + 12:g}" y="{y + 22}" xml:space="preserve">{text}</text>')
    words = "blue: the path of a decision and of its reward; green: from a log to a verdict; imports point downwards"
    parts.append(f'<text x="20" y="{tall - 12}" font-size="12" fill="#424a53">{words}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / "docs" / "architecture.svg").write_text(draw(), encoding="utf-8")
