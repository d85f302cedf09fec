// Package throwbar is the Go client of Throwbar, and the library that makes a Go program a device.
//
// A caller makes a Client and uses its typed services, or Call, which sends one command and returns its typed result:
//
//	client, err := throwbar.New(throwbar.Config{Server: "http://127.0.0.1:8080", Token: token})
//	res, err := throwbar.Call(ctx, client, deviceID, &commandv1.OpenTab{Url: "example.com"})
//
// Client.Dispatch is the same for several devices, with the whole envelope: time to live, dry run, plan hash. A command
// that is alone travels in a call of its own; as soon as others of the client are under way they share one stream, which
// carries thousands a second over one connection. If that stream breaks, what was under way on it ends with
// ErrOutcomeUnknown and is never sent again by itself. Config.Dispatch forces either road; Close ends the stream.
//
// A device pairs once with Pair, keeps the Identity, and runs a Device with a commandv1.Handler:
//
//	device, err := throwbar.NewDevice(throwbar.DeviceConfig{Identity: identity, Handler: handler, Journal: journal})
//	err = device.Run(ctx) // until the context ends, or the device is replaced or revoked
//
// The device library keeps the promises of the contract: a command runs at most once, nothing starts after its time
// is up, every command is answered, outcomes are kept until the server has written them down, and a lost link is
// dialled again with jitter. What has run is kept in a Journal for 24 hours. With a FileJournal that holds over restarts:
// a command that was started and not ended is run again if it is idempotent, and else answered INTERRUPTED, unless the
// handler is a Reconciler that can tell how it ended. Deadlines count the time that passes, whatever the wall clock shows.
//
// Errors are *Error, with a Code and a text for people.
package throwbar
