"""A first sentence, which pays for what is loaded and allocated at first use, so that no caller does."""

from contextlib import closing
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.request import Sentence


def warm(decoder: Decoder[Any], limits: EngineLimits, sentence: Sentence) -> None:
    """Decodes the sentence. Raises DecoderError.

    In an engine of its own: it must count neither as traffic nor towards the learnt pace.
    """
    with closing(Engine(decoder, limits=limits)) as engine:
        engine.start()
        engine.submit([sentence])[0].result()
