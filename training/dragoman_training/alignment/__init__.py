"""Which source piece a target piece comes from, learnt from sentence pairs.

Knows no models and no torch, but for `head`, which holds a Transformer's heads against what was learnt.
"""

from dragoman_training.alignment.links import Links, find_links
from dragoman_training.alignment.model1 import Iteration, train_model1
from dragoman_training.alignment.table import TranslationTable

__all__ = ["Iteration", "Links", "TranslationTable", "find_links", "train_model1"]
