"""Opens the decoder of a bundle: on which device, in which precision, and whether its batches stay there."""

import logging
from dataclasses import replace
from pathlib import Path

from dragoman_bundle.bundle import BundleGraphs
from dragoman_bundle.manifest import (
    ENCODER_GRAPH,
    REGROUP_GRAPH,
    SHORTLIST_GRAPH,
    SHORTLIST_STEP_GRAPH,
    STEP_GRAPH,
    Manifest,
)

from dragoman_server.engine.errors import DecoderError, DeviceUnavailableError, PrecisionUnavailableError
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.device_decoder import DeviceDecoder
from dragoman_server.engine.onnx.host_decoder import HostDecoder
from dragoman_server.engine.onnx.session import PROVIDERS, DecoderOptions, check_device, open_session

GREEDY_SHORTLIST_VOCABULARY = 12_000
"""Target pieces from which a shortlist pays on a CPU even for a row a sentence: to read and pack a sentence's
own part of the output layer at each step takes as long as a row's product with some 10,000 pieces."""

_PREFERRED_PRECISIONS = {"cuda": ("fp16", "fp32"), "cpu": ("int8", "fp32")}

logger = logging.getLogger(__name__)


def open_decoder(bundle: BundleGraphs, options: DecoderOptions) -> OnnxDecoder:
    """Opens the bundle's graphs and decodes a token with them.

    Raises DeviceUnavailableError, PrecisionUnavailableError, or DecoderError where the graphs don't run.
    """
    options = settle_device(bundle, options)
    if options.device != "auto":
        try:
            return _open(bundle, options)
        except PrecisionUnavailableError:
            # Without the device, graphs for it are not what is missing.
            check_device(options.device)
            raise
    try:
        return _open(bundle, replace(options, device="cuda"))
    except DeviceUnavailableError as error:
        _log_cpu(bundle, str(error))
    return _open(bundle, replace(options, device="cpu"))


def settle_device(bundle: BundleGraphs, options: DecoderOptions) -> DecoderOptions:
    """The options with "cpu" for "auto" where that shows before a graph is opened.

    Raises PrecisionUnavailableError where the bundle lacks the one that is asked for.
    """
    if options.device != "auto":
        return options
    try:
        choose_precision(bundle.path, bundle.manifest, "cuda", options.precision)
        check_device("cuda")
    except DeviceUnavailableError as error:
        _log_cpu(bundle, str(error))
    except PrecisionUnavailableError:
        if options.precision != "auto":
            raise
        present = ", ".join(bundle.manifest.precisions)
        _log_cpu(bundle, f"{present} graphs are for CPUs, and it has no others")
    else:
        return options
    return replace(options, device="cpu")


def reopen_decoder(graphs: BundleGraphs, options: DecoderOptions) -> OnnxDecoder:
    """Opens the decoder of graphs that were checked perhaps long ago: a process that ends is replaced."""
    if options.precision != "auto":
        graphs.check(options.precision)
    return open_decoder(graphs, options)


def _log_cpu(bundle: BundleGraphs, reason: str) -> None:
    logger.info("%s runs on the CPU: %s", bundle.manifest.key, reason)


def choose_graphs(bundle: BundleGraphs, options: DecoderOptions) -> tuple[DecoderOptions, list[str]]:
    """The options with the precision and the kind of batch that are chosen for their device, and the names
    of the graphs that are opened. Raises PrecisionUnavailableError, and DecoderError where one is missing.
    """
    device = options.device
    precision = choose_precision(bundle.path, bundle.manifest, device, options.precision)
    on_device = _stays_on_device(bundle, precision, options)
    options = replace(options, precision=precision, stays_on_device=on_device)
    graphs = [ENCODER_GRAPH, *([REGROUP_GRAPH] if on_device else [])]
    has_shortlist = options.use_shortlist and bundle.shortlist is not None
    if has_shortlist:
        graphs += [SHORTLIST_STEP_GRAPH, SHORTLIST_GRAPH]
    is_small = bundle.manifest.target_vocabulary < GREEDY_SHORTLIST_VOCABULARY
    if not has_shortlist or (device == "cpu" and is_small):
        graphs.append(STEP_GRAPH)
    return options, graphs


def _open(bundle: BundleGraphs, options: DecoderOptions) -> OnnxDecoder:
    device = options.device
    if device not in PROVIDERS:
        raise DeviceUnavailableError(f"device {device!r} is unknown; there are auto, {', '.join(PROVIDERS)}")
    options, graphs = choose_graphs(bundle, options)
    try:
        paths = {graph: bundle.graph_path(options.precision, graph) for graph in graphs}
        sessions = {
            graph: open_session(path, options, may_leave_shapes=graph != REGROUP_GRAPH)
            for graph, path in paths.items()
        }
        decoder = (DeviceDecoder if options.stays_on_device else HostDecoder)(bundle, options, sessions)
        decoder.try_out()
    except (DecoderError, DeviceUnavailableError):
        raise
    except Exception as error:
        reason = f"{bundle.path} cannot be run in {options.precision} on {device}: {error}"
        raise (DecoderError if device == "cpu" else DeviceUnavailableError)(reason) from error
    return decoder


def choose_precision(path: Path, manifest: Manifest, device: str, precision: str) -> str:
    """Which graphs of the bundle at `path` run on "cpu" or "cuda". Raises PrecisionUnavailableError."""
    present = manifest.precisions
    wanted = _PREFERRED_PRECISIONS[device] if precision == "auto" else (precision,)
    if choices := [choice for choice in wanted if choice in present]:
        return choices[0]
    on = f", and {device} takes no others" if precision == "auto" else ""
    lacking = f"{path} has no {' or '.join(wanted)} graphs{on}"
    raise PrecisionUnavailableError(f"{lacking}; it has {', '.join(present)}")


def _stays_on_device(bundle: BundleGraphs, precision: str, options: DecoderOptions) -> bool:
    wanted, on_gpu = options.stays_on_device, options.device != "cpu"
    has_graph = bundle.has_graph(precision, REGROUP_GRAPH)
    if wanted and not has_graph:
        raise DecoderError(
            f"{bundle.path} has no graph {REGROUP_GRAPH!r} in {precision}, without which no batch can stay "
            "on the device; export the model again"
        )
    if wanted is None and on_gpu and not has_graph:
        logger.warning(
            "%s has no graph %r: its batches pass through the host at every step; "
            "export the model again to keep it on the GPU",
            bundle.path,
            REGROUP_GRAPH,
        )
    return has_graph and (on_gpu if wanted is None else wanted)
