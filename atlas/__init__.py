"""atlas: a product-document assistant that knows how good it is.

from atlas import Assistant, Scope

with Assistant.open(".") as assistant:
    trace = assistant.ask("How long is the battery of a C-3 under warranty?")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlas.assistant import Assistant
    from atlas.collection import Collection
    from atlas.records import Scope, Trace

__version__ = "0.1.0"
__all__ = ["Assistant", "Collection", "Scope", "Trace", "__version__"]

_HOMES = {
    "Assistant": "atlas.assistant",
    "Collection": "atlas.collection",
    "Scope": "atlas.records",
    "Trace": "atlas.records",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: `atlas --help` needs none of them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'atlas' has no attribute {name!r}")
