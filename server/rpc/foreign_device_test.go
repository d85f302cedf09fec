package rpc_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
)

// Security 20: what a device says reaches nothing of another workspace, whichever ids it names.
func TestSecurity20DevicesReachNothingOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	s, victim, thief := twoWorkspaces(t)
	own := thief.device.GetDeviceId()
	device := s.Device(t, thief.device.GetToken())
	report := func(l *watchLink, frame *devicev1.DeviceFrame) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sequence++
		_, err := device.Report(t.Context(), &devicev1.ReportRequest{
			LinkId: l.id, Sequence: l.sequence, Frames: []*devicev1.DeviceFrame{frame},
		})
		return err
	}
	say := func(method, text string) string {
		frame := &devicev1.DeviceFrame{}
		if err := protojson.Unmarshal([]byte(text), frame); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		how := map[string]string{"Connect": "Connect", "Watch": "Watch+Report", "Report": "Watch+Report"}[method]
		hello := frame.GetHello()
		opens := hello != nil && method != "Report"
		if !opens {
			hello = &devicev1.Hello{DeviceId: own, BootTag: "b1"}
		}
		l := transports()[how](t, s, thief.device.GetToken(), hello)
		defer l.close()
		first, err := l.receive()
		if err != nil {
			return told(err)
		}
		if err := l.send(snapshot(own, tab(own, "1", "https://own.test/", "own"))); err != nil {
			return told(err)
		}
		all := []string{protojson.MarshalOptions{}.Format(first)}
		if w, ok := l.(*watchLink); ok && !opens {
			if err := report(w, frame); err != nil {
				return told(err)
			}
		} else if !opens {
			_ = l.send(frame) // receive says more
		}
		// A gap in the deltas is answered, after all that was answered before.
		_ = l.send(&devicev1.DeviceFrame{Kind: &devicev1.DeviceFrame_Delta{Delta: &devicev1.Delta{Sequence: 999}}})
		for {
			f, err := l.receive()
			if err != nil {
				return strings.Join(append(all, told(err)), "\n")
			}
			if f.GetHeartbeat() == nil && f.GetReceipt() == nil { // which come whenever outcomes are written down
				all = append(all, protojson.MarshalOptions{}.Format(f))
			}
			if f.GetResync() != nil {
				return strings.ReplaceAll(strings.Join(all, "\n"), `":  `, `":`)
			}
		}
	}
	cases := frameCases()
	seen := map[string]bool{}
	for _, m := range ours() {
		if m.Parent().Name() != "DeviceService" {
			continue
		}
		method := string(m.Name())
		for _, path := range idFields(m.Input()) {
			field := strings.TrimPrefix(path, "frames.")
			c, ok := cases[field]
			switch {
			case ok:
				seen[field] = true
				compare(t, "DeviceService."+method+" "+path, c, victim, own, func(text string, _ time.Duration) string { return say(method, text) })
			case path == "link_id":
				compare(t, "DeviceService.Report link_id", foreignCase{"link", missing, `"ID"`}, victim, own, func(id string, _ time.Duration) string {
					_, err := device.Report(t.Context(), &devicev1.ReportRequest{
						LinkId: strings.Trim(id, `"`), Sequence: 1, Frames: []*devicev1.DeviceFrame{ack("x")},
					})
					return told(err)
				})
			default:
				t.Errorf("DeviceService.%s %s is an id, and no case of foreign_cases_test.go fills it", method, path)
			}
		}
	}
	for field := range cases {
		if !seen[field] {
			t.Errorf("%s is in no frame", field)
		}
	}
	untouched(t, s, victim)
}
