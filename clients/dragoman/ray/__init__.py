"""Corpora translated by Ray: an engine in the process of each of Ray's actors, and no server.

Needs the extras `ray` and, where the actors run, `server` or `server-cpu`.
"""

from dragoman.ray.dataset import translate
from dragoman.ray.engine import EngineOptions

__all__ = ["EngineOptions", "translate"]
