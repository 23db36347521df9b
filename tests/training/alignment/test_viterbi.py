"""The likeliest alignment of the HMM is the likeliest of all."""

from collections.abc import Sequence

import numpy as np
from tests.training.alignment.brute_force import NULL, PAIRS, Alignment, Expectation, bitext_of

from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Smoothing, estimate_lexicon
from dragoman_training.alignment.models.hmm import Jumps, viterbi_hmm


def test_viterbi_alignment_of_the_hmm_is_the_likeliest_of_all() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        bitext = bitext_of(PAIRS)
        cooccurrence = Cooccurrence.of(bitext)
        lexicon_P = estimate_lexicon(
            cooccurrence, random.uniform(0.01, 1, len(cooccurrence.target_P)), Smoothing()
        )
        keys = zip(cooccurrence.source_P.tolist(), cooccurrence.target_P.tolist(), strict=True)
        t = dict(zip(keys, lexicon_P.tolist(), strict=True))
        weight_CD = random.uniform(0.1, 1, (2, 9))

        def probability(
            source: Sequence[int],
            target: Sequence[int],
            alignment: Alignment,
            t: dict[tuple[int, int], float] = t,
            weight_CD: np.ndarray = weight_CD,
        ) -> float:
            result, last = 1.0, 0
            for f, i in zip(target, alignment, strict=True):
                if i == 0:
                    result *= 0.3 * t[NULL, f]
                    continue
                weights = weight_CD[1 if last == 0 else 0]
                total = sum(weights[k - last + 4] for k in range(1, len(source) + 1))
                result *= 0.7 * weights[i - last + 4] / total * t[source[i - 1], f]
                last = i
            return result

        expected = [max(share, key=share.__getitem__) for share in Expectation(PAIRS, probability).alignments]
        zeros = np.zeros(len(bitext.source.word_N), np.int32)
        found = viterbi_hmm(cooccurrence, zeros, lexicon_P, Jumps(weight_CD=weight_CD, null=0.3))
        assert found.tolist() == [i for alignment in expected for i in alignment]
