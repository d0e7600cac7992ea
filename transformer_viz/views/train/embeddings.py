"""The fold *Pretrained embeddings* of the page Train: a file for each side, checked against the model before it trains."""

from collections.abc import Mapping

import streamlit as st
from streamlit.typing import UploadedFile

from transformer_viz import tasks
from transformer_viz.errors import TransformerVizError
from transformer_viz.training import embeddings
from transformer_viz.training.embeddings import SIDES, SUFFIXES, Side
from transformer_viz.training.recipe import Recipe, model_config
from transformer_viz.views.components.markdown import literal
from transformer_viz.views.state import link

Files = Mapping[Side, UploadedFile]
_MOST_MEGABYTES = 64


def show() -> Files:
    """Draws the fold. Returns the uploaded files by their side."""
    files: dict[Side, UploadedFile] = {}
    with st.expander("Pretrained embeddings"):
        st.caption(
            "Training can begin with embeddings that you have: a .npy or .safetensors file with one matrix (tokens, d_model), "
            "its rows in the order of the vocabulary."
        )
        for column, side in zip(st.columns(2), SIDES, strict=True):
            file = column.file_uploader(
                f"{side.capitalize()} embedding",
                [suffix[1:] for suffix in SUFFIXES],
                key=f"train_{side}_embedding",
                max_upload_size=_MOST_MEGABYTES,
            )
            if file is not None:
                files[side] = file
        link.toggle("Freeze: training leaves the embeddings as they are", key="train_frozen_embeddings")
    return files


def fit(files: Files, recipe: Recipe) -> bool:
    """Whether the recipe's model can take the files; draws the reason where it cannot."""
    try:
        embeddings.check_fit(matrices(files), model_config(recipe, tasks.make_task(recipe.task, recipe.task_options)))
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return False
    return True


def matrices(files: Files) -> dict[Side, embeddings.Matrix]:
    """The matrices in the files, by their side.

    Raises:
        ConfigError: a file that cannot be read.
    """
    return {side: embeddings.parse_matrix(file.name, file.getvalue()) for side, file in files.items()}
