"""Objects made of a schema, most of them valid, for kinds of which nobody publishes one."""

TEXTS = {
    "date-time": "2020-01-01T00:00:00Z", "date": "2020-01-01", "duration": "5m", "byte": "YWJj", "ipv4": "1.2.3.4",
    "ipv6": "::1", "uri": "https://a.example.com/", "hostname": "a.example.com", "email": "a@example.com",
    "uuid": "12345678-1234-1234-1234-123456789abc", "cidr": "10.0.0.0/8",
}


def object_of(chosen, kind, schema, name):
    """With some of the fields that the schema has."""
    made = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name}}
    for key, child in (schema.get("properties") or {}).items():
        if key not in made and (key == "spec" or chosen.random() < 0.7):
            made[key] = value(chosen, child, 0)
    return made


def value(chosen, schema, depth):
    if "enum" in schema:
        return chosen.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return chosen.choice([1, 80, "http", "10%", "1Gi"])
    if "default" in schema and chosen.random() < 0.5:
        return schema["default"]
    make = MAKERS.get(schema.get("type"))
    return make(chosen, schema, depth) if make else {"any": [1, "x"]}


def members(chosen, schema, depth):
    if schema.get("x-kubernetes-embedded-resource"):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}}
    required = schema.get("required") or []
    likely = 0.5 if depth < 3 else 0.2 if depth < 7 else 0
    found = {
        key: value(chosen, child, depth + 1)
        for key, child in (schema.get("properties") or {}).items()
        if key in required or chosen.random() < likely
    }
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and likely:
        found.update({key: value(chosen, more, depth + 1) for key in ("a", "b-c")})
    return found


def items(chosen, schema, depth):
    count = max(schema.get("minItems") or 0, 1 if depth < 8 else 0)
    return [value(chosen, schema.get("items") or {}, depth + 1) for _ in range(count)]


def text(chosen, schema, _):
    if schema.get("format") in TEXTS:
        return TEXTS[schema["format"]]
    word = chosen.choice(["a", "web", "example.com", "a/b", "1", "A"])
    return word * max(1, -(-(schema.get("minLength") or 0) // len(word)))


def number(chosen, schema, _):
    low = schema.get("minimum", 0)
    return min(low + chosen.choice([0, 1, 80]), schema.get("maximum", 2**31))


MAKERS = {
    "object": members,
    "array": items,
    "string": text,
    "integer": number,
    "number": number,
    "boolean": lambda chosen, *_: chosen.random() < 0.5,
}
