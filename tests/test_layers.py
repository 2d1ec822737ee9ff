"""The house as it is drawn: which module may import which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "atlas"
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
ANYONE = {
    "atlas.records", "atlas.errors", "atlas.settings", "atlas.words", "atlas.plain", "atlas.models",
}  # fmt: skip
"""What every stage may import; of the models only the Protocols and loaders in their package."""
BUILDS_ON = {
    "atlas.documents": {"atlas.markdown", "atlas.metadata", "atlas.pdf", "atlas.yaml_files"},
    "atlas.html_words": set(),
    "atlas.markdown": {"atlas.html_words"},
    "atlas.blocks": set(),
    "atlas.arrays": set(),
    "atlas.keyword": {"atlas.arrays"},
    "atlas.metadata": set(),
    "atlas.embeddings": set(),
    "atlas.index_json": {"atlas.metadata"},
    "atlas.vectors": set(),
    "atlas.index": {
        "atlas.arrays", "atlas.index_json", "atlas.keyword", "atlas.models.verified",
        "atlas.vectors",
    },
    "atlas.index_writing": {
        "atlas.arrays", "atlas.index", "atlas.index_json", "atlas.keyword", "atlas.models.verified",
        "atlas.vectors",
    },
    "atlas.parsed": {"atlas.index_json"},
    "atlas.gathering": {"atlas.documents", "atlas.index", "atlas.metadata", "atlas.parsed"},
    "atlas.products": set(),
    "atlas.scope": {"atlas.index", "atlas.products"},
    "atlas.spelling": {"atlas.index", "atlas.keyword"},
    "atlas.search": {"atlas.index", "atlas.keyword", "atlas.stores"},
    "atlas.stores": {
        "atlas.index", "atlas.keyword", "atlas.stores.local", "atlas.stores.milvus",
        "atlas.stores.milvus_filling", "atlas.stores.milvus_server",
    },
    "atlas.stores.local": {"atlas.index", "atlas.keyword", "atlas.stores", "atlas.vectors"},
    "atlas.stores.milvus": {
        "atlas.index", "atlas.keyword", "atlas.stores", "atlas.stores.milvus_filling",
        "atlas.stores.milvus_rows", "atlas.stores.milvus_scope", "atlas.stores.milvus_server",
    },
    "atlas.stores.milvus_filling": {
        "atlas.index", "atlas.stores.milvus_rows", "atlas.stores.milvus_server",
    },
    "atlas.stores.milvus_rows": {"atlas.index", "atlas.keyword"},
    "atlas.stores.milvus_scope": {"atlas.index"},
    "atlas.stores.milvus_server": set(),
    "atlas.rerank": set(),
    "atlas.scoring": {"atlas.rerank"},
    "atlas.select": set(),
    "atlas.citations": set(),
    "atlas.trace": {"atlas.whole_files"},
}  # fmt: skip
"""Each stage with the modules below it that it is made of."""
FILES = {"atlas.yaml_files", "atlas.whole_files"}
COMPOSERS = {
    "atlas.assistant", "atlas.reading", "atlas.ingest", "atlas.collection", "atlas.show",
    "atlas.opening", "atlas.starter",
    *(name for name in MODULES if name.startswith("atlas.doctor")),
}  # fmt: skip
COMMANDS = {name for name in MODULES if name.startswith("atlas.cli")}
HEAVY = {
    "onnxruntime", "torch", "sentence_transformers", "transformers", "tokenizers", "onnx", "openai",
    "httpx2", "pymilvus", "milvus_lite", "grpc",
}  # fmt: skip
STORE_CLIENTS = {"pymilvus", "milvus_lite", "grpc"}
"""Those that the adapter of the milvus store imports, and nobody else."""


def imports(module: str) -> set[str]:
    """Every module that one imports, at the top or in a function, also for types only."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            assert node.module
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found


def own_imports(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] == "atlas"}


def stages() -> list[str]:
    return [*BUILDS_ON, *(name for name in MODULES if name.startswith("atlas.answer"))]


@pytest.mark.parametrize("module", stages())
def test_a_stage_imports_what_it_is_made_of_and_no_other_stage(module: str) -> None:
    allowed = ANYONE | BUILDS_ON.get(module, set())
    if module.startswith("atlas.answer"):
        allowed = allowed | {name for name in MODULES if name.startswith("atlas.answer")}
    assert own_imports(module) - allowed == set()


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("atlas.measure")])
def test_measuring_calls_no_stage(module: str) -> None:
    allowed = {
        "atlas.records", "atlas.errors", "atlas.settings", "atlas.words", "atlas.yaml_files",
        "atlas.trace", "atlas.models", "atlas.whole_files",
    }  # fmt: skip
    foreign = {name for name in own_imports(module) if not name.startswith("atlas.measure")}
    assert foreign - allowed == set()


@pytest.mark.parametrize("module", list(MODULES))
def test_heavy_libraries_are_imported_among_the_models_only(module: str) -> None:
    heavy = {name for name in imports(module) if name.split(".")[0] in HEAVY}
    if module.startswith("atlas.stores.milvus"):
        heavy = {name for name in heavy if name.split(".")[0] not in STORE_CLIENTS}
    assert module.startswith("atlas.models") or not heavy


@pytest.mark.parametrize("module", list(MODULES))
def test_only_the_command_line_is_above_the_composers(module: str) -> None:
    if module not in COMPOSERS | COMMANDS | {"atlas", "atlas.__main__"}:
        assert not own_imports(module) & (COMPOSERS | COMMANDS)


def test_records_and_errors_import_nothing_of_atlas() -> None:
    assert own_imports("atlas.records") == own_imports("atlas.errors") == set()
    assert own_imports("atlas.words") == set()
    assert own_imports("atlas.settings") <= {"atlas.errors"} | FILES


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("atlas.models")])
def test_the_models_know_nothing_of_the_rest(module: str) -> None:
    foreign = {name for name in own_imports(module) if not name.startswith("atlas.models")}
    assert foreign <= {"atlas.errors", "atlas.whole_files"}


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("atlas.pdf")])
def test_reading_pdfs_knows_nothing_of_the_rest(module: str) -> None:
    foreign = {name for name in own_imports(module) if not name.startswith("atlas.pdf")}
    assert foreign <= {"atlas.errors", "atlas.records"}


def test_every_module_has_its_place() -> None:
    placed = {
        *BUILDS_ON, *COMPOSERS, *COMMANDS, *ANYONE, *FILES, "atlas", "atlas.__main__",
    }  # fmt: skip
    folders = ("atlas.answer", "atlas.measure", "atlas.models", "atlas.pdf")
    assert [name for name in MODULES if name not in placed and not name.startswith(folders)] == []
