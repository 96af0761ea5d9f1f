"""Images in the file layout of a registry (docker-registry's filesystem driver), written without a container engine."""

import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


class Registry:
    """A registry's directory, which `docker-registry serve` reads."""

    def __init__(self, directory):
        self.root = pathlib.Path(directory) / "docker/registry/v2"

    def add_blob(self, content, media_type):
        """Stores bytes, and returns their descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        place = self.root / "blobs/sha256" / digest[:2] / digest
        place.mkdir(parents=True, exist_ok=True)
        (place / "data").write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_directory(self, directory):
        """A layer of a directory's files, all of them root's."""
        of_root = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]
        command = ["tar", "-c", "-C", directory, *of_root, "."]
        return self.add_blob(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout, LAYER)

    def add_entries(self, entries):
        """A layer of the entries: from a path to a `File`, or to a text, the target of a link."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, entry in entries.items():
                header = tarfile.TarInfo(path)
                if isinstance(entry, str):
                    header.type, header.linkname = tarfile.SYMTYPE, entry
                    archive.addfile(header)
                else:
                    header.mode, header.size, header.type = entry.mode, len(entry.content), entry.type
                    archive.addfile(header, io.BytesIO(entry.content))
        return self.add_blob(content.getvalue(), LAYER)

    def add_image(self, name, layers, **config):
        """An image of layers, under the name that Pods call it by; `config` is the OCI image's own."""
        settings = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], **config},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
        }
        settings = self.add_blob(json.dumps(settings).encode(), CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": settings, "layers": layers}
        manifest = self.add_blob(json.dumps(manifest).encode(), MANIFEST)
        repository, tag = repository_and_tag(name)
        here = self.root / "repositories" / repository
        for blob in [settings, *layers]:
            link(here / "_layers", blob)
        link(here / "_manifests/revisions", manifest)
        link(here / "_manifests/tags" / tag / "index", manifest)
        current = here / "_manifests/tags" / tag / "current"
        current.mkdir(parents=True, exist_ok=True)
        (current / "link").write_text(manifest["digest"])


class File:
    """A file of a layer (`type` tarfile.DIRTYPE: a directory)."""

    def __init__(self, content=b"", mode=0o755, type=tarfile.REGTYPE):
        self.content, self.mode, self.type = content, mode, type

    @classmethod
    def copy(cls, path, mode=0o755):
        return cls(pathlib.Path(path).read_bytes(), mode)

    @classmethod
    def directory(cls, mode=0o755):
        return cls(mode=mode, type=tarfile.DIRTYPE)


def link(place, blob):
    directory = place / blob["digest"].replace(":", os.sep)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "link").write_text(blob["digest"])


def repository_and_tag(name):
    """The repository in any registry: `nginx` is docker.io's library/nginx, registry.k8s.io/pause is pause."""
    name, tag = name.rsplit(":", 1)
    first, _, rest = name.partition("/")
    if not rest:
        return f"library/{name}", tag
    return (rest if "." in first else name), tag


def replace(directory, make):
    """Makes a directory anew, in whole or not at all."""
    part = pathlib.Path(f"{directory}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    make(part)
    shutil.rmtree(directory, ignore_errors=True)
    part.rename(directory)
