package throwbar

import (
	"context"
	"fmt"
	"sync/atomic"

	"connectrpc.com/connect/v2"

	"throwbar.dev/throwbar/catalog"
	"throwbar.dev/throwbar/gen/go/throwbar/agent/v1/agentv1connect"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
)

// Config is what a Client is made of.
type Config struct {
	Server string // address of the server, for example http://127.0.0.1:8080
	Token  string // bearer token of a person or program
	// ServerKey is the fingerprint of the server's public key, as it prints it at its start; see KeyFingerprint. A server
	// with another key is sent nothing, whoever has signed its certificate. Without it the system's rules hold.
	ServerKey string
	// Plaintext lets the token go to another machine over http, where everybody on the way can read it.
	Plaintext  bool
	HTTPClient HTTPClient // its own if left out: HTTP/1.1 for calls, HTTP/2 for the stream of commands

	Dispatch DispatchMode // how Dispatch and Call send commands; DispatchAuto if left out
}

// Client calls a server. It is safe for concurrent use. The errors of all its services are *Error.
type Client struct {
	Devices   controlv1connect.DevicesServiceClient
	Tokens    controlv1connect.TokenServiceClient
	Commands  controlv1connect.CommandServiceClient
	Browser   controlv1connect.BrowserServiceClient
	Catalogue controlv1connect.CatalogueServiceClient
	Audit     controlv1connect.AuditServiceClient
	Approvals controlv1connect.ApprovalServiceClient
	Policy    controlv1connect.PolicyServiceClient
	Agent     agentv1connect.AgentServiceClient
	// Workspaces may be called by owners of the server's first workspace only.
	Workspaces controlv1connect.WorkspaceServiceClient

	server   string
	key      string // fingerprint of the server's key; empty if the system's rules hold
	clear    bool   // whether http to another machine is wanted
	http     HTTPClient
	own      bool // whether http is the client's own
	rpc      *connect.Client
	mode     DispatchMode
	stream   *stream
	underWay atomic.Int64 // calls of Dispatch that have not returned
}

// New makes a client. It dials nothing yet.
func New(cfg Config) (*Client, error) {
	server, err := serverURL(cfg.Server)
	if err != nil {
		return nil, err
	}
	if cfg.Dispatch < DispatchAuto || cfg.Dispatch > DispatchStreamed {
		return nil, fmt.Errorf("there is no dispatch mode %d", cfg.Dispatch)
	}
	way, err := newWire(server, cfg.ServerKey, cfg.Plaintext, cfg.HTTPClient)
	if err != nil {
		return nil, err
	}
	c := &Client{server: server, key: cfg.ServerKey, clear: cfg.Plaintext, http: cfg.HTTPClient, mode: cfg.Dispatch}
	streams := cfg.HTTPClient
	if c.http == nil {
		c.http, c.own, streams = newCallerHTTP(way), true, newLinkHTTP(way)
	}
	c.stream = newStream(controlv1connect.NewCommandServiceClient(newRPC(streams, server, cfg.Token)), c.own)
	rpc := newRPC(c.http, server, cfg.Token)
	c.rpc = rpc
	c.Devices = controlv1connect.NewDevicesServiceClient(rpc)
	c.Tokens = controlv1connect.NewTokenServiceClient(rpc)
	c.Commands = controlv1connect.NewCommandServiceClient(rpc)
	c.Browser = controlv1connect.NewBrowserServiceClient(rpc)
	c.Catalogue = controlv1connect.NewCatalogueServiceClient(rpc)
	c.Workspaces = controlv1connect.NewWorkspaceServiceClient(rpc)
	c.Audit = controlv1connect.NewAuditServiceClient(rpc)
	c.Approvals = controlv1connect.NewApprovalServiceClient(rpc)
	c.Policy = controlv1connect.NewPolicyServiceClient(rpc)
	c.Agent = agentv1connect.NewAgentServiceClient(rpc)
	return c, nil
}

// Server is the address of the server.
func (c *Client) Server() string { return c.server }

// CloseIdle drops the connections that are kept open for later calls, if they are the client's own, and the stream, if
// nothing is under way on it. The client can be used further.
func (c *Client) CloseIdle() {
	signal(c.stream.rest)
	if c.own {
		closeIdle(c.http)
	}
}

// Pair exchanges a pairing code of this client's server for the identity of a device. The device knows the server by
// the same key as the client.
func (c *Client) Pair(ctx context.Context, p Pairing) (Identity, error) {
	if p.HTTPClient != nil {
		return Pair(ctx, c.server, p)
	}
	identity, err := redeem(ctx, c.http, c.server, p)
	if err != nil {
		return Identity{}, err
	}
	identity.ServerKey, identity.Plaintext = c.key, c.clear
	return identity, nil
}

// LoadCatalogue fetches the server's catalogue, with the comments that help and forms are made from.
func (c *Client) LoadCatalogue(ctx context.Context) (*catalog.Catalogue, error) {
	res, err := c.Catalogue.GetCatalogue(ctx, &controlv1.GetCatalogueRequest{})
	if err != nil {
		return nil, fmt.Errorf("get catalogue: %w", err)
	}
	catalogue, err := catalog.New(res.GetDescriptors())
	if err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	return catalogue, nil
}
