"""Run by the Python of CTranslate2's environment: a plain gRPC server that translates what waits in batches.

Needs ctranslate2, sentencepiece and grpcio, and the clients' messages on its path, so that both servers bear
the very same calls: one text each, all else in them is left unread.
"""

import asyncio
import json
import sys
from typing import Any

import ctranslate2
import grpc
import grpc.aio
import sentencepiece

from dragoman.v1 import translation_pb2 as pb


class Service:
    """A queue, and for each of CTranslate2's workers a task that takes from it what waits."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._source = sentencepiece.SentencePieceProcessor(model_file=task["source"])
        self._target = sentencepiece.SentencePieceProcessor(model_file=task["target"])
        self._translator = ctranslate2.Translator(
            task["model"],
            compute_type="int8",
            inter_threads=task["workers"],
            intra_threads=task["threads_per_worker"],
        )
        self._waiting: asyncio.Queue[tuple[list[str], asyncio.Future[list[str]]]] = asyncio.Queue()

    async def translate(self, request: pb.TranslateRequest, context: object) -> pb.TranslateResponse:
        """Tokenizes, waits for its turn, and joins."""
        answer: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(([*self._source.encode(request.texts[0], out_type=str), "</s>"], answer))
        pieces = await answer
        text = self._target.decode(pieces)
        return pb.TranslateResponse(translations=[pb.Translation(text=text, target_tokens=len(pieces))])

    async def translate_what_waits(self) -> None:
        """Batch after batch, each of what waits when a worker is free."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < self._task["batch"] and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            results = await asyncio.to_thread(self._translate, [pieces for pieces, _ in batch])
            for (_, answer), result in zip(batch, results, strict=True):
                # Whoever has given up has cancelled it.
                if not answer.done():
                    answer.set_result(result.hypotheses[0])

    def _translate(self, sentences: list[list[str]]) -> Any:
        return self._translator.translate_batch(
            sentences,
            beam_size=self._task["beam"],
            min_decoding_length=self._task["steps"],
            max_decoding_length=self._task["steps"],
            use_vmap=self._task["shortlist"],
        )


async def main() -> None:
    """Reads what to serve as a line of JSON, answers with its port, and serves until it is ended."""
    task = json.loads(sys.stdin.readline())
    server = grpc.aio.server()
    service = Service(task)
    handler = grpc.unary_unary_rpc_method_handler(
        service.translate,
        request_deserializer=pb.TranslateRequest.FromString,
        response_serializer=pb.TranslateResponse.SerializeToString,
    )
    name = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Translate": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"port": port, "version": ctranslate2.__version__}), flush=True)
    async with asyncio.TaskGroup() as workers:
        for _ in range(task["workers"]):
            workers.create_task(service.translate_what_waits())


if __name__ == "__main__":
    asyncio.run(main())
