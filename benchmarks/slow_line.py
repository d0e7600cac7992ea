"""A line to a server of this machine on which everything takes a while."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from benchmarks.served import free_port


@contextmanager
def slow_line(url: str, delay: float) -> Generator[str]:
    """Gives the address of a line to `url` that takes so many milliseconds in each direction; without any, `url` itself."""
    if not delay:
        yield url
        return
    port, loop, ready = free_port(), asyncio.new_event_loop(), threading.Event()
    to = urlsplit(url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()

        async def send() -> None:
            with suppress(OSError):
                while (item := await queue.get()) is not None:
                    await asyncio.sleep(max(0.0, item[0] - loop.time()))
                    writer.write(item[1])
                    await writer.drain()
            writer.close()

        sending = asyncio.ensure_future(send())
        with suppress(OSError):
            while data := await reader.read(65536):
                queue.put_nowait((loop.time() + delay / 1000, data))
        queue.put_nowait(None)
        await sending

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(to.hostname, to.port)
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    async def main() -> None:
        await asyncio.start_server(serve, "localhost", port)
        ready.set()

    loop.create_task(main())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://localhost:{port}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
