"""What a bundle says of itself: `manifest.json` as frozen dataclasses.

Owns the format and its version. Must not touch the files it describes: `bundle` does.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from dragoman_bundle.codec import CodecError, decode, encode
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.errors import ManifestError
from dragoman_bundle.names import check_name

FORMAT_VERSION = 6
"""2 added the shortlist, 3 `attention_of_input`, 4 a quality's `shortlist` and `length_penalty`, 5
`language_token`, 6 `source_end`."""
READABLE_VERSIONS = (1, 2, 3, 4, 5, 6)
MANIFEST_FILE = "manifest.json"
CARD_FILE = "README.md"
SHORTLIST_FILE = "shortlist.npz"
ENCODER_GRAPH = "encoder"
STEP_GRAPH = "decoder_step"
GRAPHS = (ENCODER_GRAPH, STEP_GRAPH)
SHORTLIST_GRAPH = "shortlist"
"""From candidates to their part of the output layer."""
SHORTLIST_STEP_GRAPH = "decoder_step_shortlist"
"""A decoder step over no more than that."""
SHORTLIST_GRAPHS = (SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH)
REGROUP_GRAPH = "regroup"
"""Lets sentences leave and join a running batch on a GPU. Bundles may lack it."""
PRECISIONS = ("fp32", "int8", "fp16")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What kind of model the graphs hold; the engine needs none of it."""

    family: str
    """Model family, such as "luong"."""
    parameters: int
    """Number of trained parameters."""
    description: str
    """Layers, widths and attention, for people."""


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """Ids of the tokens that stand for no text."""

    pad: int
    """Fills up what is shorter than its neighbours in a batch."""
    unk: int
    """Stands for a piece that the vocabulary lacks."""
    bos: int
    """What the decoder reads first."""
    eos: int
    """Ends a sentence."""


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """A tensor that goes from the encoder, or from one decoder step, to the next step."""

    name: str
    """Name in the graphs, such as "memory.keys" or "state.hidden"; a step returns the latter as
    "next_state.hidden"."""
    dtype: Mapping[str, str]
    """For each precision whose graphs have it the element type: "float32", "float16", "int8", "bool"
    or "int64"."""
    shape: tuple[int | str, ...]
    """Sizes; "S" sentences, "T" source positions, "P" rows of the step before (of the encoder: S), "U" steps
    that a growing state holds, "C" candidates of a sentence."""
    growth_axis: int | None
    """The axis of a state that grows by one at each step; None for a state of fixed size."""


@dataclass(frozen=True, kw_only=True)
class TensorContract:
    """Names, types and shapes of the tensors between the encoder and the decoder steps."""

    memory: tuple[TensorSpec, ...]
    """Fixed for a sentence, one row per sentence; never gathered by beam."""
    state: tuple[TensorSpec, ...]
    """Changes from step to step; one row per hypothesis."""


@dataclass(frozen=True, kw_only=True)
class ShortlistSpec:
    """A lexical shortlist, and what the graphs that go with it take beside the contract's tensors."""

    file: str
    """File with the candidates of each source token."""
    memory: tuple[TensorSpec, ...]
    """What the graph "shortlist" makes of a sentence's candidates, and "decoder_step_shortlist" takes."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """A quality measured on a named test set."""

    test_set: str
    """Name of what was translated, such as "multi30k/test2016"."""
    metric: str
    """Such as "BLEU"."""
    score: float
    """As the metric counts: sacreBLEU's go from 0 to 100."""
    signature: str
    """sacreBLEU's signature, which says how it was counted."""
    precision: str
    """Precision that was measured."""
    beam_size: int
    """Beam size that was measured."""
    shortlist: bool | None = None
    """Whether it was measured with the shortlist; None where that was not recorded, as before version 4."""
    length_penalty: float | None = None
    """Length penalty that was measured; None where that was not recorded."""


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """What a file must be to be the one that was exported."""

    sha256: str
    """In hexadecimal."""
    size: int
    """In bytes."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Everything a server must know of a bundle before it opens a graph."""

    format_version: int
    """Which of `READABLE_VERSIONS` it was written in."""
    name: str
    """Name of the model, such as "de-en"."""
    version: str
    """Version of the model, such as "1"."""
    source_language: str
    """BCP 47 code."""
    target_language: str
    """BCP 47 code."""
    architecture: Architecture
    """Family and sizes."""
    source_vocabulary: int
    """Number of source tokens."""
    target_vocabulary: int
    """Number of target tokens."""
    source_ids: SpecialIds
    """Of the source vocabulary."""
    target_ids: SpecialIds
    """Of the target vocabulary."""
    source_tokenizer: str
    """File of the source side's tokenizer; the target's too where they share one."""
    target_tokenizer: str
    """File of the target side's tokenizer."""
    contract: TensorContract
    """What the graphs give each other."""
    decoding: DecodingDefaults
    """What a request gets that does not say."""
    precisions: tuple[str, ...]
    """Precisions whose graphs are present: folders with encoder.onnx and decoder_step.onnx."""
    quality: tuple[Quality, ...]
    """What `dragoman record-quality` wrote; empty before."""
    licence: str
    """Licence of the model."""
    credit: str
    """Credit owed to the makers of its training data."""
    files: Mapping[str, FileEntry]
    """Every file of the bundle but the manifest, by its path within the folder, with "/" between parts."""
    shortlist: ShortlistSpec | None = None
    """Where the bundle has one; none has of format version 1."""
    source_pieces: str | None = None
    """File with the id of each source piece, where they are not the tokenizer's own; since version 2."""
    target_pieces: str | None = None
    """The same of the target side; it may be the same file."""
    attention_of_input: bool = False
    """Whether a step's attention aligns the token the step reads, rather than the one it predicts; since
    version 3."""
    language_token: str | None = None
    """Source piece that every sentence begins with, of a model with several target languages; since version
    5."""
    source_end: bool = True
    """Whether a source ends with the end of its vocabulary, or with its last piece, as OpenNMT's do; since
    version 6."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_name("version", self.version)
        if not self.precisions:
            raise ManifestError("precisions is empty; a bundle holds at least one")
        if unknown := [precision for precision in self.precisions if precision not in PRECISIONS]:
            raise ManifestError(f"precision {unknown[0]!r} is unknown; known are {', '.join(PRECISIONS)}")
        if self.language_token is not None and self.source_pieces is None:
            raise ManifestError("language_token needs source_pieces: only such tokenizers know one")

    @property
    def key(self) -> str:
        """ "name/version": what the model is called, and its place in a folder of models."""
        return f"{self.name}/{self.version}"

    def without_quality(self) -> "Manifest":
        """What stays as it is when a quality is recorded: all but that, the card, and the format version."""
        files = {file: entry for file, entry in self.files.items() if file != CARD_FILE}
        return replace(self, format_version=FORMAT_VERSION, quality=(), files=files)

    def checksum(self) -> str:
        """SHA-256, in hexadecimal, of what the bundle is made of: the list of all files but the card."""
        entries = sorted(self.without_quality().files.items())
        listing = "".join(f"{entry.sha256}  {file}\n" for file, entry in entries)
        return hashlib.sha256(listing.encode()).hexdigest()

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps(encode(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Reads manifest.json's text. Raises ManifestError naming the key that is wrong, and why."""
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
            version = value["format_version"] if isinstance(value, dict) else None
        except KeyError:
            raise ManifestError(f"{MANIFEST_FILE}: key 'format_version' is missing") from None
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"{MANIFEST_FILE} is not valid JSON: {error}") from error
        if version is not None and version not in READABLE_VERSIONS:
            raise ManifestError(
                f"{MANIFEST_FILE}: format_version is {version!r}, and this release reads "
                f"{', '.join(map(str, READABLE_VERSIONS))}; "
                "export the model again, or use the release that wrote the bundle"
            )
        try:
            return decode(cls, value, where="manifest")
        except CodecError as error:
            raise ManifestError(f"{MANIFEST_FILE}: {error}") from error
        except ManifestError as error:
            raise ManifestError(f"{MANIFEST_FILE}: {error}") from None


def graph_file(precision: str, graph: str) -> str:
    """Path within a bundle of a graph, such as "encoder"."""
    assert graph in (*GRAPHS, *SHORTLIST_GRAPHS, REGROUP_GRAPH)
    return f"{precision}/{graph}.onnx"


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
