module rowplane/tests/upstream/certificates

go 1.26.0
