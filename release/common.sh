# What the scripts of this folder share; sourced.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$("$root/packages/version")
# The release of Kubernetes whose API is served, as /version says it.
kubernetes=$(sed -n 's/^pub const M[AI][JN]OR: &str = "\(.*\)";$/\1/p' "$root/src/http/documents/discovery/version.rs" | paste -sd.).0
# Where releases are published.
releases=$(sed -n 's/^repository = "\(.*\)"$/\1/p' "$root/Cargo.toml")/releases/download
# Every date within an artefact: that of the commit.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
# Programs that the build needs, made once for a machine.
tools=${ROWPLANE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/rowplane}

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# pack DIR NAME OUT: the folder NAME of DIR as a .tar.gz of which nothing depends on who makes it, when and where.
pack() {
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$2" |
        gzip -9n >"$3"
}

# go_tool MODULE[/PACKAGE] VERSION: prints the path of a program from Go's module proxy.
go_tool() {
    local name kept
    name=$(basename "$1")
    kept=$tools/$name-$2
    [ -x "$kept/$name" ] || GOBIN=$kept GOFLAGS=-trimpath CGO_ENABLED=0 go install -ldflags='-s -w' "$1@$2" >&2 || return
    echo "$kept/$name"
}

# zig_environment: prints the folder of a Python environment with cargo-zigbuild, and zig within it.
zig_environment() {
    local kept=$tools/zigbuild-0.24.1
    if ! [ -x "$kept/bin/cargo-zigbuild" ]; then
        python3 -m venv "$kept"
        "$kept/bin/pip" install --quiet --require-hashes --only-binary :all: -r "$root/release/zig.txt" >&2
    fi
    echo "$kept"
}
