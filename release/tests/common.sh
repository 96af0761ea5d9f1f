# What the tests of artefacts share; sourced.

. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
part=$(basename "$0")
dir=$(realpath "${1:?usage: $part DIR}")
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
# Commands that end what was started, the last first.
at_exit=("rm -rf '$work'")
cleanup() {
    local status=$? i
    for ((i = ${#at_exit[@]} - 1; i >= 0; i--)); do eval "${at_exit[i]}" >/dev/null 2>&1 || true; done
    exit $status
}
trap cleanup EXIT

# need COMMAND PACKAGE: installs a package of Debian where its command is not there.
need() {
    command -v "$1" >/dev/null && return
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# Seconds since the given time of date +%s.%N.
since() {
    printf '%.1f' "$(echo "$(date +%s.%N) - $1" | bc)"
}

# say TEXT: a line of the report.
say() {
    echo "$part: $*"
}

# same EXPECTED ACTUAL WHAT
same() {
    [ "$1" = "$2" ] || fail "$3: expected $1, found $2"
}

# first_object KUBECONFIG: creates an object by the kubectl of the envtest archive's kind.
first_object() {
    "$(kubectl_program)" --kubeconfig "$1" create configmap first --from-literal=hello=world >/dev/null
    same world "$("$(kubectl_program)" --kubeconfig "$1" get configmap first -o 'jsonpath={.data.hello}')" "the first object"
}

kubectl_program() {
    type -P kubectl || "$root/tests/tools/get-kubectl" "$root/target/tools" 37
}

# serve COMMAND...: starts a server with its data in $data, and returns once it has said that it is ready. Its id is in $server.
serve() {
    data=${data:-$work/data}
    : >"$work/banner"
    "$@" serve --datastore=memory: --data-dir="$data" --secure-port=0 >"$work/banner" 2>"$work/log" &
    server=$!
    at_exit+=("kill $server; wait $server")
    until grep -q '^export KUBECONFIG=' "$work/banner"; do
        kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2 && fail "the server has ended"; }
        sleep 0.02
    done
}

# debian SUITE [PACKAGES]: prints the folder of a root of a release of Debian, made once for a machine.
debian() {
    local kept=$tools/debian-$1
    if ! [ -e "$kept/made" ]; then
        need debootstrap debootstrap
        rm -rf "$kept"
        debootstrap --variant=minbase ${2:+--include="$2"} "$1" "$kept" http://deb.debian.org/debian >&2
        touch "$kept/made"
    fi
    echo "$kept"
}
