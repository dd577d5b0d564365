"""Runs: many questions to a model at once, each answer saved as it comes, stopped and started again at any moment.

Run and questions are rows. Any number of processes take questions in small lots, and say that they live: what a dead one held is free again.
"""
