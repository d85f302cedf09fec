package throwbar

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

const keyPrefix = "sha256:"

// ServerKeyError is the end of a connection to a server that does not have the key that it is known by. Nothing was
// sent to it.
type ServerKeyError struct {
	Want, Got string // fingerprints; Got is empty where the server showed no certificate
}

// Error names both fingerprints.
func (e *ServerKeyError) Error() string {
	return fmt.Sprintf("the server's key is %s, but %s was expected: nothing was sent. If it is your server and has a new key, "+
		"take the fingerprint that it prints at its start; if not, somebody stands between", e.Got, e.Want)
}

// KeyFingerprint is the fingerprint of a certificate's public key: "sha256:" and the digest of its
// SubjectPublicKeyInfo in hexadecimal. It stays when the certificate is renewed with the same key.
func KeyFingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return keyPrefix + hex.EncodeToString(sum[:])
}

// ParseServerKey checks a fingerprint and brings it into the form that KeyFingerprint gives.
func ParseServerKey(text string) (string, error) {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(text)), keyPrefix)
	raw, err := hex.DecodeString(strings.ReplaceAll(rest, ":", ""))
	if !ok || err != nil || len(raw) != sha256.Size {
		return "", errors.New("a server key is sha256: and 64 hexadecimal digits, as `throwbar serve` prints it")
	}
	return keyPrefix + hex.EncodeToString(raw), nil
}

// ServerKeyTLS is a TLS configuration that knows a server by its public key alone: who signed its certificate, its names
// and its dates do not count. The handshake fails before anything is sent if the key is another.
func ServerKeyTLS(fingerprint string) (*tls.Config, error) {
	want, err := ParseServerKey(fingerprint)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection looks at the key instead
		VerifyConnection: func(state tls.ConnectionState) error {
			got := ""
			if len(state.PeerCertificates) > 0 {
				got = KeyFingerprint(state.PeerCertificates[0])
			}
			if got != want {
				return &ServerKeyError{Want: want, Got: got}
			}
			return nil
		},
	}, nil
}

// wire is how a client reaches its server.
type wire struct {
	tls *tls.Config // the system's rules if nil
}

// newWire checks how a server is to be reached. A token goes in the clear only over this machine's own loopback, or
// where the caller says so; with an HTTPClient of the caller's own, that one is the wire.
func newWire(server, serverKey string, plaintext bool, own HTTPClient) (wire, error) {
	if serverKey == "" {
		if !plaintext && own == nil && overNetwork(server) {
			return wire{}, fmt.Errorf("%s is on another machine: a token is sent there only over https, unless Plaintext is set", server)
		}
		return wire{}, nil
	}
	switch {
	case own != nil:
		return wire{}, errors.New("an HTTPClient of the caller's own has to check the server's key itself: see ServerKeyTLS")
	case !strings.HasPrefix(server, "https://"):
		return wire{}, fmt.Errorf("%s has no key to check: a server key needs https", server)
	}
	config, err := ServerKeyTLS(serverKey)
	return wire{tls: config}, err
}

// overNetwork says whether an address leads in the clear to another machine.
func overNetwork(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
