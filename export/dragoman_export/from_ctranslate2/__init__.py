"""Transformers in CTranslate2's format, and Argos' packages of them, as what is exported."""

from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.from_ctranslate2.load import load_ctranslate2

__all__ = ["CTranslate2Error", "load_ctranslate2"]
