"""Run by the Python of the peers' environment: one system on one thread, which decodes or serves.

The first line is the task; then a setting each time, answered with the seconds of the processor and of the
clock, the words that came out, and the memory that is the process's alone. A task that says "serve" is
answered with a port, for as long as the process runs. Knows nothing of ours but the clients' messages, so
that both servers bear the very same calls: one text each, all else in them is left unread.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

Translate = Callable[[list[str]], list[str]]


def open_fxtranslate(task: dict[str, Any], beam: int, batch: int) -> Translate:
    """It decodes greedily, a sentence after the other."""
    import fxtranslate

    files = ["model.bin", "vocab.spm", "vocab.spm", *(["lex.bin"] if task["shortlist"] else [])]
    translator = fxtranslate.Translator(*((Path(task["folder"]) / name).read_bytes() for name in files))
    return lambda texts: [translator.translate(text) for text in texts]


def open_marian(task: dict[str, Any], beam: int, batch: int) -> Translate:
    """It decodes the floats of the `.npz`."""
    import pymarian

    folder = Path(task["folder"])
    options = {"shortlist": [str(folder / "lex.bin"), "false"]} if task["shortlist"] else {}
    translator = pymarian.Translator(
        models=[str(folder / ("model.npz" if (folder / "model.npz").exists() else "transformer.npz"))],
        vocabs=[str(folder / "vocab.spm")] * 2,
        beam_size=beam,
        mini_batch=batch,
        maxi_batch=100,
        maxi_batch_sort="src",
        max_length_factor=task["growth"],
        cpu_threads=1,
        quiet=True,
        **options,
    )
    return lambda texts: translator.translate(texts)


@cache
def load_ctranslate2(folder: str) -> Any:
    """The model, with one worker of one thread."""
    import ctranslate2

    path = str(Path(folder) / "ctranslate2")
    return ctranslate2.Translator(path, compute_type="int8", inter_threads=1, intra_threads=1)


def open_ctranslate2(task: dict[str, Any], beam: int, batch: int) -> Translate:
    """It decodes exactly as many steps as the task says."""
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(Path(task["folder"]) / "vocab.spm"))
    translator = load_ctranslate2(task["folder"])

    def translate(texts: list[str]) -> list[str]:
        results = translator.translate_batch(
            pieces.encode(texts, out_type=str),
            beam_size=beam,
            max_batch_size=batch,
            batch_type="examples",
            min_decoding_length=task["steps"],
            max_decoding_length=task["steps"],
            use_vmap=task["shortlist"],
        )
        return [pieces.decode(result.hypotheses[0]) for result in results]

    return translate


SYSTEMS = {"ctranslate2": open_ctranslate2, "marian": open_marian, "fxtranslate": open_fxtranslate}


def decode(task: dict[str, Any]) -> None:
    """Answers each setting until its input ends."""
    opened = cache(lambda beam, batch: SYSTEMS[task["system"]](task, beam, batch))
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        translate, texts = opened(asked["beam"], asked["batch"]), asked["texts"]
        translate(texts[:1])
        calls = [[text] for text in texts] if asked["alone"] else [texts]
        began, wall = time.process_time(), time.perf_counter()
        words = sum(len(text.split()) for call in calls for text in translate(call))
        used = {"seconds": time.process_time() - began, "wall": time.perf_counter() - wall}
        rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
        private = sum(int(entry.split()[1]) for entry in rollup if entry.startswith("Private_"))
        print(json.dumps({**used, "words": words, "mib": private / 1024}), flush=True)


async def serve(task: dict[str, Any]) -> None:
    """Serves over gRPC: what waits is translated at once, up to a batch."""
    import grpc.aio

    from dragoman.v1 import translation_pb2 as pb

    translate = SYSTEMS[task["system"]](task, task["beam"], task["batch"])
    waiting: asyncio.Queue[tuple[str, asyncio.Future[str]]] = asyncio.Queue()

    async def answer(request: pb.TranslateRequest, context: object) -> pb.TranslateResponse:
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        waiting.put_nowait((request.texts[0], found))
        return pb.TranslateResponse(translations=[pb.Translation(text=await found)])

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
    print(json.dumps({"port": port}), flush=True)
    while True:
        batch = [await waiting.get()]
        while len(batch) < task["batch"] and not waiting.empty():
            batch.append(waiting.get_nowait())
        results = await asyncio.to_thread(translate, [text for text, _ in batch])
        for (_, found), result in zip(batch, results, strict=True):
            # Whoever has given up has cancelled it.
            if not found.done():
                found.set_result(result)


def main() -> None:
    """Reads the task as a line of JSON."""
    task = json.loads(sys.stdin.readline())
    if "serve" in task:
        asyncio.run(serve(task))
    else:
        decode(task)


if __name__ == "__main__":
    main()
