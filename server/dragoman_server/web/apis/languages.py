"""The languages that are served, by pair, and their names in English."""

from collections.abc import Iterable

from dragoman_bundle.languages import english_name, primary_language
from dragoman_bundle.tags import FORMAL

from dragoman_server.models.model import ServedModel
from dragoman_server.service.core import ServiceCore


def language_name(code: str) -> str:
    """The language's English name, with the code's region or script; the code where there is no name."""
    name = english_name(code)
    if name is None:
        return code
    more = code.replace("_", "-").partition("-")[2]
    return f"{name} ({more})" if more else name


def targets_by_source(core: ServiceCore) -> dict[str, list[str]]:
    """The languages that models translate from, in order, each with those that one or two of them reach."""
    found: dict[str, set[str]] = {}
    for model in core.models:
        for source in model.manifest.sources:
            found.setdefault(source, set()).update(model.manifest.targets)
    for targets in found.values():
        if core.pivot in targets:
            targets |= found.get(core.pivot, set())
    for source, targets in found.items():
        targets.discard(source)
    return {source: sorted(found[source]) for source in sorted(found)}


def knows_formality(core: ServiceCore, target: str) -> bool:
    """Whether models that translate to the language, or to a region of it, know how to address a reader."""
    language = primary_language(target)
    return any(
        model.knows(FORMAL)
        for model in core.models
        if any(primary_language(target) == language for target in model.manifest.targets)
    )


def all_languages(models: Iterable[ServedModel]) -> list[str]:
    """The languages that models translate from or to, in order."""
    return sorted(
        {language for model in models for language in (*model.manifest.sources, *model.manifest.targets)}
    )
