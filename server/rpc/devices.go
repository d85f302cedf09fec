package rpc

import (
	"context"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/gen/go/throwbar/control/v1/controlv1connect"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/device"
)

var _ controlv1connect.DevicesServiceHandler = (*devicesHandler)(nil)

type devicesHandler struct{ cfg Config }

func (h *devicesHandler) view(d device.Device) *controlv1.Device {
	return deviceProto(d, h.cfg.Browser.CountTabs(d.ID), h.cfg.Browser.Freshness(d.ID))
}

// ListDevices lists the caller's devices by name.
func (h *devicesHandler) ListDevices(
	ctx context.Context, req *controlv1.ListDevicesRequest,
) (*controlv1.ListDevicesResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	from, err := offset(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	var all []device.Device
	for _, d := range h.cfg.Directory.List(token.Workspace) {
		if d.Online || !req.GetOnlineOnly() {
			all = append(all, d)
		}
	}
	res := &controlv1.ListDevicesResponse{}
	for i := from; i < len(all) && len(res.GetDevices()) < size(req.GetPageSize()); i++ {
		res.Devices = append(res.Devices, h.view(all[i]))
	}
	res.NextPageToken = nextOffset(from, len(res.GetDevices()), len(all))
	return res, nil
}

// RenameDevice gives a device another name.
func (h *devicesHandler) RenameDevice(
	ctx context.Context, req *controlv1.RenameDeviceRequest,
) (*controlv1.RenameDeviceResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	d, err := h.cfg.Directory.Rename(ctx, token.Workspace, req.GetDeviceId(), req.GetName())
	if err != nil {
		return nil, err
	}
	return &controlv1.RenameDeviceResponse{Device: h.view(d)}, nil
}

// RevokeDevice makes a device's token void and ends its link.
func (h *devicesHandler) RevokeDevice(
	ctx context.Context, req *controlv1.RevokeDeviceRequest,
) (*controlv1.RevokeDeviceResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.cfg.Directory.Revoke(ctx, token.Workspace, req.GetDeviceId()); err != nil {
		return nil, err
	}
	h.cfg.Hub.Revoke(req.GetDeviceId()) // before its calls end with its tokens: it is told why
	h.cfg.Tokens.ForgetDevice(req.GetDeviceId())
	h.cfg.Browser.Forget(req.GetDeviceId())
	return &controlv1.RevokeDeviceResponse{}, nil
}

// RotateDevice has a device take another token.
func (h *devicesHandler) RotateDevice(
	ctx context.Context, req *controlv1.RotateDeviceRequest,
) (*controlv1.RotateDeviceResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.cfg.Tokens.AskRotation(ctx, token.Workspace, req.GetDeviceId(), token.ID); err != nil {
		return nil, err
	}
	h.cfg.Hub.Rotate(req.GetDeviceId())
	return &controlv1.RotateDeviceResponse{}, nil
}

// CreatePairingCode makes a code for one device.
func (h *devicesHandler) CreatePairingCode(
	ctx context.Context, _ *controlv1.CreatePairingCodeRequest,
) (*controlv1.CreatePairingCodeResponse, error) {
	token, err := auth.From(ctx)
	if err != nil {
		return nil, err
	}
	code, err := h.cfg.Enroller.Code(ctx, token)
	if err != nil {
		return nil, err
	}
	return &controlv1.CreatePairingCodeResponse{
		Code: code.Code, ExpiresAt: stamp(code.ExpiresAt), CheckWord: code.CheckWord,
	}, nil
}
