"""What can be changed in a line of Python: operators of mutation testing (DeMillo, Lipton & Sayward 1978)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
# What tells people something, types and our own checks are left alone.
_LEFT_ALONE = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)
_DELETED = (ast.AugAssign, ast.Continue, ast.Break, ast.Raise, ast.Delete)


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
        length = len((ast.get_source_segment(source, node) or "").encode())
        found.append(Mutation(node.lineno, start, start + length, replacement))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, _LEFT_ALONE):
        return
    yield from _of_statement(node) if isinstance(node, ast.stmt) else _of_expression(node)
    test = getattr(node, "test", None)
    for condition in [test] if test else getattr(node, "ifs", []):
        yield condition, f"(not ({ast.unparse(condition)}))"
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc") or _is_types_alone(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _is_types_alone(node: ast.AST, field: str) -> bool:
    return (
        field == "slice"
        and isinstance(node, ast.Subscript)
        and ast.unparse(node.value) in ("NDArray", "Literal")
    )


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.stmt, str]]:
    is_call = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    stores = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if is_call or stores or isinstance(node, _DELETED):
        yield node, "pass"
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield node, "return None"


def _of_expression(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                ops = [*node.ops[:place], _COMPARISONS[type(operator)](), *node.ops[place + 1 :]]
                yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"({ast.unparse(node.operand)})"
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _has_text(node):
            yield node, f"({ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right))})"
        case ast.Constant(value=bool()):
            yield node, str(not node.value)
        case ast.Constant(value=int() | float()):
            yield node, f"({node.value} + 1)"
            yield node, f"({node.value} - 1)"


def _has_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )
