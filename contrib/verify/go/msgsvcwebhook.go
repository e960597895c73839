// Package msgsvcwebhook verifies webhooks of msgsvc. One file without dependencies, for Go 1.18 and
// later: copy it.
package msgsvcwebhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrInvalid is what every request gives that msgsvc did not sign: answer it with 400.
var ErrInvalid = errors.New("invalid webhook")

// ErrSecret is for a secret that can't be one, such as that of a variable that is not set.
var ErrSecret = errors.New("a secret is empty or malformed")

// SignatureHeader is X-Service-Signature, unless the service has another prefix.
var SignatureHeader = "X-Service-Signature"

// Verify returns nil if SignatureHeader signs the raw body with one of the secrets: several while
// one is being replaced.
//
// Old timestamps are fine: a retry may come a day late. Remember X-Service-Delivery-Id instead.
func Verify(headers http.Header, body []byte, secrets ...string) error {
	var times, given []string
	for _, part := range strings.Split(value(headers, SignatureHeader), ",") {
		name, text, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		switch name {
		case "t":
			times = append(times, text)
		case "v1":
			given = append(given, text)
		}
	}
	if len(times) != 1 || !isNumber(times[0]) {
		return fmt.Errorf("%w: %s is missing or malformed", ErrInvalid, SignatureHeader)
	}
	expected := []string{}
	for _, secret := range secrets {
		if keyOf(secret) == nil {
			return ErrSecret
		}
		digest := sign([]byte(secret), times[0]+".", body)
		expected = append(expected, hex.EncodeToString(digest))
	}
	return match(given, expected)
}

// VerifyStandard does the same by the headers of Standard Webhooks, whose signature spans the
// delivery's id too.
func VerifyStandard(headers http.Header, body []byte, secrets ...string) error {
	id, time := value(headers, "webhook-id"), value(headers, "webhook-timestamp")
	if id == "" || !isNumber(time) {
		return fmt.Errorf("%w: webhook-id or webhook-timestamp is missing or malformed", ErrInvalid)
	}
	given := []string{}
	for _, part := range strings.Split(value(headers, "webhook-signature"), " ") {
		if name, text, _ := strings.Cut(part, ","); name == "v1" {
			given = append(given, text)
		}
	}
	expected := []string{}
	for _, secret := range secrets {
		key := keyOf(secret)
		if key == nil {
			return ErrSecret
		}
		digest := sign(key, id+"."+time+".", body)
		expected = append(expected, base64.StdEncoding.EncodeToString(digest))
	}
	return match(given, expected)
}

// The bytes of a secret; nil for one that is malformed. A key that was cut off, or decodes to nothing,
// is known to everybody.
func keyOf(secret string) []byte {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 || !strings.HasPrefix(secret, "whsec_") {
		return nil
	}
	return key
}

func sign(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}

// A header that came twice is joined, and so refused: Get would look at the first alone.
func value(headers http.Header, name string) string {
	return strings.Join(headers.Values(name), ", ")
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func match(given, expected []string) error {
	found := false
	for _, one := range given {
		for _, other := range expected {
			// Every pair is compared, in constant time: how long it takes tells nothing.
			if hmac.Equal([]byte(one), []byte(other)) {
				found = true
			}
		}
	}
	if !found {
		return fmt.Errorf("%w: the signature does not match", ErrInvalid)
	}
	return nil
}
