package msgsvcwebhook

// Holds the verifier to the shared vectors: `VECTORS=path/to/webhooks.json go test`.

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"
)

type vector struct {
	About   string
	Valid   bool
	Headers map[string]string
	Body    []byte
	Secrets []string
}

func TestVectors(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("VECTORS"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Signature, Standard []vector }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	check(t, vectors.Signature, Verify)
	check(t, vectors.Standard, VerifyStandard)
	t.Logf("%d cases", len(vectors.Signature)+len(vectors.Standard))
}

func check(t *testing.T, cases []vector, verify func(http.Header, []byte, ...string) error) {
	if len(cases) == 0 {
		t.Error("no cases")
	}
	for _, one := range cases {
		headers := http.Header{}
		for name, value := range one.Headers {
			headers.Add(name, value)
		}
		err := verify(headers, one.Body, one.Secrets...)
		if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrSecret) {
			t.Errorf("%s: %v", one.About, err)
		}
		if (err == nil) != one.Valid {
			t.Errorf("%s: %v", one.About, err)
		}
	}
}
