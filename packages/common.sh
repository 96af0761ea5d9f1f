# What the builds of this folder share; sourced, with the arguments PROGRAM and OUT.
#
# In the environment, LICENCES is the file of the licences of what is linked into the program, as release/build makes it, and
# PLATFORMS are all for which the release has a program (linux-x64 linux-arm64-musl), if there are more than that of PROGRAM. The same
# program gives the same bytes, with the time of SOURCE_DATE_EPOCH in them.

[ $# = 2 ] || {
    echo "usage: $0 PROGRAM OUT" >&2
    exit 2
}
packages=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
licences=${LICENCES:+$(realpath "$LICENCES")}
[ -n "$licences" ] || echo "$0: LICENCES is not set: not for publication" >&2
version=$("$packages/version")
target=$("$packages/target" "$program")
read -r system machine libc _ <<<"$target"
# As Node names them.
platform=$(sed 's/windows/win32/; s/x86_64/x64/; s/aarch64/arm64/' <<<"$system-$machine")
[ "$libc" != musl ] || platform+=-musl
platforms=${PLATFORMS:-$platform}
exe=
[ "$system" != windows ] || exe=.exe
# The second day of 1980, as zip cannot say much earlier times.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315619200}
# Programs that builds and tests need, kept for all clones of the repository.
tools=${ROWPLANE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/rowplane}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# licences DIR: what an artefact with the program has to carry.
licences() {
    mkdir -p "$1"
    cp "$packages/../LICENSE" "$1"
    [ -z "$licences" ] || cp "$licences" "$1/THIRD-PARTY-LICENSES"
}
