"""One colour a model, the same on every page: Okabe and Ito's, which the common colour blindnesses tell apart."""

from collections.abc import Iterable

MODEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""In the order in which models take them, the strongest first. Two of Okabe and Ito's eight are left out: black vanishes on slate, yellow on paper."""
MODEL_DASHES = ("solid", "dash", "dot", "dashdot")
"""After six models the colours come again, with another line."""
MODEL_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "triangle-down", "pentagon", "star")
"""The marks of models, since colour is never alone."""

INK, INK_ON_SLATE = "#23262a", "#e6e3dd"
"""Of words inside a figure, where they must be read: 4.5:1 and more on the deepest ground of `RAMP`, each in its own theme."""
MARK, GREY = "rgba(128,136,144,1)", "rgba(128,136,144,0.6)"  # 3:1 and more on paper and on slate
FAINT = "rgba(128,136,144,0.22)"
RAMP = ((0.0, "rgba(31,127,151,0.04)"), (1.0, "rgba(31,127,151,0.65)"))
GREY_RAMP = ((0.0, "rgba(128,136,144,0.04)"), (1.0, "rgba(128,136,144,0.32)"))
"""From pale to deep in one hue; the ground shines through, so that the page's ink can be read on it in both themes. Grey is for few."""
LEVEL_RAMP = ("rgba(31,127,151,0.13)", "rgba(31,127,151,0.29)", "rgba(31,127,151,0.46)", "rgba(31,127,151,0.65)")
"""The levels of care A, B, C, D: four steps of the same ramp, so that what asks for more care reads as deeper."""


def colour_of(models: Iterable[str]) -> dict[str, str]:
    """The colour of each model; all models of the study are asked about, not only those in view, so that a model has one colour on every page."""
    return {model: MODEL_COLOURS[n % len(MODEL_COLOURS)] for n, model in enumerate(sorted(set(models)))}


def dash_of(models: Iterable[str]) -> dict[str, str]:
    """The line of each model, which tells apart those that share a colour (`colour_of`)."""
    rounds = {model: n // len(MODEL_COLOURS) for n, model in enumerate(sorted(set(models)))}
    return {model: MODEL_DASHES[n % len(MODEL_DASHES)] for model, n in rounds.items()}
