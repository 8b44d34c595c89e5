"""Static files as they were when the process started: a `git pull` changes them under a running installation, whose pages were made
for the old ones."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from io import BytesIO
from typing import Any
from wsgiref.headers import Headers

from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import NOT_ALLOWED_RESPONSE, MissingFileError, Response, StaticFile


class KnownAddresses(StaticFilesStorage):
    """A page names dozens of files, each by an address that does not change."""

    def __init__(self, *told: Any, **named: Any) -> None:
        super().__init__(*told, **named)
        self.url = cache(super().url)  # type: ignore[method-assign]


class WholeFile(StaticFile):  # type: ignore[misc]  # whitenoise has no types
    """Content, length and date of one moment. WhiteNoise opens the file again for each request and sends the length that it once had:
    a longer one is cut off, a shorter one never arrives."""

    def __init__(self, path: str, headers: Sequence[tuple[str, str]]) -> None:
        try:
            with open(path, "rb") as file:
                self.content = file.read()
                found = os.fstat(file.fileno())
        except (FileNotFoundError, IsADirectoryError):
            raise MissingFileError(path) from None
        fields = list(found[:10])
        fields[6] = len(self.content)  # a write at this moment changes its size
        super().__init__(path, headers, stat_cache={path: os.stat_result(fields)})

    def get_response(self, method: str, request_headers: Mapping[str, Any]) -> Response:
        if method not in ("GET", "HEAD"):
            return NOT_ALLOWED_RESPONSE
        if self.is_not_modified(request_headers):
            return self.not_modified_response
        _, headers = self.get_path_and_headers(request_headers)
        file = BytesIO(self.content) if method == "GET" else None
        if asked := request_headers.get("HTTP_RANGE"):
            try:
                return self.get_range_response(asked, headers, file)
            except ValueError:
                pass  # a range that cannot be read asks for nothing: the whole file is the answer
        return Response(HTTPStatus.OK, headers, file)


class KeptFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, with the files in memory (2.6 MB). Our files are not compressed in advance, so no variant is searched for."""

    @staticmethod
    def serve(static_file: WholeFile, request: HttpRequest) -> HttpResponse:
        """Sends the file in one piece: for each piece of a stream, the event loop would wait for a thread."""
        found = static_file.get_response(request.method or "", request.META)
        response = HttpResponse(found.file.read() if found.file else b"", status=int(found.status))
        del response["content-type"]
        for name, value in found.headers:
            response[name] = value
        return response

    def get_static_file(self, path: str, url: str, stat_cache: Mapping[str, os.stat_result] | None = None) -> WholeFile:
        headers = Headers([])
        self.add_mime_headers(headers, path, url)
        self.add_cache_headers(headers, path, url)
        return WholeFile(path, headers.items())
