"""Expressions of numbers and amounts of money, in exact decimal arithmetic.

In:  an expression, or a text with prices.
Out: an exact `Decimal`; the `Money` in the text.
Refused: an expression that holds anything but numbers, + - * / and brackets.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext

_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
MAX_EXPRESSION = 400


def evaluate(expression: str) -> Decimal:
    """The exact value of an expression of numbers, + - * / and brackets.

    Raises ValueError for anything else, for a division by zero and for more than 400 characters.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"expression longer than {MAX_EXPRESSION} characters")
    try:
        tree = ast.parse(expression.replace("×", "*").replace("−", "-"), mode="eval")
        with localcontext() as context:
            context.prec = 50
            return _value(tree.body, expression)
    except (SyntaxError, ArithmeticError, RecursionError, MemoryError):
        raise ValueError(f"not an expression of numbers: {expression!r}") from None


def _value(node: ast.AST, source: str) -> Decimal:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        text = ast.get_source_segment(source.replace("×", "*").replace("−", "-"), node)
        return Decimal(text or str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, source), _value(node.right, source))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, source)
    raise ValueError("only numbers, + - * / and brackets are evaluated")


# ---- amounts with a currency ----------------------------------------------------------------

AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_MONEY = re.compile(
    rf"(?P<sign>EUR|€|USD|\$|GBP|£|CHF)\s?(?P<a>{AMOUNT})(?!\d|[.,]\d)"
    rf"|(?<![\d.,])(?P<b>{AMOUNT})\s?(?P<unit>EUR|euros?|€|USD|\$|GBP|£|CHF)(?!\w)",
    re.IGNORECASE,
)
_CURRENCY = {"€": "EUR", "EURO": "EUR", "EUROS": "EUR", "$": "USD", "£": "GBP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount as it stands in a text."""

    amount: Decimal
    currency: str
    words: str


def money_in(text: str) -> list[Money]:
    """Every amount of money in a text, in reading order."""
    found = []
    for match in _MONEY.finditer(text):
        sign = (match["sign"] or match["unit"]).upper()
        amount = Decimal((match["a"] or match["b"]).replace(",", ""))
        found.append(
            Money(amount=amount, currency=_CURRENCY.get(sign, sign), words=match.group().strip())
        )
    return found


def shown(amount: Decimal, currency: str = "") -> str:
    """A result for people: thousands separated, and two decimals where it is money."""
    if currency:
        return f"{currency} {amount:,.2f}"
    return f"{amount.normalize():,f}"
