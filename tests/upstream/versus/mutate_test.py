"""The random changes alone, without a server: `python3 mutate_test.py`."""

import collections
import copy
import json
import unittest

import mutate

# The one that once made an object a part of itself, and others.
SEEDS = [77177, *range(8)]
STEPS_OF_A_SEED = 2000


class Everything:
    """Servers that have a resource for every kind."""

    def __init__(self):
        self.resources = self
        self.by_kind = collections.defaultdict(lambda: {
            "group_version": "example.com/v1", "plural": "examples", "subresources": {"status"},
        })

    def both_serve(self, kind):
        return True


def requests(seed):
    """All bodies of a seed, read as JSON again."""
    scenarios = [*mutate.scenarios(Everything(), seed, STEPS_OF_A_SEED), *mutate.definitions(seed, 20)]
    told = [{line: body for line, body in step.items() if " " in line} for _, steps in scenarios for step in steps]
    texts = [body for step in told for body in step.values()]
    for text in texts:
        json.loads(text if isinstance(text, str) else json.dumps(text))
    return told


class Mutations(unittest.TestCase):
    def test_changes_stay_in_their_object(self):
        junk = copy.deepcopy(mutate.JUNK)
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assertGreaterEqual(len(requests(seed)), STEPS_OF_A_SEED)
                self.assertEqual(mutate.JUNK, junk)

    def test_a_seed_tells_the_same_again(self):
        self.assertEqual(requests(77177), requests(77177))


if __name__ == "__main__":
    unittest.main()
