// Package throwbar is the Go client of Throwbar, and the library that makes a Go program a device.
//
// A caller makes a Client and uses its typed services, or Call, which sends one command and returns its typed result:
//
//	client, err := throwbar.New(throwbar.Config{Server: "http://127.0.0.1:8080", Token: token})
//	res, err := throwbar.Call(ctx, client, deviceID, &commandv1.OpenTab{Url: "example.com"})
//
// A device pairs once with Pair, keeps the Identity, and runs a Device with a commandv1.Handler:
//
//	device, err := throwbar.NewDevice(throwbar.DeviceConfig{Identity: identity, Handler: handler, Journal: journal})
//	err = device.Run(ctx) // until the context ends, or the device is replaced or revoked
//
// The device library keeps the promises of the contract: a command runs at most once, nothing starts after its time
// is up, every command is answered, outcomes are kept until the server has written them down, and a lost link is
// dialled again with jitter.
//
// Errors are *Error, with a Code and a text for people.
package throwbar
