"""Conditions on cells, as TileDB-Py writes them: ``a > 3 and s in ['x', 'y']``, ``attr('n') == None``.

:func:`parse` makes a tree of comparisons, whose values have the types of their fields, and checks all names and types.
It evaluates to what libtiledb's library does: a comparison with a null is false, whatever it is negated to; of NaN only
"not equal" holds; text is compared byte by byte; labels of an ordered enumeration compare by their numbers.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import warnings
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple, Union

from ._errors import UsageError

if TYPE_CHECKING:
    import numpy

# The deepest nesting that is accepted. It bounds the recursion of parsing and evaluation.
_MOST_LEVELS = 100

# How many labels a warning names, and of how many it looks for the nearest.
_MOST_SHOWN, _MOST_COMPARED = 10, 10_000

_OPERATORS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}

# What an operator becomes if the two sides change places.
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}


@dataclasses.dataclass(frozen=True)
class Field:
    """What a condition has to know about a dimension or an attribute."""

    name: str
    is_dimension: bool
    #: The type of values; ``object`` for text.
    dtype: "numpy.dtype[Any]"
    is_nullable: bool = False
    #: The labels of an enumeration, whose numbers are the values.
    labels: "Optional[numpy.ndarray[Any, Any]]" = None
    are_labels_ordered: bool = False

    @property
    def is_text(self) -> bool:
        return self.labels is None and self.dtype.kind in "OSUV"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A comparison of a field with a value of its type, with a list of these for ``in`` and ``not in``, or with
    ``None``."""

    field: Field
    operator: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Combination:
    """Conditions of which all hold, or at least one."""

    needs_all: bool
    conditions: Tuple["Condition", ...]


Condition = Union[Comparison, Combination]


def parse(text: str, fields: Mapping[str, Field]) -> Condition:
    """Returns the condition that ``text`` is.

    :raises UsageError: if it is none, names unknown fields, or compares them with values of other types
    """
    if not isinstance(text, str):
        raise TypeError(f"a condition is text, such as \"a > 3\", not {type(text).__name__}")
    try:
        parsed = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"not a condition: {text!r}: {error}") from None
    except (RecursionError, MemoryError):
        raise UsageError("a condition that is nested too deeply") from None
    return _Parser(fields).condition(parsed, is_negated=False, level=0)


def fields_of(condition: Condition) -> FrozenSet[str]:
    """Returns the names of the fields that a condition compares."""
    if isinstance(condition, Comparison):
        return frozenset([condition.field.name])
    return frozenset().union(*map(fields_of, condition.conditions))


def conjuncts(condition: Condition) -> Iterator[Comparison]:
    """Returns comparisons that hold for every cell that the condition holds for."""
    if isinstance(condition, Comparison):
        yield condition
    elif condition.needs_all:
        for one in condition.conditions:
            yield from conjuncts(one)


class _Parser:
    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields

    def condition(self, node: ast.AST, is_negated: bool, level: int) -> Condition:
        if level > _MOST_LEVELS:
            raise UsageError(f"a condition of more than {_MOST_LEVELS} levels")
        if isinstance(node, ast.BoolOp):
            return self._combination(isinstance(node.op, ast.And), node.values, is_negated, level)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._combination(isinstance(node.op, ast.BitAnd), _operands(node), is_negated, level)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.condition(node.operand, not is_negated, level + 1)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found = [self._comparison(*one, is_negated) for one in zip(sides, node.ops, sides[1:])]
            return found[0] if len(found) == 1 else Combination(not is_negated, tuple(found))
        raise UsageError(
            f"{_shown(node)} is no condition: write comparisons, joined by and, or, not; "
            "`&` and `|` bind closer than comparisons, which need parentheses"
        )

    def _combination(self, needs_all: bool, nodes: List[Any], is_negated: bool, level: int) -> Combination:
        found = tuple(self.condition(one, is_negated, level + 1) for one in nodes)
        return Combination(needs_all != is_negated, found)

    def _comparison(self, left: Any, sign: ast.cmpop, right: Any, is_negated: bool) -> Comparison:
        operator = _OPERATORS.get(type(sign))
        if operator is None:
            raise UsageError("compare with `== None` or `!= None`: `is` compares objects of Python")
        if operator in ("in", "not in"):
            if not isinstance(right, ast.List):
                raise UsageError(f"`{operator}` needs a list: `field {operator} ['a', 'b']`")
            field = self._field(left)
            if not right.elts:
                raise UsageError(f"`{operator}` needs a list with a value")
            value: Any = [_member(field, _literal(one)) for one in right.elts]
        else:
            if _is_field(right) and not _is_field(left):
                left, right, operator = right, left, _MIRRORED[operator]
            field = self._field(left)
            value = _value(field, operator, _literal(right))
        return Comparison(field, _NEGATED[operator] if is_negated else operator, value)

    def _field(self, node: Any) -> Field:
        kind = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _is_field(node):
            kind, node = node.func.id, node.args[0]
        name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) and kind else None
        if not isinstance(name, str):
            raise UsageError(f"{_shown(node)} is no field: write a name, attr('name') or dim('name')")
        field = self._fields.get(name)
        kinds = {"attr": "attribute", "dim": "dimension"}
        if field is None or (kind and field.is_dimension != (kind == "dim")):
            near = difflib.get_close_matches(name, self._fields, 1)
            meant = f"did you mean {near[0]!r}? " if near and near[0] != name else ""
            raise UsageError(f"no {kinds.get(kind or '', 'field')} {name!r}; {meant}there are {', '.join(self._fields)}")
        return field


def _operands(node: ast.BinOp) -> List[ast.AST]:
    """Returns the operands of a chain of the same operator, which Python nests."""
    kind, found = type(node.op), []
    left: ast.AST = node
    while isinstance(left, ast.BinOp) and type(left.op) is kind:
        found.append(left.right)
        left = left.left
    return [left, *reversed(found)]


def _is_field(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        is_named = isinstance(node.func, ast.Name) and node.func.id in ("attr", "dim")
        return is_named and len(node.args) == 1 and not node.keywords
    return isinstance(node, ast.Name)


def _literal(node: Any) -> Any:
    sign: Optional[int] = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "val" and len(node.args) == 1:
        node = node.args[0]
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = (sign or 1) * (-1 if isinstance(node.op, ast.USub) else 1)
        node = node.operand
    if not isinstance(node, ast.Constant) or (sign and not isinstance(node.value, (int, float))):
        is_joined = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
        hint = "; `&` and `|` bind closer than comparisons, which need parentheses" * is_joined
        raise UsageError(f"{_shown(node)} is no value: write a number, text in quotes, True, False or None{hint}")
    value: Any = node.value
    return value if sign is None else sign * value


def _shown(node: ast.AST) -> str:
    try:
        return f"`{ast.unparse(node)}`"
    except RecursionError:
        return "this"


def _value(field: Field, operator: str, value: Any) -> Any:
    """Returns a value in the type of a field."""
    if value is None:
        if operator not in ("==", "!="):
            raise UsageError(f"{field.name}: null compares only by == and !=")
        return None
    if field.labels is not None:
        if operator not in ("==", "!=") and not field.are_labels_ordered:
            raise UsageError(f"{field.name}: the labels have no order, so they compare only by == and !=")
        return _label(field, value)
    if field.is_text:
        return _text(field, value)
    return _number(field, value)


def _member(field: Field, value: Any) -> Any:
    """Returns a member of a list in the type of a field."""
    if field.labels is not None:
        return _label(field, value)
    if field.is_text:
        return _text(field, value)
    if isinstance(value, float) and field.dtype.kind != "f" and not value.is_integer():
        raise UsageError(f"{field.name} has integers, not {value!r}")
    return _number(field, value)


def _text(field: Field, value: Any) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise UsageError(f"{field.name} is text: write {str(value)!r} in quotes, not {value!r}")
    return value.encode() if isinstance(value, str) else value


def _label(field: Field, value: Any) -> Any:
    assert field.labels is not None
    is_text = field.labels.dtype.kind in "OSU"
    if isinstance(value, (str, bytes)) != is_text:
        raise UsageError(f"{field.name} has labels such as {field.labels[:1].tolist()}, not {value!r}")
    found = value.decode() if isinstance(value, bytes) else value
    known = field.labels.tolist()
    if found not in known:
        # No error, because of several arrays some may lack a label.
        near = difflib.get_close_matches(found, known[:_MOST_COMPARED], 1) if isinstance(found, str) else []
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known[:_MOST_SHOWN]))}" + " ..." * (len(known) > _MOST_SHOWN)
        warnings.warn(f"{field.name} has no label {found!r}, so no cell is equal to it; {meant}", stacklevel=2)
    return found


def _number(field: Field, value: Any) -> Any:
    """Returns a number or a date as the number that is stored."""
    import numpy

    dtype = field.dtype
    if dtype.kind in "mM":
        if isinstance(value, str) and dtype.kind == "M":
            return _date(field, value)
        dtype = numpy.dtype("int64")
    elif dtype.kind == "b":
        dtype = numpy.dtype("uint8")
    if not isinstance(value, (int, float)):
        raise UsageError(f"{field.name} has numbers of the type {field.dtype}, not {value!r}")
    try:
        return dtype.type(value)
    except (OverflowError, ValueError):
        raise UsageError(f"{field.name} has numbers of the type {field.dtype}, which {value!r} is not") from None


def _date(field: Field, text: str) -> Any:
    import numpy

    try:
        date = numpy.datetime64(text)
    except ValueError:
        raise UsageError(f"{field.name} has dates such as '2020-01-31', not {text!r}") from None
    stored = date.astype(field.dtype)
    if stored.astype(date.dtype) != date:
        raise UsageError(f"{field.name} has dates of the type {field.dtype}, which cannot hold {text!r}")
    return stored.astype("int64")


def evaluate(condition: Condition, columns: Mapping[str, Any], count: int) -> "numpy.ndarray[Any, Any]":
    """Returns for each of ``count`` cells whether the condition holds. The columns are arrays of NumPy, masked where
    cells are null; those of an enumeration have its numbers, and text may be an array of Arrow."""
    import numpy

    if isinstance(condition, Comparison):
        column = _Column(columns[condition.field.name], condition.field)
        holds = column.compare(condition, count)
        return holds if column.valid is None or condition.value is None else holds & column.valid
    holds = numpy.full(count, condition.needs_all)
    for one in condition.conditions:
        found = evaluate(one, columns, count)
        holds = holds & found if condition.needs_all else holds | found
    return holds


class _Column:
    """The values of a field, and which of them are not null (``None`` if all are)."""

    def __init__(self, column: Any, field: Field) -> None:
        import numpy

        self.valid: "Optional[numpy.ndarray[Any, Any]]" = None
        if not isinstance(column, numpy.ndarray):
            # Text of Arrow, which compares it faster than Python.
            if column.null_count:
                self.valid = column.is_valid().to_numpy(zero_copy_only=False)
            self.values: Any = column
            return
        if isinstance(column, numpy.ma.MaskedArray):
            self.valid = ~numpy.ma.getmaskarray(column).ravel()
        self.values = numpy.ma.getdata(column).ravel()
        if field.is_text and self.values.dtype == object:
            is_valid = numpy.array([one is not None for one in self.values], dtype=bool)
            self.valid = None if is_valid.all() else is_valid
            self.values = [_bytes(one) for one in self.values]
        elif self.values.dtype.kind in "mM":
            self.values = self.values.view("int64")

    def compare(self, comparison: Comparison, count: int) -> "numpy.ndarray[Any, Any]":
        import numpy

        field, operator, value = comparison.field, comparison.operator, comparison.value
        if value is None:
            valid = numpy.full(count, True) if self.valid is None else self.valid
            return valid if operator == "!=" else ~valid
        if field.labels is not None:
            return self._compare_labels(field, operator, value)
        if field.is_text:
            return self._compare_texts(operator, value)
        if operator in ("in", "not in"):
            # By their bytes: the two zeros differ, as in libtiledb.
            members = numpy.array(value, dtype=self.values.dtype)
            as_bits = f"u{self.values.dtype.itemsize}"
            holds = numpy.isin(self.values.view(as_bits), members.view(as_bits))
            return holds if operator == "in" else ~holds
        return _FUNCTIONS[operator](self.values, value)

    def _compare_labels(self, field: Field, operator: str, value: Any) -> "numpy.ndarray[Any, Any]":
        import numpy

        labels = field.labels.tolist() if field.labels is not None else []
        numbers = {label: number for number, label in enumerate(labels)}
        codes = self.values.astype("int64")
        if operator in ("in", "not in"):
            holds = numpy.isin(codes, [numbers[one] for one in value if one in numbers])
            return holds if operator == "in" else ~holds
        if value in numbers:
            return _FUNCTIONS[operator](codes, numbers[value])
        return numpy.full(len(codes), operator == "!=")

    def _compare_texts(self, operator: str, value: Any) -> "numpy.ndarray[Any, Any]":
        import numpy

        if isinstance(self.values, numpy.ndarray):
            values = self.values.view(f"S{self.values.dtype.itemsize}") if self.values.dtype.kind == "V" else self.values
            holds = numpy.isin(values, value) if operator in ("in", "not in") else _FUNCTIONS[operator](values, value)
        elif isinstance(self.values, list):
            if operator in ("in", "not in"):
                wanted = set(value)
                return numpy.array([(one in wanted) == (operator == "in") for one in self.values], dtype=bool)
            compare = _FUNCTIONS[operator]
            return numpy.array([compare(one, value) for one in self.values], dtype=bool)
        else:
            holds = _compare_arrow(self.values, operator, value)
        return ~holds if operator == "not in" else holds


def _compare_arrow(column: Any, operator: str, value: Any) -> "numpy.ndarray[Any, Any]":
    """Compares texts of Arrow byte by byte."""
    import pyarrow

    # Its functions are made when it is imported, so type checkers do not know them.
    compute: Any = importlib.import_module("pyarrow.compute")
    binary = column.cast(pyarrow.large_binary())
    if operator in ("in", "not in"):
        holds = compute.is_in(binary, value_set=pyarrow.array(value, pyarrow.large_binary()))
    else:
        holds = getattr(compute, _ARROW[operator])(binary, pyarrow.scalar(value, pyarrow.large_binary()))
    return holds.fill_null(False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _bytes(text: Any) -> bytes:
    """Returns the bytes of a text; none for null."""
    return b"" if text is None else text.encode() if isinstance(text, str) else bytes(text)


_ARROW = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal"}

_FUNCTIONS: "Dict[str, Callable[[Any, Any], numpy.ndarray[Any, Any]]]" = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
