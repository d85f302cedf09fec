package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
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
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say which hop of the way to your devices fails",
		Long: "Walks the way from this program to your devices hop by hop (database, token file, connection, server, token, " +
			"devices, model) and says of each whether it works and, if not, what to do.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := flags.config(env)
			if err != nil {
				return err
			}
			d := &doctor{server: cmd.Flag("server").Value.String(), tokenFile: cmd.Flag("token-file").Value.String(), database: config}
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
	return cmd
}

type doctor struct {
	server, tokenFile, token string
	database                 store.Config
	client                   *throwbar.Client
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
		{"server", d.lookServer},
		{"devices", d.lookDevices},
		{"model", d.lookModel},
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
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), u.Scheme) // the scheme is the name of its port too
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return hopFailed, fmt.Sprintf("nothing answers at %s: start a server with `throwbar serve`", address)
	}
	_ = conn.Close() // it was opened to see that it can be
	return hopOK, address
}

func (d *doctor) lookServer(ctx context.Context) (string, string) {
	var err error
	if d.client, err = throwbar.New(throwbar.Config{Server: d.server, Token: d.token}); err != nil {
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
