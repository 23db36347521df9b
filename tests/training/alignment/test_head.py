"""Which of a Transformer's heads tells what words come from."""

import numpy as np
import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import toy_corpus, toy_model

from dragoman_training.alignment.head import agreements, choose_head, likeliest_links, look_through
from dragoman_training.alignment.pieces import TranslationTable
from dragoman_training.data.corpus import Corpus
from dragoman_training.models.transformer import AlignmentHead, Transformer, TransformerConfig

CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(3)
    model = toy_model(CONFIG, tokenizer).eval()
    assert isinstance(model, Transformer)
    return model


def random_pairs(eos: int) -> list[tuple[list[int], list[int]]]:
    generator = np.random.default_rng(8)
    lengths = ((5, 4), (9, 7), (3, 6), (7, 7), (1, 1)) * 12
    pairs = [[[*generator.integers(4, 40, size).tolist(), eos] for size in sizes] for sizes in lengths]
    return [(source, target) for source, target in pairs]


@torch.inference_mode()
def test_all_heads_are_looked_through_as_the_model_steps(model: Transformer, tokenizer: Tokenizer) -> None:
    pairs = random_pairs(tokenizer.eos_id)[:5]
    looks = look_through(model, (tokenizer, tokenizer), pairs)
    for (source, target), look_LHUT in zip(pairs, looks, strict=True):
        assert look_LHUT.shape == (2, 3, len(target), len(source))
        assert np.allclose(look_LHUT.sum(axis=-1), 1, atol=1e-5)
        memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        for step, token in enumerate([tokenizer.bos_id, *target[:-1]]):
            _, attention_SKT, state = model.step(torch.tensor([[token]]), memory, state)
            assert np.allclose(attention_SKT[0, 0].numpy(), look_LHUT[-1, :, step].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("of_input", [False, True])
@pytest.mark.parametrize(("layer", "head"), [(0, 2), (1, 0)])
def test_the_head_that_has_all_links_agrees_wholly(
    model: Transformer, tokenizer: Tokenizer, layer: int, head: int, of_input: bool
) -> None:
    pairs, tokenizers = random_pairs(tokenizer.eos_id), (tokenizer, tokenizer)
    links = []
    for look_LHUT, (_, target) in zip(look_through(model, tokenizers, pairs), pairs, strict=True):
        likeliest_U = look_LHUT[layer, head, int(of_input) :, :-1].argmax(axis=-1).tolist()
        links.append(dict(enumerate(likeliest_U[: len(target) - 1])))
    found = agreements(model, tokenizers, pairs, links)
    assert len(found) == 1 + 2 * 2 * 3
    assert (found[0].head, found[0].of_input) == (None, False)
    best = max(found, key=lambda each: each.share)
    assert (best.head, best.of_input, best.share) == (AlignmentHead(layer=layer, head=head), of_input, 1.0)
    assert sorted(each.share for each in found)[-2] < 0.9


def test_a_link_is_the_likeliest_source_unless_that_is_null() -> None:
    table = TranslationTable.from_pairs(
        np.array([0, 0, 1, 2, 2, 3, 3], np.int32),
        np.array([5, 6, 5, 6, 7, 7, 8], np.int32),
        np.array([0.6, 0.4, 0.9, 0.5, 0.2, 0.3, 0.1]),
        source_vocabulary=3,
    )
    # 5 comes from 1 rather than 0, 6 from 2; 7 and 8 from nothing, and 4 from nothing known.
    assert likeliest_links(table, ([0, 1, 2], [5, 6, 7, 8])) == {0: 1, 1: 2}
    # Of equals the first.
    assert likeliest_links(table, ([1, 1], [5])) == {0: 0}


def test_the_head_with_most_links_is_chosen_and_told(model: Transformer, tokenizer: Tokenizer) -> None:
    chosen = choose_head(model, tokenizer, tokenizer, toy_corpus(), max_tokens=60)
    assert chosen.head is not None
    step = "read" if chosen.of_input else "predicted"
    place = f"head {chosen.head.head + 1} of decoder layer {chosen.head.layer + 1}, of the token {step}, has "
    assert chosen.reason.startswith(place)
    assert model.alignment_head is None


def test_where_no_head_has_more_links_the_mean_is_chosen(tokenizer: Tokenizer) -> None:
    """Of a single head of a single layer the mean is the same, and no better than reading the next token."""
    corpus = Corpus(["mann"] * 8, ["man"] * 8)
    config = TransformerConfig(width=8, heads=1, feed_forward=8, encoder_layers=1, decoder_layers=1)
    model = toy_model(config, tokenizer).eval()
    assert isinstance(model, Transformer)
    torch.nn.init.zeros_(model.decoder_layers[0].cross_attention.query.weight)
    chosen = choose_head(model, tokenizer, tokenizer, corpus, max_tokens=60)
    assert chosen.head is None
    assert not chosen.of_input
    assert chosen.reason.startswith("no head has more of IBM model 1's links than the last layer's mean ")


@pytest.mark.parametrize("corpus", [Corpus([""], ["man"]), Corpus(["mann"] * 3, ["man " * 61] * 3)])
def test_a_corpus_that_nothing_can_be_learnt_from_chooses_nothing(
    model: Transformer, tokenizer: Tokenizer, corpus: Corpus
) -> None:
    chosen = choose_head(model, tokenizer, tokenizer, corpus, max_tokens=60)
    assert chosen.head is None
    said = "no training pair is short enough to choose a head by; the last layer's mean it is"
    assert chosen.reason == said
