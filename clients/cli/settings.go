package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
)

const (
	defaultServer = "http://127.0.0.1:3913"
	ownerToken    = "owner.token"
	maxTokenFile  = 4096
)

// DataDir is where the local server keeps its data: THROWBAR_DATA_DIR, else throwbar in XDG_DATA_HOME, else
// ~/.local/share/throwbar.
func DataDir(env func(string) string) string {
	if dir := env("THROWBAR_DATA_DIR"); dir != "" {
		return dir
	}
	if dir := env("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "throwbar")
	}
	return filepath.Join(home(env), ".local", "share", "throwbar")
}

// cacheDir is where the program keeps what it can fetch again.
func cacheDir(env func(string) string) string {
	if dir := env("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "throwbar")
	}
	return filepath.Join(home(env), ".cache", "throwbar")
}

func home(env func(string) string) string {
	if dir := env("HOME"); dir != "" {
		return dir
	}
	return env("USERPROFILE")
}

// globals are the flags that every verb has.
type globals struct {
	server    string
	serverKey string // fingerprint of its public key; empty if the system's rules hold
	plaintext bool   // a token may go to another machine over http
	tokenFile string
	output    string
	wrong     error // what is wrong with the address in the environment
	wrongKey  error // what is wrong with the key in the environment
	env       func(string) string
}

func (g *globals) bind(set *pflag.FlagSet) {
	server, file := g.env("THROWBAR_SERVER"), g.env("THROWBAR_TOKEN_FILE")
	if server == "" {
		server = defaultServer
	}
	if file == "" {
		file = g.ownFile()
	}
	g.wrong = nil
	if err := (address{g}).Set(server); err != nil {
		g.server, g.wrong = server, Errorf(Invalid, "THROWBAR_SERVER %q %w", server, err)
	}
	set.Var(address{g}, "server", "`address` of the server (THROWBAR_SERVER)")
	g.serverKey, g.wrongKey = "", nil
	if key := g.env("THROWBAR_SERVER_KEY"); key != "" {
		if err := (serverKey{g}).Set(key); err != nil {
			// It is kept: a key that cannot be read must not become none, which any certificate would do for.
			g.serverKey, g.wrongKey = key, Errorf(Invalid, "THROWBAR_SERVER_KEY %q %w", key, err)
		}
	}
	set.Var(serverKey{g}, "server-key", "`fingerprint` of the server's public key: no other server is talked to (THROWBAR_SERVER_KEY)")
	set.BoolVar(&g.plaintext, "plaintext", false, "send the token to another machine over http, where others can read it")
	set.StringVar(&g.tokenFile, "token-file", file, "`file` that holds the token (THROWBAR_TOKEN_FILE)")
	g.output = "table"
	set.VarP(choice{&g.output, []string{"table", "json"}}, "output", "o", "how to print: table or json")
}

// ownFile is the token that a server on this machine makes for its owner.
func (g *globals) ownFile() string { return filepath.Join(DataDir(g.env), ownerToken) }

// json says whether the answer is for a program.
func (g *globals) json() bool { return g.output == "json" }

// local says whether the server is on this machine.
func (g *globals) local() bool {
	u, err := url.Parse(g.server)
	return err == nil && loopback(u.Hostname())
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// token reads the token. A token goes to the machine that it is for, and over no wire that others can read.
func (g *globals) token(warn func(format string, args ...any)) (string, error) {
	if !g.local() {
		if g.tokenFile == g.ownFile() {
			return "", Errorf(Unauthenticated, "the token of this machine's server is not for %s: name a token file with "+
				"--token-file or THROWBAR_TOKEN_FILE", g.server)
		}
		if strings.HasPrefix(g.server, "http://") && !g.plaintext {
			return "", Errorf(Invalid, "a token is sent to another machine only over https: use https:// in --server, or "+
				"--plaintext if everybody on the way may read it")
		}
	}
	f, err := os.Open(g.tokenFile)
	if err != nil {
		return "", g.noToken(err)
	}
	defer func() { _ = f.Close() }() // only read from
	raw, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return "", g.noToken(err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || len(raw) > maxTokenFile || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", Errorf(Unauthenticated, "%s holds no token: it has to be one line", g.tokenFile)
	}
	if info, err := f.Stat(); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		warn("%s can be read by others on this machine: chmod 600 it", g.tokenFile)
	}
	return token, nil
}

func (g *globals) noToken(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && g.tokenFile == g.ownFile():
		return Errorf(Unauthenticated, "no token at %s: start a server with `throwbar serve`, which makes one, or name a "+
			"token file with --token-file", g.tokenFile)
	case errors.Is(err, fs.ErrNotExist):
		return Errorf(Unauthenticated, "no token at %s: name another file with --token-file or THROWBAR_TOKEN_FILE; a "+
			"server writes its owner's to its data folder when it starts first", g.tokenFile)
	default:
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return Errorf(Unauthenticated, "the token file %s cannot be read: %w", g.tokenFile, err)
	}
}

// warn writes a warning.
func (p *program) warn(format string, args ...any) {
	p.err.Line(term.Yellow, "warning: %s", fmt.Sprintf(format, args...))
}

// address is the flag of the server's address.
type address struct{ g *globals }

// String is the address.
func (a address) String() string {
	if a.g == nil {
		return ""
	}
	return a.g.server
}

// Type is string, so that the verbs of others can read the flag.
func (a address) Type() string { return "string" }

// Set takes an address; without a scheme, http means this machine and https any other.
func (a address) Set(text string) error {
	text = strings.TrimRight(text, "/")
	if !strings.Contains(text, "://") {
		if host, _, err := net.SplitHostPort(text); err == nil && loopback(host) {
			text = "http://" + text
		} else {
			text = "https://" + text
		}
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("is no address such as %s", defaultServer)
	}
	a.g.server, a.g.wrong = text, nil
	return nil
}

// serverKey is the flag of the server's key.
type serverKey struct{ g *globals }

// String is the fingerprint.
func (k serverKey) String() string {
	if k.g == nil {
		return ""
	}
	return k.g.serverKey
}

// Type is string, so that the verbs of others can read the flag.
func (k serverKey) Type() string { return "string" }

// Set takes a fingerprint.
func (k serverKey) Set(text string) error {
	key, err := throwbar.ParseServerKey(text)
	if err != nil {
		return fmt.Errorf("is no server key: %w", err)
	}
	k.g.serverKey, k.g.wrongKey = key, nil
	return nil
}

// choice is a flag with a fixed list of values.
type choice struct {
	value *string
	among []string
}

// String is the value.
func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type is the word for the value in the help text.
func (c choice) Type() string { return "format" }

// Set takes one of the values.
func (c choice) Set(text string) error {
	if !slices.Contains(c.among, text) {
		return fmt.Errorf("is none of %s", strings.Join(c.among, ", "))
	}
	*c.value = text
	return nil
}
