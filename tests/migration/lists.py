"""Everything that a server lists, and what differs between two such states."""

import json

# Objects that a server or its controllers write when they start, whoever has written them before.
OF_SERVERS = [
    "/apiservices", "/prioritylevelconfigurations", "/flowschemas", "/leases", "/customresourcedefinitions",
    "/resourcequotas", "/validatingadmissionpolicies", "/events", "/servicecidrs", "/storageversions",
]
OF_KUBERNETES = ["/endpoints", "/endpointslices", "/services"]
AGGREGATED = {"admin", "edit", "view"}


def is_written_at_start(path, name):
    return (
        any(path.endswith(end) for end in OF_SERVERS)
        or any(path.endswith(end) for end in OF_KUBERNETES) and name == "kubernetes"
        or path.endswith("/configmaps") and name == "extension-apiserver-authentication"
        or path.endswith("/clusterroles") and name in AGGREGATED
        or path.endswith(("/clusterroles", "/clusterrolebindings")) and name.startswith("system:")
    )


def everything(site):
    """The text of each object, by the path of its list, its namespace and its name."""
    versions = ["/api/v1"] + [
        f"/apis/{version['groupVersion']}"
        for group in site.read("/apis")["groups"]
        for version in group["versions"]
    ]
    found = {}
    for path in versions:
        for resource in site.read(path)["resources"]:
            # ComponentStatuses are no objects: they tell who answers.
            listable = "/" not in resource["name"] and "list" in resource["verbs"]
            if not listable or resource["name"] == "componentstatuses":
                continue
            for item in site.read(f"{path}/{resource['name']}")["items"]:
                metadata = item["metadata"]
                # The order in which managers came to an object is no part of it.
                if "managedFields" in metadata:
                    metadata["managedFields"].sort(key=lambda one: json.dumps(one, sort_keys=True))
                key = (f"{path}/{resource['name']}", metadata.get("namespace", ""), metadata["name"])
                found[key] = item
    return found


def compare(before, after, what):
    """Fails unless the state is the one before, but for objects that servers write themselves."""
    same, own, wrong = 0, 0, []
    for key, item in before.items():
        path, _, name = key
        if item == after.get(key):
            same += 1
        elif is_written_at_start(path, name):
            own += 1
        else:
            wrong.append(f"{key}:\n  {json.dumps(item)}\n  {json.dumps(after.get(key))}")
    new = [key for key in after if key not in before and not is_written_at_start(key[0], key[2])]
    if wrong or new:
        raise SystemExit(f"{what}: {len(wrong)} objects differ, {len(new)} are new: {new[:5]}\n" + "\n".join(wrong[:10]))
    print(f"  {what}: {same} of {len(before)} items of all lists are the same; {own} are written by each server", flush=True)
