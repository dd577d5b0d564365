"""Arithmetic that knows nothing of health: intervals, resampling, tests of pairs, the corrected estimator."""
