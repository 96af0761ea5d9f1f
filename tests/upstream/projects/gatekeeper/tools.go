//go:build tools

// Package gatekeeper names the version of Gatekeeper that `build` builds.
package gatekeeper

import _ "github.com/open-policy-agent/gatekeeper/v3"
