package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"throwbar.dev/throwbar/clients/cli"
	throwbar "throwbar.dev/throwbar/clients/go"
)

const (
	keyFile         = "tls-key.pem"
	certificateFile = "tls-certificate.pem"
	// generatedFor is how long a generated certificate is good, and renewBefore how long before its end the next one is
	// made, of the same key: clients know the server by its key.
	generatedFor = 90 * 24 * time.Hour
	renewBefore  = 30 * 24 * time.Hour
)

// generated is a key that the server has made for itself, and certificates of it.
type generated struct {
	dir   string
	names []string
	now   func() time.Time
	log   *slog.Logger
	key   *ecdsa.PrivateKey

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
}

// generate takes the key of the data folder, or makes one, and a certificate of it for the names.
func generate(dir string, names []string, now func() time.Time, log *slog.Logger) (*generated, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	names = slices.Clone(names)
	slices.Sort(names)
	g := &generated{dir: dir, names: slices.Compact(names), now: now, log: log}
	var err error
	if g.key, err = ownKey(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	if g.current, err = g.kept(); err != nil {
		g.current, err = g.renew() // there is none yet, or not one that can be used
	}
	return g, err
}

// ownKey reads the key, or makes it where there is none.
func ownKey(path string) (*ecdsa.PrivateKey, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the server's key: %w", err)
	}
	if err := secretFile(path); err != nil {
		return nil, err
	}
	broken := cli.Errorf(cli.Invalid, "%s is no key that this program has made: put the right one back, or remove it to get a new one, "+
		"which every client has to be told", path)
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, broken
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, broken
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, broken
	}
	return own, nil
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return key, writeSecret(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// kept is the certificate of the data folder, if it is of the key and the names and good for a while.
func (g *generated) kept() (*tls.Certificate, error) {
	raw, err := os.ReadFile(filepath.Join(g.dir, certificateFile))
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate: %w", err)
	}
	names := namesOf(leaf)
	slices.Sort(names)
	if !g.key.PublicKey.Equal(leaf.PublicKey) || !slices.Equal(names, g.names) || g.due(leaf) {
		return nil, errors.New("another certificate is needed")
	}
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: g.key, Leaf: leaf}, nil
}

func (g *generated) due(leaf *x509.Certificate) bool {
	now := g.now()
	return now.Before(leaf.NotBefore) || leaf.NotAfter.Sub(now) < renewBefore
}

// renew makes a certificate of the key and keeps it.
func (g *generated) renew() (*tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := g.now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Throwbar"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(generatedFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range g.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &g.key.PublicKey, g.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("read the certificate just made: %w", err)
	}
	made := &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: g.key, Leaf: leaf}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return made, writeSecret(filepath.Join(g.dir, certificateFile), encoded)
}

// get is the certificate of a connection. It is renewed here, so that a server that runs for years needs no restart.
func (g *generated) get(ctx context.Context) *tls.Certificate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.due(g.current.Leaf) {
		return g.current
	}
	made, err := g.renew()
	if made != nil {
		g.current = made // if it could not be kept, the next start makes another
	}
	if err != nil {
		g.log.WarnContext(ctx, "the server's certificate could not be renewed", slog.Any("error", err))
	} else {
		g.log.InfoContext(ctx, "the server's certificate was renewed", slog.Time("until", made.Leaf.NotAfter))
	}
	return g.current
}

// fingerprint is that of the key, which stays when the certificate changes.
func (g *generated) fingerprint() string { return throwbar.KeyFingerprint(g.current.Leaf) }

// namesOf are the names that a certificate is for. A pattern names nobody.
func namesOf(leaf *x509.Certificate) []string {
	var names []string
	for _, name := range leaf.DNSNames {
		if len(name) > 0 && name[0] != '*' {
			names = append(names, name)
		}
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// writeSecret writes a file of mode 0600, whole or not at all.
func writeSecret(path string, raw []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("put %s in its place: %w", path, err)
	}
	return nil
}
