package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"throwbar.dev/throwbar/clients/cli"
	throwbar "throwbar.dev/throwbar/clients/go"
)

// lookEvery is how often the files of a certificate are looked at for a change, at most.
const lookEvery = time.Second

// identity is how a server proves who it is.
type identity interface {
	// get is the certificate of a connection that begins.
	get(ctx context.Context) *tls.Certificate
	// fingerprint is that of the public key.
	fingerprint() string
}

// tlsConfig has no version below 1.3: every client of ours speaks it, and browsers do.
func tlsConfig(id identity) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return id.get(hello.Context()), nil
		},
	}
}

// given is a certificate in files that somebody else renews.
type given struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu
	seen    stamp            // guarded by mu; of the files that current, or the last failure, is of
	looked  time.Time        // guarded by mu
}

// stamp is what changes when one of two files is written.
type stamp struct {
	certTime, keyTime time.Time
	certSize, keySize int64
}

// readFiles reads a certificate and its key, and refuses what clients would not accept.
func readFiles(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*given, error) {
	g := &given{certFile: certFile, keyFile: keyFile, now: now, log: log}
	g.seen = g.stamp()
	var err error
	g.current, err = g.load()
	return g, err
}

func (g *given) load() (*tls.Certificate, error) {
	cert, err := os.ReadFile(g.certFile)
	if err != nil {
		return nil, cli.Errorf(cli.Invalid, "--tls-cert: the certificate cannot be read: %w", err)
	}
	key, err := os.ReadFile(g.keyFile)
	if err != nil {
		return nil, cli.Errorf(cli.Invalid, "--tls-key: the key cannot be read: %w", err)
	}
	if err := secretFile(g.keyFile); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, cli.Errorf(cli.Invalid, "--tls-cert %s and --tls-key %s are no certificate and its key in PEM form: %w",
			g.certFile, g.keyFile, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, cli.Errorf(cli.Invalid, "--tls-cert %s: %w", g.certFile, err)
		}
	}
	switch now := g.now(); {
	case now.After(pair.Leaf.NotAfter):
		return nil, cli.Errorf(cli.Invalid, "--tls-cert %s has expired on %s: renew it", g.certFile, pair.Leaf.NotAfter.Format(time.DateTime))
	case now.Before(pair.Leaf.NotBefore):
		return nil, cli.Errorf(cli.Invalid, "--tls-cert %s is not valid before %s", g.certFile, pair.Leaf.NotBefore.Format(time.DateTime))
	}
	return &pair, nil
}

func (g *given) stamp() stamp {
	var s stamp
	if info, err := os.Stat(g.certFile); err == nil {
		s.certTime, s.certSize = info.ModTime(), info.Size()
	}
	if info, err := os.Stat(g.keyFile); err == nil {
		s.keyTime, s.keySize = info.ModTime(), info.Size()
	}
	return s
}

// get takes what is in the files now. If that cannot be used, what was there before goes on to be.
func (g *given) get(ctx context.Context) *tls.Certificate {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if since := now.Sub(g.looked); since >= 0 && since < lookEvery {
		return g.current
	}
	g.looked = now
	is := g.stamp()
	if is == g.seen {
		return g.current
	}
	g.seen = is
	next, err := g.load()
	if err != nil {
		g.log.WarnContext(ctx, "the certificate has changed and cannot be used: the one before stays", slog.Any("error", err))
		return g.current
	}
	g.current = next
	g.log.InfoContext(ctx, "the certificate has changed", slog.Time("until", next.Leaf.NotAfter))
	return g.current
}

func (g *given) fingerprint() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return throwbar.KeyFingerprint(g.current.Leaf)
}

// secretFile refuses a key that every account of the machine can read: it is no secret any more.
func secretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the key: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return cli.Errorf(cli.Invalid, "the key %s can be used by everybody on this machine: chmod 600 it", path)
	}
	return nil
}
