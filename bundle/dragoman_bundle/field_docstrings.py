"""What the fields of a dataclass mean: the string below each, which a reader of the code finds there too.

Commands, pages and messages take their words from it, so that a setting is described in one place.
"""

import ast
import inspect
import textwrap
from typing import Any


def field_docstrings(config: type[Any]) -> dict[str, str]:
    """The docstring under each field, those of base classes included, on one line.

    Raises ValueError, naming the field, where one has none.
    """
    meanings: dict[str, str] = {}
    for cls in reversed(config.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
                    raise ValueError(f"{cls.__name__}.{field.target.id} has no docstring")
                meanings[field.target.id] = " ".join(str(below.value.value).split())
    return meanings
