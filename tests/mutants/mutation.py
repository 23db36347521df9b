"""What can be changed in a line of Python: operators of mutation testing (DeMillo, Lipton & Sayward 1978)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_OTHER: dict[type[ast.AST], type[ast.AST]] = {ast.FloorDiv: ast.Mult}
for _one, _other in (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
):
    _OTHER |= {_one: _other, _other: _one}
# What tells people something and our own checks are left alone.
_LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)
_DELETED = (ast.AugAssign, ast.Continue, ast.Break, ast.Raise, ast.Delete)
_FIELDS_LEFT_ALONE = ("annotation", "returns", "decorator_list", "exc")


@dataclass(frozen=True)
class Mutation:
    """Another text for a part of a source."""

    line: int
    start: int
    """In bytes."""
    end: int
    replacement: str

    def apply(self, source: str) -> str:
        """The source with it."""
        content = source.encode()
        return (content[: self.start] + self.replacement.encode() + content[self.end :]).decode()


def mutations(source: str) -> list[Mutation]:
    """All mutations of a source, in its order."""
    begins = [0]
    for line in source.encode().splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    found = []
    for node, replacement in _changes(ast.parse(source)):
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        found.append(Mutation(node.lineno, start, end, replacement))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, _LEFT_ALONE):
        return
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                ops = [*node.ops[:place], _OTHER[type(operator)](), *node.ops[place + 1 :]]
                yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
        case ast.BoolOp():
            yield node, f"({ast.unparse(ast.BoolOp(_OTHER[type(node.op)](), node.values))})"
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.BinOp() if type(node.op) in _OTHER and not (_is_text(node.left) or _is_text(node.right)):
            yield node, f"({ast.unparse(ast.BinOp(node.left, _OTHER[type(node.op)](), node.right))})"
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int() | float()):
            yield from ((node, f"({node.value} {sign} 1)") for sign in "+-")
        case ast.Return() if node.value and not isinstance(node.value, ast.Constant):
            yield node, "return None"
        case ast.Expr() if not isinstance(node.value, ast.Constant):
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.stmt() if isinstance(node, _DELETED):
            yield node, "pass"
    test = getattr(node, "test", None)
    for condition in [test] if test else getattr(node, "ifs", []):
        yield condition, f"(not ({ast.unparse(condition)}))"
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in _FIELDS_LEFT_ALONE:
                yield from _changes(child)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
