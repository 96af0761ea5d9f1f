#!/usr/bin/env python3
"""Makes a backup of many objects out of a backup of one: multiply.py ONE MANY COUNT.

ONE holds a ConfigMap `object-0000000`; MANY holds COUNT of it beside everything else, each with a name, a uid and a payload
of its own, as long as the first one's, so that nothing in its message moves.
"""

import hashlib
import random
import struct
import sys

MAGIC = b"rowplane backup 1\n"
NAME = b"object-0000000"


def field(data, at):
    (length,) = struct.unpack_from(">I", data, at)
    return data[at + 4 : at + 4 + length], at + 4 + length


def fields(data, at, count):
    found = []
    for _ in range(count):
        one, at = field(data, at)
        found.append(one)
    return found, at


def record(tag, values):
    return tag + b"".join(struct.pack(">I", len(value)) + value for value in values)


def main(one, many, count):
    data = open(one, "rb").read()
    assert data.startswith(MAGIC)
    at, records = len(MAGIC), []
    while (tag := data[at : at + 1]) != b"E":
        values, at = fields(data, at + 1, {b"R": 1, b"K": 3, b"O": 8}[tag])
        records.append((tag, values))
    template = next(values for tag, values in records if tag == b"O" and values[3] == NAME)
    others = [pair for pair in records if pair[1] is not template]
    newest = max(struct.unpack(">Q", values[4])[0] for tag, values in others if tag == b"O")
    start = template[7].rindex(b"payload") + len(b"payload") + 4
    length = 1700
    assert start + length < len(template[7])
    chance = random.Random(1)
    # In no order, as the names of Pods are.
    names = list(range(count))
    chance.shuffle(names)
    digest = hashlib.sha256()
    with open(many, "wb") as out:

        def put(part):
            digest.update(part)
            out.write(part)

        put(MAGIC + record(b"R", [struct.pack(">Q", newest + count)]))
        for tag, values in others[1:]:
            put(record(tag, values))
        for number, name in enumerate(names):
            name = b"object-%07d" % name
            uid = b"%08x-0000-4000-8000-%012x" % (number, number)
            payload = chance.randbytes(length // 2).hex().encode()
            value = template[7].replace(NAME, name).replace(template[5], uid)
            value = value[:start] + payload + value[start + length :]
            revision = struct.pack(">Q", newest + 1 + number)
            put(record(b"O", [*template[:3], name, revision, uid, template[6], value]))
        out.write(record(b"E", [digest.digest()]))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
