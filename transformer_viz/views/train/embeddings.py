"""Pretrained embeddings on the Train page: a matrix for each side, checked against the model before anything starts."""

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
    """Draws the boxes; the files that were given."""
    files: dict[Side, UploadedFile] = {}
    with st.expander("Pretrained embeddings"):
        st.caption("A file with one matrix (tokens, d_model), rows in the order of the vocabulary: .npy or .safetensors.")
        for column, side in zip(st.columns(2), SIDES, strict=True):
            file = column.file_uploader(
                f"{side.capitalize()} embedding",
                [suffix[1:] for suffix in SUFFIXES],
                key=f"train_{side}_embedding",
                max_upload_size=_MOST_MEGABYTES,
            )
            if file is not None:
                files[side] = file
        link.toggle("Frozen: training does not change embeddings", key="train_frozen_embeddings")
    return files


def fit(files: Files, recipe: Recipe) -> bool:
    """Whether the model of this recipe can take the files; says why where it cannot."""
    try:
        embeddings.check_fit(matrices(files), model_config(recipe, tasks.make_task(recipe.task, recipe.task_options)))
    except TransformerVizError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return False
    return True


def matrices(files: Files) -> dict[Side, embeddings.Matrix]:
    """What the files hold.

    Raises:
        ConfigError: a file that cannot be read.
    """
    return {side: embeddings.parse_matrix(file.name, file.getvalue()) for side, file in files.items()}
