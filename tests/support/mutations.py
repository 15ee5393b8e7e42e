"""Bytes of files damaged at random, as a seed says: cut off, overwritten, offsets and lengths made large."""

import random
from collections.abc import Iterator, Sequence


def damaged(files: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """`count` damaged copies of some files."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _one(chance.choice(files), chance)


def _one(data: bytes, chance: random.Random) -> bytes:
    mutated = bytearray(data)
    if chance.random() < 0.2:
        return bytes(mutated[: chance.randrange(len(mutated))])
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        at, kind = chance.randrange(len(mutated)), chance.random()
        if kind < 0.4:
            mutated[at] = chance.randrange(256)
        elif kind < 0.7:
            number = chance.choice([0, 1, 2**32 - 1, 2**31 - 1, len(mutated), chance.randrange(len(mutated))])
            mutated[at & ~3 : (at & ~3) + 4] = number.to_bytes(4, "little")
        elif kind < 0.9:
            other = chance.randrange(len(mutated))
            mutated[at : at + 4] = mutated[other : other + 4]
        else:
            mutated[at] ^= 1 << chance.randrange(8)
    return bytes(mutated)
