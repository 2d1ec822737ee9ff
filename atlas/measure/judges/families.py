"""Names of chat models -> their families, so that no model judges the answers of its own kin.

Enters: a model's name as its server knows it. Leaves: the family that trained it. Refused, with
UsageError: a judge of the family that wrote the answers, unless that is forced. A name is all there
is to go by: a server that calls its model `default` hides what it is.
"""

from __future__ import annotations

import re

from atlas.errors import UsageError

_FAMILIES = {
    "openai": r"^o\d|(?<![a-z])gpt(?![a-z])|chatgpt|davinci|codex",
    "claude": "claude",
    "llama": "llama|vicuna|alpaca",
    "qwen": "qwen|(?<![a-z])qwq(?![a-z])",
    "mistral": "mistral|mixtral|ministral|magistral|codestral|devstral|pixtral",
    "google": "gemma|gemini",
    "smollm": "smollm",
    "phi": r"(?<![a-z])phi(?![a-z])",
    "deepseek": "deepseek",
    "command": r"(?<![a-z])command(?![a-z])|c4ai|(?<![a-z])aya(?![a-z])",
    "granite": "granite",
    "glm": r"(?<![a-z])(?:chat)?glm(?![a-z])",
}
"""Family -> what stands in the names of its models, case folded."""


def family(model_name: str) -> str:
    """The family of a model, from its name without folders, organisation and case.

    Where a name holds several (`DeepSeek-R1-Distill-Qwen-7B`) the first; an unknown name gives
    itself up to the first digit or separator.
    """
    return _families(model_name)[0]


def check_family(judge_model: str, writer_model: str | None, forced: bool) -> None:
    """Raises UsageError where judge and writer share a family and that was not `forced`.

    A model made of two families is kin to both. `writer_model` is None where no chat model wrote
    the answers: the extractive answerer quotes and has no family.
    """
    if writer_model is None or forced:
        return
    writers = _families(writer_model)
    shared = [name for name in _families(judge_model) if name in writers]
    if shared:
        raise UsageError(
            f"the judge {judge_model} is of the family that wrote the answers ({shared[0]}), and "
            "models favour their own; name one of another family under `judge:` in atlas.yaml, or "
            "force it with --same-family"
        )


def _families(model_name: str) -> tuple[str, ...]:
    """Every family that a name holds, in the order of the name; one at least."""
    name = re.split(r"[/\\]", model_name.strip().rstrip("/\\"))[-1].casefold().removeprefix("ft:")
    found = [
        (match.start(), known)
        for known, pattern in _FAMILIES.items()
        if (match := re.search(pattern, name))
    ]
    if found:
        return tuple(known for _, known in sorted(found))
    return (re.split(r"[\W\d_]", name, maxsplit=1)[0] or name,)
