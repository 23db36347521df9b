"""Some pairs of a corpus, evenly spread over its lines, to learn from what needs no more."""

from collections.abc import Sequence
from pathlib import Path

from dragoman_training.data.checksum import combine_crc32
from dragoman_training.data.corpus import Corpus, CorpusError, show_fingerprint
from dragoman_training.data.pair_filter import FilterConfig, reasons_to_leave_out
from dragoman_training.data.parts import PairBlock, Part, TextBlock, pairs_of, read_blocks
from dragoman_training.data.survey import FileFacts
from dragoman_training.data.tokenizing import checksum


def read_sample(
    parts: Sequence[Part], facts: dict[Path, FileFacts], max_pairs: int, pair_filter: FilterConfig
) -> Corpus:
    """The pairs of at most so many lines, without those that the filter leaves out.

    Raises CorpusError for files that can't be used.
    """
    total = sum(facts[part.paths[0]].num_lines for part in parts)
    sample = Corpus([], [])
    before = 0
    for part in parts:
        for block in read_blocks(part):
            found = pairs_of(block) if total <= max_pairs else _some_pairs(block, before, max_pairs, total)
            before += block.num_lines
            sample.sources.extend(found.sources)
            sample.targets.extend(found.targets)
    return filtered(sample, pair_filter)


def _some_pairs(block: TextBlock, before: int, max_pairs: int, total: int) -> PairBlock:
    """Of those of a block with `before` lines before it; lines are picked as `evenly_spaced` does."""
    first = -(-before * max_pairs // total)
    behind = -(-(before + block.num_lines) * max_pairs // total)
    indices = [number * total // max_pairs - before for number in range(first, behind)]
    if not indices:
        return PairBlock(sources=[], targets=[], num_one_sided=0)
    sides = [lines.split(b"\n") for lines in block.lines]
    picked = TextBlock(
        part=block.part,
        first_line=block.first_line + indices[0],
        num_lines=len(indices),
        lines=tuple(b"".join(side[index] + b"\n" for index in indices) for side in sides),
    )
    try:
        return pairs_of(picked)
    except CorpusError:
        # Its lines are not numbered like those of the file.
        pairs_of(block)
        raise


def filtered(corpus: Corpus, pair_filter: FilterConfig) -> Corpus:
    """The pairs that the filter leaves in."""
    if pair_filter == FilterConfig():
        return corpus
    reasons = reasons_to_leave_out(corpus.sources, corpus.targets, pair_filter)
    pairs = zip(corpus.sources, corpus.targets, strict=True)
    used = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    if pair_filter.leave_out_duplicates:
        used = list(dict.fromkeys(used))
    return Corpus([source for source, _ in used], [target for _, target in used], corpus.num_one_sided)


def fingerprint_of(parts: Sequence[Part]) -> str:
    """As `Corpus.fingerprint` says it of all pairs, which are never in memory together."""
    num_pairs, sums = 0, [(0, 0), (0, 0)]
    for part in parts:
        for block in read_blocks(part):
            found: PairBlock = pairs_of(block)
            num_pairs += len(found.targets)
            for side, lines in enumerate((found.sources, found.targets)):
                crc, length = checksum(lines)
                sums[side] = combine_crc32(sums[side][0], crc, length), sums[side][1] + length
    (source, _), (target, length) = sums
    return show_fingerprint(num_pairs, combine_crc32(source, target, length))
