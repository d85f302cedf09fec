// Command throwbar is the whole program: server, command line and simulated devices in one binary.
package main

import (
	"context"
	"os"

	"throwbar.dev/throwbar/app"
)

func main() {
	os.Exit(app.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
