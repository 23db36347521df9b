"""Layers of a Transformer, of which one is traced for all.

They are alike but for their weights, their memory and their past, and tracing takes longer the more nodes
there are. So a model is traced with one layer a side, and that layer's nodes are repeated. What an exporter
does with constants is done afterwards, to all layers.
"""

import re
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor
from torch import Tensor

from dragoman_export.graphs.initializers import there
from dragoman_export.graphs.layer_checks import check_layers
from dragoman_training.models.transformer import Transformer

DOMAIN = "dragoman"
BEGIN, END = "FirstLayer", "BehindLastLayer"
"""Nodes that give what they read, and tell where in a traced graph the layers stand."""
ENCODER, DECODER = "model.encoder_layers.", "model.decoder_layers."
"""What names of weights begin with, before their layer's number."""
ATTENTION = "attention"
"""The output that is one layer's."""


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What a model had before all but the first layer of each side were taken from it."""

    weights: Mapping[str, Tensor]
    """Of all layers, by their names in the graphs."""
    encoder: int
    """Layers of the encoder."""
    decoder: int
    """Layers of the decoder."""
    attention: int
    """The layer of the decoder whose attention a step returns."""


def keep_first_layers(model: Transformer) -> Layers:
    """Leaves the model one layer a side, and has its graphs tell where that begins and ends.

    Raises ValueError for layers that are not alike.
    """
    check_layers(model)
    config, head = model.config, model.alignment_head
    layers = Layers(
        weights={f"model.{name}": weight for name, weight in model.state_dict().items()},
        encoder=config.encoder_layers,
        decoder=config.decoder_layers,
        attention=config.decoder_layers - 1 if head is None else head.layer,
    )
    model.encoder_layers, model.decoder_layers = model.encoder_layers[:1], model.decoder_layers[:1]
    if head is not None:
        model.alignment_head = replace(head, layer=0)
    # Each side begins with its embeddings, from which training drops some, and ends before its norm.
    model.dropout.register_forward_hook(lambda module, inputs, output: _mark(BEGIN, output))
    for norm in (model.encoder_norm, model.decoder_norm):
        norm.register_forward_pre_hook(lambda module, inputs: (_mark(END, inputs[0]),))
    return layers


def _mark(name: str, x: Tensor) -> Tensor:
    marked: Tensor = torch.onnx.ops.symbolic(
        f"{DOMAIN}::{name}", (x,), dtype=x.dtype, shape=x.shape, version=1
    )
    return marked


def first_layers(names: Iterable[str]) -> list[str]:
    """Of a graph's inputs or outputs those that it has before its layers are repeated."""
    return [name for name in names if _number(name) in (None, 0)]


def repeat_layers(
    graph: ir.Graph, layers: Layers, input_names: Sequence[str], output_names: Sequence[str]
) -> None:
    """Gives a graph, traced and not yet optimised, all layers, and inputs and outputs in this order."""
    repeater = _Repeater(graph, layers)
    is_encoder = any(name.startswith(ENCODER) for name in graph.initializers)
    # The encoder's graph has of a decoder's layer what makes its memory.
    repeater.repeat(DECODER, layers.decoder, are_stacked=not is_encoder)
    if is_encoder:
        repeater.repeat(ENCODER, layers.encoder, are_stacked=True)
    repeater.remove_marks()
    _order(graph.inputs, input_names)
    _order(graph.outputs, output_names)
    graph.sort()


class _Repeater:
    """Repeats the first layers of one graph."""

    def __init__(self, graph: ir.Graph, layers: Layers) -> None:
        self._graph = graph
        self._layers = layers
        self._begin, self._end = (
            next(node for node in graph if node.domain == DOMAIN and node.op_type == mark)
            for mark in (BEGIN, END)
        )

    def repeat(self, prefix: str, count: int, *, are_stacked: bool) -> None:
        """Adds layers until there are `count`; of stacked ones each reads what the one before gives."""
        graph = self._graph
        weights = [value for name, value in graph.initializers.items() if name.startswith(f"{prefix}0.")]
        # What enters and leaves a graph for each layer is a decoder's.
        inputs = [value for value in graph.inputs if prefix == DECODER and _is_first(value)]
        outputs = [value for value in graph.outputs if prefix == DECODER and _is_first(value)]
        attention = next((value for value in graph.outputs if value.name == ATTENTION), None)
        entry, exit_ = self._begin.outputs[0], there(self._end.inputs[0])
        nodes = _reached(graph, [*weights, *inputs, *([entry] if are_stacked else [])])
        last = exit_
        for number in range(1, count):
            values = {value: self._weight(value, prefix, number) for value in weights}
            values |= {value: _like(value, _numbered(value, number)) for value in inputs}
            graph.inputs.extend(values[value] for value in inputs)
            if are_stacked:
                values[entry] = last
            for node in nodes:
                graph.append(_repeated(node, values, number))
            for value in outputs:
                if value not in values:
                    # No layer's own: a past of which there is nothing yet.
                    graph.append(_repeated(_producer(value), values, number))
                values[value].name = _numbered(value, number)
                graph.outputs.append(values[value])
            if are_stacked:
                last = values[exit_]
            if attention in values and number == self._layers.attention:
                place = graph.outputs.index(attention)
                graph.outputs[place] = values[attention]
                attention.name, values[attention].name = f"{ATTENTION}.0", ATTENTION
        if are_stacked:
            self._end.replace_input_with(0, last)

    def remove_marks(self) -> None:
        for node in (self._end, self._begin):
            node.outputs[0].replace_all_uses_with(there(node.inputs[0]))
            self._graph.remove(node, safe=True)

    def _weight(self, first: ir.Value, prefix: str, number: int) -> ir.Value:
        name = f"{prefix}{number}.{str(first.name).removeprefix(f'{prefix}0.')}"
        weight = _like(first, name)
        weight.const_value = TorchTensor(self._layers.weights[name].detach(), name)
        self._graph.register_initializer(weight)
        return weight


def _reached(graph: ir.Graph, seeds: Iterable[ir.Value]) -> list[ir.Node]:
    """What reads the seeds, and what reads that, up to the end of the layers.

    What asks for a size is no layer's own: all have the same sizes.
    """
    reached, nodes = set(seeds), []
    for node in graph:
        if node.op_type not in ("Shape", END) and any(value in reached for value in node.inputs):
            nodes.append(node)
            reached.update(node.outputs)
    return nodes


def _repeated(node: ir.Node, values: dict[ir.Value, ir.Value], number: int) -> ir.Node:
    """The node for another layer, whose values are noted."""
    new = ir.Node(
        node.domain,
        node.op_type,
        [value if value is None else values.get(value, value) for value in node.inputs],
        list(node.attributes.values()),
        overload=node.overload,
        version=node.version,
        outputs=[_like(value, f"{value.name}.{number}") for value in node.outputs],
    )
    values.update(zip(node.outputs, new.outputs, strict=True))
    return new


def _like(value: ir.Value, name: str) -> ir.Value:
    shape = None if value.shape is None else value.shape.copy()
    return ir.Value(name=name, shape=shape, type=value.type)


def _producer(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def _is_first(value: ir.Value) -> bool:
    """Whether an input or output is the first layer's."""
    return _number(str(value.name)) == 0


def _number(name: str) -> int | None:
    """Which layer an input or output is of, as `memory.keys0` is; None where it is no layer's own."""
    found = re.search(r"\d+$", name)
    return None if found is None else int(found[0])


def _numbered(value: ir.Value, number: int) -> str:
    """What a first layer's input or output is called for another layer."""
    return f"{str(value.name).removesuffix('0')}{number}"


def _order(values: MutableSequence[ir.Value], names: Sequence[str]) -> None:
    ordered = sorted(values, key=lambda value: names.index(str(value.name)))
    values.clear()
    values.extend(ordered)
