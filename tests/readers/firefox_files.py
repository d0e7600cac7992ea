"""A tiny translator in the files of Firefox's, random and untrained, written byte by byte; and the same read by plain numpy."""

import io
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

D, HEADS, FF, ENCODERS, DECODERS = 12, 3, 20, 2, 2
FIRST = 4
"""Tokens that the shortlist always allows."""
SETTINGS: dict[str, Any] = {
    "dec-cell": "ssru",
    "dec-cell-base-depth": 2,
    "dec-depth": DECODERS,
    "dim-emb": D,
    "dim-vocabs": ["?", "?"],
    "enc-depth": ENCODERS,
    "input-types": "[]",
    "tied-embeddings-all": "true",
    "transformer-decoder-autoreg": "rnn",
    "transformer-dim-ffn": FF,
    "transformer-ffn-activation": "relu",
    "transformer-ffn-depth": 2,
    "transformer-heads": HEADS,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": '""',
    "transformer-preprocess": '""',
    "transformer-train-position-embeddings": "false",
    "type": "transformer",
}
_TEXTS = ("the house is small", "o gato preto dorme na casa grande", "my brother sleeps in the big house", "das Haus ist klein")
Tensors = dict[str, np.ndarray]
"""By Marian's names; whole numbers with the multiplier 127, or single precision."""


@cache
def pieces() -> bytes:
    """A vocabulary of SentencePiece, with the end as 0 and the unknown token as 1."""
    from sentencepiece import SentencePieceTrainer

    written = io.BytesIO()
    ids: dict[str, Any] = {"bos_id": -1, "eos_id": 0, "unk_id": 1, "pad_id": -1}
    how: dict[str, Any] = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=iter(_TEXTS * 5), model_writer=written, **ids, **how)
    return written.getvalue()


@cache
def n_pieces() -> int:
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=pieces()).get_piece_size()


def tensors(seed: int = 20) -> Tensors:
    """All that a file has."""
    rng, n = np.random.default_rng(seed), n_pieces()

    def matrix(*shape: int) -> np.ndarray:
        return rng.integers(-127, 128, shape).astype(np.int8)

    def norm(name: str) -> Tensors:
        return {f"{name}_ln_scale": vector(D) + 1, f"{name}_ln_bias": vector(D) / 8}

    def vector(n: int) -> np.ndarray:
        return rng.normal(0, 0.3, (1, n)).astype(np.float32)

    def attention(name: str) -> Tensors:
        return {f"{name}_W{sign}": matrix(D, D) for sign in "qkvo"} | {f"{name}_b{sign}": vector(D) for sign in "qkvo"}

    def feed_forward(name: str) -> Tensors:
        weights = {f"{name}_ffn_W1": matrix(D, FF), f"{name}_ffn_W2": matrix(FF, D)}
        return weights | {f"{name}_ffn_b1": vector(FF), f"{name}_ffn_b2": vector(D)} | norm(f"{name}_ffn_ffn")

    found = {"Wemb": matrix(n, D) // 4, "decoder_ff_logit_out_b": vector(n) / 4, "none_QuantMultA": vector(1)}
    for i in range(1, ENCODERS + 1):
        name = f"encoder_l{i}"
        found |= attention(f"{name}_self") | norm(f"{name}_self_Wo") | feed_forward(name)
    for i in range(1, DECODERS + 1):
        name = f"decoder_l{i}"
        found |= {f"{name}_rnn_W": matrix(D, D), f"{name}_rnn_Wf": matrix(D, D), f"{name}_rnn_bf": vector(D)}
        found |= norm(f"{name}_rnn_ffn") | attention(f"{name}_context") | norm(f"{name}_context_Wo") | feed_forward(name)
    return found


def settings(**changed: Any) -> str:
    """As Marian writes them."""
    values = SETTINGS | {"dim-vocabs": [n_pieces()] * 2} | {name.replace("_", "-"): value for name, value in changed.items()}
    lines = []
    for name, value in values.items():
        if value is not None:
            lines += [f"{name}:", *(f"  - {each}" for each in value)] if isinstance(value, list) else [f"{name}: {value}"]
    return "\n".join(lines) + "\n"


def binary(given: Mapping[str, np.ndarray], text: str) -> bytes:
    """Marian's format; matrices but the embeddings are written turned."""
    items = []
    for name, array in given.items():
        turned = array if name == "Wemb" else array.T
        is_whole = array.dtype == np.int8
        data = np.ascontiguousarray(turned).tobytes() + (struct.pack("<f", 127.0) if is_whole else b"")
        items.append((name, 0x4101 if is_whole else 0x404, array.shape, data + bytes(-len(data) % 256)))
    items.append(("special:model.yml", 0x101, (len(text) + 1,), text.encode() + b"\0"))
    out = struct.pack("<QQ", 1, len(items))
    out += b"".join(struct.pack("<4Q", len(n) + 1, kind, len(shape), len(data)) for n, kind, shape, data in items)
    out += b"".join(name.encode() + b"\0" for name, *_ in items)
    out += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(out) + 8) % 256
    return out + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for *_, data in items)


def allowed(seed: int = 0) -> list[list[int]]:
    """Of each token a few others."""
    rng, n = np.random.default_rng(seed), n_pieces()
    return [sorted(map(int, rng.choice(n, rng.integers(0, 6), replace=False))) if token else [] for token in range(n)]


def lexicon(rows: list[list[int]]) -> bytes:
    ids = [each for row in rows for each in row]
    offsets = np.cumsum([0, *map(len, rows)])
    head = struct.pack("<6Q", 0xF11A48D5013417F5, 0, FIRST, 5, len(offsets), len(ids))
    return head + offsets.astype("<u8").tobytes() + np.array(ids, "<u4").tobytes()


def save(folder: Path, changed: Mapping[str, Any] | None = None, given: Tensors | None = None, **said: Any) -> Path:
    """A folder with all three files; `changed` are files by name, None for none; `said` are settings."""
    files: dict[str, bytes | None] = {
        "model.xxyy.intgemm.alphas.bin": binary(tensors() if given is None else given, settings(**said)),
        "vocab.xxyy.spm": pieces(),
        "lex.50.50.xxyy.s2t.bin": lexicon(allowed()),
        **(changed or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        if data is not None:
            (folder / name).write_bytes(data)
    return folder


# ---- plain numpy


class Plain:
    """The model in double precision, step by step, from a file of Marian's."""

    def __init__(self, data: bytes, heads: int) -> None:
        self.weights, self.heads, self.maps = _read(data), heads, dict[tuple[str, int], np.ndarray]()
        self.table = self.weights["Wemb"]

    def layers(self, side: str) -> range:
        return range(1, 1 + sum(name.startswith(f"{side}_l") and name.endswith("_ffn_W1") for name in self.weights))

    def run(self, source: list[int], target: list[int]) -> np.ndarray:
        """Log-probabilities after zeros and each target token, (step, vocabulary)."""
        scale = np.sqrt(self.table.shape[1])
        x = self.table[source] * scale + self.positions(len(source))
        for i in self.layers("encoder"):
            x = self.norm(x + self.attention(("encoder", i), f"encoder_l{i}_self", x, x), f"encoder_l{i}_self_Wo")
            x = self.feed_forward(x, f"encoder_l{i}")
        memory = x
        zeros = np.zeros((1, self.table.shape[1]))
        x = np.concatenate([zeros, self.table[target] * scale]) + self.positions(1 + len(target))
        for i in self.layers("decoder"):
            name = f"decoder_l{i}"
            x = self.norm(x + np.maximum(self.recurrence(x, name), 0), f"{name}_rnn_ffn")
            x = self.norm(x + self.attention(("cross", i), f"{name}_context", x, memory), f"{name}_context_Wo")
            x = self.feed_forward(x, name)
        logits = x @ self.table.T + self.weights["decoder_ff_logit_out_b"][0]
        top = logits.max(-1, keepdims=True)
        return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))

    def positions(self, n: int) -> np.ndarray:
        half = self.table.shape[1] // 2
        angles = [[t * np.exp(-i * np.log(10000) / (half - 1)) for i in range(half)] for t in range(n)]
        return np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def recurrence(self, x: np.ndarray, name: str) -> np.ndarray:
        taken = x @ self.weights[f"{name}_rnn_W"]
        kept = 1 / (1 + np.exp(-(x @ self.weights[f"{name}_rnn_Wf"] + self.weights[f"{name}_rnn_bf"])))
        cell, cells = np.zeros(x.shape[1]), []
        for t in range(len(x)):
            cell = kept[t] * cell + (1 - kept[t]) * taken[t]
            cells.append(cell)
        return np.array(cells)

    def attention(self, place: tuple[str, int], name: str, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        w = self.weights
        query, key, value = (
            self.split(of @ w[f"{name}_W{sign}"] + w[f"{name}_b{sign}"])
            for sign, of in (("q", x), ("k", memory), ("v", memory))
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(query.shape[-1])
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        self.maps[place] = weights = powers / powers.sum(-1, keepdims=True)
        heads = np.einsum("hqk,khd->qhd", weights, value).reshape(len(x), -1)
        return heads @ w[f"{name}_Wo"] + w[f"{name}_bo"]

    def split(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), self.heads, -1)

    def feed_forward(self, x: np.ndarray, name: str) -> np.ndarray:
        w = self.weights
        inner = np.maximum(x @ w[f"{name}_ffn_W1"] + w[f"{name}_ffn_b1"], 0)
        return self.norm(x + inner @ w[f"{name}_ffn_W2"] + w[f"{name}_ffn_b2"], f"{name}_ffn_ffn")

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        made = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-9)
        return made * self.weights[f"{name}_ln_scale"] + self.weights[f"{name}_ln_bias"]


def _read(data: bytes) -> Tensors:
    """Every tensor by its name, matrices as (in, out), in double precision."""
    n = struct.unpack_from("<QQ", data)[1]
    heads = [struct.unpack_from("<4Q", data, 16 + 32 * i) for i in range(n)]
    at, names, shapes = 16 + 32 * n, [], []
    for length, *_ in heads:
        names.append(data[at : at + length - 1].decode())
        at += length
    for _, _, n_dimensions, _ in heads:
        shapes.append(struct.unpack_from(f"<{n_dimensions}i", data, at))
        at += 4 * n_dimensions
    at += 8 + struct.unpack_from("<Q", data, at)[0]
    found = {}
    for name, shape, (_, kind, _, length) in zip(names, shapes, heads, strict=True):
        count = int(np.prod(shape))
        if kind == 0x404:
            found[name] = np.frombuffer(data, "<f4", count, at).reshape(shape).astype(float)
        elif kind == 0x4101 and not name.endswith("QuantMultA"):
            whole = np.frombuffer(data, "i1", count, at).astype(float) / struct.unpack_from("<f", data, at + count)[0]
            found[name] = whole.reshape(shape) if name == "Wemb" else whole.reshape(shape[::-1]).T
        at += length
    return found
