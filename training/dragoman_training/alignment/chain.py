"""The models by name, in the order in which each starts from the one before."""

from typing import Literal, get_args

from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.exact import (
    EXACT_KINDS,
    DiagonalModel,
    ExactModel,
    Hmm,
    Model1,
    Model2,
)
from dragoman_training.alignment.models.fertility import FertilityModel, Model3, Model4, Model5, Priors
from dragoman_training.alignment.models.model import Arrays, Direction, Model

ModelName = Literal["ibm1", "ibm2", "hmm", "ibm3", "ibm4", "ibm5"]
CHAIN: tuple[ModelName, ...] = get_args(ModelName)
AnyModel = ExactModel | FertilityModel


def first_model(
    name: ModelName, direction: Direction, lexicon_P: Numbers, before: AnyModel | None, *, diagonal: bool
) -> AnyModel:
    """A model as its training begins."""
    match name:
        case "ibm1":
            return Model1()
        case "ibm2":
            return DiagonalModel() if diagonal else Model2()
        case "hmm":
            return Hmm.uniform(direction)
    kind = {"ibm3": Model3, "ibm4": Model4, "ibm5": Model5}[name]
    return kind.after(before or Model1(), direction, lexicon_P, Priors())


def kind_of(model: Model) -> str:
    """The name under which a model is saved."""
    return next(kind for kind, own in _KINDS.items() if type(model) is own)


def model_of(kind: str, arrays: Arrays) -> AnyModel:
    """A saved model. Raises KeyError for a kind that there is not."""
    return _KINDS[kind].from_arrays(arrays)


_KINDS: dict[str, type[AnyModel]] = {**EXACT_KINDS, "ibm3": Model3, "ibm4": Model4, "ibm5": Model5}
