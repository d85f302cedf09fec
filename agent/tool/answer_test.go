package tool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"throwbar.dev/throwbar/agent/tool"
	"throwbar.dev/throwbar/gen"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

func closed(device, name string, n uint32) *controlv1.DeviceOutcome {
	return &controlv1.DeviceOutcome{DeviceId: device, DeviceName: name, Outcome: &controlv1.DeviceOutcome_Result{
		Result: &commandv1.Result{Kind: &commandv1.Result_CloseTabs{CloseTabs: &commandv1.CloseTabs_Result{ClosedCount: n}}},
	}}
}

func failed(device, name string, code commandv1.ErrorCode) *controlv1.DeviceOutcome {
	return &controlv1.DeviceOutcome{DeviceId: device, DeviceName: name, Outcome: &controlv1.DeviceOutcome_Error{
		Error: &commandv1.CommandError{Code: code, Message: "no"},
	}}
}

// zeros makes every mark aaaaaa.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

const deniedAdvice = `"advice":"nothing of it was done. Do not try it again, nor the same by another way. Tell the user that it was denied, and why if that is said"`

func TestWhatACommandDidIsSaidPerDevice(t *testing.T) {
	t.Parallel()
	closing, _ := load(t, gen.Descriptors).Lookup("closeTabs")
	denied, offline := commandv1.ErrorCode_ERROR_CODE_DENIED, commandv1.ErrorCode_ERROR_CODE_OFFLINE
	saved := closed("a", "A", 1)
	saved.SavedIds = []string{"s1"}
	other := closed("a", "A", 1)
	other.GetResult().Kind = &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{TabId: "x"}}
	for _, row := range []struct {
		outcomes []*controlv1.DeviceOutcome
		denied   bool
		want     string // between the marks
	}{
		{[]*controlv1.DeviceOutcome{saved}, false, `"data":{"deviceId":"a","deviceName":"A","closedCount":1,"savedIds":["s1"]}`},
		{[]*controlv1.DeviceOutcome{failed("a", "A", offline)}, false, `"error":{"code":"offline","message":"no","deviceId":"a","deviceName":"A"}`},
		{[]*controlv1.DeviceOutcome{failed("a", "", denied)}, true, `"error":{"code":"denied","message":"no","deviceId":"a",` + deniedAdvice + `}`},
		{[]*controlv1.DeviceOutcome{closed("a", "A", 2), failed("b", "B", offline)}, false,
			`"data":{"devices":[{"deviceId":"a","deviceName":"A","closedCount":2},{"deviceId":"b","deviceName":"B","error":{"code":"offline","message":"no"}}]}`},
		{[]*controlv1.DeviceOutcome{failed("a", "A", denied), failed("b", "B", offline)}, false,
			`"error":{"code":"failed","message":"it worked on no device","devices":[{"deviceId":"a","deviceName":"A","error":{"code":"denied","message":"no"}},` +
				`{"deviceId":"b","deviceName":"B","error":{"code":"offline","message":"no"}}],` + deniedAdvice + `}`},
		{[]*controlv1.DeviceOutcome{other}, false, `"error":{"code":"failed","message":"the device answered with no result of this command"}`},
		{nil, false, `"error":{"code":"failed","message":"no device was asked"}`},
	} {
		a := closing.Done(&controlv1.DispatchResponse{Outcomes: row.outcomes})
		got, err := a.Print(zeros{})
		if err != nil {
			t.Fatal(err)
		}
		if _, inside, _ := strings.Cut(got, `"mark":"aaaaaa",`); inside != row.want+`,"end":"aaaaaa"}` {
			t.Errorf("%s\nwant %s", got, row.want)
		}
		if a.Denied != row.denied || a.OK != strings.HasPrefix(row.want, `"data"`) {
			t.Errorf("%s: ok %v, denied %v", row.want, a.OK, a.Denied)
		}
	}
	both := closing.Done(&controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{failed("a", "A", denied), failed("b", "B", denied)}})
	if !both.Denied {
		t.Error("denied on both devices is not denied")
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	long := tool.Fail("failed", strings.Repeat("é", 5000), strings.Repeat("x", 40_000))
	got, err := long.Print(zeros{})
	if err != nil || len(got) > tool.MaxAnswer || !json.Valid([]byte(got)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := tool.Fail("failed", "x").Print(iotest.ErrReader(errors.New("dry"))); err == nil {
		t.Error("no error without randomness")
	}
}
