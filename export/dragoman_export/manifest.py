"""A bundle's manifest, of what is exported and what it is made of."""

import dataclasses
from collections.abc import Sequence

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import (
    FORMAT_VERSION,
    Architecture,
    Manifest,
    ShortlistSpec,
    SpecialIds,
    TensorContract,
)
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.bundle_files import TokenizerFiles
from dragoman_export.subject import Subject


def make_manifest(
    subject: Subject,
    *,
    name: str,
    version: str,
    precisions: Sequence[str],
    contract: TensorContract,
    tokenizers: TokenizerFiles,
    shortlist: ShortlistSpec | None,
) -> Manifest:
    """The manifest of a bundle that is not sealed yet: without sums of its files, without quality."""
    source, target = subject.source_tokenizer, subject.target_tokenizer
    return Manifest(
        format_version=FORMAT_VERSION,
        name=name,
        version=version,
        source_language=subject.source_language,
        target_language=subject.target_language,
        architecture=_architecture(subject),
        source_vocabulary=source.vocabulary_size,
        target_vocabulary=target.vocabulary_size,
        source_ids=special_ids(source),
        target_ids=special_ids(target),
        source_tokenizer=tokenizers.source,
        target_tokenizer=tokenizers.target,
        contract=contract,
        decoding=DecodingDefaults(**dataclasses.asdict(subject.decoding)),
        precisions=tuple(precisions),
        quality=(),
        licence=subject.card.licence,
        credit=subject.card.credit,
        files={},
        shortlist=shortlist,
        source_pieces=tokenizers.source_pieces,
        target_pieces=tokenizers.target_pieces,
        attention_of_input=subject.attention_of_input,
        source_end=subject.source_end,
        languages=subject.languages,
        language_token=source.language_token if isinstance(source, VocabularyTokenizer) else None,
    )


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """The ids of a tokenizer that stand for no piece of text."""
    return SpecialIds(pad=tokenizer.pad_id, unk=tokenizer.unk_id, bos=tokenizer.bos_id, eos=tokenizer.eos_id)


def _architecture(subject: Subject) -> Architecture:
    """Family and sizes, as the recipe gives them; an ensemble's, member by member."""
    members = [dict(sizes) for sizes in subject.sizes]
    families = [sizes.pop("family") for sizes in members]
    descriptions = [
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sizes.items()) for sizes in members
    ]
    if len(members) > 1:
        descriptions = [f"{family}: {sizes}" for family, sizes in zip(families, descriptions, strict=True)]
    return Architecture(
        family=families[0] if len(members) == 1 else "ensemble",
        parameters=subject.parameters,
        description="; ".join(descriptions),
    )
