package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	devicev1 "throwbar.dev/throwbar/gen/go/throwbar/device/v1"
	"throwbar.dev/throwbar/server/auth"
	"throwbar.dev/throwbar/server/browser"
	"throwbar.dev/throwbar/server/device"
	"throwbar.dev/throwbar/store"
	"throwbar.dev/throwbar/store/db"
)

var (
	_ device.Store     = (*Storage)(nil)
	_ device.PairStore = (*Storage)(nil)
	_ browser.Store    = (*Storage)(nil)
)

// Devices implements device.Store.
func (s *Storage) Devices(ctx context.Context) ([]device.Device, error) {
	var out []device.Device
	after := ""
	for {
		rows, err := s.store.Read().ListAllDevices(ctx, db.ListAllDevicesParams{AfterID: after, PageSize: pageSize})
		if err != nil {
			return nil, fmt.Errorf("list devices: %w", err)
		}
		for _, row := range rows {
			var actions []string
			if err := json.Unmarshal([]byte(row.Actions), &actions); err != nil {
				return nil, fmt.Errorf("read actions of device %s: %w", row.ID, err)
			}
			out = append(out, device.Device{
				ID: row.ID, Workspace: row.Workspace, Name: row.Name, Kind: devicev1.Kind(row.Kind), Agent: row.Agent,
				Platform: row.Platform, Origin: row.Origin, PairedAt: fromMillis(row.PairedAt),
				LastSeen: fromMillis(row.LastSeen), Boot: row.BootTag, Actions: actions, Epoch: uint64(row.Epoch),
				Away: row.Online != 0,
			})
			after = row.ID
		}
		if len(rows) < pageSize {
			return out, nil
		}
	}
}

func actionsJSON(actions []string) (string, error) {
	if actions == nil {
		actions = []string{}
	}
	raw, err := json.Marshal(actions)
	if err != nil {
		return "", fmt.Errorf("encode actions: %w", err)
	}
	return string(raw), nil
}

func deviceEvent(ctx context.Context, q *db.Queries, d device.Device, at time.Time, change controlv1.DeviceChange) error {
	return appendEvent(ctx, q, d.Workspace, at, &controlv1.Event{
		DeviceId: d.ID, Kind: &controlv1.Event_Device{Device: &controlv1.DeviceEvent{Change: change, Name: text(d.Name)}},
	})
}

// Begin implements device.Store.
func (s *Storage) Begin(ctx context.Context, step uint64) error {
	return s.store.Write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.BeginDevices(ctx, int64(step)); err != nil {
			return fmt.Errorf("raise epochs: %w", err)
		}
		return nil
	})
}

func online(d device.Device) int64 {
	if d.Online || d.Away {
		return 1
	}
	return 0
}

// Seen implements device.Store.
func (s *Storage) Seen(d device.Device, change controlv1.DeviceChange) {
	s.later("what a device says of itself", func(ctx context.Context, q *db.Queries) error {
		actions, err := actionsJSON(d.Actions)
		if err != nil {
			return err
		}
		if _, err := q.UpdateDeviceSeen(ctx, db.UpdateDeviceSeenParams{
			ID: d.ID, LastSeen: millis(d.LastSeen), BootTag: text(d.Boot), Actions: actions, Agent: text(d.Agent),
			Platform: text(d.Platform), Epoch: int64(d.Epoch), Online: online(d),
		}); err != nil {
			return fmt.Errorf("update device: %w", err)
		}
		if change == controlv1.DeviceChange_DEVICE_CHANGE_UNSPECIFIED {
			return nil
		}
		return deviceEvent(ctx, q, d, d.LastSeen, change)
	}, nil)
}

// Rename implements device.Store.
func (s *Storage) Rename(ctx context.Context, d device.Device) error {
	now, actor := time.Now(), actorOf(ctx)
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.RenameDevice(ctx, db.RenameDeviceParams{Workspace: d.Workspace, ID: d.ID, Name: text(d.Name)}); err != nil {
			return fmt.Errorf("rename device: %w", err)
		}
		if err := deviceEvent(ctx, q, d, now, controlv1.DeviceChange_DEVICE_CHANGE_RENAMED); err != nil {
			return err
		}
		return audit(ctx, q, d.Workspace, now, deviceRecord(controlv1.AuditKind_AUDIT_KIND_DEVICE_RENAMED, actor, d))
	})
}

// Revoke implements device.Store: the device and its tokens go together.
func (s *Storage) Revoke(ctx context.Context, d device.Device) error {
	now, actor := time.Now(), actorOf(ctx)
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if _, err := q.RevokeDevice(ctx, db.RevokeDeviceParams{
			Workspace: d.Workspace, ID: d.ID, RevokedAt: millis(now),
		}); err != nil {
			return fmt.Errorf("revoke device: %w", err)
		}
		if _, err := q.RevokeDeviceTokens(ctx, db.RevokeDeviceTokensParams{
			Workspace: d.Workspace, DeviceID: d.ID, RevokedAt: millis(now),
		}); err != nil {
			return fmt.Errorf("revoke tokens of a device: %w", err)
		}
		if _, err := q.DeleteBrowser(ctx, d.ID); err != nil {
			return fmt.Errorf("delete browser state: %w", err)
		}
		if err := deviceEvent(ctx, q, d, now, controlv1.DeviceChange_DEVICE_CHANGE_REVOKED); err != nil {
			return err
		}
		return audit(ctx, q, d.Workspace, now, deviceRecord(controlv1.AuditKind_AUDIT_KIND_DEVICE_REVOKED, actor, d))
	})
}

func deviceRecord(kind controlv1.AuditKind, actor string, d device.Device) *controlv1.AuditRecord {
	return &controlv1.AuditRecord{Kind: kind, Actor: actor, SubjectId: d.ID, DeviceId: d.ID, Name: text(d.Name)}
}

// CodeMade implements device.PairStore.
func (s *Storage) CodeMade(ctx context.Context, workspace, by string, at time.Time) error {
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		return audit(ctx, q, workspace, at, &controlv1.AuditRecord{
			Kind: controlv1.AuditKind_AUDIT_KIND_PAIRING_CODE_CREATED, Actor: by,
		})
	})
}

// Pair implements device.PairStore.
func (s *Storage) Pair(ctx context.Context, d device.Device, token auth.Token, by string) error {
	actions, err := actionsJSON(d.Actions)
	if err != nil {
		return err
	}
	return s.write(ctx, store.Synced, func(ctx context.Context, q *db.Queries) error {
		if err := q.InsertDevice(ctx, db.InsertDeviceParams{
			ID: d.ID, Workspace: d.Workspace, Name: text(d.Name), Kind: int64(d.Kind), Agent: text(d.Agent), Platform: text(d.Platform),
			PairedAt: millis(d.PairedAt), LastSeen: millis(d.LastSeen), BootTag: text(d.Boot), Actions: actions,
			Epoch: int64(d.Epoch), Origin: text(d.Origin),
		}); err != nil {
			return fmt.Errorf("insert device: %w", err)
		}
		if err := insertToken(ctx, q, token); err != nil {
			return err
		}
		if err := deviceEvent(ctx, q, d, d.PairedAt, controlv1.DeviceChange_DEVICE_CHANGE_PAIRED); err != nil {
			return err
		}
		return audit(ctx, q, d.Workspace, d.PairedAt, deviceRecord(controlv1.AuditKind_AUDIT_KIND_DEVICE_PAIRED, by, d))
	})
}

// copiesPage is how many copies are read at once; one may be several MiB.
const copiesPage = 64

// Copies implements browser.Store.
func (s *Storage) Copies(ctx context.Context, after string) ([]browser.Copy, error) {
	rows, err := s.store.Read().ListBrowsers(ctx, db.ListBrowsersParams{AfterDeviceID: after, PageSize: copiesPage})
	if err != nil {
		return nil, fmt.Errorf("list browser states: %w", err)
	}
	out := make([]browser.Copy, 0, len(rows))
	for _, row := range rows {
		out = append(out, browser.Copy{Device: row.DeviceID, AsOf: fromMillis(row.AsOf), Body: row.Body})
	}
	return out, nil
}

// Keep implements browser.Store.
func (s *Storage) Keep(ctx context.Context, copies []browser.Copy) error {
	return s.store.Write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		for _, c := range copies {
			if err := q.UpsertBrowser(ctx, db.UpsertBrowserParams{
				DeviceID: c.Device, AsOf: millis(c.AsOf), Body: c.Body,
			}); err != nil {
				return fmt.Errorf("store browser state: %w", err)
			}
		}
		return nil
	})
}

// Drop implements browser.Store.
func (s *Storage) Drop(ctx context.Context, devices []string) error {
	return s.store.Write(ctx, store.Fast, func(ctx context.Context, q *db.Queries) error {
		for _, id := range devices {
			if _, err := q.DeleteBrowser(ctx, id); err != nil {
				return fmt.Errorf("remove browser state: %w", err)
			}
		}
		return nil
	})
}
