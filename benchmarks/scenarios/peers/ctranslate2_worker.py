"""Run by the Python of CTranslate2's environment: a converted model, decoded with in batches or served.

Needs ctranslate2 and, to serve, sentencepiece, grpcio and the clients' messages on its path, so that both
servers bear the very same calls: one text each, all else in them is left unread.
"""

import asyncio
import json
import sys
import time
from typing import Any

import ctranslate2


def open_translator(task: dict[str, Any], setting: dict[str, Any]) -> Any:
    """The model, with so many workers of so many threads."""
    return ctranslate2.Translator(
        task["model"],
        device="cpu",
        compute_type="int8",
        inter_threads=setting["workers"],
        intra_threads=setting["threads_per_worker"],
    )


def translate(
    translator: Any, task: dict[str, Any], sentences: list[list[str]], setting: dict[str, Any]
) -> Any:
    """Hypotheses of exactly the task's steps."""
    return translator.translate_batch(
        sentences,
        beam_size=setting["beam"],
        max_batch_size=setting["batch"],
        batch_type="examples",
        min_decoding_length=task["steps"],
        max_decoding_length=task["steps"],
        use_vmap=task["shortlist"],
    )


def decode(task: dict[str, Any]) -> None:
    """Answers each setting with the seconds and target tokens of its sentences, "alone" in a call each."""
    print(json.dumps({"version": ctranslate2.__version__}), flush=True)
    translator: Any = None
    opened: tuple[int, int] | None = None
    for line in sys.stdin:
        setting = json.loads(line)
        workers = (setting["workers"], setting["threads_per_worker"])
        if workers != opened:
            # One at a time: each holds threads of its own.
            translator = None
            translator = open_translator(task, setting)
            opened = workers
            translator.translate_batch(task["sentences"][:4], max_decoding_length=2)
        sentences = task["sentences"][: setting["sentences"]]
        calls = [[sentence] for sentence in sentences] if setting["alone"] else [sentences]
        started = time.perf_counter()
        results = [result for call in calls for result in translate(translator, task, call, setting)]
        seconds = time.perf_counter() - started
        tokens = sum(len(result.hypotheses[0]) for result in results)
        print(json.dumps({"seconds": seconds, "tokens": tokens}), flush=True)


async def serve(task: dict[str, Any]) -> None:
    """Serves over gRPC: a queue, and for each worker a task that takes from it what waits, up to a batch."""
    import grpc.aio
    import sentencepiece

    from dragoman.v1 import translation_pb2 as pb

    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=task[side]) for side in ("source", "target")
    )
    translator = open_translator(task, task)
    waiting: asyncio.Queue[tuple[list[str], asyncio.Future[list[str]]]] = asyncio.Queue()

    async def answer(request: pb.TranslateRequest, context: object) -> pb.TranslateResponse:
        found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        waiting.put_nowait(([*source.encode(request.texts[0], out_type=str), "</s>"], found))
        pieces = await found
        translation = pb.Translation(text=target.decode(pieces), target_tokens=len(pieces))
        return pb.TranslateResponse(translations=[translation])

    async def translate_what_waits() -> None:
        while True:
            batch = [await waiting.get()]
            while len(batch) < task["batch"] and not waiting.empty():
                batch.append(waiting.get_nowait())
            sentences = [pieces for pieces, _ in batch]
            results = await asyncio.to_thread(translate, translator, task, sentences, task)
            for (_, found), result in zip(batch, results, strict=True):
                # Whoever has given up has cancelled it.
                if not found.done():
                    found.set_result(result.hypotheses[0])

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(
        answer,
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
            workers.create_task(translate_what_waits())


def main() -> None:
    """Reads the task as a line of JSON; one with "workers" is served until the process is ended."""
    task = json.loads(sys.stdin.readline())
    if "workers" in task:
        asyncio.run(serve(task))
    else:
        decode(task)


if __name__ == "__main__":
    main()
