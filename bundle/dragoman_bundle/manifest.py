"""What a bundle says of itself: `manifest.json` as frozen dataclasses.

Owns the format and its version. Must not touch the files it describes: `bundle` does.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from dragoman_bundle.codec import CodecError, decode, encode
from dragoman_bundle.decoding import Confidence, DecodingDefaults
from dragoman_bundle.errors import (
    MAX_BEAM_SIZE,
    MAX_LENGTH_PENALTY,
    ManifestError,
    check_language,
    check_name,
    check_number,
    check_text,
)

FORMAT_VERSION = 8
"""2 added the shortlist, 3 `attention_of_input`, 4 a quality's `shortlist` and `length_penalty`, 5
`language_token`, 6 `source_end`, 7 `padded_behind`, 8 `languages` and `confidence`."""
READABLE_VERSIONS = tuple(range(1, FORMAT_VERSION + 1))
MULTIPLE_LANGUAGES = "mul"
"""Code of ISO 639-2, and both languages of a model of many."""
MANIFEST_FILE = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 20
"""Most bytes of one that is read. Others have a few thousand."""
CARD_FILE = "README.md"
SHORTLIST_FILE = "shortlist.npz"
GRAPH_SUFFIX = ".onnx"
ENCODER_GRAPH = "encoder"
STEP_GRAPH = "decoder_step"
GRAPHS = (ENCODER_GRAPH, STEP_GRAPH)
SHORTLIST_GRAPH = "shortlist"
"""The graph from candidates to their part of the output layer."""
SHORTLIST_STEP_GRAPH = "decoder_step_shortlist"
"""A decoder step over no more than that."""
SHORTLIST_GRAPHS = (SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH)
REGROUP_GRAPH = "regroup"
"""Lets sentences leave and join a running batch on a GPU. Bundles may lack it."""
PRECISIONS = ("fp32", "int8", "fp16")
MAX_VOCABULARY = 10_000_000
_ELEMENT_TYPES = ("float32", "float16", "int8", "bool", "int64")
_SIZES = ("S", "T", "P", "U", "C")
# What servers tell of a model is in one message with what they tell of all others.
_MAX_LINE = 300
_MAX_DESCRIPTION = 10_000
_MAX_LICENCE = 2_000
_MAX_CREDIT = 10_000
_MAX_QUALITIES = 64
_MAX_LANGUAGES = 10_000
_MAX_PARAMETERS = 10**15
_MAX_SCORE = 1_000_000
_MAX_TENSORS = 10_000
_MAX_DIMENSIONS = 8
_MAX_FILES = 10_000
_MAX_FILE_BYTES = 1 << 50


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What kind of model the graphs hold; the engine needs none of it."""

    family: str
    """Model family, such as "luong"."""
    parameters: int
    description: str
    """Layers, widths and attention, for people."""

    def __post_init__(self) -> None:
        check_text("architecture.family", self.family, _MAX_LINE)
        check_number("architecture.parameters", self.parameters, 0, _MAX_PARAMETERS)
        check_text("architecture.description", self.description, _MAX_DESCRIPTION, has_lines=True)


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
    """The element type by precision, for each whose graphs have the tensor: "float32", "float16", "int8",
    "bool" or "int64"."""
    shape: tuple[int | str, ...]
    """Sizes; "S" sentences, "T" source positions, "P" rows of the step before (of the encoder: S), "U" steps
    that a growing state holds, "C" candidates of a sentence."""
    growth_axis: int | None
    """The axis of a state that grows by one at each step; None for a state of fixed size."""
    padded_behind: tuple[str, ...] = ()
    """Precisions in which a growing state's rows begin at the axis's first position, and shorter ones are
    padded behind; in the others they end at the last, and are padded before. Since version 7."""

    def __post_init__(self) -> None:
        check_text("a tensor's name", self.name, _MAX_LINE)
        for precision, element in self.dtype.items():
            check_precision(precision)
            if element not in _ELEMENT_TYPES:
                known = ", ".join(_ELEMENT_TYPES)
                raise ManifestError(f"{self.name} has elements {element!r:.80}; known are {known}")
        check_number(f"{self.name}'s number of axes", len(self.shape), 1, _MAX_DIMENSIONS)
        for size in self.shape:
            if isinstance(size, int):
                check_number(f"{self.name}'s size", size, 1, 2**31 - 1)
            else:
                check_text(f"{self.name}'s size", size, _MAX_LINE)
        if self.growth_axis is not None:
            check_number(f"{self.name}'s growth_axis", self.growth_axis, 0, len(self.shape) - 1)
        for precision in self.padded_behind:
            check_precision(precision)
            if self.growth_axis is None:
                raise ManifestError(f"{self.name} is padded behind in {precision}, and has no growth_axis")


@dataclass(frozen=True, kw_only=True)
class TensorContract:
    """Names, types and shapes of the tensors between the encoder and the decoder steps."""

    memory: tuple[TensorSpec, ...]
    """Fixed for a sentence, one row per sentence; never gathered by beam."""
    state: tuple[TensorSpec, ...]
    """Changes from step to step; one row per hypothesis."""

    def __post_init__(self) -> None:
        _check_tensors("contract.memory", self.memory, "memory.")
        _check_tensors("contract.state", self.state, "state.")
        growing = [spec for spec in self.state if spec.growth_axis is not None]
        if len({frozenset(spec.padded_behind) for spec in growing}) > 1:
            raise ManifestError("contract.state has pasts that are padded behind and others that are not")


@dataclass(frozen=True, kw_only=True)
class ShortlistSpec:
    """A lexical shortlist, and what the graphs that go with it take beside the contract's tensors."""

    file: str
    """File with the candidates of each source token."""
    memory: tuple[TensorSpec, ...]
    """What the graph "shortlist" makes of a sentence's candidates, and "decoder_step_shortlist" takes."""

    def __post_init__(self) -> None:
        _check_tensors("shortlist.memory", self.memory, "memory.")


@dataclass(frozen=True, kw_only=True)
class Quality:
    """A quality measured on a named test set."""

    test_set: str
    """Name of what was translated, such as "multi30k/test2016"."""
    metric: str
    score: float
    """The score in the metric's own units: sacreBLEU's go from 0 to 100."""
    signature: str
    """sacreBLEU's signature, which says how it was counted."""
    precision: str
    beam_size: int
    shortlist: bool | None = None
    """Whether it was measured with the shortlist; None where that was not recorded, as before version 4."""
    length_penalty: float | None = None
    """Length penalty that was measured; None where that was not recorded."""

    def __post_init__(self) -> None:
        for name in ("test_set", "metric", "signature", "precision"):
            check_text(f"quality.{name}", getattr(self, name), _MAX_LINE)
        check_number("quality.score", self.score, -_MAX_SCORE, _MAX_SCORE)
        check_number("quality.beam_size", self.beam_size, 1, MAX_BEAM_SIZE)
        if self.length_penalty is not None:
            check_number("quality.length_penalty", self.length_penalty, 0, MAX_LENGTH_PENALTY)


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """What a file must be to be the one that was exported."""

    sha256: str
    size: int
    """The size in bytes."""

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise ManifestError(f"a file's sha256 is {self.sha256!r:.80}; it has 64 digits, of 0-9 and a-f")
        check_number("a file's size", self.size, 0, _MAX_FILE_BYTES)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Everything a server must know of a bundle before it opens a graph."""

    format_version: int
    """Which of `READABLE_VERSIONS` it was written in."""
    name: str
    version: str
    source_language: str
    """BCP 47 code, or MULTIPLE_LANGUAGES."""
    target_language: str
    """BCP 47 code, or MULTIPLE_LANGUAGES."""
    architecture: Architecture
    source_vocabulary: int
    target_vocabulary: int
    source_ids: SpecialIds
    target_ids: SpecialIds
    source_tokenizer: str
    """File of the source side's tokenizer; the target's too where they share one."""
    target_tokenizer: str
    contract: TensorContract
    """What the graphs give each other."""
    decoding: DecodingDefaults
    """What a request gets that does not say."""
    precisions: tuple[str, ...]
    """Precisions whose graphs are present: folders with encoder.onnx and decoder_step.onnx."""
    quality: tuple[Quality, ...]
    """What `dragoman record-quality` wrote; empty before."""
    licence: str
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
    languages: Mapping[str, str] = field(default_factory=dict)
    """The pieces of a model that translates from each of many languages to each other: by BCP 47 code the
    piece that a source in the language, and a translation to it, begins with; since version 8."""
    confidence: Confidence | None = None
    """How its translations' confidence is found; None where it is not calibrated, as before version 8."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        check_name("version", self.version)
        check_language("source_language", self.source_language)
        check_language("target_language", self.target_language)
        _check_vocabulary("source", self.source_vocabulary, self.source_ids)
        _check_vocabulary("target", self.target_vocabulary, self.target_ids)
        if not self.precisions:
            raise ManifestError("precisions is empty; a bundle holds at least one")
        for precision in self.precisions:
            check_precision(precision)
        if len(set(self.precisions)) < len(self.precisions):
            raise ManifestError(f"precisions names one twice: {', '.join(self.precisions):.80}")
        check_number("the number of qualities", len(self.quality), 0, _MAX_QUALITIES)
        check_text("licence", self.licence, _MAX_LICENCE, has_lines=True)
        check_text("credit", self.credit, _MAX_CREDIT, has_lines=True)
        check_number("the number of files", len(self.files), 0, _MAX_FILES)
        if self.language_token is not None and self.source_pieces is None:
            raise ManifestError("language_token needs source_pieces: only such tokenizers know one")
        if self.languages and (self.source_pieces is None or self.target_pieces is None):
            raise ManifestError("languages needs source_pieces and target_pieces, which have their pieces")
        check_number("the number of languages", len(self.languages), 0, _MAX_LANGUAGES)
        for language, piece in self.languages.items():
            check_language("a language", language)
            check_text(f"the piece of {language}", piece, _MAX_LINE)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.languages) or (self.source_language,)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.languages) or (self.target_language,)

    def between(self, source: str, target: str) -> "Manifest":
        """What it would say of two of its many languages alone, given by their codes as it has them."""
        assert target in self.languages
        pair = replace(self, source_language=source, target_language=target, languages={})
        return replace(pair, language_token=self.languages[source])

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
        return json.dumps(encode(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Reads manifest.json's text. Raises ManifestError naming the key that is wrong, and why."""
        try:
            value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
            version = value["format_version"] if isinstance(value, dict) else None
        except KeyError:
            raise ManifestError(f"{MANIFEST_FILE}: key 'format_version' is missing") from None
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"{MANIFEST_FILE} is not valid JSON: {error}") from error
        if version is not None and version not in READABLE_VERSIONS:
            raise ManifestError(
                f"{MANIFEST_FILE}: format_version is {version!r:.80}, and this release reads "
                f"{', '.join(map(str, READABLE_VERSIONS))}; "
                "export the model again, or use the release that wrote the bundle"
            )
        try:
            return decode(cls, value, where="manifest")
        except CodecError as error:
            raise ManifestError(f"{MANIFEST_FILE}: {error}") from error
        except ManifestError as error:
            raise ManifestError(f"{MANIFEST_FILE}: {error}") from None


def check_precision(precision: str) -> None:
    """Raises ManifestError for one that no graph has."""
    if precision not in PRECISIONS:
        raise ManifestError(f"precision {precision!r:.80} is unknown; known are {', '.join(PRECISIONS)}")


def _check_vocabulary(side: str, size: int, ids: SpecialIds) -> None:
    check_number(f"{side}_vocabulary", size, 1, MAX_VOCABULARY)
    for name in ("pad", "unk", "bos", "eos"):
        check_number(f"{side}_ids.{name}", getattr(ids, name), 0, size - 1)


def _check_tensors(field: str, specs: Sequence[TensorSpec], prefix: str) -> None:
    names = [spec.name for spec in specs]
    check_number(f"the number of tensors in {field}", len(names), 0, _MAX_TENSORS)
    if len(set(names)) < len(names) or not all(name.startswith(prefix) for name in names):
        rule = f"must have names of its own that begin with {prefix!r}"
        raise ManifestError(f"{field} {rule}; it has {names!r:.200}")
    # Other tensors of graphs, which no manifest lists, have other sizes.
    for spec in specs:
        for size in spec.shape:
            if isinstance(size, str) and size not in _SIZES:
                rule = f"it is a number or of {', '.join(_SIZES)}"
                raise ManifestError(f"{spec.name} has a size {size!r:.80}; {rule}")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Raises ValueError for a key that comes twice: readers differ in which they take."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r:.80} comes twice")
    return value


def graph_file(precision: str, graph: str) -> str:
    """Path within a bundle of a graph, such as "encoder"."""
    assert graph in (*GRAPHS, *SHORTLIST_GRAPHS, REGROUP_GRAPH)
    return f"{precision}/{graph}{GRAPH_SUFFIX}"


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
