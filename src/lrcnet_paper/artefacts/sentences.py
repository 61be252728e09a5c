"""Words for the sentences that artefacts write from their numbers."""

from __future__ import annotations

from collections.abc import Sequence


def join_words(words: Sequence[object]) -> str:
    """Join words as a sentence lists them; "" without any.

    >>> join_words(["LTC"]), join_words(["LTC", "STC", "LRCU-S"])
    ('LTC', 'LTC, STC and LRCU-S')
    """
    texts = [str(word) for word in words]
    return " and ".join(part for part in (", ".join(texts[:-1]), *texts[-1:]) if part)
