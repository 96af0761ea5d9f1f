//go:build tools

// Package etcdctl pins the version of etcdctl that the tests call.
package etcdctl

import _ "go.etcd.io/etcd/etcdctl/v3/ctlv3"
