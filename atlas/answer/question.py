"""A question's words -> what is asked about and what kind of value is asked for.

Written for English questions as people type them: lower case, without a question mark, with the
verb missing. What no rule recognises is of kind `other` and asks for no value in particular.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from atlas.words import NUMBER_WORDS, UNITS, content_terms, tokens

Asked = Literal[
    "duration", "interval", "date", "price", "count", "weight", "speed", "distance", "pressure",
    "torque", "voltage", "capacity", "temperature", "size", "number", "code", "yes_no", "steps",
    "meaning", "place", "person", "other",
]  # fmt: skip

_TIME = r"years?|months?|weeks?|days?|hours?|hrs?|h|minutes?|mins?|min|seconds?|secs?|s"
_NUM = rf"(?:\d[\d,.]*|{'|'.join(NUMBER_WORDS)}|half an?|an?)"
_DURATION = rf"\b{_NUM}[ \-]?(?:working |calendar |full |more )?(?:{_TIME})\b|\blifetime\b|\bunlimited\b|\bovernight\b"
_EVERY = (
    rf"\b(?:every|each|once|twice|annual|annually|yearly|monthly|weekly|daily|per (?:{_TIME}))\b"
)
MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DATE = (
    rf"\b\d{{4}}-\d\d-\d\d\b|\b(?:19|20)\d\d\b|\b\d{{1,2}}\.? (?:{MONTH})\b|\b(?:{MONTH})\.? \d"
    r"|\b(?:before|after|until|within|as soon as|once|when|every)\b"
)


def _unit(*units: str) -> str:
    return rf"\d\s?-?(?:{'|'.join(units)})(?!\w)"


VALUE_PATTERNS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "duration": _DURATION,
        "interval": rf"{_DURATION}|{_EVERY}|{_unit('km')}",
        "date": rf"{_DATE}|{_DURATION}",
        "price": r"(?:€|\$|£|\beur|\busd|\bgbp|\bchf)\s?\d|\d\s?(?:€|\$|£|eur|euros?|usd|dollars?)\b|\bfree\b|\bno charge\b"
        r"|\|\s*\d+\.\d\d\b",
        "count": rf"\b(?:\d[\d,]*|{'|'.join(NUMBER_WORDS)}|none|both|once|twice)\b",
        "weight": _unit("kg", "g", "lbs?", "kilograms?", "tonnes?"),
        "speed": _unit("km/h", "kmh", "mph", "m/s", "mbps", "gbps"),
        "distance": _unit("km", "m", "miles?", "kilomet(?:er|re)s?", "met(?:er|re)s?"),
        "pressure": _unit("bar", "psi", "kpa", "hpa"),
        "torque": _unit("nm", r"n·m", "newton met(?:er|re)s?"),
        "voltage": _unit("v", "kv", "mv", "volts?"),
        "capacity": _unit(
            "wh", "kwh", "ah", "mah", "gb", "mb", "tb", "l", "ml", "litres?", "%", "percent"
        ),
        "temperature": _unit(r"°\s?[cf]", "degrees?", "celsius"),
        "size": _unit("mm", "cm", "m", r"inch(?:es)?", "in", '"', "km"),
        "number": r"\d",
        "code": r"\b[A-Z]{1,5}-?\d[\w/-]*\b",
    }.items()
}
"""What a quote must contain to give the kind of value that was asked for."""
STRICT = frozenset(
    {
        "price", "duration", "count", "weight", "speed", "pressure", "torque", "voltage",
        "temperature",
    }
)  # fmt: skip
"""Kinds of value that a quote must contain to answer at all."""

_KINDS: tuple[tuple[Asked, str], ...] = (
    ("yes_no", r"^(?:is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had|am|isn't|aren't|don't|doesn't|can't|ok|okay)\b|\bor not$"),
    ("meaning", r"\bmean(?:s|ing)?\b|\bstand(?:s)? for\b|\bwhat'?s? (?:is )?(?:error|code|fault)\b"),
    ("interval", r"\bhow (?:often|frequent|frequently|regularly)\b|\binterval\b"),
    ("price", r"\b(?:what|how much) (?:do|does|should|can|would) \w+ charge (?:for|him|her|them|an?|the customer)\b"),
    ("price", r"\bprice[sd]?\b|\bcosts?\b|\bhow expensive\b|\bhow much (?:money|would i pay|do i pay)"),
    ("price", r"\bhow much (?:is|are|for) (?:an?|the|one|two|three|\d+|it|they|that)\b(?!.*\b(?:load|weight|pressure|travel|play|torque|range|capacity|power)\b)"),
    ("duration", rf"\bhow (?:many|much) (?:{_TIME})\b|\bhow (?:long|soon|early)\b|\bhow much time\b|\bwarranty (?:period|time|length)\b|\bwhat(?:'?s| is) the (?:warranty|guarantee) (?:of|on|for)\b"),
    ("distance", r"\bhow many (?:km|kilomet(?:er|re)s?|miles?)\b|\bhow far\b|\brange\b"),
    ("torque", r"\btorques?\b|\bhow tight(?:ly)?\b|\bhow (?:many|much) (?:nm|newton)\b|\bnm\b"),
    ("weight", r"\bhow many (?:kg|kilos?|kilograms?|grams?)\b"),
    ("voltage", r"\bvoltages?\b|\b(?:how many|what) volts?\b"),
    ("capacity", r"\bhow many (?:wh|ah|mah|ml|litres?|gb)\b|\bwatt hours?\b"),
    ("size", r"\bhow many (?:mm|cm|inch(?:es)?|millimet(?:er|re)s?|centimet(?:er|re)s?)\b"),
    ("pressure", r"\bhow (?:many|much) (?:bar|psi)\b"),
    ("price", r"\bhow many (?:eur|euros?|dollars?|pounds|francs)\b"),
    ("number", r"\bhow many (?:watts?|lux|lumens?|amps?|amperes?|percent|degrees|hz|%)(?!\w)|\bat what percent\b"),
    ("count", r"\bhow many\b|\bnumber of\b|\bcount of\b"),
    ("weight", r"\bhow (?:heavy|much does .* weigh)\b|\bweights?\b|\bweigh\b|\bpayload\b|\bmax(?:imum)? load\b"),
    ("speed", r"\bhow fast\b|\bspeed\b"),
    ("pressure", r"\bpressures?\b(?![ -](?:wash|clean|hose|jet))|\bbar\b|\bpsi\b"),
    ("capacity", r"\bcapacity\b"),
    ("temperature", r"\btemperatures?\b|\bhow (?:hot|cold|warm)\b|\bdegrees\b"),
    ("size", r"\bhow (?:big|wide|tall|high|deep|thick|thin)\b|\bdimensions?\b|\bdiameter\b|\bhow large\b"),
    ("date", r"^when\b|\bwhat (?:date|day|year)\b|\bsince when\b|\bfrom when\b|\buntil when\b|\bwhich (?:date|day|year)\b"),
    ("code", r"\b(?:which|what)(?:'s)? (?:is )?(?:the )?(?:error |fault |part |spare |order )*(?:code|number)\b|\bpart n(?:o|umber)\b|\bwhich error\b"),
    ("place", r"^where\b"),
    ("person", r"^who\b|\bwho (?:do|does|can|should|is|must|may)\b"),
    ("steps", r"\bhow (?:do|can|to|should|could|would|does one|must)\b|\bsteps?\b|\bprocedure\b"),
)  # fmt: skip

_LENGTHS = re.compile(
    r"\bhow long (?:is|are) (?:the|a|an|my) (?:\w+ )?(?:bike|cable|cord|bolt|screw|frame|chain|lead)\b"
)
_QUESTION_WORD = (
    r"\b(?:how|what|whats|what's|which|wich|when|where|who|can|may|must|should|is|are|does|do)\b"
)
_ASKS = re.compile(_QUESTION_WORD)
_JOINT = re.compile(
    rf"(?:[,;?]\s*(?:and\s+)?|[.!]\s+(?:and\s+)?|\s+and\s+)(?={_QUESTION_WORD})", re.IGNORECASE
)
_POLITE = re.compile(
    r"^(?:(?:hello|hi|good (?:morning|afternoon|day)|please|hey)[ ,!.]*)*"
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell|give|say|let|show) (?:me|us)(?: know)? )?"
)
_PERIODS = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), period)
    for pattern, period in (
        ("every half[ -]year|twice (?:a|per|each|every) year|half[ -]yearly", "every 6 months"),
        ("(?:once )?(?:every|each|a|per) year|yearly|annually", "every 12 months"),
        ("every two years|every 2 years|every other year", "every 24 months"),
        ("(?:every|each) quarter|quarterly", "every 3 months"),
    )
)
_WARRANTY = re.compile(r"\b(?:warranty|guarantee)$|^(?:warranty|guarantee)\b|\bwarranty [\w-]+$")
_AMOUNT = re.compile(r"\bhow much\b")
EXTREME = re.compile(
    r"\b(max(?:imum)?|min(?:imum)?|top|at (?:most|least)|limit|highest|lowest|recommended)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question taken apart."""

    text: str
    asked: Asked
    terms: tuple[str, ...]
    """Terms that carry its subject, without stop words and words that only say the kind asked."""
    wordings: tuple[str, ...]
    """The text, and the text with a period written as documents do: `every 12 months`."""
    bare: str
    """The text with the names of products replaced by `it`."""


def analyse(text: str, without: frozenset[str] = frozenset()) -> Question:
    """Take a question apart. Terms in `without` (the products it names) are left out."""
    folded = _POLITE.sub("", " ".join(text.casefold().replace("’", "'").split()))
    asking = [piece for piece in _JOINT.split(folded) if _ASKS.match(piece.strip())]
    asked = kind_asked(asking[0].strip() if asking else folded)
    ignored = without | _ASKING | set(UNITS)
    words = [
        term
        for term in content_terms(text)
        if term not in ignored and (len(term) > 1 or term.isdigit() or not term.isascii())
    ]
    other = text
    for pattern, period in _PERIODS:
        other = pattern.sub(period, other)
    wordings = (text,) if other == text else (text, other)
    return Question(
        text=text, asked=asked, terms=tuple(words), wordings=wordings, bare=_bare(text, without)
    )


def _bare(text: str, without: frozenset[str]) -> str:
    """The text with each run of words behind terms in `without` replaced by `it`."""
    kept, last = "", 0
    for token in tokens(text):
        if token.term not in without or token.start < last:
            continue
        between = text[last : token.start]
        if between.strip() or not kept:
            kept += f"{between}it"
        last = token.end
    return kept + text[last:]


def parts(text: str) -> list[str]:
    """The single questions in a question that asks several things, the first with what leads to it.

    `it has a crack, which box does it go in and how early must i order it` gives two. A question
    that asks one thing is one part.
    """
    pieces = [piece.strip() for piece in _JOINT.split(text) if piece.strip()]
    lead = [piece for piece in pieces if not _ASKS.match(piece.casefold())]
    asking = [piece for piece in pieces if _ASKS.match(piece.casefold())]
    if len(asking) < 2 or len(lead) > 1 or (lead and pieces[0] != lead[0]):
        return [text]
    return [", ".join((*lead, asking[0])), *asking[1:]]


def kind_asked(folded: str) -> Asked:
    """The kind of value that a case-folded question asks for."""
    if _LENGTHS.search(folded):
        return "size"
    if _WARRANTY.search(folded) and not re.search(_QUESTION_WORD, folded):
        return "duration"
    for kind, pattern in _KINDS:
        if re.search(pattern, folded):
            return kind
    return "number" if _AMOUNT.search(folded) else "other"


def gives(asked: Asked, quote: str) -> bool | None:
    """Whether a quote holds the kind of value asked for; None where no kind can be checked."""
    pattern = VALUE_PATTERNS.get(asked)
    return None if pattern is None else bool(pattern.search(quote))


_ASKING = frozenset(
    """long often mani much number mean say tell price cost time give happen kind type way
    work find use exact exactli say state what's whi someon somebodi custom peopl thing hello hi good morn thank now cure fix rid
    still got alreadi allow ok long til till brand heavi weigh fast far big tall wide high deep
    thick thin expens hot cold warm larg tight soon earli wrong mum dad guy ladi maximum minimum""".split()
)
"""Stems that say how a question is asked rather than what about."""
