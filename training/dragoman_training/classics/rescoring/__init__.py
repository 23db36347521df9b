"""Translations of a neural model chosen anew, by what other models say of them (Yee et al. 2019)."""
