# Docker's engine for the tests of artefacts; sourced after common.sh.

need dockerd docker.io
if ! docker info >/dev/null 2>&1; then
    # One of this test's own, where none runs. Its containers reach this machine alone: nothing is forwarded or masqueraded.
    mkdir -p "$tools/docker"
    export DOCKER_HOST=unix://$work/docker.sock
    dockerd --data-root "$tools/docker" --exec-root "$work/docker-exec" --pidfile "$work/dockerd.pid" --host "$DOCKER_HOST" \
        --bip 10.213.0.1/24 --iptables=false --ip6tables=false --ip-masq=false >"$work/dockerd.log" 2>&1 &
    at_exit+=("kill $!; wait $!")
    until docker info >/dev/null 2>&1; do
        kill -0 $! 2>/dev/null || { tail -3 "$work/dockerd.log" >&2 && fail "Docker's engine does not start"; }
        sleep 0.2
    done
fi
