package bench_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	throwbar "throwbar.dev/throwbar/clients/go"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// roleVariable makes this program one of the processes of a benchmark.
const roleVariable = "THROWBAR_BENCH_ROLE"

func TestMain(m *testing.M) {
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), " ")
	run := map[string]func() error{
		"product":        func() error { return serveProduct(arg) },
		"product-device": func() error { return runProductDevice(arg) },
		"relay":          serveRelay,
		"relay-device":   func() error { return runRelayDevice(arg) },
	}[role]
	if run == nil {
		os.Exit(m.Run())
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// spawn starts a process of a benchmark and returns the first line that it prints. It ends with the benchmark.
func spawn(b *testing.B, role string) string {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("%s said nothing: %v", role, err)
	}
	return strings.TrimSpace(line)
}

// startProduct starts the server and one device, and returns a caller and the device's id.
func startProduct(b *testing.B) (controlv1connect.CommandServiceClient, string) {
	b.Helper()
	dir := b.TempDir()
	url := spawn(b, "product "+dir)
	token, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if err != nil {
		b.Fatal(err)
	}
	client, err := throwbar.New(throwbar.Config{Server: url, Token: strings.TrimSpace(string(token))})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.CloseIdle)
	code, err := client.Devices.CreatePairingCode(b.Context(), &controlv1.CreatePairingCodeRequest{})
	if err != nil {
		b.Fatal(err)
	}
	identity, err := client.Pair(b.Context(), throwbar.Pairing{
		Code: code.GetCode(), Name: "bench", Kind: devicev1.Kind_KIND_SERVER,
	})
	if err != nil {
		b.Fatal(err)
	}
	own := b.TempDir()
	if err := identity.Save(filepath.Join(own, "identity")); err != nil {
		b.Fatal(err)
	}
	spawn(b, "product-device "+own)
	return client.Commands, identity.DeviceID
}

// startRelay starts a relay and its device, and returns a caller.
func startRelay(b *testing.B) controlv1connect.CommandServiceClient {
	b.Helper()
	url := spawn(b, "relay")
	spawn(b, "relay-device "+url)
	client, err := throwbar.New(throwbar.Config{Server: url, Token: "none"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.CloseIdle)
	return client.Commands
}
