"""One MarianMT checkpoint of random weights as two models: a bundle of ours, and one of CTranslate2's."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from dragoman_bundle import Bundle, open_bundle

from benchmarks.environment import make_environment
from benchmarks.peers.same_weights.lexicon import write_lexicon

CTRANSLATE2 = "4.8.5"
INSTALLS = (
    ("torch==2.13.0",),
    (
        *("torch==2.13.0", f"ctranslate2=={CTRANSLATE2}", "transformers==5.23.0", "sentencepiece==0.2.3"),
        *("grpcio==1.85.1", "protobuf==7.36.2", "googleapis-common-protos==1.76.0"),
    ),
)
"""What CTranslate2's own converter and the server around it need."""


@dataclass(frozen=True, kw_only=True)
class MarianSize:
    """Sizes of a MarianMT checkpoint."""

    encoder_layers: int
    decoder_layers: int
    width: int
    feed_forward: int
    heads: int = 8
    vocabulary: int

    def __str__(self) -> str:
        layers = f"{self.encoder_layers}+{self.decoder_layers} layers of width {self.width}"
        return f"{layers}, {self.vocabulary:,} pieces"


SIZES = {
    "small": MarianSize(encoder_layers=6, decoder_layers=2, width=256, feed_forward=1536, vocabulary=16_000),
    "base": MarianSize(encoder_layers=6, decoder_layers=6, width=512, feed_forward=2048, vocabulary=32_000),
    "opus": MarianSize(encoder_layers=6, decoder_layers=6, width=512, feed_forward=2048, vocabulary=65_001),
}
"""By name; the last is OPUS-MT's own."""


@dataclass(frozen=True, kw_only=True)
class MarianModels:
    """The two models of a checkpoint."""

    bundle: Bundle
    converted: Path
    """CTranslate2's."""
    pieces: Sequence[str]
    """By id, the same for both."""
    shortlist: bool
    """Whether both have one, of the same lexicon."""

    @property
    def checkpoint(self) -> Path:
        """What they were made of."""
        return self.converted.with_name("checkpoint")


def install() -> Path:
    """The Python of CTranslate2's environment. Raises PeerMissingError."""
    return make_environment("ctranslate2-marian", *INSTALLS)


def make_models(
    python: Path, name: str, text: Path, folder: Path, *, threads: int, exports: bool, shortlist: bool
) -> MarianModels:
    """Both models, of a checkpoint that is made unless the folder has it, exported anew if `exports` says so.

    Raises ClickException where a command fails.
    """
    size = SIZES[name]
    checkpoint, converted = folder / name / "checkpoint", folder / name / "ctranslate2"
    if not (checkpoint / "model.safetensors").exists():
        task = {**asdict(size), "folder": str(checkpoint), "text": str(text)}
        _run(python, Path(__file__).with_name("marian_checkpoint.py"), json.dumps(task))
    if not (converted / "model.bin").exists():
        _run(python.with_name("ct2-transformers-converter"), "--model", checkpoint, "--output_dir", converted)
    ids = json.loads((checkpoint / "vocab.json").read_text(encoding="utf-8"))
    pieces = sorted(ids, key=ids.get)
    lexicon = converted / "vmap.txt"
    options: list[object] = ["--precisions", "int8", "--force", "--threads", threads]
    if shortlist:
        write_lexicon(lexicon, pieces, [ids[piece] for piece in ("</s>", "<unk>", "<pad>")])
        options += ["--shortlist-lexicon", lexicon]
    else:
        lexicon.unlink(missing_ok=True)
    bundle = folder / name / "bundles" / name / ("2" if shortlist else "1")
    if exports or not bundle.exists():
        _run(sys.executable, "-m", "dragoman", "export", "--from-hf", checkpoint, "--out", bundle, *options)
    return MarianModels(bundle=open_bundle(bundle), converted=converted, pieces=pieces, shortlist=shortlist)


def _run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-1500:]}")
