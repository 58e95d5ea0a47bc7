"""The pictures of the pages about questions: one for each, drawn from real answers."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import counterlvq as clvq
from counterlvq.plots import plot_plane, plot_robustness
from counterlvq.plots.style import DOWN, INK, MUTED, UP
from counterlvq.presentation.numbers import cost_text

SIZE = (7.2, 3.6)


def credit():
    """The model of the pages, an applicant, and what changes cost."""
    model = clvq.PrototypeModel(
        [[2400, 3, 1, 36], [1500, 1, 4, 22], [4200, 2, 0, 48], [3900, 1, 1, 41]],
        ["rejected", "rejected", "accepted", "accepted"],
        omegas=[[0.001, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0.05]],
        feature_names=["income", "cards", "late_payments", "age"],
    )
    person = {"income": 2400, "cards": 3, "late_payments": 2, "age": 36}
    return model, person, clvq.Manhattan([0.001, 0.6, 0.5, 0.1])


def _axes():
    ax = plt.subplots(figsize=SIZE, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def few_changes():
    """What a limit on the number of changes costs, and which features are left."""
    model, person, _ = credit()
    cost = clvq.Mahalanobis(np.diag([1e-6, 0.36, 0.25, 0.01]))
    ax = _axes()
    for at, most in enumerate((1, 2, 3)):
        cf = clvq.Explainer(model, cost, [clvq.AtMost(most)]).explain(person, target="accepted")
        ax.barh(at, cf.cost, color=UP, height=0.55)
        names = ", ".join(change.feature for change in cf.changes)
        ax.annotate(
            f"{cf.cost:.3f}: {names}", (cf.cost, at), (6, 0), textcoords="offset points",
            va="center", fontsize=10, color=INK,
        )  # fmt: skip
    ax.set_yticks(range(3), ["at most 1", "at most 2", "at most 3"])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.45)
    ax.set_xlabel("least cost, proved")
    ax.set_title("What fewer changes cost", loc="left", fontsize=11)
    return ax


def alternatives():
    """Three ways, as shares of their costs."""
    model, person, cost = credit()
    rules = [clvq.Freeze("age"), clvq.Bounds("cards", 0, 4), "late_payments >= 0"]
    ways = clvq.Explainer(model, cost, rules).alternatives(person, target="accepted", count=3)
    names, ax = model.features.names[:3], _axes()
    for at, cf in enumerate(ways):
        # As the table on the page has them, and not the last digits.
        after = {change.feature: change for change in cf.shown_changes}
        for j, name in enumerate(names):
            if name not in after:
                continue
            _, before, now, _ = after[name].cells()
            spent = cost.weights[j] * cf.delta[j]
            place = at + 0.26 * (j - 1)
            ax.bar(place, spent, 0.22, color=UP if spent > 0 else DOWN)
            side = 1 if spent > 0 else -1
            ax.annotate(
                f"{name}\n{before} → {now}", (place, spent), (0, 4 * side),
                textcoords="offset points", ha="center", fontsize=9, color=INK,
                va="bottom" if side > 0 else "top",
            )  # fmt: skip
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.set_xticks(
        range(len(ways)),
        [f"way {k + 1}, cost {cost_text(cf.shown.cost)}" for k, cf in enumerate(ways)],
    )
    ax.set(xlim=(-0.5, len(ways) - 0.5), ylim=(-1.9, 3.0))
    ax.set_ylabel("cost of going up or down")
    ax.set_title("Ways in which something else stays as it is", loc="left", fontsize=11)
    return ax


def ranges():
    """The box in which every combination is an answer."""
    model = clvq.PrototypeModel(
        [[2.4, 3.0], [1.5, 1.2], [4.4, 2.2], [4.0, 0.6]],
        ["rejected", "rejected", "accepted", "accepted"],
        feature_names=["income (1,000 EUR)", "cards"],
    )
    rules = ["1.7 <= cards", "cards <= 4", clvq.Bounds("income (1,000 EUR)", 0, 4.6)]
    explainer = clvq.Explainer(model, clvq.Euclidean(), rules)
    cf = explainer.explain([2.4, 3.0], target="accepted")
    box = explainer.ranges(cf)
    ax = plot_plane(explainer, cf)
    sides = [box[name] for name in explainer.features.names]
    (left, right), (low, high) = sides
    ax.add_patch(
        Rectangle((left, low), right - left, high - low, fill=False, edgecolor=DOWN, linewidth=2.5,
                  zorder=5)
    )  # fmt: skip
    inside = ax.plot([], [], "s", color="none", markeredgecolor=DOWN, markeredgewidth=2)[0]
    ax.legend(
        [inside], ["ranges: every combination of values is accepted"], loc="upper left",
        frameon=True, framealpha=0.85, edgecolor="none", fontsize=8.5, labelcolor=INK,
    )  # fmt: skip
    ax.set_title(str(box), loc="left", fontsize=10)
    return ax


def reasons():
    """A feature that settles the decision, and what happens without it."""
    model = clvq.PrototypeModel(
        [[1.0, 1.0], [5.0, 2.0]], ["rejected", "accepted"], feature_names=["income", "savings"]
    )
    table = [[0.0, 0.0], [6.0, 3.0]]
    explainer = clvq.Explainer(model, constraints=clvq.within_data(table))
    x = [1.6, 1.4]
    why = explainer.reasons(x)
    witness = why.witnesses["income"]
    ax = plot_plane(explainer, witness, features=("income", "savings"))
    ax.plot([x[0], x[0]], [0, 3], color=INK, linewidth=2.2, zorder=8)
    ax.annotate(
        "income as it is, any savings", (x[0], 3.0), (0, 7), textcoords="offset points",
        ha="center", fontsize=9, color=INK, zorder=9,
        bbox={"facecolor": "white", "edgecolor": "none"},
    )  # fmt: skip
    ax.set_title("Rejected because of the income; the witness is where it is set free", loc="left",
                 fontsize=10)  # fmt: skip
    return ax


def confidence():
    """The closest answers with each kind of confidence."""
    model = clvq.PrototypeModel([[0, 0], [4, 1], [1, 5]], ["a", "b", "c"])
    x = [1.0, 1.0]
    rules = {
        "any lead": None,
        "Drift(0.4)": clvq.Drift(0.4),
        "Noise(0.5)": clvq.Noise(0.5),
        "RelativeSimilarity(0.6)": clvq.RelativeSimilarity(0.6),
    }
    places = dict(zip(rules, [(-70, 46), (-4, -60), (-2, 62), (10, -96)], strict=True))
    asked = {
        name: clvq.Explainer(model, clvq.Euclidean(), confidence=rule)
        for name, rule in rules.items()
    }
    answers = {name: explainer.explain(x, target="b") for name, explainer in asked.items()}
    farthest = max(answers, key=lambda name: answers[name].cost)
    ax = plot_plane(asked[farthest], answers[farthest])
    for name, cf in answers.items():
        ax.plot(*cf.x, "D", color=INK, markersize=5, zorder=8)
        ax.annotate(
            f"{name}: {cf.cost:.2f}", cf.x, places[name], textcoords="offset points", fontsize=9,
            color=INK, zorder=9, ha="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.8},
        )  # fmt: skip
    noisy = answers["Noise(0.5)"]
    ax.add_patch(Circle(noisy.x, 0.5, fill=False, edgecolor=INK, linestyle="--", zorder=8))
    ax.set_title("The closest answers, by how sure the model has to be", loc="left", fontsize=10)
    return ax


def robust():
    """Wine: what is proved beside the quick certificate."""
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = clvq.GMLVQ(random_state=0).fit(X[::2], y[::2])
    found = clvq.robustness(clvq.Explainer(model), X[1::2], y[1::2], norms=["l2"])
    return plot_robustness(found)


def plausible():
    """An answer that looks like the data."""
    rng = np.random.default_rng(0)
    young = rng.normal(size=(60, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    old = np.r_[rng.normal(size=(60, 2)) * 0.5 + [4, 2], rng.normal(size=(60, 2)) * 0.4 + [4, -2]]
    X, y = np.r_[young, old], np.repeat(["no", "yes"], [60, 120])
    model = clvq.PrototypeModel([[0, 0], [4, 2], [4, -2]], ["no", "yes", "yes"])
    likely = clvq.Plausible.fit(X, y, share=0.9)
    explainer = clvq.Explainer(model, constraints=[likely])
    ax = plot_plane(explainer, explainer.explain([0.0, 0.0], target="yes"))
    left, right, low, high = *ax.get_xlim(), *ax.get_ylim()
    ax.plot(*X.T, ".", color=INK, markersize=2.5, alpha=0.7, zorder=5)
    ax.set(xlim=(left, right), ylim=(low, high))
    return ax


def drawn():
    """Every picture by the name of its file."""
    return {
        "few_changes": few_changes(),
        "alternatives": alternatives(),
        "ranges": ranges(),
        "reasons": reasons(),
        "confidence": confidence(),
        "robustness": robust(),
        "plausible": plausible(),
    }
