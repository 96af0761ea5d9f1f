module rowplane/tests/upstream/tokens

go 1.26.0

require (
	gopkg.in/go-jose/go-jose.v2 v2.6.3
	k8s.io/client-go v0.37.2
)

require golang.org/x/crypto v0.59.0 // indirect
