"""The models by name, in the order in which each starts from the one before."""

from typing import Literal, get_args

from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.exact import DiagonalModel, Hmm, Model1, Model2
from dragoman_training.alignment.models.model import Arrays, Direction, Model

ModelName = Literal["ibm1", "ibm2", "hmm"]
CHAIN: tuple[ModelName, ...] = get_args(ModelName)


def first_model(
    name: ModelName, direction: Direction, lexicon_P: Numbers, before: Model | None, *, diagonal: bool
) -> Model:
    """A model as its training begins."""
    match name:
        case "ibm1":
            return Model1()
        case "ibm2":
            return DiagonalModel() if diagonal else Model2()
        case "hmm":
            return Hmm.uniform(direction)


def kind_of(model: Model) -> str:
    """The name under which a model is saved."""
    return next(kind for kind, own in _KINDS.items() if type(model) is own)


def model_of(kind: str, arrays: Arrays) -> Model:
    """A saved model. Raises KeyError for a kind that there is not."""
    return _KINDS[kind].from_arrays(arrays)


_KINDS: dict[str, type[Model1] | type[Model2] | type[DiagonalModel] | type[Hmm]] = {
    "ibm1": Model1,
    "ibm2": Model2,
    "ibm2-diagonal": DiagonalModel,
    "hmm": Hmm,
}
