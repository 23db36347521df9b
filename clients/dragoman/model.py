"""The models of a server. Plain values: nothing here knows gRPC."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """Names one version of a model; as a string, "name/version"."""

    name: str
    """Name, such as "de-en"."""
    version: str
    """Version, such as "1"."""
    source_language: str = ""
    """Language it translates from: the one that was asked for, or the closest that there is. "" where the
    server does not tell."""
    target_language: str = ""
    """Language it translates to, likewise."""

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, kw_only=True)
class Quality:
    """A quality measured on a named test set when the model's bundle was made."""

    test_set: str
    metric: str
    """Name of the metric, such as "BLEU"."""
    score: float
    signature: str
    """sacreBLEU's signature, which says how it was counted."""
    precision: str
    """Precision that was measured, such as "int8"."""
    beam_size: int
    shortlist: bool | None
    """Whether it was measured with a lexical shortlist; None where that was not recorded."""
    length_penalty: float | None
    """Length penalty that was measured; None where that was not recorded."""


@dataclass(frozen=True, kw_only=True)
class DecodingDefaults:
    """The values for a request that sets nothing. None where the server reported nothing."""

    beam_size: int | None
    """Hypotheses kept per sentence while searching."""
    num_hypotheses: int | None
    """Hypotheses returned per text."""
    length_penalty: float | None
    """Exponent of the length penalty (Wu et al. 2016, eq. 14)."""
    max_output_tokens: int | None
    """Most tokens a sentence's translation may have."""
    length_policy: str | None
    """The policy for a sentence that is too long: "split", "reject" or "truncate"."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model that is being served."""

    reference: ModelReference
    source_language: str
    """Language it translates from."""
    target_language: str
    """Language it translates to."""
    architecture: str
    """Family, such as "luong"."""
    parameters: int
    """Number of trained parameters."""
    precision: str
    """Precision of the graphs in use: "fp32", "fp16" or "int8"; "" while it is not loaded."""
    providers: Mapping[str, str]
    """Where each graph runs, by graph name: an onnxruntime execution provider. Empty while not loaded."""
    defaults: DecodingDefaults
    """The values for a request that sets nothing."""
    max_source_tokens: int
    """Most source tokens a sentence may have before the length policy applies."""
    quality: tuple[Quality, ...]
    licence: str
    credit: str
    """Credit owed to the makers of its training data."""
    description: str = ""
    """What it is good for, and what not; "" where its card says nothing."""
    languages: tuple[str, ...] = ()
    """All languages of a model of many: it translates from each to each other, and its source and target are
    "mul"."""
    calibrated: bool = False
    """Whether its translations come with a confidence."""
    loaded: bool = True
    """Whether it is loaded; the first request to one that is not waits until it is."""


@dataclass(frozen=True, kw_only=True)
class Glossary:
    """A glossary that the server has."""

    name: str
    languages: tuple[str, ...]
    """Languages that it translates between."""
    entries: int
