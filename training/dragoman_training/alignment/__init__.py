"""Which source piece a target piece comes from, learnt from sentence pairs. Knows no models and no torch."""

from dragoman_training.alignment.links import Links, find_links
from dragoman_training.alignment.model1 import Iteration, train_model1
from dragoman_training.alignment.table import TranslationTable

__all__ = ["Iteration", "Links", "TranslationTable", "find_links", "train_model1"]
