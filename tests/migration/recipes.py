"""The recipes of docs/migration.md."""

import base64
import json
import os
import signal
import time
import urllib.request

from informers import Informers
from lists import compare, everything
from programs import ROOT, get, quiet, run, wait_for

SNAPSHOTS = ROOT / "tests/upstream/snapshots"


def fill(site):
    """One object of each kind that people keep, custom resources among them."""
    csr = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    request = run(*csr, "-keyout", "/dev/null", "-subj", "/CN=alice")
    manifest = (SNAPSHOTS / "cluster.yaml").read_text()
    encoded = base64.b64encode(request.encode()).decode()
    site.kubectl("create", "-f", "-", input=manifest.replace("REQUEST", encoded))
    site.kubectl("wait", "--for=condition=Established", "crd", "--all")
    objects = SNAPSHOTS / "objects.yaml"
    kubectl = [site.programs / "kubectl", "--kubeconfig", site.kubeconfig]
    wait_for(lambda: quiet(*kubectl, "create", "-f", objects, "--dry-run=server"))
    site.kubectl("create", "-f", objects)


def snapshot(site, name):
    """What `etcdctl snapshot save` writes, by the API that it uses."""
    wait_for(lambda: get(f"{site.etcd_url}/health"))
    request = urllib.request.Request(f"{site.etcd_url}/v3/maintenance/snapshot", b"{}")
    with urllib.request.urlopen(request) as answer, open(site.dir / name, "wb") as file:
        for line in answer:
            file.write(base64.b64decode(json.loads(line)["result"].get("blob", "")))
    return site.dir / name


def back_to_etcd(site, datastore, *flags):
    """A kube-apiserver on an etcd that starts from an export."""
    file = site.dir / "back.db"
    site.tool("export", "--check", "--format", "etcd-snapshot", file, "--datastore", datastore, *flags)
    site.tool("export", "--format", "etcd-snapshot", file, "--datastore", datastore, *flags)
    run(site.programs / "etcdutl", "snapshot", "restore", file, "--data-dir", site.dir / "back")
    return site.etcd("back"), site.kube_apiserver(*flags)


def there_and_back(site, store, old, source, datastore, flags=()):
    """Moves a cluster to rowplane, and back to an etcd, under informers of client-go that run throughout. `old` is what
    kube-apiserver keeps its objects in, `source` what is imported of it."""
    server = site.kube_apiserver(*flags)
    fill(site)
    informers = Informers(site)
    informers.write()
    before = everything(site)
    # Nobody writes while the cluster moves.
    site.stop(server)
    origin = ["--from", source(), *flags]
    site.stop(old)
    site.tool("import", "--check", *origin)
    began = time.monotonic()
    site.tool("import", *origin, "--datastore", datastore)
    print(f"  imported in {time.monotonic() - began:.1f} s", flush=True)
    home(site, informers, before, f"from {store} to rowplane", datastore, flags)


def home(site, informers, before, what, datastore, flags=()):
    """Serves a store that has been filled, compares it with the state before, and moves it back."""
    server = site.serve(datastore, *flags)
    compare(before, everything(site), what)
    informers.write()
    before = everything(site)
    site.stop(server)
    back_to_etcd(site, datastore, *flags)
    compare(before, everything(site), "from rowplane to etcd")
    informers.write()
    informers.end()


def kubeadm(site):
    """etcd of a kubeadm cluster, by a snapshot; kube-apiserver's own flags go on"""
    etcd = site.etcd(program=os.environ.get("OLD_ETCD"))
    there_and_back(site, "etcd", etcd, lambda: snapshot(site, "old.db"), f"sqlite:{site.dir}/state.db")


def encrypted(site):
    """the same with values that are encrypted, which are so in rowplane and on the way back too"""
    config = site.dir / "encryption.yaml"
    secret = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
    config.write_text(f"""apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, configmaps, widgets.ex.io]
  providers: [{{aescbc: {{keys: [{{name: one, secret: {secret}}}]}}}}, {{identity: {{}}}}]
""")
    etcd, flags = site.etcd(), ["--encryption-provider-config", config]

    def source():
        file = snapshot(site, "old.db")
        # Without the keys each encrypted object is named.
        refused = site.refused("import", "--check", "--from", file)
        if "it is encrypted; name the keys with --encryption-provider-config" not in refused:
            raise SystemExit(refused)
        return file

    there_and_back(site, "etcd", etcd, source, f"sqlite:{site.dir}/state.db", flags)
    # The password of tests/upstream/snapshots/cluster.yaml.
    for file in ["old.db", "state.db", "state.db-wal", "back.db"]:
        if b"hunter2" in (site.dir / file).read_bytes():
            raise SystemExit(f"{file} has a Secret in plain text")


def k3s(site):
    """k3s on SQLite: kine stands in, and its table is imported"""
    file = site.dir / "kine.db"
    kine = site.kine(f"sqlite://{file}?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate")
    there_and_back(site, "kine", kine, lambda: f"kine:sqlite:{file}", f"sqlite:{site.dir}/state.db")


def k3s_postgres(site):
    """k3s on PostgreSQL: kine stands in, and its table is imported into another database of the same PostgreSQL"""
    url = site.postgres()
    kine = site.kine(f"{url}/kine?sslmode=disable")
    there_and_back(site, "kine", kine, lambda: f"kine:{url}/kine", f"{url}/rowplane")


def kamaji(site):
    """Kamaji on PostgreSQL: kine stands in, with client certificates and TLS only"""
    files = certificates(site)
    url = site.postgres_with_tls(files)
    kine = site.kine(
        f"{url}/kine?sslmode=require", "--ca-file", files / "ca.crt", "--cert-file", files / "client.crt",
        "--key-file", files / "client.key")
    names = {"sslmode": "verify-full", "sslrootcert": "ca.crt", "sslcert": "client.crt", "sslkey": "client.key"}
    tls = "&".join(f"{name}={files / file if '.' in file else file}" for name, file in names.items())
    there_and_back(site, "kine", kine, lambda: f"kine:{url}/kine?{tls}", f"{url}/rowplane?{tls}")


def live(site):
    """a running etcd with TLS, which is followed until its kube-apiserver has been stopped"""
    site.secure_etcd(certificates(site))
    follow(site, site.etcd(), "etcd", site.etcd_url, f"sqlite:{site.dir}/state.db")


def live_kine(site):
    """a running kine, by its API, into PostgreSQL"""
    url = site.postgres()
    kine = site.kine(f"sqlite://{site.dir}/kine.db?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate")
    follow(site, kine, "kine", site.etcd_url, f"{url}/rowplane")


def follow(site, old, store, source, datastore):
    server = site.kube_apiserver()
    fill(site)
    informers = Informers(site)
    command = [
        site.rowplane, "import", "--from", source, *site.etcd_files, "--follow", "--datastore", datastore]
    # One that is broken off leaves the store empty.
    broken = site.start("broken", *command)
    wait_for(lambda: "follows changes" in (site.dir / "broken.log").read_text(), broken)
    site.stop(broken, signal.SIGKILL)
    following = site.start("import", *command)
    log = site.dir / "import.log"
    informers.begin_writing()
    wait_for(lambda: "follows changes" in log.read_text(), following)
    informers.expect("written")
    informers.write()
    # Objects that claim addresses and ports come and go as well.
    site.kubectl("-n", "shop", "delete", "service", "outside", "balanced")
    site.kubectl("-n", "shop", "create", "service", "nodeport", "late", "--tcp=80", "--node-port=30081")
    before = everything(site)
    site.stop(server)
    began = time.monotonic()
    following.send_signal(signal.SIGINT)
    if following.wait() != 0:
        raise SystemExit(f"the import failed; see {log}")
    print(f"  cut over {time.monotonic() - began:.1f} s after the kube-apiserver had stopped", flush=True)
    refused = site.refused(*command[1:])
    if "the database is not empty" not in refused:
        raise SystemExit(refused)
    site.stop(old)
    home(site, informers, before, f"from a running {store} to rowplane", datastore)


def million(site):
    """a million ConfigMaps of 1 KB: the time and the memory of an import from a snapshot, and from a running etcd"""
    count, name = 1_000_000, "copy-0000000"
    etcd = site.etcd()
    server = site.kube_apiserver()
    site.kubectl("create", "configmap", name, f"--from-literal=text={'x' * 850}")
    site.stop(server)
    fill = ROOT / "target/tools/fill-etcd"
    run("go", "build", "-o", fill, ".", cwd=ROOT / "tests/migration/fill")
    run(fill, site.etcd_url, f"/registry/configmaps/default/{name}", count)
    file = snapshot(site, "million.db")
    print(f"  the snapshot has {file.stat().st_size >> 20} MB", flush=True)
    measured(site, "a snapshot", "import", "--from", file, "--datastore", f"sqlite:{site.dir}/1.db")
    measured(site, "a running etcd", "import", "--from", site.etcd_url, "--datastore", f"sqlite:{site.dir}/2.db")
    site.stop(etcd)
    site.serve(f"sqlite:{site.dir}/1.db")
    last = site.read(f"/api/v1/namespaces/default/configmaps/copy-{count:07}")
    if last["data"]["text"] != "x" * 850 or int(last["metadata"]["resourceVersion"]) <= count // 2:
        raise SystemExit(f"the last copy is {last}")


def measured(site, what, *arguments):
    """Runs a subcommand, and prints its time and the most memory that it had."""
    began = time.monotonic()
    process = site.start("measured", site.rowplane, *arguments)
    _, status, usage = os.wait4(process.pid, 0)
    site.running.remove(process)
    if status != 0:
        raise SystemExit(f"{arguments[0]} failed; see measured.log")
    seconds, processor = time.monotonic() - began, usage.ru_utime + usage.ru_stime
    print(f"  {what}: {seconds:.0f} s, {processor:.0f} s of a processor, {usage.ru_maxrss >> 10} MB", flush=True)


def certificates(site):
    """A CA, and certificates of a server and of a client."""
    files = site.dir / "tls"
    files.mkdir()
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    run(*new, "-keyout", files / "ca.key", "-out", files / "ca.crt", "-subj", "/CN=ca")
    for name, subject in [("server", "/CN=localhost"), ("client", "/CN=rowplane")]:
        run(*new, "-CA", files / "ca.crt", "-CAkey", files / "ca.key", "-subj", subject,
            "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:false",
            "-keyout", files / f"{name}.key", "-out", files / f"{name}.crt")
    return files


ALL = {
    "kubeadm": kubeadm, "encrypted": encrypted, "k3s": k3s, "k3s-postgres": k3s_postgres, "kamaji": kamaji, "live": live,
    "live-kine": live_kine, "million": million,
}
