"""What the server does beside Streamlit: it hands out files and gets ready beforehand. Nothing heavy is imported here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from transformer_viz.views.server import beforehand, opening, stopping


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncGenerator[None]:
    """The server's life: what is begun as it starts; nothing has to be ended."""
    beforehand.begin()
    opening.soon()
    stopping.quietly()
    yield
