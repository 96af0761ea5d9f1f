// Tokens of RSA keys of many sizes, and whether kube-apiserver's library (go-jose) verifies them: a line of JSON for each, for
// crates/access/src/auth/jwt/tests.rs.
//
//	cd tests/upstream/tokens && go run . | gzip -9n >../../../testdata/jwt/rsa-tokens.jsonl.gz
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"

	"gopkg.in/go-jose/go-jose.v2"
	"k8s.io/client-go/util/keyutil"
)

type answer struct {
	Bits int `json:"bits"`
	// The key as files of service accounts' keys have it, and as key sets do.
	PEM   string          `json:"pem"`
	JWK   json.RawMessage `json:"jwk"`
	Token string          `json:"token"`
	// Whether the token is verified by the key of the file, and by that of the set.
	OfFile bool `json:"ofFile"`
	OfSet  bool `json:"ofSet"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func encode(part []byte) string { return base64.RawURLEncoding.EncodeToString(part) }

// sign makes a token by hand, so that salts can have any length.
func sign(key *rsa.PrivateKey, algorithm string, salt int) string {
	text := encode([]byte(fmt.Sprintf(`{"alg":%q}`, algorithm))) + "." + encode([]byte(`{"iss":"me"}`))
	var hash crypto.Hash
	var digest []byte
	switch algorithm[2:] {
	case "256":
		sum := sha256.Sum256([]byte(text))
		hash, digest = crypto.SHA256, sum[:]
	case "384":
		sum := sha512.Sum384([]byte(text))
		hash, digest = crypto.SHA384, sum[:]
	case "512":
		sum := sha512.Sum512([]byte(text))
		hash, digest = crypto.SHA512, sum[:]
	}
	var signature []byte
	var err error
	if algorithm[0] == 'R' {
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, hash, digest)
	} else {
		signature, err = rsa.SignPSS(rand.Reader, key, hash, digest, &rsa.PSSOptions{SaltLength: salt})
	}
	if err != nil {
		return ""
	}
	return text + "." + encode(signature)
}

func verifies(token string, key any) bool {
	parsed := must(jose.ParseSigned(token))
	_, err := parsed.Verify(key)
	return err == nil
}

// blocks are the forms in which files have a key.
func blocks(key *rsa.PrivateKey) []string {
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return []string{
		block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(&key.PublicKey))),
		block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))),
	}
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, bits := range []int{768, 1016, 1023, 1024, 1025, 1536, 2047, 2048, 3072, 4096} {
		// Keys of less than 1024 bits are made and sign only so.
		os.Setenv("GODEBUG", "rsa1024min=0")
		key := must(rsa.GenerateKey(rand.Reader, bits))
		forms := blocks(key)
		jwk := must(jose.JSONWebKey{Key: &key.PublicKey, Use: "sig"}.MarshalJSON())
		os.Setenv("GODEBUG", "")
		var set jose.JSONWebKey
		if err := set.UnmarshalJSON(jwk); err != nil {
			panic(err)
		}
		number := 0
		for _, algorithm := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
			for _, salt := range []int{rsa.PSSSaltLengthEqualsHash, rsa.PSSSaltLengthAuto, 20, 0} {
				if algorithm[0] == 'R' && salt != 20 {
					continue
				}
				// A salt of length 0 cannot be asked for: 0 stands for the longest.
				if salt == 0 {
					salt = 1
				}
				os.Setenv("GODEBUG", "rsa1024min=0")
				token := sign(key, algorithm, salt)
				os.Setenv("GODEBUG", "")
				if token == "" {
					continue
				}
				form := forms[number%len(forms)]
				number++
				file := must(keyutil.ParsePublicKeysPEM([]byte(form)))[0]
				must(0, out.Encode(answer{bits, form, jwk, token, verifies(token, file), verifies(token, &set)}))
				spoilt := token[:len(token)-6] + "AAAAAA"
				must(0, out.Encode(answer{bits, form, jwk, spoilt, verifies(spoilt, file), verifies(spoilt, &set)}))
			}
		}
	}
}
