"""Decoders that another process opens: whatever is here can be pickled by its name."""

import logging
import os
import time
from collections.abc import Sequence

from tests.engine.house import VOCABULARY, endless
from tests.engine.table_decoder import TableDecoder, Tokens, random_model

from dragoman_server.engine.errors import DecoderError


def open_random() -> TableDecoder:
    """As `random_model`; it prints and logs, as libraries do."""
    print("printed where answers go", flush=True)
    logging.getLogger("tests.openers").warning("opened in %s", "another process")
    return TableDecoder(random_model(VOCABULARY), VOCABULARY)


def open_slow() -> TableDecoder:
    """A step takes ten milliseconds, and none ends a sentence."""
    return TableDecoder(endless, VOCABULARY, lambda sources: time.sleep(0.01))


def open_slow_encoder() -> TableDecoder:
    """To encode a group takes fifty milliseconds, and a step hardly any."""

    class SlowEncoder(TableDecoder):
        def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> list[Tokens]:
            time.sleep(0.05)
            return super().encode(sources, beam_size)

    return SlowEncoder(endless, VOCABULARY)


def open_fragile() -> TableDecoder:
    """A step with the source 13 in its batch fails, and one with 14 ends the engine's thread."""

    def observe(sources: list[Tokens]) -> None:
        if (13,) in sources:
            raise RuntimeError("out of smoke") from KeyError("the cause's cause")
        if (14,) in sources:
            raise SystemExit

    return TableDecoder(endless, VOCABULARY, observe)


def refuse() -> TableDecoder:
    """Cannot be opened."""
    raise DecoderError("there is nothing to open") from OSError("no such thing")


def vanish() -> TableDecoder:
    """Takes its process with it."""
    os._exit(3)


def open_hanging() -> TableDecoder:
    """A step with the source 15 in its batch takes a minute."""

    def observe(sources: list[Tokens]) -> None:
        time.sleep(60 if (15,) in sources else 0.002)

    return TableDecoder(endless, VOCABULARY, observe)
