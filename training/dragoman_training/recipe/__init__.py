"""Recipes: everything about a training run, read strictly from TOML."""
