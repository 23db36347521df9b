"""Client of the Dragoman translation service.

from dragoman import Client

with Client("localhost:50051") as client:
    for translation in client.translate(["Guten Morgen."], source="de", target="en"):
        print(translation.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.async_client import AsyncClient
    from dragoman.client import Client
    from dragoman.errors import (
        AuthenticationError,
        CallCancelledError,
        ClientClosedError,
        DeadlineExceededError,
        DragomanError,
        FieldViolation,
        InvalidRequestError,
        ModelNotFoundError,
        OverloadedError,
        ServerError,
        UnavailableError,
        UnsupportedError,
    )
    from dragoman.model import DecodingDefaults, Glossary, Model, ModelReference, Quality
    from dragoman.settings import LengthPolicy, Priority, ProtectedText, Segmentation, Settings, TextFormat
    from dragoman.translation import (
        AlignedTexts,
        Alignment,
        DetectedLanguage,
        FinishReason,
        Hypothesis,
        LanguageCandidate,
        SentenceConfidence,
        StreamResult,
        Timings,
        Translation,
        TranslationWarning,
        WarningKind,
    )

__all__ = ["AlignedTexts", "Alignment", "AsyncClient", "AuthenticationError", "CallCancelledError"]
__all__ += ["Client", "ClientClosedError", "DeadlineExceededError", "DecodingDefaults", "DetectedLanguage"]
__all__ += ["DragomanError", "FieldViolation", "FinishReason", "Glossary", "Hypothesis"]
__all__ += ["InvalidRequestError", "LanguageCandidate", "LengthPolicy", "Model", "ModelNotFoundError"]
__all__ += ["ModelReference", "OverloadedError", "Priority", "ProtectedText", "Quality", "Segmentation"]
__all__ += ["SentenceConfidence", "ServerError", "Settings", "StreamResult", "TextFormat", "Timings"]
__all__ += ["Translation", "TranslationWarning", "UnavailableError", "UnsupportedError", "WarningKind"]

__version__: str

_MODULES = ("model", "errors", "translation", "settings", "client", "async_client")
"""Where the names are. They are loaded when they are first asked for: the server imports the stubs alone, and
the command has something to say to gRPC before that is loaded."""


def __getattr__(name: str) -> object:
    """A public name at its first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("dragoman")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"dragoman.{module}") for module in _MODULES)
    value: object = next(vars(module)[name] for module in modules if name in vars(module))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
