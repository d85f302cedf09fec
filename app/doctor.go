package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
	"throwbar.dev/throwbar/clients/cli/term"
	throwbar "throwbar.dev/throwbar/clients/go"
	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/store"
)

const hopWithin = 5 * time.Second

// hop is one step of the way from this program to a device, and what was found there.
type hop struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warning, failed, or skipped
	Detail string `json:"detail"`
}

const (
	hopOK      = "ok"
	hopWarning = "warning"
	hopFailed  = "failed"
	hopSkipped = "skipped"
)

// doctorCommand is the verb doctor.
func doctorCommand(env func(string) string, stdout io.Writer) *cobra.Command {
	var flags databaseFlags
	var file string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say which hop of the way to your devices fails",
		Long: "Walks the way from this program to your devices hop by hop (database, token file, connection, TLS, server, " +
			"devices, model, providers of models) and says of each whether it works and, if not, what to do.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := flags.config(env)
			if err != nil {
				return err
			}
			d := &doctor{
				server: cmd.Flag("server").Value.String(), tokenFile: cmd.Flag("token-file").Value.String(), database: config,
				ownToken:  filepath.Join(cli.DataDir(env), ownerFile),
				serverKey: cmd.Flag("server-key").Value.String(), plaintext: cmd.Flag("plaintext").Value.String() == "true",
				env: env, file: file,
			}
			hops := d.run(cmd.Context())
			if err := printHops(stdout, hops, cmd.Flag("output").Value.String() == "json"); err != nil {
				return err
			}
			for _, h := range hops {
				if h.State == hopFailed {
					return cli.Errorf(cli.Failed, "%s: %s", h.Name, h.Detail)
				}
			}
			return nil
		},
	}
	flags.bind(cmd, env)
	cmd.Flags().StringVar(&file, "config", env("THROWBAR_CONFIG"), configHelp)
	return cmd
}

type doctor struct {
	env               func(string) string
	file              string // of the configuration; empty if there is none
	server, serverKey string
	plaintext         bool
	tokenFile, token  string
	ownToken          string // file of the token that a server on this machine makes
	database          store.Config
	client            *throwbar.Client
}

// run takes the hops in order. What lies behind a hop that failed is skipped.
func (d *doctor) run(ctx context.Context) []hop {
	steps := []struct {
		name string
		look func(context.Context) (state, detail string)
	}{
		{"database", d.lookDatabase},
		{"token file", d.lookTokenFile},
		{"connection", d.lookConnection},
		{"tls", d.lookTLS},
		{"server", d.lookServer},
		{"devices", d.lookDevices},
		{"model", d.lookModel},
		{"providers", d.lookProviders},
	}
	var hops []hop
	failed := false
	for _, step := range steps {
		if failed {
			hops = append(hops, hop{step.name, hopSkipped, "an earlier hop failed"})
			continue
		}
		hopCtx, cancel := context.WithTimeout(ctx, hopWithin)
		state, detail := step.look(hopCtx)
		cancel()
		hops = append(hops, hop{step.name, state, detail})
		failed = state == hopFailed
	}
	if d.client != nil {
		d.client.CloseIdle()
	}
	return hops
}

// lookDatabase looks at the database that a server started here would use: the server may be another machine's, or have
// been told otherwise, so that what is missing is a warning. What is named and does not answer is none.
func (d *doctor) lookDatabase(ctx context.Context) (string, string) {
	u, err := url.Parse(d.server)
	if d.database.URL == "" && err == nil && !isLoopback(u.Hostname()) {
		return hopSkipped, "the server is on another machine"
	}
	detail, err := store.Look(ctx, d.database)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hopWarning, "SQLite, none yet in " + d.database.Dir + ": `throwbar serve` makes it on its first start"
	case err != nil:
		return hopFailed, err.Error()
	}
	return hopOK, detail
}

func (d *doctor) lookTokenFile(context.Context) (string, string) {
	if u, err := url.Parse(d.server); err == nil && !isLoopback(u.Hostname()) && d.tokenFile == d.ownToken {
		return hopFailed, "the token of this machine's server is not for " + d.server + ": name a token file with --token-file"
	}
	raw, err := os.ReadFile(d.tokenFile)
	if err != nil {
		return hopFailed, fmt.Sprintf("cannot read %s: `throwbar serve` makes it on its first start, or name another with --token-file", d.tokenFile)
	}
	d.token = strings.TrimSpace(string(raw))
	if d.token == "" {
		return hopFailed, d.tokenFile + " is empty"
	}
	if info, err := os.Stat(d.tokenFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		return hopWarning, d.tokenFile + " can be read by others on this machine: chmod 600 it"
	}
	return hopOK, d.tokenFile
}

func (d *doctor) lookConnection(ctx context.Context) (string, string) {
	u, err := url.Parse(d.server)
	if err != nil || u.Host == "" {
		return hopFailed, d.server + " is no address of a server"
	}
	address := hostAndPort(u)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return hopFailed, fmt.Sprintf("nothing answers at %s: start a server with `throwbar serve`", address)
	}
	_ = conn.Close() // it was opened to see that it can be
	return hopOK, address
}

func hostAndPort(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), u.Scheme) // the scheme is the name of its port too
	}
	return u.Host
}

// lookTLS shakes hands, and sends nothing.
func (d *doctor) lookTLS(ctx context.Context) (string, string) {
	u, err := url.Parse(d.server)
	switch {
	case err != nil || u.Scheme != "https" && d.serverKey != "":
		return hopFailed, d.server + " is not an https address: only there has a server a key to check"
	case u.Scheme != "https" && !isLoopback(u.Hostname()):
		return hopWarning, "none: everybody on the way to " + u.Host + " can read the token"
	case u.Scheme != "https":
		return hopSkipped, "the server is on this machine"
	}
	config := &tls.Config{}
	if d.serverKey != "" {
		if config, err = throwbar.ServerKeyTLS(d.serverKey); err != nil {
			return hopFailed, err.Error()
		}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", hostAndPort(u))
	if err != nil {
		return hopFailed, explainTLS(err)
	}
	defer func() { _ = conn.Close() }() // it was opened to see that it can be
	secure, ok := conn.(*tls.Conn)
	if !ok || len(secure.ConnectionState().PeerCertificates) == 0 {
		return hopFailed, "the server showed no certificate"
	}
	leaf := secure.ConnectionState().PeerCertificates[0]
	by := "its certificate is trusted by this system"
	if d.serverKey != "" {
		by = "its key is the one expected"
	}
	return hopOK, fmt.Sprintf("%s: %s, until %s", by, throwbar.KeyFingerprint(leaf), leaf.NotAfter.Local().Format(time.DateOnly))
}

// explainTLS says what to do about a handshake that failed.
func explainTLS(err error) string {
	var stranger *throwbar.ServerKeyError
	var unknown *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &stranger):
		return stranger.Error()
	case errors.As(err, &plain):
		return "the server does not speak TLS at this address: use http:// if it is on this machine"
	case errors.As(err, &unknown) && len(unknown.UnverifiedCertificates) > 0:
		return fmt.Sprintf("this system does not trust the certificate (%v). Its key is %s: if `throwbar serve` printed the same, give it "+
			"with --server-key", unknown.Err, throwbar.KeyFingerprint(unknown.UnverifiedCertificates[0]))
	default:
		return err.Error()
	}
}

func (d *doctor) lookServer(ctx context.Context) (string, string) {
	var err error
	if d.client, err = throwbar.New(throwbar.Config{
		Server: d.server, Token: d.token, ServerKey: d.serverKey, Plaintext: d.plaintext,
	}); err != nil {
		return hopFailed, err.Error()
	}
	start := time.Now()
	res, err := d.client.Catalogue.GetCatalogue(ctx, &controlv1.GetCatalogueRequest{})
	var e *throwbar.Error
	if errors.As(err, &e) && e.Code == throwbar.CodeUnauthenticated {
		return hopFailed, "the server does not accept the token of " + d.tokenFile + ": it belongs to another server or was revoked"
	}
	if err != nil {
		return hopFailed, err.Error()
	}
	took := time.Since(start).Round(100 * time.Microsecond)
	if res.GetServerVersion() != Version() {
		return hopWarning, fmt.Sprintf("version %s answers in %s; this program is version %s", res.GetServerVersion(), took, Version())
	}
	return hopOK, fmt.Sprintf("version %s answers in %s", res.GetServerVersion(), took)
}

func (d *doctor) lookDevices(ctx context.Context) (string, string) {
	res, err := d.client.Devices.ListDevices(ctx, &controlv1.ListDevicesRequest{})
	if err != nil {
		return hopFailed, err.Error()
	}
	if len(res.GetDevices()) == 0 {
		return hopWarning, "none is paired: `throwbar pair` adds a browser"
	}
	var lines []string
	state := hopOK
	for _, dev := range res.GetDevices() {
		switch {
		case dev.GetOnline() && dev.GetFreshness().GetLive():
			lines = append(lines, fmt.Sprintf("%s: online, %d tabs in step", dev.GetName(), dev.GetTabCount()))
		case dev.GetOnline():
			state = hopWarning
			lines = append(lines, dev.GetName()+": online, but its tabs are not in step yet")
		default:
			state = hopWarning
			lines = append(lines, fmt.Sprintf("%s: offline, last seen %s", dev.GetName(),
				dev.GetLastSeen().AsTime().Local().Format(time.DateTime)))
		}
	}
	return state, strings.Join(lines, "; ")
}

func (d *doctor) lookModel(ctx context.Context) (string, string) {
	res, err := d.client.Agent.GetModel(ctx, &agentv1.GetModelRequest{})
	if err != nil {
		return hopFailed, err.Error()
	}
	if res.GetModel() == "" {
		return hopWarning, res.GetHint()
	}
	return hopOK, res.GetModel()
}

func printHops(w io.Writer, hops []hop, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"hops": hops})
	}
	for _, h := range hops {
		if _, err := fmt.Fprintf(w, "%-8s %-11s %s\n", h.State, h.Name, term.Visible(h.Detail)); err != nil {
			return err
		}
	}
	return nil
}
