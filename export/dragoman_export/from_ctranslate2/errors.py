"""Why a model of CTranslate2 can't be brought here."""


class CTranslate2Error(ValueError):
    """The model is none of CTranslate2, is not whole, or holds what our Transformer has no place for."""
