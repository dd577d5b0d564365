"""What it adds to an estimate's variance that other physicians would have said something else."""

import numpy as np

from evalcore.metrics.survey import Fit, Floats, Numbers, Population, Sample


def physicians_variance(population: Population, sample: Sample, fit: Fit) -> tuple[float, float]:
    """The variance over physicians, and its degrees of freedom: who happened to read is chance as well.

        D_k = sum of a e/pi over what physician k read,  q_k = their share of the reading
        V   = (K-1)/K sum (d_k - mean d)^2,  d_k = D_k / (1 - q_k)      df = 1 / sum q^2 - 1, at least 1

    With equal shares that is var(t_k)/K of the totals t_k = K D_k, with K-1 degrees of freedom. The division by 1 - q_k makes good that
    one who reads most of the items draws the fit to himself (the jackknife over physicians, to first order). Of an item that several
    have read, each has an equal part; the chance by which it was drawn is then the same for all of them and not seen between them, and is
    added: V_A by unit less V_A by unit and physician (clustering both ways, Cameron, Gelbach and Miller 2011), which is nothing where each unit
    has one reader. Items must have been given to physicians at random.

    Returns:
        NaN and NaN with fewer than two physicians.
    """
    if sample.n_readers < 2:  # noqa: PLR2004
        return np.nan, np.nan
    apart, loads, shared = by_physician(population, sample, fit)
    return spread(apart) + shared, freedom(loads)


def by_physician(population: Population, sample: Sample, fit: Fit) -> tuple[Floats, Floats, float]:
    """Of each physician d_k and q_k, and the variance of what they share, as `physicians_variance` says."""
    each = 1 / (sample.probabilities * np.bincount(sample.places, minlength=len(sample.rows)).clip(min=1))
    residuals = fit.factors[sample.places] * (sample.said - fit.predicted[sample.rows][sample.places])
    weighted = (each * population.moves[sample.rows])[sample.places] * residuals
    loads = reading_loads(sample.probabilities, sample.places, sample.readers)
    apart = np.bincount(sample.readers, weighted, minlength=sample.n_readers) / (1 - loads).clip(min=1e-6)
    missed = 1 - sample.probabilities[sample.places]
    units = sample.units[sample.places]
    both = units * sample.n_readers + sample.readers
    return apart, loads, max(0.0, _squares(units, weighted, missed) - _squares(both, weighted, missed))


def spread(apart: Floats) -> float:
    """The variance of a sum of which each physician has a part: (K-1)/K sum (d_k - mean d)^2."""
    return (len(apart) - 1) / len(apart) * float(((apart - apart.mean()) ** 2).sum())


def effective_readers(loads: Floats) -> float:
    """As many readers with equal loads say as much of physicians as these do: 1 / sum q^2, q the shares of the reading (Kish 1965).

    >>> (
    ...     round(effective_readers(np.array([12, 1, 1, 1, 1])), 1),
    ...     effective_readers(np.array([5, 5, 5])),
    ...     effective_readers(np.zeros(0)),
    ... )
    (1.7, 3.0, 0.0)

    Args:
        loads: How much each physician has read, 0 or more, in any unit.

    Returns:
        From 1 to the number of physicians; 0 where nothing was read.
    """
    return float(loads.sum() ** 2 / (loads**2).sum()) if loads.any() else 0.0


def reading_loads(probabilities: Floats, places: Numbers, readers: Numbers) -> Floats:
    """q, by physician: the share of the reading that is theirs. An item counts 1/pi, shared among those who have read it; they add up to 1.

    Args:
        probabilities: By item read, pi.
        places: By read, its item.
        readers: By read, the number of the physician.
    """
    n_reads = np.bincount(places, minlength=len(probabilities)).clip(min=1)
    loads = np.bincount(readers, (1 / (probabilities * n_reads))[places])
    return np.asarray(loads / loads.sum() if loads.any() else loads, dtype=np.float64)


def freedom(loads: Floats) -> float:
    """Degrees of freedom of that: one fewer than the effective readers, K - 1 where all read alike; at least 1."""
    return max(1.0, effective_readers(loads) - 1)


def freedom_of_sum(first: float, first_degrees: float, second: float, second_degrees: float) -> float:
    """Degrees of freedom of the sum of two variances (Welch and Satterthwaite): (V + W)^2 / (V^2/df_V + W^2/df_W).

    >>> freedom_of_sum(1.0, 3, 0.0, 99), freedom_of_sum(1.0, 10, 1.0, 10)
    (3.0, 20.0)
    """
    return (
        (first + second) ** 2 / (first**2 / first_degrees + second**2 / second_degrees)
        if first + second
        else first_degrees
    )


def _squares(groups: Numbers, values: Floats, missed: Floats) -> float:
    """The sum over groups of (1 - pi) (sum of values)^2."""
    codes = np.unique(groups, return_inverse=True)[1]
    shares = np.zeros(int(codes.max(initial=0)) + 1)
    shares[codes] = missed
    return float(shares @ np.bincount(codes, values, minlength=len(shares)) ** 2)
