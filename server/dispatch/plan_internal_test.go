package dispatch

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
)

// planOf is a request and parts made from one text: fields apart at ";", devices at "|", ids at ",".
func planOf(text string) (Request, []*part) {
	workspace, rest, _ := strings.Cut(text, ";")
	principal, rest, _ := strings.Cut(rest, ";")
	var parts []*part
	for device := range strings.SplitSeq(rest, "|") {
		name, ids, _ := strings.Cut(device, ";")
		arg, ids, _ := strings.Cut(ids, ";")
		tabs, saved, _ := strings.Cut(ids, ";")
		p := &part{device: Device{ID: name}, tabs: strings.Split(tabs, ",")}
		p.action = &commandv1.Action{Kind: &commandv1.Action_OpenTab{OpenTab: &commandv1.OpenTab{Url: strings.ToValidUTF8(arg, "")}}}
		for id := range strings.SplitSeq(saved, ",") {
			p.saved = append(p.saved, &commandv1.SavedTab{SavedId: id})
		}
		parts = append(parts, p)
	}
	return Request{Workspace: workspace, Principal: principal}, parts
}

func same(a, b Request, x, y []*part) bool {
	return a.Workspace == b.Workspace && a.Principal == b.Principal && slices.EqualFunc(x, y, func(p, q *part) bool {
		return p.device.ID == q.device.ID && p.action.GetOpenTab().GetUrl() == q.action.GetOpenTab().GetUrl() &&
			slices.Equal(p.tabs, q.tabs) && slices.Equal(savedIDs(p.saved), savedIDs(q.saved))
	})
}

// FuzzPlanHash looks for two plans that differ and have one hash, or are the same and have two.
func FuzzPlanHash(f *testing.F) {
	f.Add("w;p;lap;u;a,b;s", "w;p;lap;u;a;b,s")
	f.Add("w;p;lap;u;a\nb;", "w;p;lap;u;a,b;")
	f.Add("w;p;lap;u;a;|desk;u;b;", "w;p;lap;u;a,desk;u;b")
	f.Add("wp;;lap;u;a;", "w;p;lap;u;a;")
	f.Fuzz(func(t *testing.T, a, b string) {
		req, parts := planOf(a)
		other, others := planOf(b)
		if equal := hashOf(req, parts) == hashOf(other, others); equal != same(req, other, parts, others) {
			t.Errorf("%q and %q: one hash %v", a, b, equal)
		}
	})
}

func TestAStepThatTheTableDoesNotHaveIsNotTaken(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	d := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	l := &live{rec: Record{ID: "c", State: Sent}}
	if d.may(l, Accepted) || !d.may(l, Acknowledged) {
		t.Error("the table does not decide")
	}
	if !strings.Contains(log.String(), "command_id=c from=sent to=accepted") {
		t.Errorf("log: %s", log.String())
	}
	for from, to := range Transitions() {
		for _, s := range to {
			if !from.CanGo(s) {
				t.Errorf("%s cannot go to %s", from, s)
			}
		}
		if from.CanGo(from) {
			t.Errorf("%s goes to itself", from)
		}
	}
}
