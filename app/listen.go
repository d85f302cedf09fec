package app

import (
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/server/rpc"
)

// listenFlags are the flags about the address that the server listens on, and who may call it there.
type listenFlags struct {
	address           string
	hosts, origins    []string
	certFile, keyFile string
	generate          bool
}

func (f *listenFlags) bind(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.address, "listen", defaultListen, "`address` to listen on; one that other machines can reach needs TLS")
	set.StringSliceVar(&f.hosts, "allow-host", nil, "further `host` or host:port that clients may call the server by")
	set.StringSliceVar(&f.origins, "allow-origin", nil, "`origin` of pages that may call the server")
	set.StringVar(&f.certFile, "tls-cert", "", "`file` with the certificate in PEM form; read again when it changes")
	set.StringVar(&f.keyFile, "tls-key", "", "`file` with the certificate's key in PEM form")
	set.BoolVar(&f.generate, "tls-generate", false, "serve TLS with a key that the server makes for itself, which clients are told once")
}

// listening is an address, who the server is there, and by which names it may be called.
type listening struct {
	flags      listenFlags
	host, port string
	names      []string // of the certificate
	id         identity // nil without TLS
}

// plan checks the flags. It makes or reads a certificate, and opens nothing.
func (f listenFlags) plan(dir string, now func() time.Time, log *slog.Logger) (*listening, error) {
	host, port, err := net.SplitHostPort(f.address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return nil, cli.Errorf(cli.Invalid, "--listen %q: give a host and a port, for example %s", f.address, defaultListen)
	}
	l := &listening{flags: f, host: host, port: port}
	switch given := f.certFile != "" || f.keyFile != ""; {
	case given && f.generate:
		return nil, cli.Errorf(cli.Invalid, "--tls-generate makes a certificate: it does not go with --tls-cert and --tls-key")
	case given && (f.certFile == "" || f.keyFile == ""):
		return nil, cli.Errorf(cli.Invalid, "--tls-cert and --tls-key belong together: give both")
	case !given && !f.generate && !isLoopback(host):
		return nil, cli.Errorf(cli.Invalid, "--listen %s can be reached from other machines, which needs TLS: give --tls-cert and --tls-key, "+
			"or --tls-generate", f.address)
	case given:
		files, err := readFiles(f.certFile, f.keyFile, now, log)
		if err != nil {
			return nil, err
		}
		l.id, l.names = files, namesOf(files.current.Leaf)
	}
	if !isLoopback(host) && !slices.ContainsFunc(l.called(), func(name string) bool { return !isLoopback(name) }) {
		return nil, cli.Errorf(cli.Invalid, "--listen %s: say by which name or address clients call the server, with --allow-host", f.address)
	}
	if f.generate {
		l.names = l.called()
		if l.id, err = generate(dir, l.names, now, log); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// called are the names and addresses, without ports, that clients may call the server by.
func (l *listening) called() []string {
	names := slices.Clone(l.names)
	if !unspecified(l.host) {
		names = append(names, l.host)
	}
	if isLoopback(l.host) || unspecified(l.host) {
		names = append(names, "127.0.0.1", "::1", "localhost")
	}
	for _, host := range l.flags.hosts {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		names = append(names, strings.Trim(strings.ToLower(host), "[]"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unspecified says whether a host stands for every address of the machine.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || (ip != nil && ip.IsUnspecified())
}

// rules are the listener's, once it has its port. A host that was given with a port is let through with that one only;
// one without may have the listener's or, as behind a proxy, none.
func (l *listening) rules(address net.Addr) rpc.Listener {
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		port = l.port
	}
	rules := rpc.Listener{Origins: l.flags.origins}
	usual := "80"
	if l.id != nil {
		usual = "443"
	}
	var named []string
	for _, host := range l.flags.hosts {
		if name, _, err := net.SplitHostPort(host); err == nil {
			named = append(named, strings.ToLower(name))
			rules.Hosts = append(rules.Hosts, host)
		} else {
			rules.Hosts = append(rules.Hosts, bare(strings.Trim(host, "[]")))
		}
	}
	for _, name := range l.called() {
		if slices.Contains(named, name) && !slices.Contains(l.names, name) {
			continue
		}
		rules.Hosts = append(rules.Hosts, net.JoinHostPort(name, port))
		if port == usual {
			rules.Hosts = append(rules.Hosts, bare(name))
		}
	}
	return rules
}

// bare is a name as it stands in a Host header without a port.
func bare(name string) string {
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// url is where clients find the server.
func (l *listening) url(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	if unspecified(l.host) {
		for _, name := range l.called() {
			if !isLoopback(name) {
				host = name
				break
			}
		}
	} else if net.ParseIP(l.host) == nil && l.host != "localhost" {
		host = l.host
	}
	scheme := "http://"
	if l.id != nil {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// config is for the handshake; nil without TLS.
func (l *listening) config() *tls.Config {
	if l.id == nil {
		return nil
	}
	return tlsConfig(l.id)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
