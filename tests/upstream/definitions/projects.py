"""What projects publish: definitions, and objects of them."""

import json
import pathlib
import subprocess

import yaml

HERE = pathlib.Path(__file__).parent


class Project:
    def __init__(self, name, definitions, folders):
        self.name = name
        self.definitions = definitions
        self.kinds = {}
        for definition in definitions:
            for version in definition["spec"]["versions"]:
                if version["served"]:
                    kind = (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"])
                    self.kinds[kind] = definition, version
        self.objects = list(self.published(folders))

    def published(self, folders):
        """Each object once, with the file that it stands in."""
        seen = set()
        for path in sorted(path for folder in folders for path in folder.rglob("*.y*ml")):
            for document in documents(path):
                kind = document.get("apiVersion"), document.get("kind")
                text = json.dumps(document, sort_keys=True, default=str)
                if kind in self.kinds and isinstance(document.get("metadata"), dict) and text not in seen:
                    seen.add(text)
                    yield path, json.loads(text)


def documents(path):
    """None of a file that is no YAML, as templates are not."""
    try:
        # Times stay text, as Kubernetes reads them.
        found = list(yaml.load_all(path.read_text(), Loader=Texts))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError):
        return []
    return [document for document in found if isinstance(document, dict)]


class Texts(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    pass


Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def definitions(paths):
    found = [d for path in sorted(paths) for d in documents(path) if d.get("kind") == "CustomResourceDefinition"]
    return list({d["metadata"]["name"]: d for d in found}.values())


def modules():
    for project in yaml.safe_load((HERE / "projects.yaml").read_text()):
        path, version = project["module"].split("@")
        told = subprocess.run(
            ["go", "mod", "download", "-json", project["module"]], stdout=subprocess.PIPE, check=True, cwd="/"
        )
        root = pathlib.Path(json.loads(told.stdout)["Dir"])
        paths = [path for pattern in project["definitions"] for path in root.glob(pattern)]
        yield Project(path, definitions(paths), [root / folder for folder in project["objects"]])


def directory(path):
    return Project(path.name, definitions((path / "definitions").rglob("*.y*ml")), [path / "objects"])
