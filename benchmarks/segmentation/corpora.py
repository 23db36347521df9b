"""Where sentences of each language lie, and how they are read."""

import gzip
from pathlib import Path

CORPORA = {
    "de": "tatoeba-de-en/train.de",
    "en": "tatoeba-de-en/train.en",
    "es": "tatoeba-en-es/train.es",
    "fr": "tatoeba-en-fr/train.fr",
    "nl": "more/tatoeba-more/en-nl.nl",
    "pl": "more/tatoeba-more/en-pl.pl.gz",
    "tr": "more/tatoeba-more/en-tr.tr.gz",
    "sv": "more/tatoeba-more/en-sv.sv.gz",
    "ja": "more/tatoeba-more/en-ja.ja.gz",
    "zh": "more/tatoeba-more/en-zh.zh.gz",
}
"""By language, in the folder of all data; one sentence a line."""

LISTS = Path(__file__).parents[2] / "tests" / "server" / "sentences"
"""For some languages sentences that no dot in them ends: LANGUAGE.txt."""


def read_lines(path: Path) -> list[str]:
    """The lines that hold a letter, of a plain or gzipped file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = (line.strip() for line in text.decode("utf-8").splitlines())
    return [line for line in lines if any(map(str.isalpha, line))]
