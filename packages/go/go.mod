module github.com/rowplane/rowplane/packages/go

go 1.24
