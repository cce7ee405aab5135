"""Reads the replies of one connection from their bytes, with limits on what a server may send."""

from __future__ import annotations

import httptools

from sightline.models import reply_body
from sightline.models.http.decoding import Decoder
from sightline.models.http.interface import CallError, Reply

MAX_HEAD_BYTES = 64 * 1024
"""The most bytes of all header fields of a reply, with those of the interim replies before it."""

_FRAMING_PER_BYTE = 16
"""The most bytes that divide the body into chunks, for each byte of the body."""


class ReplyReader:
    """Reads one reply after the other; `start`, `feed` and `end` say where they begin and end.

    `reply` is the reply as soon as it is complete, and `can_continue` whether another one may follow it.
    httptools calls the methods `on_...`.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.can_continue = True
        self.start()

    def start(self) -> None:
        """Expect a reply."""
        self.reply: Reply | None = None
        self._headers: dict[str, str] = {}
        self._has_headers = self._is_until_end = False
        self._decoder: Decoder | None = None
        self._pieces: list[bytes] = []
        self._size = self._on_wire = self._framing = self._head_bytes = 0
        self._problem = ""

    def feed(self, data: bytes) -> None:
        before = self._on_wire
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            # A method of this class was ended by Ctrl-C or failed: httptools hides why.
            raise (error.__context__ or error) from None
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # What follows a complete reply does not make it worse.
            self.can_continue = False
            self._problem = self._problem or f"not HTTP: {error}"
        self._framing += len(data) - (self._on_wire - before)
        if self._framing > MAX_HEAD_BYTES + _FRAMING_PER_BYTE * self._on_wire:
            # Also what httptools still holds: a line without an end, or fields after the last chunk.
            self._fail(f"its headers are larger than {MAX_HEAD_BYTES:,} bytes")
        if self._problem and self.reply is None:
            raise CallError(f"the reply cannot be read: {self._problem}")

    def end(self) -> None:
        """The server has closed the connection, which is the end of a reply that does not give its length."""
        if self.reply is None and self._has_headers and self._is_until_end and not self._problem:
            self._finish()

    def close(self) -> None:
        """Forget the parser, which refers to this object: no garbage collection is needed then."""
        del self._parser

    def on_message_begin(self) -> None:
        """A reply begins."""
        if self.reply is not None:
            self.can_continue = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or one after the last chunk, which is ignored."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._fail(f"its headers are larger than {MAX_HEAD_BYTES:,} bytes")
        elif not self._has_headers:
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """The header fields are complete."""
        if self.reply is not None or self._parser.get_status_code() < 200:
            return
        self._has_headers = True
        transfer = self._headers.get("transfer-encoding")
        if transfer is not None and transfer.lower() != "chunked":
            self._fail(f"its Transfer-Encoding is {transfer[:40]!r}, and only 'chunked' is supported")
        self._is_until_end = transfer is None and "content-length" not in self._headers
        coding = self._headers.get("content-encoding", "identity").lower()
        if coding not in ("", "identity"):
            try:
                self._decoder = Decoder(coding)
            except ValueError as error:
                self._fail(str(error))

    def on_body(self, piece: bytes) -> None:
        if not self._has_headers:
            return  # The body of an interim reply, which counts as framing.
        self._on_wire += len(piece)
        if self.reply is not None or self._problem:
            return
        left = reply_body.MAX_BYTES - self._size
        if self._decoder is not None:
            try:
                piece = self._decoder.decode(piece, left + 1)
            except ValueError as error:
                self._fail(str(error))
                return
        if len(piece) > left:
            self._pieces.append(piece[:left])
            self.can_continue = False
            self._set_reply(is_whole=False)
            return
        self._pieces.append(piece)
        self._size += len(piece)

    def on_message_complete(self) -> None:
        """A reply is complete, or an interim one (1xx), which is ignored."""
        if self.reply is not None or self._problem:
            return
        if not self._has_headers:
            self._headers.clear()
            return
        if not self._parser.should_keep_alive():
            self.can_continue = False
        self._finish()

    def _finish(self) -> None:
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except ValueError as error:
                self._fail(str(error))
                return
        self._set_reply(is_whole=True)

    def _set_reply(self, *, is_whole: bool) -> None:
        body = b"".join(self._pieces)
        self._pieces.clear()
        self.reply = Reply(self._parser.get_status_code(), self._headers, body, is_whole)

    def _fail(self, problem: str) -> None:
        """Note why there is no reply: `feed` raises it, because httptools would hide an exception."""
        self.can_continue = False
        self._problem = self._problem or problem
