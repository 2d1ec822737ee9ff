"""atlas.yaml -> Settings: one frozen record, every value checked, unknown keys refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from atlas.errors import SettingsError
from atlas.yaml_files import Located, YamlError, meant, parse, utf8

FILE_NAME = "atlas.yaml"
WHOLE = ("section", "page")
"""Sizes of a block that are no number of characters."""
NO_MODEL = (
    "answerer is chat, but no model is named; add `chat:` with `base_url` and `model` to atlas.yaml"
)

NO_VARIABLE = (  # the value is not shown: it may be the key itself
    "is no name of an environment variable; expected one such as OPENAI_API_KEY, never the key"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat model behind an OpenAI-compatible address."""

    base_url: str
    """Such as http://127.0.0.1:8080/v1; without user, password or query."""
    model: str
    """The model's name as the server knows it."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; "" for a server without keys."""
    deadline_seconds: float = 60.0
    """From asking to the last byte of the answer, retries and waiting included."""
    context_tokens: int = 0
    """The server's context window where it does not tell it; 0 to ask the server."""
    answer_tokens: int = 400
    """Most tokens of an answer."""
    in_flight: int = 4
    """Calls that a measuring run keeps waiting for at the same time."""
    input_price: float | None = None
    """Price of a million prompt tokens, in any currency; None where nobody pays."""
    output_price: float | None = None
    """Price of a million tokens of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a collection may choose. The defaults are the shipped, measured ones."""

    title: str = ""
    """Name of the collection, for people."""
    as_of: date | None = None
    """The day on which cases are asked when they name none."""
    products: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Product name -> other names that people use for it."""
    glossary: dict[str, str] = field(default_factory=dict)
    """Word that people use -> the word in the documents, read in its place."""
    readers: tuple[str, ...] = ()
    """Reader groups that exist. A document without `readers` is for everyone."""
    sample: tuple[str, ...] = ()
    """Ids of the documents that `--sample` keeps."""

    block_size: int | str = 1000
    """Most characters of text in a block; `section` for whole sections, `page` for whole pages."""
    block_overlap: int = 0
    """Characters of whole units that a block repeats from the one before it."""
    prefix: str = "both"
    """Where titles stand before the text: `both`, `keyword`, `vector` or `none`."""

    encoder: str = "bge-small-en-v1.5"
    reranker: str = "ms-marco-minilm-l-12-v2"
    """A shipped name, a sentence-transformers name or a folder; `none` to order by search."""
    store: str = "local"
    """Where the first stage searches: `local` in the index folder, `milvus` on a server."""
    vector_index: str = "flat"
    """How the local store looks for near vectors: `flat` compares all, `graph` walks from near to
    nearer and may miss some."""
    answerer: str = "extractive"
    """Who writes answers: `extractive` quotes, `chat` asks the model below."""
    chat: Chat | None = None
    """The model that answers when `answerer` is `chat`."""
    judge: Chat | None = None
    """The model behind the judge `chat`."""

    vector_weight: float = 0.8
    """Share of the vector score in the fused one, 0 to 1; the rest is the keyword score."""
    section_weight: float = 0.5
    """Share of the best fused score in its section in a block's own, 0 to 1."""
    depth: int = 20
    """Most fused hits that are reranked."""
    rerank_reach: float = 0.4
    """How far behind the best a hit is still reranked, as a share, 0 to 1, of the span from the
    first fused score to that at `depth`; 1 to rerank every one of them."""
    rerank_weight: float = 0.65
    """Share of the rerank score in the final order, 0 to 1; the rest is the fused score."""
    k: int = 5
    """Most blocks supplied to the answerer, of those that were reranked."""
    min_score: float = 0.02
    """Rerank score below which a block is not supplied, 0 to 1."""
    max_per_document: int = 3
    """Most blocks of one document among those supplied; off when one document is in scope."""
    token_budget: int = 2000
    """Most tokens supplied, as the encoder counts them."""

    def index_key(self) -> dict[str, Any]:
        """The settings that an index depends on; another value of one means another index."""
        return {name: getattr(self, name) for name in _INDEX_SETTINGS}

    def index_fingerprint(self) -> str:
        """Twelve hex digits over the settings that an index depends on."""
        return _digest(self.index_key())

    def fingerprint(self) -> str:
        """Twelve hex digits over every setting."""
        return _digest(asdict(self))


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


_INDEX_SETTINGS = ("block_size", "block_overlap", "prefix", "encoder", "store", "vector_index")
_RANGES: dict[str, tuple[float, float]] = {
    "block_size": (100, 100_000),
    "block_overlap": (0, 50_000),
    "vector_weight": (0, 1),
    "section_weight": (0, 1),
    "rerank_reach": (0, 1),
    "rerank_weight": (0, 1),
    "min_score": (0, 1),
    "depth": (1, 1000),
    "k": (1, 100),
    "max_per_document": (1, 1000),
    "token_budget": (50, 1_000_000),
}
_CHAT_RANGES: dict[str, tuple[float, float]] = {
    "deadline_seconds": (1, 3600),
    "context_tokens": (0, 10_000_000),
    "answer_tokens": (16, 100_000),
    "in_flight": (1, 256),
    "input_price": (0, 1_000_000),
    "output_price": (0, 1_000_000),
}
_CHOICES = {
    "prefix": ("both", "keyword", "vector", "none"),
    "store": ("local", "milvus"),
    "vector_index": ("flat", "graph"),
    "answerer": ("extractive", "chat"),
}


def load_settings(folder: Path) -> Settings:
    """Read `folder/atlas.yaml`; without one every setting has its default.

    Raises SettingsError naming file, line and the fix.
    """
    path = folder / FILE_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise SettingsError(f"{path}: is a link to a file that is not there") from None
        return Settings()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        located = parse(utf8(data))
    except YamlError as error:
        raise SettingsError(f"{path}:{error.line}: {error.problem}") from None
    return _settings(path, located)


def with_value(
    settings: Settings, where: str, name: str, value: Any, others: Sequence[str] = ()
) -> Settings:
    """Settings with one number or word changed, checked like one in atlas.yaml.

    `others` are further names that could have been meant. Raises SettingsError that begins with
    `where`.
    """
    known = [*_RANGES, *_CHOICES, "encoder", "reranker"]
    if name not in known:
        hint = meant(name, [*others, *known])
        raise SettingsError(f"{where}: unknown setting {name!r}; {hint}")
    if isinstance(getattr(settings, name), int) and isinstance(value, float) and value.is_integer():
        value = int(value)
    checked: Any = _READERS.get(name, _scalar)(where, name, value)
    changed: Settings = replace(settings, **{name: checked})
    if changed.answerer == "chat" and changed.chat is None:
        raise SettingsError(f"{where}: {NO_MODEL}")
    return changed


def _settings(path: Path, located: Located) -> Settings:
    values = located.value if located.value is not None else {}
    if not isinstance(values, dict):
        raise SettingsError(f"{path}:1: expected settings as `key: value` lines")
    known = [item.name for item in fields(Settings)]
    checked: dict[str, Any] = {}
    for key, value in values.items():
        where = f"{path}:{located.line(key)}"
        if key not in known:
            hint = meant(key, known)
            raise SettingsError(f"{where}: unknown setting {key!r}; {hint}")
        if value is None:
            continue
        if key in ("chat", "judge"):
            checked[key] = _chat(f"{path}", located, key, value)
        else:
            checked[key] = _READERS.get(key, _scalar)(where, key, value)
    settings = Settings(**checked)
    if settings.answerer == "chat" and settings.chat is None:
        raise SettingsError(f"{path}:{located.line('answerer')}: {NO_MODEL}")
    check_overlap(f"{path}:{located.line('block_overlap')}", settings)
    return settings


def check_overlap(where: str, settings: Settings) -> None:
    """Raises SettingsError, beginning with `where`, for more overlap than half of a block."""
    size = settings.block_size
    if isinstance(size, int) and settings.block_overlap * 2 > size:
        raise SettingsError(f"{where}: block_overlap must be at most half of block_size")


def _chat(path: str, located: Located, name: str, value: Any) -> Chat:
    """The model below `chat:` or `judge:`; its key is named, never written here."""
    where = f"{path}:{located.line(name)}"
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: {name} is {value!r}; expected base_url and model below it")
    known = [item.name for item in fields(Chat)]
    checked: dict[str, Any] = {}
    for key, item in value.items():
        at = f"{path}:{located.line(name, key)}"
        if key not in known:
            hint = meant(key, known)
            if "key" in str(key).casefold() or key == "token":
                hint = "a key never stands in a file; name its variable with api_key_env"
            raise SettingsError(f"{at}: unknown key in {name}: {str(key)!r}; {hint}")
        if item is None:
            continue
        if key in _CHAT_RANGES:
            default = getattr(Chat(base_url="", model=""), key)
            whole = isinstance(default, int)
            checked[key] = _number(at, f"{name}.{key}", item, whole, *_CHAT_RANGES[key])
        elif not isinstance(item, str):
            what = NO_VARIABLE if key == "api_key_env" else f"is {item!r}; expected text"
            raise SettingsError(f"{at}: {name}.{key} {what}")
        else:
            checked[key] = item.strip()
    for key in ("base_url", "model"):
        if not checked.get(key):
            raise SettingsError(f"{where}: {name} lacks {key}")
    _check_address(f"{path}:{located.line(name, 'base_url')}", f"{name}.base_url", checked)
    variable = checked.get("api_key_env", "")
    if variable and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
        where = f"{path}:{located.line(name, 'api_key_env')}"
        raise SettingsError(f"{where}: {name}.api_key_env {NO_VARIABLE}")
    return Chat(**checked)


def address_problem(address: str) -> Literal["", "shape", "secret"]:
    """What keeps a text from being the http address of a server: its shape, or a secret in it."""
    try:
        url = urlsplit(address)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        valid = False
    if not valid or re.fullmatch(r"[!-~]+", address) is None:
        return "shape"
    secret = url.username is not None or url.password is not None or url.query or url.fragment
    return "secret" if secret else ""


def _check_address(where: str, name: str, values: dict[str, Any]) -> None:
    problem = address_problem(values["base_url"])
    if problem == "shape":
        raise SettingsError(f"{where}: {name} is no address; expected http://host:port/v1")
    if problem:
        raise SettingsError(
            f"{where}: {name} holds a user, a password or a query; keys come from the variable "
            "that api_key_env names"
        )
    values["base_url"] = values["base_url"].rstrip("/")


def _number(where: str, key: str, value: Any, whole: bool, low: float, high: float) -> Any:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        number = "a whole number" if whole else "a number"
        raise SettingsError(f"{where}: {key} is {value!r}; expected {number} {low} to {high}")
    return value


def _scalar(where: str, key: str, value: Any) -> Any:
    if key in _RANGES:
        whole = isinstance(getattr(Settings(), key), int)
        return _number(where, key, value, whole, *_RANGES[key])
    if not isinstance(value, str) or not (value.strip() or key == "title"):
        raise SettingsError(f"{where}: {key} is {value!r}; expected text")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise SettingsError(f"{where}: {key} is {value!r}; expected {' or '.join(_CHOICES[key])}")
    return value


def _date(where: str, key: str, value: Any) -> date:
    if isinstance(value, date) and type(value) is date:
        return value
    raise SettingsError(f"{where}: {key} is {value!r}; expected a date such as 2026-03-01")


def _names(where: str, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(value)
    raise SettingsError(f"{where}: {key} is {value!r}; expected a list of words")


def _products(where: str, key: str, value: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(value, list):
        value = dict.fromkeys(_names(where, key, value))
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: expected `product: [other names]` lines")
    products = {
        name: _names(where, f"products.{name}", [] if aliases is None else aliases)
        for name, aliases in value.items()
    }
    owner: dict[str, str] = {}
    for name, aliases in products.items():
        for alias in (name, *aliases):
            other = owner.setdefault(alias.casefold(), name)
            if other != name:
                raise SettingsError(f"{where}: {alias!r} names both {other} and {name}; keep one")
    return products


def _glossary(where: str, key: str, value: Any) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(v, str) and v.strip() for v in value.values()):
        return dict(value)
    raise SettingsError(f"{where}: expected `word that people use: word in the documents` lines")


def _block_size(where: str, key: str, value: Any) -> Any:
    if isinstance(value, str):
        if value in WHOLE:
            return value
        raise SettingsError(f"{where}: {key} is {value!r}; expected a number, section or page")
    return _scalar(where, key, value)


_READERS: dict[str, Callable[[str, str, Any], Any]] = {
    "block_size": _block_size,
    "as_of": _date,
    "glossary": _glossary,
    "products": _products,
    "readers": _names,
    "sample": _names,
}
