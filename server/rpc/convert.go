package rpc

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/server/dispatch"
)

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func freshnessProto(f browser.Freshness) *controlv1.Freshness {
	return &controlv1.Freshness{Live: f.Live, AsOf: stamp(f.AsOf)}
}

func deviceProto(d device.Device, tabs int, f browser.Freshness) *controlv1.Device {
	out := &controlv1.Device{
		DeviceId: d.ID, Name: d.Name, Kind: d.Kind, Agent: d.Agent, Platform: d.Platform, Online: d.Online,
		LastSeen: stamp(d.LastSeen), PairedAt: stamp(d.PairedAt), TabCount: uint32(tabs), Freshness: freshnessProto(f),
		Actions: d.Actions, Paused: d.Paused,
	}
	if d.Skew != 0 {
		out.ClockSkew = durationpb.New(d.Skew)
	}
	return out
}

func tokenProto(t auth.Token) *controlv1.Token {
	return &controlv1.Token{
		TokenId: t.ID, Name: t.Name, Scope: t.Scope, CreatedAt: stamp(t.CreatedAt), DeviceId: t.Device,
		ExpiresAt: stamp(t.ExpiresAt),
	}
}

func workspaceProto(w auth.Workspace) *controlv1.Workspace {
	return &controlv1.Workspace{Name: w.Name, CreatedAt: stamp(w.CreatedAt)}
}

func dispatchRequest(token auth.Token, req *controlv1.DispatchRequest) dispatch.Request {
	return dispatch.Request{
		Workspace: token.Workspace, Principal: token.ID, Devices: req.GetDeviceIds(), Action: req.GetAction(),
		TTL: req.GetTtl().AsDuration(), DryRun: req.GetDryRun(), PlanHash: req.GetPlanHash(), Detached: req.GetDetached(),
		Checked: true, RequestID: req.GetRequestId(),
	}
}

func submitRequest(token auth.Token, req *controlv1.SubmitRequest) dispatch.Request {
	return dispatch.Request{
		Workspace: token.Workspace, Principal: token.ID, Devices: req.GetDeviceIds(), Action: req.GetAction(),
		TTL: req.GetTtl().AsDuration(), PlanHash: req.GetPlanHash(), Detached: true,
		Checked: true, RequestID: req.GetRequestId(),
	}
}
