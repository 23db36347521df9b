"""German sentences for drills, as many as are wanted, all different and of several lengths."""

import itertools

_WHO = (
    "Der Hund",
    "Die Katze",
    "Tom",
    "Meine Mutter",
    "Das Kind",
    "Der alte Mann",
    "Eine junge Frau",
    "Maria",
)
_WHAT = ("schläft", "wartet", "spielt", "sitzt", "steht", "lacht", "singt", "arbeitet")
_WHEN = ("heute", "morgens", "am Abend", "jeden Tag", "seit drei Stunden", "oft", "nie", "wieder")
_WHERE = ("im Garten", "zu Hause", "in Berlin", "unter dem Tisch", "vor der Tür", "in der Schule", "am Meer")
_WHY = ("", ", weil es regnet", ", obwohl niemand da ist", ", denn alle sind müde")


def make_sentences(number: int) -> list[str]:
    """So many; after 14,336 they begin with a number."""
    kinds = itertools.product(_WHY, _WHERE, _WHEN, _WHAT, _WHO)
    all_kinds = [f"{who} {what} {when} {where}{why}." for why, where, when, what, who in kinds]
    # Neighbours in a file are unlike each other: a step that shares no factor with their number.
    mixed = [all_kinds[at * 4567 % len(all_kinds)] for at in range(len(all_kinds))]
    rounds = itertools.count()
    endless = itertools.chain.from_iterable(
        (sentence if turn == 0 else f"{turn}: {sentence}" for sentence in mixed) for turn in rounds
    )
    return list(itertools.islice(endless, number))
