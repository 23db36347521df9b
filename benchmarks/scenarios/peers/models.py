"""One MarianMT checkpoint of random weights as two models: a bundle of ours, and one of CTranslate2's."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from dragoman_bundle import Bundle, open_bundle

from benchmarks.corpus import Corpus
from benchmarks.peers import make_environment, run_command

CTRANSLATE2 = "4.8.5"
INSTALLS = (
    ("torch==2.13.0",),
    (
        *("torch==2.13.0", f"ctranslate2=={CTRANSLATE2}", "transformers==5.23.0", "sentencepiece==0.2.3"),
        *("grpcio==1.85.1", "protobuf==7.36.2", "googleapis-common-protos==1.76.0"),
    ),
)
"""What CTranslate2's own converter and the server around it need."""
NUM_COMMON, NUM_TARGETS = 100, 50
"""Pieces of the lexicon that every sentence may use, and target pieces of each source piece beside itself."""
_DRAWS = 4 * NUM_TARGETS
"""Enough that nearly always so many of them differ."""


@dataclass(frozen=True, kw_only=True)
class MarianSize:
    """Sizes of a MarianMT checkpoint."""

    encoder_layers: int
    decoder_layers: int
    width: int
    feed_forward: int
    heads: int = 8
    vocabulary: int


SIZES = {
    "small": MarianSize(encoder_layers=6, decoder_layers=2, width=256, feed_forward=1536, vocabulary=16_000),
    "base": MarianSize(encoder_layers=6, decoder_layers=6, width=512, feed_forward=2048, vocabulary=32_000),
    "opus": MarianSize(encoder_layers=6, decoder_layers=6, width=512, feed_forward=2048, vocabulary=65_001),
}
"""By name; the last is OPUS-MT's own."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A size's two models, and what they translate."""

    name: str
    python: Path
    """Python of CTranslate2's environment."""
    bundle: Bundle
    converted: Path
    """CTranslate2's model."""
    shortlist: bool
    """Whether both have one, of the same lexicon."""
    pieces: Sequence[str]
    """The pieces by id, the same for both."""
    texts: Sequence[str]
    sentences: Sequence[Sequence[int]]
    """The texts' token ids, each with its end."""
    steps: int
    """Tokens of every translation: as many as a source has on average."""

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint."""
        return self.converted.with_name("checkpoint")


def prepare(
    name: str, corpus: Corpus, text: Path, folder: Path, *, threads: int, exports: bool, shortlist: bool
) -> Prepared:
    """Makes what is missing; exports the bundle anew if `exports` says so. Raises MeasurementError."""
    python = make_environment("ctranslate2-marian", *INSTALLS)
    checkpoint, converted = folder / name / "checkpoint", folder / name / "ctranslate2"
    if not (checkpoint / "model.safetensors").exists():
        task = {**asdict(SIZES[name]), "folder": str(checkpoint), "text": str(text)}
        run_command(python, Path(__file__).with_name("marian_checkpoint.py"), json.dumps(task))
    if not (converted / "model.bin").exists():
        converter = python.with_name("ct2-transformers-converter")
        run_command(converter, "--model", checkpoint, "--output_dir", converted)
    ids = json.loads((checkpoint / "vocab.json").read_text(encoding="utf-8"))
    pieces = sorted(ids, key=ids.get)
    lexicon = converted / "vmap.txt"
    options: list[object] = ["--precisions", "int8", "--force", "--threads", threads]
    if shortlist:
        write_lexicon(lexicon, pieces, [ids[piece] for piece in ("</s>", "<unk>", "<pad>")])
        options += ["--shortlist-lexicon", lexicon]
    else:
        lexicon.unlink(missing_ok=True)
    path = folder / name / "bundles" / name / ("2" if shortlist else "1")
    if exports or not path.exists():
        run_command(sys.executable, "-m", "dragoman", "get", checkpoint, "--out", path, *options)
    bundle = open_bundle(path)
    end = bundle.manifest.source_ids.eos
    sentences = [[*ids, end] for ids in bundle.source_tokenizer.encode_ids(corpus.sources)]
    return Prepared(
        name=name,
        python=python,
        bundle=bundle,
        converted=converted,
        shortlist=shortlist,
        pieces=pieces,
        texts=corpus.sources,
        sentences=sentences,
        steps=max(1, round(sum(map(len, sentences)) / len(sentences))),
    )


def write_lexicon(path: Path, pieces: Sequence[str], specials: Sequence[int]) -> None:
    """A random lexicon as large as a trained one, in the form that both systems read: CTranslate2's vmap.

    It has a line for the common pieces, the first, which sentencepiece found to be the most frequent, and one
    for each piece but the `specials`, ids that none is given. Targets are drawn with a chance of one over
    their rank: sentences share many, as in a language.
    """
    words = [id_ for id_ in range(len(pieces)) if id_ not in specials]
    chances = 1 / np.arange(1, len(words) + 1)
    drawn = np.random.default_rng(1).choice(words, size=(len(words), _DRAWS), p=chances / chances.sum())
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t" + " ".join(pieces[id_] for id_ in words[:NUM_COMMON]) + "\n")
        for own, row in zip(words, drawn.tolist(), strict=True):
            targets = list(dict.fromkeys([own, *row]))[: NUM_TARGETS + 1]
            file.write(pieces[own] + "\t" + " ".join(pieces[id_] for id_ in targets) + "\n")
