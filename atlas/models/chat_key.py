"""The key of a chat server: read from the one variable that is named, and kept out of sight.

Enters: the name of an environment variable. Leaves: a Key. Refuses, with ModelError that names the
variable and never its value: one that is empty, or that no header can hold.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from atlas.errors import ModelError

SECRET = 8
"""Characters from which a key is taken out of replies; a shorter one, such as `test`, is a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, or "" for a server without keys."""

    text: str = field(repr=False)

    def hidden(self, text: str) -> str:
        """The text without the key, also as it stands in JSON."""
        if self.text:
            for form in (self.text, json.dumps(self.text)[1:-1]):
                text = text.replace(form, "[key]")
        return text

    def hidden_in_reply(self, text: str) -> str:
        """The same for what a model wrote, where a short key may be a word of the answer."""
        return self.hidden(text) if len(self.text) >= SECRET else text


def read_key(model: str, variable: str) -> Key:
    """The key that a variable holds; an empty one where no variable is named."""
    if not variable:
        return Key(text="")
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ModelError(
            f"chat model {model}: the variable {variable} holds no key; set it, or take"
            " api_key_env out for a server without keys"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelError(
            f"chat model {model}: what the variable {variable} holds is no key: it has spaces or"
            " signs that no header can hold"
        )
    return Key(text=key)
