"""Three registries of models on one local port, as their clients find them: /firefox/, /hf/ and /argos/.

Ranges are answered, and a download can be cut off.
"""

import hashlib
import json
import struct
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import zstandard

from dragoman_export.shortlist.lexicon import MAGIC

COMMIT = "a" * 40
MODIFIED = "2023-08-16T12:00:00.000Z"


class RegistryServer:
    """Serves what is put in, until it is closed."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        """By path."""
        self.requests: list[tuple[str, str]] = []
        """Path and Range of each GET."""
        self.cuts: dict[str, int] = {}
        """By path, after how many bytes the next answer is cut off."""
        self._records: list[dict[str, Any]] = []
        self._packages: list[dict[str, Any]] = []
        self._hub: dict[str, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ranges(self, path: str) -> list[str]:
        """The Range of each request for a path; "" for the whole."""
        return [asked for got, asked in self.requests if got == path]

    def add_firefox(self, source: str, target: str, files: Mapping[str, bytes], **changes: Any) -> None:
        """Records of one model: contents by file type."""
        for kind, content in files.items():
            packed = zstandard.compress(content)
            version = changes.get("version", "3.0")
            location = f"main-workspace/translations-models-v2/{source}{target}-{version}-{kind}.zst"
            self.files[f"/firefox/{location}"] = packed
            names = {"model": "model.{}.intgemm.alphas.bin", "lex": "lex.50.50.{}.s2t.bin"}
            name = names.get(kind, kind + ".{}.spm").format(source + target)
            record = {
                "id": f"{source}{target}{kind}",
                "name": name,
                "fileType": kind,
                "sourceLanguage": source,
                "targetLanguage": target,
                "architecture": "base-memory",
                "version": version,
                "filter_expression": "",
                "decompressedSize": len(content),
                "decompressedHash": hashlib.sha256(content).hexdigest(),
                "schema": 1749570042331,
                "last_modified": 1749570511392,
                "attachment": {
                    "filename": name + ".zst",
                    "location": location,
                    "hash": hashlib.sha256(packed).hexdigest(),
                    "size": len(packed),
                    "mimetype": "application/zstd",
                },
            }
            self._records.append(record | changes)
        self.files["/firefox/records"] = json.dumps({"data": self._records}).encode()

    def add_argos(self, package: Path, metadata: Mapping[str, str]) -> None:
        """A package in the index."""
        self.files[f"/argos/{package.name}"] = package.read_bytes()
        links = [f"{self.url}/argos/{package.name}", "ipfs://QmV5bmf8iqKpoGoyuTzEppaSWdceuW6zgiePaUr5ThPCpW"]
        self._packages.append({**metadata, "links": links, "code": package.stem})
        self.files["/argos/index.json"] = json.dumps(self._packages).encode()

    def add_hub(self, name: str, folder: Path, **card: Any) -> None:
        """A repository of the hub; weights are in large-file storage."""
        siblings = []
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            self.files[f"/hf/{name}/resolve/{COMMIT}/{path.name}"] = content
            sibling: dict[str, Any] = {"rfilename": path.name, "size": len(content)}
            sibling["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if path.suffix == ".safetensors":
                digest = hashlib.sha256(content).hexdigest()
                sibling["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
            siblings.append(sibling)
        self._hub[name] = {
            "id": name,
            "modelId": name,
            "sha": COMMIT,
            "lastModified": MODIFIED,
            "tags": [],
            "private": False,
            "downloads": 1,
            "likes": 1,
            "siblings": siblings,
            "cardData": card,
        }

    def answer(self, path: str, query: Mapping[str, list[str]]) -> bytes | None:
        """The content of a path; None where there is none."""
        if path == "/hf/api/models":
            found = [model for name, model in self._hub.items() if query["search"][0] in name]
            return json.dumps(found).encode()
        name, _, _ = path.removeprefix("/hf/api/models/").partition("/revision/")
        if path.startswith("/hf/api/models/"):
            return json.dumps(self._hub[name]).encode() if name in self._hub else None
        return self.files.get(path.replace("/resolve/main/", f"/resolve/{COMMIT}/"))


def _handler(registries: RegistryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            content = registries.answer(url.path, parse_qs(url.query))
            asked = self.headers.get("Range", "")
            if self.command == "GET":
                registries.requests.append((url.path, asked))
            if content is None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                if url.path.startswith("/hf/"):
                    self.send_header("X-Error-Code", "RepoNotFound")
                self.end_headers()
                return
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            is_part = asked and self.headers.get("If-Range", etag) == etag
            start = int(asked.removeprefix("bytes=").split("-")[0]) if is_part else 0
            self.send_response(206 if is_part else 200)
            if is_part:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.send_header("ETag", etag)
            self.send_header("X-Repo-Commit", COMMIT)
            self.end_headers()
            if self.command == "GET":
                end = registries.cuts.pop(url.path, len(content))
                self.wfile.write(content[start:end])
                self.close_connection = end < len(content)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def binary_shortlist(rows: Sequence[Sequence[int]], num_first: int) -> bytes:
    """A file as Firefox's has it, its checksum summed as Marian's fork sums it."""
    offsets = list(accumulate(map(len, rows), initial=0))
    entries = [entry for row in rows for entry in row]
    body = struct.pack("<4Q", num_first, 2, len(offsets), len(entries))
    body += struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(entries)}I", *entries)
    seed, modulus = 0, 1 << 64
    for place in range(0, len(body) - 7, 8):
        word = int.from_bytes(body[place : place + 8], "little")
        seed ^= (word + 0x9E3779B9 + seed * 64 + seed // 4) % modulus
    return struct.pack("<2Q", MAGIC, seed) + body
