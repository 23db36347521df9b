"""Why a bundle was refused.

ValueError
├── LanguageTagError            a language is not written as BCP 47 does
└── BundleError                 what is asked of a bundle it does not have, or cannot be
    ├── ManifestError           manifest.json is missing, of another format version, or not well formed
    ├── BundleFileError         a file is missing, truncated, altered or outside the bundle
    ├── TokenizerMismatchError  a tokenizer is not the one that the manifest describes
    └── ShortlistError          a shortlist is not well formed or for another vocabulary
"""


class LanguageTagError(ValueError):
    """A language that is not written as BCP 47 does; says what to write."""


class BundleError(ValueError):
    """A bundle that does not check out, or that lacks what is asked of it. Names the file and the reason."""


class ManifestError(BundleError):
    """The manifest is missing, of another format version, or holds a key or value it must not."""


class BundleFileError(BundleError):
    """A file that the manifest lists is missing, unreadable, truncated, altered or outside the folder."""


class TokenizerMismatchError(BundleError):
    """A tokenizer whose vocabulary or special ids are not those that the manifest gives."""


class ShortlistError(BundleError):
    """A shortlist that is not well formed, or that was made for another vocabulary."""
