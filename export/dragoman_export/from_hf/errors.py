"""Why a MarianMT checkpoint can't be brought here."""


class CheckpointError(ValueError):
    """The checkpoint is none of MarianMT, is not whole, or holds what our Transformer has no place for."""
