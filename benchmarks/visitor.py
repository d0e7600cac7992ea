"""A visitor whose browser draws nothing: a websocket that opens a page, types, presses a button and watches a long run."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from streamlit.proto.AutoRerun_pb2 import AutoRerun
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection

from benchmarks.strangers import Place, received

_WHOLE = ForwardMsg.FINISHED_SUCCESSFULLY


class Visitor:
    """A page, as far as its messages were read.

    Attributes:
        drafts: what long runs have written, as the page said it one time after the other.
        strips: what the player was last given, of the tokens among others.
        n_drawn: how many times a whole page with a player came.
        n_answered: how many times a run of the page ended, drawn to its end or not.
    """

    def __init__(self, there: ClientConnection) -> None:
        self._there = there
        self._ids: dict[str, str] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._has_player = False
        self.drafts: list[str] = []
        self.strips: dict[str, Any] = {}
        self.n_drawn = self.n_answered = 0

    @property
    def is_watching(self) -> bool:
        """Whether the page has ended with a long run that is not done."""
        return not self._has_player

    async def open(self, query: str = "") -> None:
        """Asks for the page of a link."""
        await self._ask(ClientState(query_string=query))

    async def enter(self, text: str) -> None:
        """Presses Enter after a text."""
        state = ClientState()
        state.widget_states.widgets.add(id=self._ids["Source text"], string_value=text)
        await self._ask(state)

    async def press(self, button: str) -> None:
        """A button, by its label."""
        state = ClientState()
        state.widget_states.widgets.add(id=self._ids[button], trigger_value=True)
        await self._ask(state)

    async def until(self, holds: Callable[[], bool]) -> float:
        """Reads until something holds; seconds that this took."""
        began = time.perf_counter()
        while not holds():
            self._read(await received(self._there))
        return time.perf_counter() - began

    async def until_drawn(self) -> float:
        """Until one more whole page has come."""
        before = self.n_drawn
        return await self.until(lambda: self.n_drawn > before)

    async def until_answered(self) -> float:
        """Until one more run of the page has ended."""
        before = self.n_answered
        return await self.until(lambda: self.n_answered > before)

    async def until_written(self) -> float:
        """Until one more draft has come."""
        before = len(self.drafts)
        return await self.until(lambda: len(self.drafts) > before)

    def forget(self) -> None:
        """Asks for nothing by itself any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def _ask(self, state: ClientState) -> None:
        await self._there.send(BackMsg(rerun_script=state).SerializeToString())

    async def _again(self, asked: AutoRerun) -> None:
        while True:
            await asyncio.sleep(asked.interval)
            await self._ask(ClientState(fragment_id=asked.fragment_id, is_auto_rerun=True))

    def _read(self, message: ForwardMsg) -> None:
        if message.HasField("new_session") and not message.metadata.run.fragment_ids:
            # As in Streamlit's own page: a run of everything ends what its parts ask for.
            self.forget()
            self._has_player = False
        elif message.HasField("auto_rerun"):
            asked = message.auto_rerun
            if (timer := self._timers.pop(asked.fragment_id, None)) is not None:
                timer.cancel()
            self._timers[asked.fragment_id] = asyncio.create_task(self._again(asked))
        elif message.HasField("delta"):
            self._keep(message.delta.new_element)
        elif message.HasField("script_finished") and message.script_finished == _WHOLE:
            self.n_answered, self.n_drawn = self.n_answered + 1, self.n_drawn + self._has_player

    def _keep(self, element: Element) -> None:
        for box in (element.text_input, element.text_area, element.button):
            if box.id:
                self._ids[box.label] = box.id
        if element.HasField("text") and self.is_watching:
            self.drafts.append(element.text.body)
        if element.HasField("bidi_component") and '"output":' in element.bidi_component.json:
            self.strips, self._has_player = json.loads(element.bidi_component.json), True


@asynccontextmanager
async def visitor(place: Place, cookie: str = "") -> AsyncGenerator[Visitor]:
    """One that has come and asked for nothing yet; tabs of one browser share a cookie."""
    async with place.socket(cookie=cookie) as there:
        guest = Visitor(there)
        try:
            yield guest
        finally:
            guest.forget()
