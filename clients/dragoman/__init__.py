"""Client of the Dragoman translation service.

from dragoman import Client

with Client("localhost:50051") as client:
    for translation in client.translate(["Guten Morgen."], source="de", target="en"):
        print(translation.text)
"""

from importlib.metadata import version

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
from dragoman.model import DecodingDefaults, Model, ModelReference, Quality
from dragoman.settings import LengthPolicy, Priority, Segmentation, Settings
from dragoman.translation import Alignment, FinishReason, Hypothesis, StreamResult, Timings, Translation

__all__ = [
    "Alignment",
    "AsyncClient",
    "AuthenticationError",
    "CallCancelledError",
    "Client",
    "ClientClosedError",
    "DeadlineExceededError",
    "DecodingDefaults",
    "DragomanError",
    "FieldViolation",
    "FinishReason",
    "Hypothesis",
    "InvalidRequestError",
    "LengthPolicy",
    "Model",
    "ModelNotFoundError",
    "ModelReference",
    "OverloadedError",
    "Priority",
    "Quality",
    "Segmentation",
    "ServerError",
    "Settings",
    "StreamResult",
    "Timings",
    "Translation",
    "UnavailableError",
    "UnsupportedError",
]

__version__ = version("dragoman")
