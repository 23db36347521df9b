"""One module for each alignment model: its expectation and its maximisation."""
