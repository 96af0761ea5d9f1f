# Functions that the programs of this directory share. It is sourced.
nodes="a b"
# Directories of a machine that a node has for itself.
node_directories="/var/lib/kubelet /var/lib/containerd /run/containerd /var/lib/cni /var/log /etc/kubernetes /etc/cni"
service_range=10.96.0.0/16 pod_range=10.4.0.0/16
server_address=10.3.0.1
server=https://$server_address:6443
registry=$server_address:5000

fail() {
    echo "$*" >&2
    exit 1
}

# on NODE COMMAND...: runs COMMAND in the network, mounts and host name of a node.
on() { nsenter -t "$(cat "$NODES_WORK/$1.pid")" --net --mount --uts "${@:2}"; }

# start NODE NAME COMMAND...: runs COMMAND on a node in the background, its output in logs/NAME.log.
start() { on "$1" "${@:3}" >"$NODES_WORK/logs/$2.log" 2>&1 </dev/null & }

# until_true WHAT COMMAND...: waits until COMMAND succeeds, and says what it waits for once that takes long.
until_true() {
    local what=$1 tries=0
    shift
    until "$@" >/dev/null 2>&1; do
        sleep 0.2
        tries=$((tries + 1))
        if [ $((tries % 150)) = 0 ]; then echo "still waiting for $what"; fi
    done
}

# The directories in which a cgroup of that path is made: one for each hierarchy of cgroup v1, or the one of v2.
cgroup_roots() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; else printf '%s\n' /sys/fs/cgroup/*/; fi
}

# cgroup WORK NODE: the path of a node's cgroup, below which its kubelet keeps Pods. Runs side by side have their own.
cgroup() { echo "/rowplane-$(basename "$1")-$2"; }

make_cgroups() {
    local root path
    path=$(cgroup "$NODES_WORK" "$1")
    for root in $(cgroup_roots); do
        mkdir "$root$path"
        # A cgroup of v1 has no processors before it is given some.
        if [ -e "$root/cpuset.cpus" ] && [ -e "$root/tasks" ]; then
            cat "$root/cpuset.cpus" >"$root$path/cpuset.cpus"
            cat "$root/cpuset.mems" >"$root$path/cpuset.mems"
        fi
    done
}

# The processes are gone, but the kernel may take a moment to see that.
remove_cgroups() {
    local root node dir
    for root in $(cgroup_roots); do
        for node in $nodes; do
            dir=$root$(cgroup "$1" "$node")
            until [ ! -d "$dir" ] || find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.2; done
        done
    done
}
