// Command scriptedmodel is the scripted model server of the browser tests, as a process of its own. It listens on a free
// loopback port, which it prints, and is scripted over HTTP under /control.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"throwbar.dev/throwbar/agent/model/modeltest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scriptedmodel:", err)
		os.Exit(1)
	}
}

func run() error {
	handler := modeltest.NewHandler(modeltest.Config{NoKey: true})
	mux := http.NewServeMux()
	mux.Handle("/control/", http.StripPrefix("/control", handler.Control()))
	mux.Handle("/", handler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listens on http://%s\n", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
