"""Figures 1 and 2a of the paper, drawn from fits: every curve, arm and perturbation is computed.

fig1   a logistic model of d = 2 features after some rewards. Left are its Thompson draws θ̃, right its inputs x̃_i.
fig2a  a linear model that saw one arm often and one seldom. It shows what A = D^{1/2}P' makes of the arms and of two ζ.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from dither import models
from dither.base.drawing import PALETTE
from dither.policies.feature import perturbed
from dither_bench.theory.part import Measurement, begin, legends

BLUE, ORANGE, PINK, GREEN = PALETTE[1], PALETTE[0], PALETTE[3], PALETTE[2]
OFTEN, SELDOM = 40, 4  # pulls of the two arms of figure 2a


def fig1(seed: int) -> Measurement:
    """Model perturbation evaluates fixed inputs by models that are off; FP evaluates perturbed inputs by one model."""
    rng = np.random.default_rng([seed, 1])
    model, theta = models.GLM(link="logit", lam=0.1, solver="exact"), np.array([2.0, 1.0])
    link, state, n, draws = model.function, model.init(2), 60, 6
    history = rng.standard_normal((n, 2))
    history /= np.linalg.norm(history, axis=1, keepdims=True)
    state = model.update_many(state, history, (rng.random(n) < link.mu(history @ theta)).astype(float))
    length = float(np.linalg.norm(state.theta))
    u = state.theta / length
    across = np.array([-u[1], u[0]])

    def at(v: np.ndarray) -> np.ndarray:  # unit features with x'θ̂ = v ‖θ̂‖, on one half of the circle
        return v[:, None] * u + np.sqrt(1 - v**2)[:, None] * across

    arms = at(np.array([-0.75, -0.1, 0.45, 0.85]))
    eta = rng.standard_normal((draws, 2))
    tilde = state.theta + np.stack([model.sample(state, one) for one in eta])
    z = np.stack([perturbed(arms, one, w=model.width(state, arms), theta=state.theta) for one in eta])  # x̃_i
    title, head = "Figure 1: model perturbation and feature perturbation", "Where the randomness enters"
    part = begin("fig1", title, panels=2, head=head)
    left, right = part.axes
    v = np.linspace(-1, 1, 201)
    for k, one in enumerate(tilde):
        label = None if k else "models f̃ (Thompson)"
        left.plot(v, link.mu(at(v) @ one), color=ORANGE, alpha=0.5, linewidth=1, label=label)
        left.plot(arms @ u, link.mu(arms @ one), "o", color=ORANGE, markersize=4, alpha=0.8)
    left.plot(v, link.mu(v * length), color="#222222", linewidth=2, label="model f̂")
    wide = np.linspace(min(-1.2, float((z @ u).min())), max(1.2, float((z @ u).max())), 201)
    right.plot(wide, link.mu(wide * length), color="#222222", linewidth=2, label="model f̂, kept fixed")
    moved = z.reshape(-1, 2)
    look = dict(color=BLUE, markersize=4, alpha=0.8, label="f̂(x̃ᵢ), inputs perturbed")
    right.plot(moved @ u, link.mu(moved @ state.theta), "o", **look)
    for ax, kind in zip(part.axes, ("model perturbation", "feature perturbation"), strict=True):
        ax.plot(arms @ u, np.full(len(arms), 0.02), "^", color="#222222", markersize=7, label="inputs xᵢ", zorder=3)
        ax.set(xlabel="x'θ̂/‖θ̂‖", ylim=(0, 1), title=kind)
    legends(part.axes, size=8, loc="upper left")
    right.plot(moved @ u, np.full(len(moved), 0.02), "|", color=BLUE, markersize=9)
    left.set_ylabel("expected reward")
    off = float(np.max(np.abs(link.mu(arms @ tilde.T) - link.mu(arms @ state.theta)[:, None])))
    part.note("left", ("largest |f̃(x_i) − f̂(x_i)|", off))
    part.note("both", ("‖θ̂‖", length))
    part.says.append(
        f"A logistic fit of {n} rewards, λ = {model.lam:g}. Left: {draws} models θ̃ ~ N(θ̂, Ĥ⁻¹) at the inputs x_i. "
        f"Right: as many inputs x̃_i = x_i + ‖x_i‖ζ/‖θ̂‖, evaluated by θ̂ alone, so all points lie on its curve."
    )
    return part


class Turned(NamedTuple):
    """A = D^{1/2}P' with V^{-1/2} = PDP', the two arms, and two draws of ζ."""

    V: np.ndarray  # (2, 2)
    A: np.ndarray  # (2, 2)
    arms: np.ndarray  # (2, 2)  well explored, under-explored
    proper: np.ndarray  # (2,)  ζ_1: the under-explored arm has the higher bonus, and it is positive
    reversed: np.ndarray  # (2,)  ζ_2: the other way round

    def bonus(self, zeta: np.ndarray) -> np.ndarray:
        """x_i'V^{-1/2}ζ = (A x_i)'(A ζ): (2,)."""
        return (self.arms @ self.A.T) @ (self.A @ zeta)


def turned(seed: int) -> Turned:
    """Two unit arms, one pulled often and one seldom, and the first draw of ζ of each of the two kinds."""
    rng = np.random.default_rng([seed, 2])
    angles = np.radians([15.0, 80.0])
    arms = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    V = np.eye(2) + OFTEN * np.outer(arms[0], arms[0]) + SELDOM * np.outer(arms[1], arms[1])
    values, P = np.linalg.eigh(V)
    P = P * np.sign(P.T @ arms.sum(axis=0))  # eigenvectors have no sign; these signs show the arms to the right
    A = np.diag(values**-0.25) @ P.T  # D = values^{-1/2}
    arrows = Turned(V, A, arms, np.zeros(2), np.zeros(2))
    draws = rng.standard_normal((1000, 2))
    first, second = np.array([arrows.bonus(zeta) for zeta in draws]).T
    clear = (np.maximum(first, second) > 0.15) & (np.abs(first - second) > 0.1) & (np.minimum(first, second) > -0.4)
    proper, other = (draws[np.argmax(clear & kind)] for kind in (second > first, first > second))
    return arrows._replace(proper=proper, reversed=other)


def reversal(arrows: Turned) -> float:
    """P(the well-explored arm has the higher bonus, and it is positive) under TS, exactly.

    The bonuses are a'ζ and b'ζ. So the event is that ζ lies in the cone a'ζ > 0, (a - b)'ζ > 0, and its probability
    is the angle of the cone over 2π. Under FP both bonuses are z times a width, so the event never happens.
    """
    a, b = arrows.arms @ arrows.A.T @ arrows.A
    c = a - b
    between = math.acos(np.clip(a @ c / np.linalg.norm(a) / np.linalg.norm(c), -1, 1))
    return (math.pi - between) / (2 * math.pi)


def fig2a(seed: int) -> Measurement:
    """TS turns one ζ into a bonus for the under-explored arm, and another ζ into a bonus for the other arm."""
    arrows = turned(seed)
    widths = np.sqrt(np.einsum("ki,ij,kj->k", arrows.arms, np.linalg.inv(arrows.V), arrows.arms))
    head = "What TS makes of a well explored and an under-explored arm"
    part = begin("fig2a", "Figure 2a: the transformation of features in TS", panels=3, head=head, width=3.8)
    plain, *turned_axes = part.axes
    circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))])
    ellipse = np.linalg.cholesky(np.linalg.inv(arrows.V)) @ circle
    plain.plot(*(2 * ellipse), color="#444444", linewidth=1, label="2 sd of θ̃ − θ̂")
    names = ("x_1, well explored", "x_2, under-explored")
    for x, colour, name in zip(arrows.arms, (BLUE, ORANGE), names, strict=True):
        _arrow(plain, x, colour, name)
    for zeta, colour, name in ((arrows.proper, GREEN, "ζ_1"), (arrows.reversed, PINK, "ζ_2")):
        _arrow(plain, zeta, colour, name)
    plain.set_title("features and two draws of ζ", fontsize=10)
    for name, w in zip(names, widths, strict=True):
        part.note(name, ("‖x‖ in the norm of V⁻¹", w))
    kinds = ((arrows.proper, GREEN, "ζ_1", "proper"), (arrows.reversed, PINK, "ζ_2", "reversed"))
    for ax, (zeta, colour, name, kind) in zip(turned_axes, kinds, strict=True):
        bonus, image = arrows.bonus(zeta), arrows.A @ zeta
        _arrow(ax, image, colour, f"A{name}")
        reach = 1.15 * np.max(np.abs((arrows.arms @ arrows.A.T) @ image)) / (image @ image)
        ax.plot(*np.stack([-reach * image, reach * image], axis=1), color=colour, linewidth=0.8, alpha=0.6)
        for x, c, number, b in zip(arrows.arms, (BLUE, ORANGE), (1, 2), bonus, strict=True):
            _arrow(ax, arrows.A @ x, c, f"Ax_{number}: bonus {b:+.2f}".replace("-", "−"))
            foot = (arrows.A @ x @ image) / (image @ image) * image
            ax.plot(*np.stack([arrows.A @ x, foot], axis=1), color=c, linestyle=":", linewidth=1)
            part.note(f"{name}, x_{number}", ("bonus x'V^{-1/2}ζ", b))
        ax.set_title(f"after A = √D P': {kind} bonus", fontsize=10)
    for ax in part.axes:
        ax.set_aspect("equal", adjustable="datalim")
        ax.axhline(0, color="#bbbbbb", linewidth=0.6)
        ax.axvline(0, color="#bbbbbb", linewidth=0.6)
    legends(part.axes, size=7.5, loc="best")
    share = reversal(arrows)
    for policy, chance in (("TS", share), ("FP", 0.0)):
        part.note(policy, ("P(the well explored arm has the higher bonus, and it is positive)", chance))
    part.says.append(
        f"V = I + {OFTEN} x_1x_1' + {SELDOM} x_2x_2'. TS gives the well explored arm the higher bonus, a positive one, "
        f"in {share:.0%} of the draws. FP does so in none: its bonuses are z‖x‖ with {widths[0]:.2f} < {widths[1]:.2f}."
    )
    return part


def _arrow(ax: Any, to: np.ndarray, colour: str, name: str) -> None:
    ax.annotate("", xy=to, xytext=(0, 0), arrowprops=dict(arrowstyle="-|>", color=colour, linewidth=1.8))
    ax.plot(*to, marker=".", color=colour, label=name.replace("_1", "₁").replace("_2", "₂"))
