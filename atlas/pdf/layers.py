"""A PDF file -> which of its layers (optional content) a viewer leaves out when it opens the file.

In:  a reader of pypdf. Out: an answer for each layer, or for what several layers decide together.
Not followed: expressions (`/VE`) and what a viewer may choose to show later.
"""

from __future__ import annotations

from typing import Any

from pypdf.generic import ArrayObject, DictionaryObject, is_null_or_none

from atlas.pdf.content import dictionary

MOST_MEMBERS = 50
"""Layers that are asked where several decide together."""


class Layers:
    """The layers (optional content) of a file, looked up when a page first asks for one."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._listed: dict[str, dict[int, object]] | None = None
        """Layers switched "/ON" and "/OFF" by name, by their identity."""
        self._off_at_first = False

    def is_off(self, layer: DictionaryObject) -> bool:
        """Whether a viewer leaves out what belongs to a layer, or to what several layers decide."""
        if "/OCGs" not in layer:
            return self._group_off(layer)
        groups = layer["/OCGs"]
        members = groups if isinstance(groups, ArrayObject) else [groups]
        members = members[:MOST_MEMBERS]
        off = [self._group_off(dictionary(one)) for one in members if not is_null_or_none(one)]
        policy = layer.get("/P", "/AnyOn")
        if not off:
            return False
        if policy == "/AllOn":
            return any(off)
        if policy == "/AnyOff":
            return not any(off)
        return not all(off) if policy == "/AllOff" else all(off)

    def _group_off(self, group: DictionaryObject) -> bool:
        if self._listed is None:
            properties = dictionary(self._reader.root_object.get("/OCProperties"))
            setting = dictionary(properties.get("/D"))
            self._off_at_first = setting.get("/BaseState") == "/OFF"
            self._listed = {
                # pypdf gives the same object again wherever the file refers to it.
                key: {
                    id(one): one for one in map(_object, _object(setting.get(key, ArrayObject())))
                }
                for key in ("/ON", "/OFF")
            }
        if id(group) in self._listed["/OFF"]:
            return True
        return self._off_at_first and id(group) not in self._listed["/ON"]


def _object(value: Any) -> Any:
    return value.get_object()
