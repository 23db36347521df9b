"""The bundle: a translation model as a folder of graphs, tokenizers and a manifest that vouches for them.

Needs neither torch nor onnxruntime: what writes bundles and what serves them share this package alone.
"""

from dragoman_bundle.bundle import Bundle, open_bundle, read_manifest
from dragoman_bundle.errors import (
    BundleError,
    BundleFileError,
    ManifestError,
    ShortlistError,
    TokenizerMismatchError,
)
from dragoman_bundle.manifest import Manifest
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import TokenizedText, Tokenizer

__all__ = [
    "Bundle",
    "BundleError",
    "BundleFileError",
    "Manifest",
    "ManifestError",
    "Shortlist",
    "ShortlistError",
    "TokenizedText",
    "Tokenizer",
    "TokenizerMismatchError",
    "open_bundle",
    "read_manifest",
]
