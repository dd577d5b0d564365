"""What the entropies of a panel's votes and a model's samples are by chance alone: for a model that draws from the panel itself."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
MEASURED = ("entropy_panel", "entropy_model", "concentration")
N_DRAWS = 400
MOST_DRAWS = 400_000
"""Over all different panels together: with more than a thousand of them each is drawn fewer times, since their floors are averaged."""
BLOCK = 250
"""Panels simulated at a time."""


def entropies(h: Floats, m: Floats) -> dict[str, Floats]:
    """How widely two distributions spread over the four levels; `case_spread.case_spread` says what each measure is.

    Args:
        h: The panel's, the last axis the levels; each adds up to 1.
        m: The model's, in the same shape.

    Returns:
        The measures of `MEASURED`, in bits, each in the shape of `h` without the last axis.

    >>> h, m = np.array([[0, 0, 0.7, 0.3]]), np.array([[0, 0, 0.2, 0.8]])
    >>> {name: round(float(x[0]), 6) for name, x in entropies(h, m).items()}
    {'entropy_panel': 0.881291, 'entropy_model': 0.721928, 'concentration': 0.159363}
    """
    of_panel, of_model = _entropy(h), _entropy(m)
    return {"entropy_panel": of_panel, "entropy_model": of_model, "concentration": of_panel - of_model}


def _entropy(p: Floats) -> Floats:
    """In bits."""
    found: Floats = 0.0 - (p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return found


def floors(
    votes: Floats, rows: Codes, n_samples: Codes, *, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> dict[str, Floats]:
    """The expected value of each entropy for a model that draws its samples as the case's physicians vote.

    Drawn anew each time: as many votes as the panel has, and as many samples as the model has, both from the physicians that the panel stands
    for (`behind`). Few of either show less spread than what they are drawn from.

    Args:
        votes: Of each case on A, A/B, B, ..., D (`case_spread.vote_counts`).
        rows: The case of each wanted floor.
        n_samples: Valid samples of each.
        rng: Chance.
        n_draws: Simulations of each panel and number of samples; fewer where there are very many of them.

    Returns:
        The measures of `MEASURED`, one number a row; NaN for a case with fewer than two votes.
    """
    panels, of_case = np.unique(votes, axis=0, return_inverse=True)
    most = int(n_samples.max(initial=0)) + 1
    keys, which = np.unique(of_case.ravel()[rows] * most + n_samples, return_inverse=True)
    panel, times = np.divmod(keys, most)
    n_draws = max(min(n_draws, MOST_DRAWS // max(len(keys), 1)), 1)
    shares = behind(panels)
    found = {name: np.full(len(keys), np.nan) for name in MEASURED}
    some = np.flatnonzero((panels.sum(axis=1) > 1)[panel] & (times > 0))
    for start in range(0, len(some), BLOCK):
        block = some[start : start + BLOCK]
        drawn = _drawn(shares[panel[block]], panels[panel[block]].sum(axis=1), times[block], n_draws, rng)
        for name, values in drawn.items():
            found[name][block] = values.mean(axis=1)
    return {name: values[which.ravel()] for name, values in found.items()}


def behind(votes: Floats) -> Floats:
    """The votes of the physicians that a panel stands for: its own shares, spread a little further.

    Five votes show less disagreement than the many physicians they are drawn from: two votes drawn from them with replacement may be the same
    one, and differ (n-1)/n as often as two physicians do. A floor drawn from the panel's shares as they are is a third too low for panels of five.
    So part of each level's share goes to its neighbours, so much that two draws differ as often as two physicians of the panel do
    (the unbiased estimate). A unanimous panel stays as it is. In simulation the floors are then within a tenth of what they should be
    for panels that spread over neighbouring levels.

    Args:
        votes: Counts on A, A/B, B, ..., D; one row a panel.

    Returns:
        Shares of the same seven votes, each row adding up to 1 (NaN without votes).
    """
    n = votes.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = votes / n
        letters = _letters(own)
        padded = np.pad(letters, ((0, 0), (1, 1)), mode="edge")
        moved = np.zeros_like(own)
        moved[:, ::2] = (padded[:, :-2] + padded[:, 2:]) / 2
        step = _letters(moved) - letters
        between = own[:, 1::2]
        touching = np.pad(between, ((0, 0), (1, 0))) + np.pad(between, ((0, 0), (0, 1)))
        noise = ((letters * (1 - letters) - touching / 4) / (n - 1)).sum(axis=1)
        # With a part x moved the sum of squared shares is S + 2 x (h.step) + x^2 (step.step); it has to fall by the noise.
        a, b = (step**2).sum(axis=1), (letters * step).sum(axis=1)
        part = (-b - np.sqrt(np.maximum(b**2 - a * noise, 0))) / a
    part = np.clip(np.nan_to_num(part, nan=0.0), 0, 1)[:, None]
    found: Floats = (1 - part) * own + part * moved
    return found


def _letters(shares: Floats) -> Floats:
    """The shares of the four letters: a boundary counts half to each of its own."""
    found = shares[..., ::2].copy()
    found[..., :-1] += shares[..., 1::2] / 2
    found[..., 1:] += shares[..., 1::2] / 2
    return found


def _drawn(
    shares: Floats, n_votes: Floats, n_samples: Codes, n_draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """The measures of simulated panels and models: one row a panel, one column a draw."""
    size = (len(shares), n_draws)
    votes = rng.multinomial(np.broadcast_to(n_votes.astype(np.int64)[:, None], size), shares[:, None, :])
    samples = rng.multinomial(np.broadcast_to(n_samples[:, None], size), _letters(shares)[:, None, :])
    h = _letters(votes / n_votes[:, None, None])
    m = samples / n_samples[:, None, None]
    return entropies(h, m)
