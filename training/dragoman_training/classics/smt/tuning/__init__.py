"""Weights of a log-linear model that make the best of lists of translations: minimum error rate training."""
