# ruff: noqa: E501  tables of patterns read best with one pattern a line
"""Answer -> claims: the single statements that must each hold.

A claim is a sentence, a list item, a table row, or a clause that could stand as a sentence. Left
out are what states nothing: citation markers, greetings, offers of help, questions back. A sentence
that says the sources do not say is marked as an abstention; `Yes` and `No` are marked as such.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from atlas.words import content_terms

SHORT = 4
"""Content terms below which a claim is read together with its question."""
CLAUSE = 2
"""Content terms that each side needs for a sentence to be cut in two."""

_END = re.compile(
    r"(?<![\s.][A-Z])(?<!\bMr)(?<!\bDr)(?<!\bSt)(?<!\bvs)(?<!\bNo)(?<!\bNr)(?<!\bcf)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)"
    r"[.!?]['\"”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9])"
)
_MARKER = re.compile(r"\s*(?:\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\]|【[^】]{0,40}】)")
_ITEM = re.compile(r"^\s*(?:[-*•–]|\(?\d{1,2}[.)]|step \d+[:.]|#{1,6})\s+", re.IGNORECASE)
_MARK = re.compile(r"\W*(?:\d{1,2}|[a-zA-Z])[.)]\W*")
"""A list mark within a line, which is no sentence."""
_SPLIT = re.compile(
    r";\s+|\s+[–—]\s+|,?\s+(?:but|while|whereas|although|though)\s+|,\s+(?:and|so|which|because)\s+",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"^(?:(?:according to|based on|as per|from|in) (?:the |your |these |this |provided |given |available )*"
    r"(?:documents?|sources?|passages?|texts?|information|context|manual|article)(?: (?:provided|given|available|above))?,?\s+"
    r"|(?:please note that|note that|it is important to note that|it'?s important to note that|in summary|in short|"
    r"overall|additionally|furthermore|moreover|however|also|therefore|thus|in addition|finally|hello|hi|sure|of course|certainly|well|okay|ok)[,:!.]?\s+)",
    re.IGNORECASE,
)
_POLAR = re.compile(r"^(yes|no|yep|nope|correct|right)\b(?:[,.:;!]|\s+[-–—])?\s*", re.IGNORECASE)
_GRADE = re.compile(r"\[\[[^\]]{0,40}\]\]")
_WORTH = "(?:in)?correct|right|wrong|true|false|grounded|supported|faithful|perfect|accurate"
_ITSELF = re.compile(
    r"^\W*(?:this|the|my|above) (?:answer|response|reply|statement)s? (?:is|are|was) "
    rf"(?:\w+ ){{0,2}}(?:{_WORTH})\b"
    r"|^\W*(?:(?:my|the|final|overall) )*(?:verdict|evaluation|judge?ment)\s*(?:is|:|=)"
    r"|^\W*(?:(?:my|the|final|overall) )*(?:rating|score|grade)\s*[:=]\s*(?:\d|$)"
    r"|^\W*(?:in)?correct\W*$|^\W*i (?:cannot|can't|can not) (?:evaluate|judge|assess|rate|grade)\b",
    re.IGNORECASE,
)
"""What an answer says of its own worth: it has no say in that."""
_FILLER = re.compile(
    r"^(?:i hope (?:this|that|it)\b.*|(?:please )?(?:let me know|feel free)\b.*|(?:you'?re|you are) welcome\b.*"
    r"|thanks?(?: you)?\b.*|happy to help\b.*|is there anything else\b.*|good question\b.*|great question\b.*"
    r"|(?:i'?m |i am )?sorry(?:,? (?:about|for) .*)?|(?:i )?(?:apologi[sz]e).{0,60}|hello|hi|hi there|sure|of course|certainly"
    r"|here(?:'s| is| are) .{0,80}:|if you (?:have|need) (?:any )?(?:more|further|other|additional|specific).*)[.!]*$",
    re.IGNORECASE,
)
_SOURCES = r"(?:documents?|sources?|documentation|passages?|texts?|information|context|manuals?|article|papers|material|files|guide|snippets?|content)"
_NOT_SAY = r"(?:say|state|mention|contain|provide|give|specify|cover|answer|include|address|tell|list|indicate|describe|explain|name|discuss|offer|have)"
_ABSTAIN = re.compile(
    rf"\b{_SOURCES}\b[^.]{{0,60}}?\b(?:do|does|did|don'?t|doesn'?t|didn'?t|can|cannot|can'?t)\b(?: not)?[^.]{{0,25}}?\b{_NOT_SAY}\b"
    rf"|\b(?:is|are|was|were) (?:not|nowhere|never) (?:\w+ )?(?:stated|mentioned|specified|given|provided|documented|described|found|said|addressed)\b"
    rf"|\b(?:isn'?t|aren'?t|wasn'?t) (?:\w+ )?(?:stated|mentioned|specified|given|provided|documented|described|said|addressed)\b"
    rf"|\b(?:no|any) (?:\w+ )?(?:information|mention|details?|statement|figure|answer)\b[^.]{{0,40}}\b(?:is|are|in|about|on|of|for|regarding|here)\b"
    rf"|\bi (?:do not|don'?t|did not|didn'?t|cannot|can'?t|could not|couldn'?t|am unable to|am not able to|was unable to|'m unable to) (?:\w+ )?(?:have|know|find|see|answer|say|tell|provide|determine|locate)\b"
    rf"|\bi'?m (?:unable|not able) to\b|\b(?:cannot|can'?t|could not) be (?:answered|determined|found|said|told)\b"
    rf"|\bnothing (?:\w+ )?(?:in|about|on)\b|\bnone of the {_SOURCES}\b|\b{_SOURCES} (?:are|is|stay|remain) silent\b|\bunanswerable\b"
    rf"|\b(?:it|they|this|that) (?:does|do) ?(?:not|n'?t) (?:say|state|mention|tell|specify|give)\b"
    rf"|\b(?:is|are) not among\b[^.]{{0,60}}\b{_SOURCES}\b"
    rf"|\b{_SOURCES} (?:say|state|mention|contain|give|hold)s? (?:nothing|no)\b"
    rf"|\b(?:does|do) not (?:appear|stand) in (?:the|these|any)\b"
    rf"|\bthere (?:is|are) no\b[^.]{{0,40}}\bin (?:the|these|any of the|your) {_SOURCES}\b"
    rf"|\b{_SOURCES} (?:give|state|mention|list|name|cover)s?\b(?:[^.]|\.\d){{0,60}}\bbut (?:no|not|none|nothing)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|n'?t|no|none|nothing|nowhere|never|unable|cannot|silent|unanswerable)\b|n't\b",
    re.IGNORECASE,
)

ClaimKind = Literal["statement", "abstention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One claim of an answer."""

    text: str
    """As the answer has it, without list marks and phrases that state nothing."""
    read: str
    """The text to compare by meaning: a short claim with its question before it."""
    kind: ClaimKind = "statement"
    polar: Literal["", "yes", "no"] = ""
    """The word with which it answers a question of yes or no."""


def sentences(text: str) -> list[str]:
    """The sentences, list items and table rows of a text, markers and list marks removed."""
    text = _MARKER.sub("", _GRADE.sub("", text))
    found: list[str] = []
    for line in _joined(text):
        line = re.sub(r"[*_`]{2,}", "", line)
        start = 0
        for match in _END.finditer(line):
            found.append(line[start : match.end()].strip())
            start = match.end()
        found.append(line[start:].strip())
    return [item for item in found if re.search(r"\w", item) and not _MARK.fullmatch(item)]


def statements(question: str, answer: str) -> tuple[Statement, ...]:
    """The claims of an answer in their order; none where it states nothing at all."""
    found: list[Statement] = []
    carried = ""
    texts = sentences(answer)
    for place, text in enumerate(texts):
        polar, carried = carried, ""
        for _ in range(3):
            text = _PREFIX.sub("", text)
        match = _POLAR.match(text)
        if match:
            polar = "no" if match[1].casefold() in ("no", "nope") else "yes"
            text = text[match.end() :]
            if not re.search(r"\w", text):
                if place + 1 < len(texts):
                    carried = polar
                    continue
                text = match[1]
        if text.rstrip("\"'”’) ").endswith("?") or any(
            pattern.match(text.strip()) for pattern in (_FILLER, _ITSELF)
        ):
            continue
        if is_abstention(text):
            found.append(Statement(text=text, read=text, kind="abstention"))
            continue
        for number, clause in enumerate(clauses(text)):
            found.append(
                Statement(
                    text=clause,
                    read=_read(question, clause),
                    polar=polar if number == 0 else "",  # type: ignore[arg-type]
                )
            )
    return tuple(found)


def is_abstention(text: str) -> bool:
    """Whether a sentence says that the answer is not known or not in the sources."""
    match = _ABSTAIN.search(text)
    return match is not None and _NEGATED.search(match[0]) is not None


def shortened(text: str, width: int = 70) -> str:
    """A text on one line, cut to a width."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _joined(text: str) -> list[str]:
    """The lines of a text: items and rows of their own, wrapped lines joined, list marks removed."""
    lines: list[str] = []
    open_line = False
    for raw in text.splitlines():
        line = raw.strip()
        item = _ITEM.match(raw)
        if not line:
            open_line = False
            continue
        if item or line.startswith("|"):
            lines.append(raw[item.end() :].strip() if item else line)
            open_line = bool(item)
        elif open_line and lines:
            lines[-1] += " " + line
        else:
            lines.append(line)
            open_line = True
    return lines


def clauses(sentence: str) -> list[str]:
    """A sentence, cut where both sides hold enough to be checked alone."""
    parts: list[str] = []
    start = 0
    for match in _SPLIT.finditer(sentence):
        left, right = sentence[start : match.start()], sentence[match.end() :]
        if len(content_terms(left)) >= CLAUSE and len(content_terms(right)) >= CLAUSE:
            parts.append(left.strip())
            start = match.end()
    parts.append(sentence[start:].strip())
    return parts


def _read(question: str, clause: str) -> str:
    if len(content_terms(clause)) >= SHORT or not question:
        return clause
    return f"{question.strip()} {clause}"
