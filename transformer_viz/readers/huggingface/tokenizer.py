"""A Hugging Face tokenizer as ours: text to ids and back."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from transformer_viz.errors import InputError
from transformer_viz.readers.huggingface.pieces import Pieces
from transformer_viz.readers.piece_tokenizer import PieceTokenizer
from transformer_viz.text_display import shorten


def is_ordinary(error: BaseException) -> bool:
    """Whether it is an exception, or a panic of the library in Rust, which derives from no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@dataclass(frozen=True)
class HuggingFaceTokenizer(PieceTokenizer):
    """See `loaded_model.Tokenizer`. Ids may share a label: a byte of SentencePiece, and the piece of its letter.

    Attributes:
        pieces: the tokenizer of transformers.
        is_chat: whether a source is a user's message, framed as its chat template says.
        source_language: the code of the language of sources; None where the tokenizer knows no languages.
        target_language: the code of the language of targets; None = the source's.
        n_embedded: tokens that the model has embeddings of; None = as many as may come.
    """

    pieces: Pieces
    is_chat: bool = False
    source_language: str | None = None
    target_language: str | None = None
    n_embedded: int | None = None

    @classmethod
    def of(cls, tokenizer: Any, n_ids: int | None = None) -> "HuggingFaceTokenizer":
        """The tokenizer as it reads by itself, for a model of so many ids; None = as many as it names."""
        pieces = Pieces(tokenizer, n_ids)
        return cls(pieces, False, tokenizer.src_lang, tokenizer.tgt_lang) if pieces.languages else cls(pieces)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self.pieces.tokenizer

    @property
    def mask_id(self) -> int | None:
        return self.tokenizer.mask_token_id

    @property
    def unknown_id(self) -> int | None:
        return self.tokenizer.unk_token_id

    @property
    def longest_label(self) -> int:
        return self.pieces.longest_label

    @property
    def label(self) -> Callable[[int], str]:
        return self.pieces.label

    @property
    def n_ids(self) -> int:
        return self.pieces.n_ids

    def id_of(self, token: str) -> int | None:
        return self.tokenizer.get_vocab().get(token)

    def encode_source(self, text: str) -> list[int]:
        with self._reading() as tokenizer:
            if self.is_chat:
                message = [{"role": "user", "content": text}]
                try:  # what begins the answer is a part of the template
                    ids = list(tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))
                except Exception as error:  # a template is a program that came with the model
                    why = f"The model's chat template failed: {shorten(str(error), 200)}. Try without the template."
                    raise InputError(why) from error
            else:
                ids = list(tokenizer(text).input_ids)
        if not ids:
            raise InputError("The text is empty. Type at least one letter.")
        return self._embedded(ids)

    def encode_target(self, text: str) -> list[int]:
        with self._reading() as tokenizer:
            return self._embedded(list(tokenizer(text_target=text, add_special_tokens=False).input_ids))

    def frame_of_target(self) -> list[int]:
        """The special tokens that the tokenizer itself puts around a target."""
        with self._reading() as tokenizer:
            return list(tokenizer(text_target="").input_ids)

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        # A model may have places for more tokens than its tokenizer knows, and not every tokenizer passes them over.
        n_known, decode = len(self.tokenizer), self.tokenizer.decode
        with self.pieces.lock:
            return [decode([number for number in ids if number < n_known], skip_special_tokens=True) for ids in rows]

    def _embedded(self, ids: list[int]) -> list[int]:
        """The ids, if the model can read them: a tokenizer of another model may know more."""
        if self.n_embedded is not None and (most := max(ids, default=0)) >= self.n_embedded:
            raise InputError(
                f"The tokenizer turns this text into the token #{most}, but the model knows only {self.n_embedded} tokens. "
                "Try another text; if that does not help, the tokenizer is another model's: copy the whole folder again."
            )
        return ids

    @contextmanager
    def _reading(self) -> Generator[Any]:
        """The tokenizer, as this one sets it. What it cannot read, its own library says by any error."""
        with self.pieces.lock:
            try:
                if self.source_language is not None:
                    self.tokenizer.src_lang = self.source_language
                    self.tokenizer.tgt_lang = self.target_language or self.source_language
                yield self.tokenizer
            except InputError:
                raise
            except BaseException as error:
                if not is_ordinary(error):
                    raise
                raise InputError(
                    f"The model's tokenizer cannot read this text ({shorten(str(error), 200)}). Try another one."
                ) from error
