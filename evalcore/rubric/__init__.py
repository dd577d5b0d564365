"""Responses scored by criteria: the data of a study, its scores, and their correction by physicians."""
